package fabric

import (
	"netkeep.internal/internal/data/state"
	"netkeep.internal/internal/fabric/control"
	"netkeep.internal/internal/fabric/herald"
	"netkeep.internal/internal/fabric/usage"
	"netkeep.internal/internal/model"
	"netkeep.internal/internal/wire/message"
)

// tellRouter tells those who look of a router that comes or goes.
func (f *Fabric) tellRouter(r *control.Router, verb string) {
	f.opt.Herald.Tell(herald.Event{
		Ref: state.Ref{Def: model.Presences.Def, ID: r.ID}, Name: r.Name, Verb: verb, At: f.opt.Now(), Record: r.Presence(),
		By: state.Author{Kind: model.Routers.Name, ID: r.ID, Name: r.Name, Source: r.Remote()},
	})
}

// tellLink tells them of a link.
func (f *Fabric) tellLink(link *model.Link, verb, reason string) {
	f.opt.Herald.Tell(herald.Event{
		Ref: state.Ref{Def: model.Links.Def, ID: link.ID}, Name: link.ID, Verb: verb, Reason: reason, At: f.opt.Now(), Record: link,
		By: state.Author{Kind: model.Routers.Name, ID: link.SourceID},
	})
}

// tellUsage tells them what a circuit has carried. What a router says of whose it is
// does not count.
func (f *Fabric) tellUsage(routerID, circuitID string, of usage.Parties, span *message.Usage) {
	if !f.opt.Herald.Wanted(herald.Usage) {
		return
	}
	detail := herald.Carried{RouterID: routerID, Start: span.Start, Length: span.Length, Bytes: map[string]uint64{}, Tags: map[string]string{"clientId": of.Client, "hostId": of.Host, "serviceId": of.Service}}
	for direction, n := range span.Buckets[circuitID].Bytes {
		if len(detail.Bytes) < maxDirections && len(direction) <= maxDirection {
			detail.Bytes[direction] = n
		}
	}
	f.opt.Herald.Tell(herald.Event{Ref: state.Ref{Def: herald.Usage, ID: circuitID}, Verb: "carried", At: f.opt.Now(), Detail: detail})
}

// Bounds of what is told on of what a router says.
const (
	maxDirections = 16
	maxDirection  = 32
)
