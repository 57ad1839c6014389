package client

import (
	"net/http"

	"netkeep.internal/internal/lang/fault"
	"netkeep.internal/internal/lang/kind"
	"netkeep.internal/internal/model"
	"netkeep.internal/internal/policy/request"
	"netkeep.internal/internal/web/api"
	"netkeep.internal/internal/web/rest"
)

// requestIn asks for access. It has no tags: an admin role may be about requests with
// some, and who asks must not choose who decides.
type requestIn struct {
	Service string `json:"service" kind:"required,range=1..256" doc:"Id or name of the service to ask for. Of one that cannot be asked for nobody learns whether there is one."`
	Minutes int    `json:"minutes" kind:"required,range=1..10080" doc:"For how many minutes, from the moment of the approval; the service says how many there may be."`
	Reason  string `json:"reason" kind:"required,range=1..1000,format=visible" doc:"What it is for, for those who decide."`
}

// mountRequests lets everybody ask for access, and those decide whom a service names.
func mountRequests(a *rest.API, s *api.Service) {
	op := func(method, path, name, doc string) rest.Op {
		return rest.Op{Method: method, Path: "/access-requests" + path, Name: name, Tag: "access-requests", Doc: doc, Auth: rest.Full}
	}
	own := api.Flag("isOwn", "Whether it is a request of the caller's own.", func(c *rest.Call, q *model.AccessRequest) bool {
		return q.IdentityID == api.Caller(c).Identity().ID
	})
	decides := api.Flag("canDecide", "Whether it waits for the caller to decide.", func(c *rest.Call, q *model.AccessRequest) bool {
		return q.Pending() && request.May(c.Snap, q, api.Caller(c).Identity().ID, s.Sessions.Now())
	})
	view := a.View("accessRequest", model.AccessRequests.Def, own, decides)
	rest.ShowList(a, op(http.MethodGet, "", "listAccessRequests", "List one's own requests for access, and those of others that wait for one's decision."), view,
		func(c *rest.Call) (rest.Records, error) {
			return request.Seen(c.Snap, api.Caller(c).Identity().ID, s.Sessions.Now()), nil
		})
	rest.Show(a, op(http.MethodGet, "/{id}", "detailAccessRequest", "Get a request of one's own, or one that waits for one's decision."), view,
		func(c *rest.Call, _ rest.None) (kind.Record, error) {
			id, who := c.Param("id"), api.Caller(c).Identity().ID
			q, ok := model.AccessRequests.Get(c.Snap, id)
			if !ok || q.IdentityID != who && (!q.Pending() || !request.May(c.Snap, q, who, s.Sessions.Now())) {
				return nil, fault.NotFound(model.AccessRequests.Name, id)
			}
			return q, nil
		})
	create := op(http.MethodPost, "", "createAccessRequest", "Ask for access to a service for a time.")
	create.Status = http.StatusCreated
	rest.Show(a, create, view, func(c *rest.Call, in requestIn) (kind.Record, error) {
		made, err := request.Desk{State: c.State, View: c.View}.Ask(c.Context(), c.Author(), api.Caller(c).Identity().ID,
			request.Asked{Service: in.Service, Minutes: in.Minutes, Reason: in.Reason})
		if err != nil {
			return nil, err
		}
		c.Snap = c.Latest() // it shows what was made
		return made, nil
	})
	rest.Handle(a, op(http.MethodPost, "/{id}/withdraw", "withdrawAccessRequest", "Take a request of one's own back, or give back what it was granted for."),
		func(c *rest.Call, _ rest.None) (rest.Empty, error) {
			return rest.Empty{}, request.Desk{State: c.State, View: c.View}.Withdraw(c.Context(), c.Author(), api.Caller(c).Identity().ID, c.Param("id"))
		})
	api.MountDecisions(a, rest.Full, "")
}
