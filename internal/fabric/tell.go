package fabric

import (
	"netkeep.internal/internal/data/state"
	"netkeep.internal/internal/fabric/control"
	"netkeep.internal/internal/fabric/herald"
	"netkeep.internal/internal/model"
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
