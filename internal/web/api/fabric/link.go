package fabric

import (
	"net/http"
	"time"

	"netkeep.internal/internal/fabric/seam"
	"netkeep.internal/internal/lang/fault"
	"netkeep.internal/internal/lang/kind"
	"netkeep.internal/internal/web/api"
	"netkeep.internal/internal/web/rest"
)

// Outputs of what is said of routers.
var (
	versionOutput = kind.NewOutput[seam.Version]()
	addressOutput = kind.NewOutput[seam.Address]()
	connOutput    = kind.NewOutput[seam.Conn]()
)

// Link is a connection between two routers.
type Link struct {
	kind.Meta

	SourceID      string `json:"sourceRouterId" kind:"server,ref=router:cascade,as=sourceRouter" doc:"Id of the router that has dialled."`
	DestID        string `json:"destRouterId" kind:"server,ref=router:cascade,as=destRouter" doc:"Id of the router that was dialled."`
	Protocol      string `json:"protocol" kind:"server" doc:"What is spoken on the link, such as tls."`
	DialAddress   string `json:"dialAddress" kind:"server" doc:"Address that was dialled."`
	Iteration     int    `json:"iteration" kind:"server" doc:"How often the link was dialled, after it was lost."`
	Cost          int64  `json:"cost" kind:"server" doc:"What it costs to send something over it, its latency in milliseconds included."`
	StaticCost    int64  `json:"staticCost" kind:"server" doc:"What it costs whatever its latency."`
	SourceLatency int64  `json:"sourceLatency" kind:"server" doc:"How many nanoseconds the router that has dialled has measured there and back; 0 if nothing yet."`
	DestLatency   int64  `json:"destLatency" kind:"server" doc:"How many nanoseconds the router that was dialled has measured there and back; 0 if nothing yet."`
	State         string `json:"state" kind:"server,enum=Connected|Unknown" doc:"Connected if both ends are connected to this controller, so that it hears when the link is lost; Unknown if not."`
	Down          bool   `json:"down" kind:"server" doc:"Whether no circuits are led over the link, since one of its ends is not connected to this controller."`
}

// links is the kind. No store knows it.
var links = kind.Define(kind.Spec[Link]{Name: "link", Path: "links", Doc: "Connections between routers.", Verbs: kind.Lists | kind.Gets})

func linkOf(l *seam.Link) *Link {
	state := "Connected"
	if !l.Usable {
		state = "Unknown"
	}
	return &Link{
		Meta: meta(l.ID, l.Since), SourceID: l.From, DestID: l.To, Protocol: l.Protocol, DialAddress: l.Address, Iteration: int(l.Iteration),
		Cost: l.Cost, StaticCost: l.StaticCost, SourceLatency: int64(l.Latency[0]), DestLatency: int64(l.Latency[1]),
		State: state, Down: !l.Usable,
	}
}

func meta(id string, since time.Time) kind.Meta {
	return kind.Meta{ID: id, CreatedAt: since, UpdatedAt: since}
}

// linkColumns are what answers show of a link beyond its record.
func linkColumns(s *api.Service) []rest.Derived {
	return []rest.Derived{
		{
			Name: "connections", Doc: "Connections that it consists of; none if its router does not say.", Schema: kind.ListOf(connOutput.Schema()),
			Append: func(dst []byte, _ *rest.Call, rec kind.Record) []byte {
				l, _ := s.Fabric.Link(rec.Base().ID) // it may be gone by now
				return appendList(dst, connOutput, l.Conns)
			},
		},
		selfLink(links.Def),
	}
}

// mountLinks offers the links between routers.
func mountLinks(a *rest.API, s *api.Service) {
	view := a.View("link", links.Def, linkColumns(s)...)
	op := func(path, name, doc string) rest.Op {
		return rest.Op{Method: http.MethodGet, Path: path, Name: name, Tag: links.Path, Doc: doc, Auth: rest.Admin}
	}
	rest.ShowList(a, op("/links", "listLinks", "List the links between routers that this controller knows of."), view,
		func(*rest.Call) (rest.Records, error) { return each(s.Fabric.Links(), linkOf), nil })
	rest.Show(a, op("/links/{id}", "detailLink", "Get one of the links."), view, func(c *rest.Call, _ rest.None) (kind.Record, error) {
		l, ok := s.Fabric.Link(c.Param("id"))
		if !ok {
			return nil, fault.NotFound(links.Name, c.Param("id"))
		}
		return linkOf(&l), nil
	})
}

// each yields what is in memory as records.
func each[T any, R kind.Record](all []T, of func(*T) R) rest.Records {
	return func(yield func(kind.Record) bool) {
		for i := range all {
			if !yield(of(&all[i])) {
				return
			}
		}
	}
}
