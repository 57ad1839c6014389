package fabric

import (
	"cmp"
	"net/http"

	"netkeep.internal/internal/lang/filter"
	"netkeep.internal/internal/lang/kind"
	"netkeep.internal/internal/ops/audit"
	"netkeep.internal/internal/ops/build"
	"netkeep.internal/internal/web/api"
	"netkeep.internal/internal/web/rest"
)

// memberOut is a controller in the words of clients of this API.
type memberOut struct {
	ID        string `json:"id" doc:"Id of the controller; that of the member in the store if it has never been started."`
	Address   string `json:"address" doc:"Host and port where the others reach its store."`
	Voter     bool   `json:"voter" doc:"Whether it decides with the others."`
	Leader    bool   `json:"leader" doc:"Whether it leads the others at present."`
	Version   string `json:"version" doc:"What it runs; empty if it has never been started."`
	Connected bool   `json:"connected" doc:"Whether it is there."`
	ReadOnly  bool   `json:"readOnly" doc:"Whether it takes no writes, which is never so."`
}

var memberOutput = kind.NewOutput[memberOut]()

// removeIn names a controller.
type removeIn struct {
	ID string `json:"id" kind:"required,range=1..256" doc:"Id of the controller, or of the member in the store."`
}

// mountCluster offers the care of controllers as public tools ask for it.
func mountCluster(a *rest.API, s *api.Service) {
	op := func(method, path, name, need, doc string) rest.Op {
		return rest.Op{Method: method, Path: "/cluster/" + path, Name: name, Tag: "cluster", Doc: doc, Auth: rest.Admin, Need: need}
	}
	list := op(http.MethodGet, "list-members", "clusterListMembers", "cluster:read", "List the controllers that keep the store together, or that share one that others keep.")
	list.Entries = memberOutput.Schema()
	rest.Handle(a, list, func(c *rest.Call, _ rest.None) (rest.List, error) {
		all, err := membersOf(c, s)
		return rest.List{
			Page: filter.Page{Limit: int64(len(all))}, Total: int64(len(all)), Fields: []string{}, Len: len(all),
			Append: func(dst []byte, i int) []byte { return memberOutput.Append(dst, &all[i]) },
		}, err
	})
	rest.Handle(a, op(http.MethodPost, "remove-member", "clusterMemberRemove", "cluster:remove", "Take a controller out for good."),
		func(c *rest.Call, in removeIn) (rest.Empty, error) {
			return rest.Empty{}, s.NoteMember(c, audit.MemberRemoved, in.ID, s.Cluster.Remove(c.Context(), in.ID))
		})
	api.MountElsewhere(a, []api.Elsewhere{
		{
			Op:  op(http.MethodPost, "add-member", "clusterMemberAdd", "cluster:invite", ""),
			Why: "a controller joins by itself with a token that netkeep cluster invite makes, and gets the keys of the network with it",
		},
		{
			Op:  op(http.MethodPost, "transfer-leadership", "clusterTransferLeadership", "cluster:promote", ""),
			Why: "which controller leads the others is theirs to find out, and makes no difference to anybody else",
		},
	})
}

// membersOf are the controllers; one that keeps its store alone is among them too.
func membersOf(c *rest.Call, s *api.Service) (all []memberOut, err error) {
	members, err := s.Cluster.Members(c.Context())
	for _, m := range members {
		all = append(all, memberOut{ID: cmp.Or(m.Name, m.ID), Address: m.Address, Voter: m.Vote, Leader: m.Leader, Version: m.Version, Connected: m.Online})
	}
	if len(all) == 0 && err == nil {
		all = append(all, memberOut{ID: s.ControllerID, Address: s.Address, Voter: true, Leader: true, Version: build.Read().Version, Connected: true})
	}
	return all, err
}
