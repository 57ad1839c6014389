package fabric

import (
	"net/http"
	"time"

	"netkeep.internal/internal/data/state"
	"netkeep.internal/internal/fabric/terminator"
	"netkeep.internal/internal/model"
	"netkeep.internal/internal/policy/access"
	"netkeep.internal/internal/web/api"
	"netkeep.internal/internal/web/rest"
)

// pathsOut is which ways an identity's traffic to a service may take.
type pathsOut struct {
	IdentityID string   `json:"identityId" doc:"Id of the identity."`
	Identity   string   `json:"identity" doc:"What people call the identity."`
	ServiceID  string   `json:"serviceId" doc:"Id of the service."`
	Service    string   `json:"service" doc:"What people call the service."`
	Strategy   string   `json:"terminatorStrategy" doc:"How one of several terminators is picked; all but smartrouting may pick another one each time."`
	Allowed    bool     `json:"allowed" doc:"Whether the identity can use the service now."`
	Missing    []string `json:"missing" doc:"What keeps it from that, in sentences; empty if it can."`
	Ways       []wayOut `json:"ways" doc:"One for each edge router that the identity may reach the service through, those that are online first; 20 at most."`
	More       int      `json:"more" doc:"How many further edge routers there are."`
}

// wayOut is the way from one edge router.
type wayOut struct {
	RouterID     string   `json:"routerId" doc:"Id of the edge router that the client connects to."`
	Router       string   `json:"router" doc:"What people call that router."`
	Online       bool     `json:"isOnline" doc:"Whether that router is connected to this controller."`
	Problem      string   `json:"problem" kind:"nullable" doc:"Why nothing can be dialled through that router; null if it can."`
	Hosts        int      `json:"hosts" doc:"How many terminators can be reached from it."`
	TerminatorID string   `json:"terminatorId" kind:"nullable" doc:"Id of the terminator that would be chosen; null if there is none."`
	Address      string   `json:"address" kind:"nullable" doc:"Where traffic leaves the network there; null if there is no terminator."`
	Cost         int64    `json:"cost" doc:"What the path costs, without what the terminator does."`
	Hops         []hopOut `json:"hops" doc:"Routers on the path, the edge router first; empty if there is none."`
}

// hopOut is one router on a path, and how the path gets there.
type hopOut struct {
	RouterID      string        `json:"routerId" doc:"Id of the router."`
	Router        string        `json:"router" doc:"What people call the router."`
	LinkID        string        `json:"linkId" kind:"nullable" doc:"Id of the link from the router before; null for the first."`
	Cost          int64         `json:"linkCost" doc:"What that link costs."`
	SourceLatency time.Duration `json:"sourceLatency" doc:"How many nanoseconds the router that dialled the link has measured; 0 if nothing yet."`
	DestLatency   time.Duration `json:"destLatency" doc:"How many nanoseconds the other one has measured; 0 if nothing yet."`
}

// maxWays is how many edge routers are looked at.
const maxWays = 20

// mountPaths offers to say which way traffic takes.
func mountPaths(a *rest.API, s *api.Service) {
	rest.Handle(a, rest.Op{
		Method: http.MethodGet, Path: "/paths/{identityId}/{serviceId}", Name: "detailPath", Tag: "paths",
		Doc:  "Tell which way the traffic of an identity to a service would take, or why there is none.",
		Auth: rest.Admin, Need: "access:read",
	}, func(c *rest.Call, _ rest.None) (pathsOut, error) { return pathsOf(c, s) })
}

func pathsOf(c *rest.Call, s *api.Service) (pathsOut, error) {
	e, err := s.Explainer().Explain(c.Snap, c.Param("identityId"), c.Param("serviceId"), model.Dial)
	if err != nil {
		return pathsOut{}, err
	}
	service, _ := model.Services.Get(c.Snap, e.ServiceID)
	out := pathsOut{
		IdentityID: e.IdentityID, Identity: e.Identity, ServiceID: e.ServiceID, Service: e.Service, Strategy: service.TerminatorStrategy,
		Allowed: e.Allowed, Missing: []string{}, Ways: []wayOut{},
	}
	for _, l := range e.Links {
		if !l.Passed {
			out.Missing = append(out.Missing, l.What)
		}
	}
	var offline []wayOut
	for rec := range c.Snap.Within(model.EdgeRouters.Def, access.CommonRouters(c.Snap, e.IdentityID, e.ServiceID)) {
		router := rec.(*model.EdgeRouter)
		way := wayOut{RouterID: router.ID, Router: router.Name, Hops: []hopOut{}}
		switch _, way.Online = s.Routers.Connected(router.ID); {
		case !way.Online && len(offline) < maxWays:
			way.Problem = "the router is not connected to this controller"
			offline = append(offline, way)
		case way.Online && len(out.Ways) < maxWays:
			follow(c.Snap, s, service, &way)
			out.Ways = append(out.Ways, way)
		default:
			out.More++
		}
	}
	room := min(maxWays-len(out.Ways), len(offline))
	out.Ways, out.More = append(out.Ways, offline[:room]...), out.More+len(offline)-room
	return out, nil
}

// follow finds out where a circuit from a router would end, and how it gets
// there, as a dial does.
func follow(snap *state.Snapshot, s *api.Service, service *model.Service, way *wayOut) {
	cost := func(to string) (int64, bool) { return s.Routers.Distance(way.RouterID, to) }
	way.Hosts = len(terminator.Offered(snap, s.Grants, service, cost, ""))
	chosen, ok := s.Choose(snap, terminator.Want{Service: service, Path: cost})
	if !ok {
		way.Problem = "no host can be reached from the router"
		return
	}
	way.TerminatorID, way.Address = chosen.ID, chosen.Address
	p, ok := s.Fabric.Path(way.RouterID, chosen.RouterID)
	if !ok {
		way.Problem = "the path to the host was lost just now"
		return
	}
	way.Cost = p.Cost
	for i, id := range p.Routers {
		hop := hopOut{RouterID: id}
		if r, ok := model.Routers.Get(snap, id); ok {
			hop.Router = r.Name
		}
		if i > 0 {
			hop.LinkID = p.Links[i-1]
			if l, ok := model.Links.Get(s.Fabric, hop.LinkID); ok {
				hop.Cost, hop.SourceLatency, hop.DestLatency = l.Cost, l.SourceLatency, l.DestLatency
			}
		}
		way.Hops = append(way.Hops, hop)
	}
}
