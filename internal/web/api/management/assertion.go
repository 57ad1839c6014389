package management

import (
	"net/http"

	"netkeep.internal/internal/lang/fault"
	"netkeep.internal/internal/policy/assertion"
	"netkeep.internal/internal/web/rest"
)

// mayOverride lets those make changes that break assertions whose roles say so.
func mayOverride(c *rest.Call) error {
	if c.May("assertion:override") {
		return nil
	}
	return fault.On(fault.CodeUnauthorized, "override", "needs the power assertion:override; make the change without it, or ask somebody who has it", "true")
}

// breachOut is an assertion that changes would break.
type breachOut struct {
	ID     string        `json:"id" doc:"Id of the assertion; empty in a plan for one that is yet to be created."`
	Name   string        `json:"name" doc:"What people call the assertion."`
	What   string        `json:"what" doc:"Why it would not hold, in a sentence: the first of those who would break it, and how many more there are."`
	Count  int           `json:"count" doc:"How many would break it who do not now: pairs of an identity and a service, services, or policies; 0 if there are too many to count, or if the assertion itself is wrong."`
	Listed []offenderOut `json:"listed" doc:"The first of them."`
}

// assertionOut is an assertion, and whether it holds.
type assertionOut struct {
	ID     string        `json:"id" doc:"Id of the assertion."`
	Name   string        `json:"name" doc:"What people call the assertion."`
	Holds  bool          `json:"holds" doc:"Whether it holds."`
	Idle   bool          `json:"idle" doc:"Whether it holds only since there is nobody, or no service, that it is about."`
	What   string        `json:"what" doc:"Why it does not hold, in a sentence; empty if it does."`
	Count  int           `json:"count" doc:"How many break it: pairs of an identity and a service, services, or policies; 0 if it holds or if there are too many to count."`
	Listed []offenderOut `json:"listed" doc:"The first of them."`
}

// offenderOut is who or what breaks an assertion.
type offenderOut struct {
	IdentityID string `json:"identityId" doc:"Id of the identity; empty if it is about none, and in a plan for one that is yet to be created."`
	Identity   string `json:"identity" doc:"Name of the identity; empty if it is about none."`
	ServiceID  string `json:"serviceId" doc:"Id of the service; empty if it is about none, and in a plan for one that is yet to be created."`
	Service    string `json:"service" doc:"Name of the service; empty if it is about none."`
	PolicyID   string `json:"policyId" doc:"Id of the policy that gives it; empty if there is none, and in a plan for one that is yet to be created."`
	Policy     string `json:"policy" doc:"Name of the policy; empty if there is none."`
}

type assertionsOut struct {
	Broken     int            `json:"broken" doc:"How many assertions do not hold."`
	Assertions []assertionOut `json:"assertions" doc:"All that there are, by name."`
}

// mountAssertions offers to look at all assertions.
func mountAssertions(a *rest.API) {
	rest.Handle(a, rest.Op{
		Method: http.MethodGet, Path: "/assertions/check", Name: "checkAssertions", Tag: "assertions",
		Doc:  "Say of every assertion whether it holds, and who breaks it.",
		Auth: rest.Admin, Need: "assertion:read", Params: []rest.Parameter{rest.AtParam},
	}, func(c *rest.Call, _ rest.None) (assertionsOut, error) {
		out := assertionsOut{Assertions: []assertionOut{}}
		for _, f := range assertion.Check(c.Snap) {
			one := assertionOut{ID: f.ID, Name: f.Name, Holds: f.Breach == nil, Idle: f.Idle, Listed: []offenderOut{}}
			if f.Breach != nil {
				out.Broken++
				one.What, one.Count, one.Listed = f.Breach.What, f.Breach.Count, reporter{}.offenders(*f.Breach)
			}
			out.Assertions = append(out.Assertions, one)
		}
		return out, nil
	})
}

// breaches says which assertions changes would break.
func (r reporter) breaches(all []assertion.Breach) []breachOut {
	out := make([]breachOut, len(all))
	for i, b := range all {
		out[i] = breachOut{r.id(b.ID), b.Name, b.What, b.Count, r.offenders(b)}
	}
	return out
}

func (r reporter) offenders(b assertion.Breach) []offenderOut {
	out := make([]offenderOut, len(b.Listed))
	for i, o := range b.Listed {
		out[i] = offenderOut{r.id(o.IdentityID), o.Identity, r.id(o.ServiceID), o.Service, r.id(o.PolicyID), o.Policy}
	}
	return out
}

// hiddenBreaches tells somebody who may not read assertions that they would be broken.
func hiddenBreaches(n int) []breachOut {
	out := make([]breachOut, n)
	for i := range out {
		out[i] = breachOut{What: "it would not hold; those who may read assertions see which it is", Listed: []offenderOut{}}
	}
	return out
}
