package posture

import (
	"strconv"
	"time"

	"netkeep.internal/internal/lang/kind"
	"netkeep.internal/internal/model"
)

// policyQueries is what listings of services say of a policy that gives one.
type policyQueries struct {
	PolicyID   string  `json:"policyId" doc:"Id of the service policy."`
	PolicyType string  `json:"policyType" kind:"required,enum=Dial|Bind" doc:"What the policy allows: Dial is to use the service, Bind to host it."`
	IsPassing  bool    `json:"isPassing" doc:"Whether the device passes all checks of the policy, so that it counts."`
	Queries    []query `json:"postureQueries" doc:"The checks of the policy, each with what it asks of the device."`
}

// query asks a client for a report, and says what the last one led to.
type query struct {
	ID               string         `json:"id" doc:"Id of the posture check."`
	CreatedAt        time.Time      `json:"createdAt" doc:"When the posture check was created."`
	UpdatedAt        time.Time      `json:"updatedAt" doc:"When the check last changed, or last asked for a new code because the device was woken or unlocked."`
	Tags             kind.Tags      `json:"tags" doc:"Marks on the posture check."`
	Links            kind.Links     `json:"_links" doc:"Where the posture check is."`
	QueryType        string         `json:"queryType" kind:"required,enum=OS|PROCESS|DOMAIN|MAC|MFA|PROCESS_MULTI" doc:"What to report on."`
	IsPassing        bool           `json:"isPassing" doc:"Whether the device passes the check now."`
	Timeout          int            `json:"timeout" doc:"For how many seconds one code is enough; -1 for as long as the session lasts."`
	TimeoutRemaining int            `json:"timeoutRemaining" doc:"For how many seconds the check still passes; -1 for as long as nothing changes."`
	Process          *queryProcess  `json:"process" kind:"omit" doc:"The program to report on; left out for checks of other types."`
	Processes        []queryProcess `json:"processes" doc:"The programs to report on; empty for checks of other types."`
}

// queryProcess is a program to report on.
type queryProcess struct {
	OSType string `json:"osType" doc:"Operating system on which the program is to be looked for."`
	Path   string `json:"path" doc:"Where the program is on the device."`
}

var queryOutput = kind.NewOutput[query]()

// QueriesSchema describes what AppendQueries adds.
func QueriesSchema() kind.Schema { return kind.NewOutput[policyQueries]().Schema() }

// AppendQueries adds what listings say of a policy with these checks: a query
// for each.
func (e *Evaluator) AppendQueries(dst []byte, policyID, policyType string, checks []*model.PostureCheck) []byte {
	dst = append(dst, `{"policyId":`...)
	dst = kind.AppendText(dst, policyID)
	dst = append(dst, `,"policyType":`...)
	dst = kind.AppendText(dst, policyType)
	dst = append(dst, `,"isPassing":`...)
	dst = strconv.AppendBool(dst, e.Passing(checks))
	dst = append(dst, `,"postureQueries":[`...)
	for i, c := range checks {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = e.appendQuery(dst, c)
	}
	return append(dst, `]}`...)
}

// appendQuery adds the query of a check. Many policies have it, so it is
// written once and remembered.
func (e *Evaluator) appendQuery(dst []byte, c *model.PostureCheck) []byte {
	f := e.find(c)
	if f.query == nil {
		f.query = queryOutput.Append(nil, e.queryOf(c, f.Result))
	}
	return append(dst, f.query...)
}

func (e *Evaluator) queryOf(c *model.PostureCheck, r Result) *query {
	q := &query{
		ID: c.ID, CreatedAt: c.CreatedAt.Time(), UpdatedAt: e.updatedAt(c), Tags: c.Tags,
		Links:     kind.SelfAt("./" + model.PostureChecks.Path + "/" + c.ID),
		QueryType: c.TypeID, IsPassing: r.Passing, Timeout: r.Timeout, TimeoutRemaining: r.TimeoutRemaining,
	}
	if c.Process != nil {
		q.Process = &queryProcess{c.Process.OSType, c.Process.Path}
	}
	for _, p := range c.Processes {
		q.Processes = append(q.Processes, queryProcess{p.OSType, p.Path})
	}
	return q
}

// updatedAt is when the query last became another one: when its check changed,
// or when the device was woken or unlocked if the check asks for a code then.
func (e *Evaluator) updatedAt(c *model.PostureCheck) time.Time {
	at := c.UpdatedAt.Time()
	if c.OnlyTells() {
		return at
	}
	if c.TypeID == TypeMFA && c.PromptOnWake {
		at = later(at, e.facts.woken.Last)
	}
	if c.TypeID == TypeMFA && c.PromptOnUnlock {
		at = later(at, e.facts.unlocked.Last)
	}
	return at
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}
