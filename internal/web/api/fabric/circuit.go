package fabric

import (
	"net/http"
	"time"

	"netkeep.internal/internal/fabric/seam"
	"netkeep.internal/internal/lang/fault"
	"netkeep.internal/internal/lang/filter"
	"netkeep.internal/internal/lang/kind"
	"netkeep.internal/internal/model"
	"netkeep.internal/internal/web/api"
	"netkeep.internal/internal/web/rest"
)

// Circuit is a connection from somebody who dials a service to a host of it.
type Circuit struct {
	kind.Meta

	ClientID     string     `json:"clientId" kind:"server,ref=identity:cascade,as=client" doc:"Id of the identity that has dialled."`
	HostID       string     `json:"hostId" kind:"server,ref=identity:cascade,as=host" doc:"Id of the identity that hosts; empty if the router itself reaches the service."`
	ServiceID    string     `json:"serviceId" kind:"server,ref=service:cascade,as=service" doc:"Id of the service."`
	TerminatorID string     `json:"terminatorId" kind:"server" doc:"Id of the terminator where it leaves the network; empty if it is older than this controller."`
	SessionID    string     `json:"sessionId" kind:"server" doc:"Id of the session that it was dialled with."`
	Cost         int64      `json:"cost" kind:"server" doc:"What its path costs."`
	MovedAt      *time.Time `json:"movedAt" kind:"server,nullable" doc:"When it last got another path; null if it has its first."`
	// Routers and Links are shown as the path.
	Routers []string `json:"routers" kind:"server,hidden" doc:"Ids of the routers on its path."`
	Links   []string `json:"links" kind:"server,hidden" doc:"Ids of the links on its path."`
}

// circuits is the kind. No store knows it.
var circuits = kind.Define(kind.Spec[Circuit]{
	Name: "circuit", Path: "circuits", Doc: "Connections over the network.", Verbs: kind.Lists | kind.Gets | kind.Deletes,
})

func circuitOf(c *seam.Circuit) *Circuit {
	out := &Circuit{
		Meta: meta(c.ID, c.Made), ClientID: c.IdentityID, HostID: c.HostID, ServiceID: c.ServiceID, TerminatorID: c.TerminatorID, SessionID: c.SessionID,
		Cost: c.Path.Cost, Routers: c.Path.Routers, Links: c.Path.Links,
	}
	out.Tags = kind.Tags{}
	for name, value := range c.Tags {
		out.Tags[name] = value
	}
	if !c.Moved.IsZero() {
		out.MovedAt, out.UpdatedAt = &c.Moved, c.Moved
	}
	return out
}

// pathOut is the way that a circuit takes.
type pathOut struct {
	Nodes []rest.Ref `json:"nodes" doc:"Routers on the way, the one where somebody dials first."`
	Links []rest.Ref `json:"links" doc:"Links between them: the first joins the first two."`
}

var pathOutput = kind.NewOutput[pathOut]()

// circuitColumns are what answers show of a circuit beyond its record. Some
// clients take it for granted that there is a terminator.
func circuitColumns() []rest.Derived {
	return []rest.Derived{
		{
			Name: "terminator", Doc: "Address of the terminator; its id is empty if the circuit is older than this controller.", Schema: kind.RefTo("entityRef"),
			Append: func(dst []byte, c *rest.Call, rec kind.Record) []byte {
				return kind.AppendRef(dst, c.Snap, model.Terminators.Def, rec.(*Circuit).TerminatorID)
			},
		},
		{
			Name: "path", Doc: "The way that it takes.", Schema: pathOutput.Schema(),
			Append: func(dst []byte, c *rest.Call, rec kind.Record) []byte {
				circuit := rec.(*Circuit)
				out := pathOut{Nodes: []rest.Ref{}, Links: []rest.Ref{}}
				for _, id := range circuit.Routers {
					out.Nodes = append(out.Nodes, rest.RefOf(c, model.Routers.Def, id))
				}
				for _, id := range circuit.Links {
					out.Links = append(out.Links, rest.Ref{Links: kind.SelfAt("./" + links.Path + "/" + id), Entity: links.Path, ID: id, Name: id})
				}
				return pathOutput.Append(dst, &out)
			},
		},
		selfLink(circuits.Def),
	}
}

// circuitJoins let filters name a circuit's service and terminator by their ids,
// as clients of this API do.
func circuitJoins(kind.Reader) []filter.Symbol[kind.Record] {
	own := func(name string, of func(*Circuit) string) filter.Symbol[kind.Record] {
		return filter.Symbol[kind.Record]{Name: name, Type: filter.String, One: func(rec kind.Record) filter.Value {
			return filter.StringValue(of(rec.(*Circuit)))
		}}
	}
	return []filter.Symbol[kind.Record]{
		own("service", func(c *Circuit) string { return c.ServiceID }),
		own("terminator", func(c *Circuit) string { return c.TerminatorID }),
	}
}

// endIn is what clients say of how a circuit is to end.
type endIn struct {
	Immediate bool `json:"immediate" doc:"Whether not to wait for what is on its way; it ends at once in either case."`
}

// mountCircuits offers the circuits that there are, and to end them.
func mountCircuits(a *rest.API, s *api.Service) {
	view := a.View("circuit", circuits.Def, circuitColumns()...)
	view.Join(circuitJoins)
	op := func(method, path, name, doc string) rest.Op {
		return rest.Op{Method: method, Path: path, Name: name, Tag: circuits.Path, Doc: doc, Auth: rest.Admin}
	}
	rest.ShowList(a, op(http.MethodGet, "/circuits", "listCircuits", "List the circuits that this controller knows of."), view,
		func(*rest.Call) (rest.Records, error) { return each(s.Fabric.Circuits(), circuitOf), nil })
	rest.Show(a, op(http.MethodGet, "/circuits/{id}", "detailCircuit", "Get one of the circuits."), view,
		func(c *rest.Call, _ rest.None) (kind.Record, error) {
			found, ok := s.Fabric.Circuit(c.Param("id"))
			if !ok {
				return nil, fault.NotFound(circuits.Name, c.Param("id"))
			}
			return circuitOf(&found), nil
		})
	end := op(http.MethodDelete, "/circuits/{id}", "deleteCircuit", "End one of the circuits at once; who used it may dial again.")
	end.BodyOptional = true
	rest.Handle(a, end, func(c *rest.Call, _ endIn) (rest.Empty, error) {
		if !s.Fabric.EndCircuit(c.Param("id")) {
			return rest.Empty{}, fault.NotFound(circuits.Name, c.Param("id"))
		}
		return rest.Empty{}, nil
	})
}
