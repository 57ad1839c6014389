package management

import (
	"net/http"
	"time"

	"netkeep.internal/internal/lang/filter"
	"netkeep.internal/internal/lang/kind"
	"netkeep.internal/internal/ops/audit"
	"netkeep.internal/internal/web/api"
	"netkeep.internal/internal/web/rest"
)

// invitationOut is what a controller joins with.
type invitationOut struct {
	Token     string    `json:"token" doc:"What the controller that joins is started with, once."`
	ExpiresAt time.Time `json:"expiresAt" doc:"Until when it is good."`
}

var memberOutput = kind.NewOutput[api.Member]()

// mountCluster offers the care of the controllers of a network.
func mountCluster(a *rest.API, s *api.Service) {
	op := func(method, path, name, need, doc string) rest.Op {
		return rest.Op{Method: method, Path: "/cluster/" + path, Name: name, Tag: "cluster", Doc: doc, Auth: rest.Admin, Need: need}
	}
	rest.Handle(a, op(http.MethodPost, "invitations", "inviteController", "cluster:invite", "Make a token with which one controller may join the network."),
		func(c *rest.Call, _ rest.None) (invitationOut, error) {
			token, expires, err := s.Cluster.Invite(c.Context())
			err = s.NoteMember(c, audit.MemberInvited, "", err)
			return invitationOut{token, expires}, err
		})
	list := op(http.MethodGet, "members", "listClusterMembers", "cluster:read", "List the controllers that keep the store together, or that share one that others keep.")
	list.Entries = memberOutput.Schema()
	rest.Handle(a, list, func(c *rest.Call, _ rest.None) (rest.List, error) {
		all, err := s.Cluster.Members(c.Context())
		return rest.List{
			Page: filter.Page{Limit: int64(len(all))}, Total: int64(len(all)), Fields: []string{}, Len: len(all),
			Append: func(dst []byte, i int) []byte { return memberOutput.Append(dst, &all[i]) },
		}, err
	})
	rest.Handle(a, op(http.MethodPost, "members/{id}/promote", "promoteClusterMember", "cluster:promote", "Give a controller a vote, named by the id of the member or that of the controller."),
		func(c *rest.Call, _ rest.None) (rest.Empty, error) {
			return rest.Empty{}, s.NoteMember(c, audit.MemberPromoted, c.Param("id"), s.Cluster.Promote(c.Context(), c.Param("id")))
		})
	rest.Handle(a, op(http.MethodDelete, "members/{id}", "removeClusterMember", "cluster:remove", "Take a controller out for good, named by the id of the member or that of the controller."),
		func(c *rest.Call, _ rest.None) (rest.Empty, error) {
			return rest.Empty{}, s.NoteMember(c, audit.MemberRemoved, c.Param("id"), s.Cluster.Remove(c.Context(), c.Param("id")))
		})
}
