package fabric

import (
	"fmt"
	"net/http"

	"netkeep.internal/internal/fabric/seam"
	"netkeep.internal/internal/lang/fault"
	"netkeep.internal/internal/model"
	"netkeep.internal/internal/ops/audit"
	"netkeep.internal/internal/web/api"
	"netkeep.internal/internal/web/rest"
)

// linkIn is what is to change of a link.
type linkIn struct {
	StaticCost int64 `json:"staticCost" kind:"range=0..2147483647" doc:"What it costs whatever its latency; it stays as it is if not given."`
	Down       bool  `json:"down" doc:"Whether circuits are led over other links; it stays as it is if not given."`
}

// mountLinks offers to change links and to end them. What is said of a link holds as
// long as there is the link: it is in memory, as the link is.
func mountLinks(a *rest.API, s *api.Service) {
	rest.Handle(a, rest.Op{
		Method: http.MethodPatch, Path: "/links/{id}", Name: "patchLink", Tag: model.Links.Path,
		Doc: "Change what one of the links costs, and whether circuits are led over it, until it is lost or the controller is started again.", Auth: rest.Admin, Need: "link:update",
	}, func(c *rest.Call, in linkIn) (rest.Empty, error) {
		var change seam.LinkChange
		if c.Says("staticCost") {
			change.StaticCost = &in.StaticCost
		}
		if c.Says("down") {
			change.Down = &in.Down
		}
		found, err := s.Fabric.SetLink(c.Context(), c.Param("id"), change)
		return rest.Empty{}, told(c, s, audit.LinkChanged, found, err)
	})
	rest.Handle(a, rest.Op{
		Method: http.MethodDelete, Path: "/links/{id}", Name: "deleteLink", Tag: model.Links.Path,
		Doc: "Have both ends of one of the links close it; they make it again if they can.", Auth: rest.Admin, Need: "link:delete", BodyOptional: true,
	}, func(c *rest.Call, _ endIn) (rest.Empty, error) {
		found, err := s.Fabric.EndLink(c.Context(), c.Param("id"))
		return rest.Empty{}, told(c, s, audit.LinkEnded, found, err)
	})
}

// told has the audit log tell what became of a link, and says what went wrong.
func told(c *rest.Call, s *api.Service, event *audit.Event, found bool, err error) error {
	id := c.Param("id")
	if !found {
		return fault.NotFound(model.Links.Name, id)
	}
	s.Recorder.Note(audit.Fact{Event: event, By: c.Author(), Target: audit.Target{Kind: model.Links.Name, ID: id, Name: id}})
	if err != nil {
		return fault.Wrap(fault.CodeUnavailable, fmt.Errorf("it is done at this controller, and not known whether at the others: %w; try again", err))
	}
	return nil
}
