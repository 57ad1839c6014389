package fabric

import (
	"fmt"
	"net/http"

	"netkeep.internal/internal/lang/fault"
	"netkeep.internal/internal/lang/kind"
	"netkeep.internal/internal/model"
	"netkeep.internal/internal/web/api"
	"netkeep.internal/internal/web/rest"
)

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
				return kind.AppendRef(dst, c.Shown(), model.Terminators.Def, rec.(*model.Circuit).TerminatorID)
			},
		},
		{
			Name: "path", Doc: "The way that it takes.", Schema: pathOutput.Schema(),
			Append: func(dst []byte, c *rest.Call, rec kind.Record) []byte {
				circuit := rec.(*model.Circuit)
				out := pathOut{Nodes: []rest.Ref{}, Links: []rest.Ref{}}
				for _, id := range circuit.Path {
					out.Nodes = append(out.Nodes, rest.RefOf(c, model.Routers.Def, id))
				}
				for _, id := range circuit.Links {
					out.Links = append(out.Links, rest.Ref{Links: kind.SelfAt("./" + model.Links.Path + "/" + id), Entity: model.Links.Path, ID: id, Name: id})
				}
				return pathOutput.Append(dst, &out)
			},
		},
	}
}

// endIn is what clients say of how a circuit is to end.
type endIn struct {
	Immediate bool `json:"immediate" doc:"Whether not to wait for what is on its way; it ends at once in either case."`
}

// mountEnd offers to end circuits.
func mountEnd(a *rest.API, s *api.Service) {
	rest.Handle(a, rest.Op{
		Method: http.MethodDelete, Path: "/circuits/{id}", Name: "deleteCircuit", Tag: model.Circuits.Path,
		Doc: "End one of the circuits at once; who used it may dial again.", Auth: rest.Admin, Need: "circuit:delete", BodyOptional: true,
	}, func(c *rest.Call, _ endIn) (rest.Empty, error) {
		ended, err := s.Fabric.EndCircuit(c.Context(), c.Param("id"))
		switch {
		case err != nil:
			return rest.Empty{}, fault.Wrap(fault.CodeUnavailable, fmt.Errorf("it is not known whether the circuit was ended: %w; try again", err))
		case !ended:
			return rest.Empty{}, fault.NotFound(model.Circuits.Name, c.Param("id"))
		}
		return rest.Empty{}, nil
	})
}
