package fabric

import (
	"log/slog"
	"time"

	"netkeep.internal/internal/data/state"
	"netkeep.internal/internal/fabric/control"
	"netkeep.internal/internal/fabric/herald"
	"netkeep.internal/internal/fabric/usage"
	"netkeep.internal/internal/model"
	"netkeep.internal/internal/wire"
	"netkeep.internal/internal/wire/message"
)

// tellRouter tells those who look of a router that comes or goes.
func (f *Fabric) tellRouter(r *control.Router, verb string) {
	from, _ := r.Met()
	f.opt.Herald.Tell(herald.Event{
		Ref: state.Ref{Def: model.Presences.Def, ID: r.ID}, Name: r.Name, Verb: verb, At: f.opt.Now(), Record: r.Presence(),
		By: state.Author{Kind: model.Routers.Name, ID: r.ID, Name: r.Name, Source: from},
	})
}

// tellConnected tells them that it has connected.
func (f *Fabric) tellConnected(r *control.Router) {
	if f.opt.Herald.Wanted(herald.Connections) {
		from, to := r.Met()
		f.tellConnection(herald.Connection{
			From: herald.Peer{Kind: herald.Router, ID: r.ID, Address: from}, To: herald.Peer{Kind: herald.Controller, ID: f.ID(), Address: to}, At: f.opt.Now(),
		})
	}
}

func (f *Fabric) tellConnection(made herald.Connection) {
	f.opt.Herald.Tell(herald.Event{Ref: state.Ref{Def: herald.Connections, ID: made.From.ID}, Verb: "connected", At: f.opt.Now(), Detail: made})
}

// tellClient tells them when an identity has connected to a router, as that says. A
// time that cannot be is the present one.
func (f *Fabric) tellClient(r *control.Router, identityID string, times []message.ConnectTime) {
	if len(times) == 0 || !f.opt.Herald.Wanted(herald.Connections) {
		return
	}
	now := f.opt.Now()
	for _, t := range times[:min(len(times), maxTimes)] {
		at := time.UnixMilli(t.At)
		if at.After(now) || now.Sub(at) > oldest {
			at = now
		}
		if len(t.Source)+len(t.Destination) <= maxAddresses {
			f.tellConnection(herald.Connection{
				From: herald.Peer{Kind: herald.Identity, ID: identityID, Address: t.Source}, To: herald.Peer{Kind: herald.Router, ID: r.ID, Address: t.Destination}, At: at,
			})
		}
	}
}

// tellFigures tells them what a router has measured. Of what it says to all controllers
// one is told for good, which tells of it.
func (f *Fabric) tellFigures(r *control.Router, frame *wire.Frame) {
	if !f.opt.Herald.Wanted(herald.Figures) {
		return
	}
	m, err := message.Unmarshal[message.Measured](frame.Body)
	if err != nil || m.Copy {
		return
	}
	some, left := figures(m)
	if left > 0 {
		r.Say(slog.LevelDebug, "a router has measured more than is told", "left", left)
	}
	f.opt.Herald.Tell(herald.Event{
		Ref: state.Ref{Def: herald.Figures, ID: r.ID}, Verb: "measured", At: f.opt.Now(), Detail: herald.Measured{RouterID: r.ID, At: f.opt.Now(), Figures: some},
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
	maxTimes      = 16 // connections of one identity that one message tells of
	maxAddresses  = 256
	oldest        = 24 * time.Hour
)
