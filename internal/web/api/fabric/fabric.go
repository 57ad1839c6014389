// Package fabric is the Fabric API: what routers make between them, for those who
// run the network. Links and circuits are volatile kinds: they come and go with
// routers, and are asked for as records are. All operations but those that tell of the controller are for
// admins. It alone of the APIs talks in frames: tools do over a websocket, as routers
// do.
package fabric

import (
	"netkeep.internal/internal/lang/filter"
	"netkeep.internal/internal/lang/kind"
	"netkeep.internal/internal/model"
	"netkeep.internal/internal/web/api"
	"netkeep.internal/internal/web/rest"
)

// Mount adds the operations.
func Mount(a *rest.API, s *api.Service) {
	api.MountInfo(a, s)
	for _, r := range records(s) {
		r.Auth = rest.Admin
		r.Derived = append(r.Derived, selfLink(r.Kind))
		if m := r.Mount(a); r.Kind == model.Terminators.Def {
			mountHosts(a, m.View)
		}
	}
	mountEnd(a, s)
	mountLinks(a, s)
	mountTalk(a, s)
	mountCluster(a, s)
	mountDatabase(a, s)
	mountInspections(a, s)
	mountPaths(a, s)
}

// records are the kinds that have a part in the fabric. They are the records of the
// Management API, and written under its rules.
func records(s *api.Service) []rest.Resource {
	const readOnly = kind.Lists | kind.Gets
	return []rest.Resource{
		{
			Kind: model.Routers.Def, Derived: routerColumns(s), Joins: routerJoins(s), Docs: routerDocs,
			Prepare: prepareRouter(s), Inputs: routerInput.Fields, Phrasing: routerPhrasing,
		},
		{Kind: model.Services.Def, Noun: "fabricService", Without: api.ServiceAsking, Phrasing: servicePhrasing, Docs: serviceDocs},
		{Kind: model.Terminators.Def, Phrasing: terminatorPhrasing, Prepare: prepareTerminator, Inputs: terminatorInput.Fields, Derived: terminatorColumns(s), Asked: api.TerminatorSymbols},
		{Kind: model.Links.Def, From: s.Fabric, Docs: map[kind.Verbs]string{
			kind.Lists: "List the links between routers that this controller knows of.",
		}},
		{Kind: model.Circuits.Def, Verbs: readOnly, From: s.Fabric, Derived: circuitColumns(), Docs: map[kind.Verbs]string{
			kind.Lists: "List the circuits that this controller knows of.",
		}},
	}
}

// selfLink links to the record alone: its parts are in the Management API.
func selfLink(d *kind.Def) rest.Derived {
	return rest.Links(func(rec kind.Record) []rest.Link {
		return []rest.Link{{Name: "self", Href: d.Path + "/" + rec.Base().ID}}
	})
}

// routerColumns are what answers show of a router because of its connection.
func routerColumns(s *api.Service) []rest.Derived {
	version := api.PresenceColumn(s, "versionInfo")
	return append([]rest.Derived{
		api.Flag("connected", "Whether the router is connected to this controller.", func(_ *rest.Call, r *model.Router) bool {
			return model.PresenceOf(s.Fabric, r.ID).Online
		}),
		api.Flag("quiesced", "Whether the router has asked that no new circuits end at it while there is another way.", func(_ *rest.Call, r *model.Router) bool {
			return r.Quiesced
		}),
		{
			Name: version.Name, Doc: "What the router runs; left out while it is not connected.", Schema: version.Schema, Optional: true,
			Append: func(dst []byte, c *rest.Call, rec kind.Record) []byte {
				if !model.PresenceOf(s.Fabric, rec.Base().ID).Online {
					return dst
				}
				return version.Append(dst, c, rec)
			},
		},
		api.PresenceColumn(s, "listenerAddresses"),
	}, api.MachineColumns(s)...)
}

// routerJoins let filters ask who is connected.
func routerJoins(s *api.Service) rest.Joins {
	return func(kind.Reader) []filter.Symbol[kind.Record] {
		return []filter.Symbol[kind.Record]{{Name: "connected", Type: filter.Bool, One: func(rec kind.Record) filter.Value {
			return filter.BoolValue(model.PresenceOf(s.Fabric, rec.Base().ID).Online)
		}}}
	}
}

// terminatorColumns are what answers show of a terminator beyond its record, and
// parts of that under the names that clients of this API know.
func terminatorColumns(s *api.Service) []rest.Derived {
	own := func(name, doc string, of func(*model.Terminator) string) rest.Derived {
		return rest.Derived{Name: name, Doc: doc, Schema: api.Text, Append: func(dst []byte, _ *rest.Call, rec kind.Record) []byte {
			return kind.AppendText(dst, of(rec.(*model.Terminator)))
		}}
	}
	return []rest.Derived{
		own("instanceId", "Name of one host among several; empty if it does not matter.", func(t *model.Terminator) string { return t.Identity }),
		own("hostId", "Id of the identity that hosts the service here; empty if nobody says.", func(t *model.Terminator) string { return t.HostID }),
		api.DynamicCost(s),
	}
}
