package explain

import (
	"fmt"
	"slices"
	"strings"

	"netkeep.internal/internal/auth/authn"
	"netkeep.internal/internal/lang/advice"
	"netkeep.internal/internal/model"
	"netkeep.internal/internal/policy/access"
)

// moment is how times are written.
const moment = "2006-01-02 15:04:05 MST"

// verb is what the identity would do to the service.
func (q *question) verb() string {
	if q.typ == model.Bind {
		return "host"
	}
	return "dial"
}

// identityLink holds if the identity may authenticate at all.
func (q *question) identityLink() Link {
	l := Link{Link: identityLink, Because: []Cause{q.cause("")}}
	switch flaw := q.Sessions.Barred(q.snap, q.identity.ID); {
	case flaw == "":
		l.Passed, l.What = true, q.identity.Name+" exists and is enabled"
	case flaw == authn.Disabled:
		l.What = q.identity.Name + " is disabled"
		if until := q.identity.DisabledUntil; until != nil {
			l.What += " until " + until.Format(moment)
		}
		l.Remedy = advice.Command("enable", model.Identities.Name, q.identityName())
	default:
		l.What = string(flaw)
		l.Remedy = "give " + q.identity.Name + " an authentication policy that exists"
	}
	return l
}

// cause is the identity, as a policy selects it by a role.
func (q *question) cause(role string) Cause {
	c := cause(model.Identities.Def, q.identity.ID, q.identity.Name, role)
	c.Until = lent(q.snap, q.identity, role)
	attribute, _ := strings.CutPrefix(role, "#")
	for _, id := range q.identity.ProvidedBy(attribute) {
		if signer, ok := model.ExtJWTSigners.Get(q.snap, id); ok {
			c.From = signer.Name
			break
		}
	}
	return c
}

// sessionLink holds if the identity has an API session that is good for
// dialing and hosting.
func (q *question) sessionLink() Link {
	l, who := Link{Link: sessionLink, Because: []Cause{}}, q.identity.Name
	if len(q.sessions) == 0 {
		l.What, l.Remedy = who+" has no API session", q.howToBegin()
		return q.orLocked(l)
	}
	first := q.sessions[0]
	opened := "of " + first.CreatedAt.Time().Format(moment)
	if first.IPAddress != "" {
		opened += " from " + first.IPAddress
	}
	l.Because = append(l.Because, cause(model.APISessions.Def, first.ID, opened, ""))
	switch first.flaw {
	case "":
		l.Passed, l.What = true, who+" has an API session that is good"
	case authn.Partial:
		l.What, l.Remedy = fmt.Sprintf("%s has no API session that is good: %s", who, first.flaw), "have "+who+" show a one-time or recovery code"
		return l
	default:
		l.What, l.Remedy = fmt.Sprintf("%s has no API session that is good: %s", who, first.flaw), "have "+who+" authenticate again"
		return q.orLocked(l)
	}
	if policy, ok := model.AuthPolicies.Get(q.snap, q.identity.AuthPolicyID); ok && policy.Secondary.RequireExtJWTSigner != "" {
		l.What += ", of which each request has to carry a token of another issuer as well"
		l.Because = append(l.Because, cause(model.AuthPolicies.Def, policy.ID, policy.Name, ""))
	}
	return l
}

// orLocked is the link of somebody who has to authenticate, and may not be able
// to.
func (q *question) orLocked(l Link) Link {
	if q.Locked(q.identity.ID) {
		l.What += ", and its password is shut out where it was wrong too often"
		l.Remedy = "have its password work again by " + advice.Command("enable", model.Identities.Name, q.identityName()) + ", and have it authenticate"
	}
	return l
}

// howToBegin is what somebody has to do who has no API session.
func (q *question) howToBegin() string {
	_, has := model.Authenticators.Find(q.snap, "identityId", q.identity.ID)
	_, invited := model.Enrollments.Find(q.snap, "identityId", q.identity.ID)
	switch {
	case has || q.identity.ExternalID != "":
		return "have the client of " + q.identity.Name + " authenticate"
	case invited:
		return "have " + q.identity.Name + " enroll with the invitation that is waiting; for another: " + advice.Command("invite", q.identityName())
	}
	return advice.Command("invite", q.identityName())
}

// policyLink holds if a service policy gives the service.
func (q *question) policyLink() Link {
	l, who := Link{Link: servicePolicyLink, Because: []Cause{}}, q.identity.Name
	l.Passed = q.chain.Granted() == nil
	policies := q.chain.Policies()
	for _, p := range policies {
		l.Because = append(l.Because, q.causes(p)...)
	}
	switch {
	case len(policies) > 0:
		l.What = fmt.Sprintf("%s may %s %s by %s", who, q.verb(), q.service.Name, policyNames(policies))
		if until := Until(q.snap, q.identity, q.service.ID, q.typ); until != nil {
			l.What += ", until " + until.UTC().Format(moment)
		}
	case l.Passed:
		l.What = fmt.Sprintf("%s is an admin, and admins may %s every service without a policy", who, q.verb())
		l.Because = append(l.Because, q.cause(""))
	default:
		l.What = fmt.Sprintf("no service policy lets %s %s %s", who, q.verb(), q.service.Name)
		l.mend(q.grant())
	}
	return l
}

// causes is a policy and the roles by which it selects identity and service.
func (q *question) causes(p *model.ServicePolicy) []Cause {
	by := cause(model.ServicePolicies.Def, p.ID, p.Name, "")
	by.Until = p.ValidUntil
	list := []Cause{by}
	for _, role := range access.ServicePolicyIdentities.Reasons(p, q.identity) {
		list = append(list, q.cause(role))
	}
	for _, role := range access.ServicePolicyServices.Reasons(p, q.service) {
		list = append(list, cause(model.Services.Def, q.service.ID, q.service.Name, role))
	}
	return list
}

func policyNames(policies []*model.ServicePolicy) string {
	var names []string
	for _, p := range policies {
		names = append(names, p.Name)
	}
	if len(names) == 1 {
		return "policy " + names[0]
	}
	return "policies " + some(names)
}

// some names the first of a list.
func some(names []string) string {
	if more := len(names) - maxNamesInSentence; more > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:maxNamesInSentence], ", "), more)
	}
	return strings.Join(names, ", ")
}

// postureLink holds if the device passes the checks of one of the policies.
func (q *question) postureLink() Link {
	l := Link{Link: postureLink, Because: []Cause{}}
	l.Passed = q.chain.Cleared() == nil
	var said []string
	var failed []*model.PostureCheck // of the policy that lacks least
	policies, told := q.chain.Policies(), false
	if i := slices.IndexFunc(policies, q.chain.Meets); l.Passed && i >= 0 {
		policies = policies[i:]
	} else {
		told = l.Passed
	}
	for _, p := range policies {
		if l.Passed && !q.chain.Passes(p) {
			continue
		}
		words, causes, fails := q.judge(p)
		said, l.Because = append(said, words), append(l.Because, causes...)
		if failed == nil || len(fails) < len(failed) {
			failed = fails
		}
		if l.Passed {
			break // one is enough
		}
	}
	switch {
	case len(said) == 0:
		l.What = "there is no policy whose posture checks would have to pass"
	case l.Passed && told:
		l.What = said[0] + fmt.Sprintf("; %s would be refused if that were enforced", q.identity.Name)
	case l.Passed:
		l.What = said[0]
	default:
		l.What = "no policy that gives the service counts: " + some(said)
		if len(q.sessions) == 0 {
			l.What += "; no device has reported anything"
		}
		l.Remedy = q.howToPass(failed)
	}
	return l
}

// judge says of the checks of a policy which pass.
func (q *question) judge(p *model.ServicePolicy) (words string, causes []Cause, failed []*model.PostureCheck) {
	causes = []Cause{cause(model.ServicePolicies.Def, p.ID, p.Name, "")}
	var results []string
	for _, check := range access.Checks(q.snap, p) {
		result := check.Name + " passes"
		switch judged := q.chain.Check(check); {
		case judged.WouldRefuse:
			result = check.Name + " fails and only reports"
		case !judged.Passing:
			result = check.Name + " fails"
			failed = append(failed, check)
		}
		results = append(results, result)
		for _, role := range access.ServicePolicyChecks.Reasons(p, check) {
			causes = append(causes, cause(model.PostureChecks.Def, check.ID, check.Name, role))
		}
	}
	if len(results) == 0 {
		return "policy " + p.Name + " has no posture checks", causes, nil
	}
	return "of policy " + p.Name + ", " + some(results), causes, failed
}

// howToPass says what the device lacks.
func (q *question) howToPass(failed []*model.PostureCheck) string {
	var steps []string
	for _, check := range failed {
		if check.TypeID == "MFA" {
			steps = append(steps, "have "+q.identity.Name+" show a one-time code for "+check.Name)
		} else {
			steps = append(steps, fmt.Sprintf("have the device of %s meet and report what %s (%s) asks for", q.identity.Name, check.Name, check.TypeID))
		}
	}
	return strings.Join(steps, "; ")
}
