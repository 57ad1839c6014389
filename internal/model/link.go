package model

import (
	"time"

	"netkeep.internal/internal/lang/kind"
)

// Link is a connection between two routers.
type Link struct {
	kind.Meta

	SourceID      string        `json:"sourceRouterId" kind:"server,ref=router:cascade,as=sourceRouter" doc:"Id of the router that has dialled."`
	DestID        string        `json:"destRouterId" kind:"server,ref=router:cascade,as=destRouter" doc:"Id of the router that was dialled."`
	Protocol      string        `json:"protocol" kind:"server" doc:"What is spoken on the link, such as tls."`
	DialAddress   string        `json:"dialAddress" kind:"server" doc:"Address that was dialled."`
	Iteration     int           `json:"iteration" kind:"server" doc:"How often the link was dialled, after it was lost."`
	Cost          int64         `json:"cost" kind:"server" doc:"What it costs to send something over it, its latency in milliseconds included."`
	StaticCost    int64         `json:"staticCost" kind:"server" doc:"What it costs whatever its latency; 1 unless somebody said otherwise."`
	SourceLatency time.Duration `json:"sourceLatency" kind:"server" doc:"How many nanoseconds the router that has dialled has measured there and back; 0 if nothing yet."`
	DestLatency   time.Duration `json:"destLatency" kind:"server" doc:"How many nanoseconds the router that was dialled has measured there and back; 0 if nothing yet."`
	State         string        `json:"state" kind:"server,enum=Connected|Unknown" doc:"Connected if both ends are connected to this controller, so that it hears when the link is lost; Unknown if not."`
	Down          bool          `json:"down" kind:"server" doc:"Whether no circuits are led over the link, since somebody said so or one of its ends is not connected to this controller."`
	Conns         []LinkConn    `json:"connections" kind:"server,nofilter" doc:"Connections that it consists of; none if its router does not say."`
	ControllerID  string        `json:"controllerId" kind:"server,hidden,nofilter" doc:"Id of the controller that was told of the link."`
}

// LinkConn is one of the connections of a link.
type LinkConn struct {
	Type   string `json:"type" doc:"What it carries, such as link.default or link.ack; single if it is the only one."`
	Source string `json:"source" doc:"Address of the router that has dialled."`
	Dest   string `json:"dest" doc:"Address of the router that was dialled."`
}

// What is known of a link at the moment.
const (
	LinkConnected = "Connected"
	LinkUnknown   = "Unknown"
)

// Links is the kind.
var Links = kind.Define(kind.Spec[Link]{
	Name:    "link",
	Path:    "links",
	Doc:     "Connections between routers, with what each end has measured.",
	Verbs:   kind.Lists | kind.Gets,
	Columns: []string{"sourceRouter as from", "destRouter as to", "sourceLatency as latency", "destLatency as other end", "cost", "down", "id"},
	Lane:    kind.Volatile,
})

// Other is the end that is not the one named; ok is false if that is none.
func (l *Link) Other(routerID string) (other string, ok bool) {
	switch routerID {
	case l.SourceID:
		return l.DestID, true
	case l.DestID:
		return l.SourceID, true
	}
	return "", false
}
