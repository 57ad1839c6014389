package api

import (
	"net/http"

	"netkeep.internal/internal/lang/fault"
	"netkeep.internal/internal/model"
	"netkeep.internal/internal/policy/request"
	"netkeep.internal/internal/web/rest"
)

// denyIn says why.
type denyIn struct {
	Answer string `json:"answer" kind:"range=0..1000,format=visible" doc:"Why it is denied, for who asked; nothing if not given."`
}

// decisionOut is what came of a decision.
type decisionOut struct {
	Standing  string `json:"standing" doc:"What became of the request: approved, denied, or pending where somebody else has to approve as well."`
	Approvals int    `json:"approvals" doc:"How many have approved it."`
	Needed    int    `json:"needed" doc:"How many have to."`
}

// MountDecisions offers to decide on requests for access. Whoever calls is judged as
// they are when it is written.
func MountDecisions(a *rest.API, auth rest.Access, need string) {
	op := func(verb, doc string) rest.Op {
		return rest.Op{
			Method: http.MethodPost, Path: "/access-requests/{id}/" + verb, Name: verb + "AccessRequest", Tag: "access-requests",
			Doc: doc, Auth: auth, Need: need, BodyOptional: true,
		}
	}
	rest.Handle(a, op("approve", "Approve a request of somebody else: with the last that is needed they have what they asked for, for the time that they did."),
		func(c *rest.Call, _ rest.None) (decisionOut, error) {
			who, err := decider(c)
			if err != nil {
				return decisionOut{}, err
			}
			is, err := request.Desk{State: c.State, View: c.View}.Approve(c.Context(), c.Author(), who, c.Param("id"))
			if err != nil {
				return decisionOut{}, err
			}
			out := decisionOut{Standing: is.Standing, Approvals: len(is.Approvals), Needed: len(is.Approvals)}
			if s, ok := model.Services.Get(c.Latest(), is.ServiceID); ok && is.Pending() && s.Requests != nil {
				out.Needed = s.Requests.Approvals
			}
			return out, nil
		})
	rest.Handle(a, op("deny", "Deny a request of somebody else, with a word why."),
		func(c *rest.Call, in denyIn) (rest.Empty, error) {
			who, err := decider(c)
			if err != nil {
				return rest.Empty{}, err
			}
			return rest.Empty{}, request.Desk{State: c.State, View: c.View}.Deny(c.Context(), c.Author(), who, c.Param("id"), in.Answer)
		})
}

// decider is the identity that decides. A machine may be that of whoever asks.
func decider(c *rest.Call) (identity string, err error) {
	who := Caller(c)
	if who == nil {
		return "", fault.New(fault.CodeUnauthorized, "people decide on requests, not machines; log in for that")
	}
	return who.Identity().ID, nil
}
