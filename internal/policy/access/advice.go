package access

import (
	"slices"

	"netkeep.internal/internal/data/state"
	"netkeep.internal/internal/data/state/cow"
	"netkeep.internal/internal/lang/fault"
	"netkeep.internal/internal/model"
)

// Advice is what policies say of one identity and one service, for people who
// wonder why something does not connect.
type Advice struct {
	Identity *model.Identity
	Service  *model.Service

	DialAllowed, BindAllowed bool

	IdentityRouters int // how many edge routers the identity may connect to
	ServiceRouters  int // how many the service may be used through
	Common          []CommonRouter

	// Missing says in words what policies do not give, and that no router is
	// online where it is not for policies. Few identities need all of it.
	Missing []string
}

// CommonRouter is an edge router that both the identity and the service may
// use.
type CommonRouter struct {
	*model.EdgeRouter
	Online bool
}

// Advise looks at policies only: that an admin may use everything does not
// count. online tells whether a router is connected now. Unknown ids are not
// found.
func Advise(snap *state.Snapshot, identityID, serviceID string, online func(routerID string) bool) (Advice, error) {
	identity, ok := model.Identities.Get(snap, identityID)
	if !ok {
		return Advice{}, fault.NotFound(model.Identities.Name, identityID)
	}
	service, ok := model.Services.Get(snap, serviceID)
	if !ok {
		return Advice{}, fault.NotFound(model.Services.Name, serviceID)
	}
	ofIdentity, ofService := EdgeRouters(snap, identityID), RoutersOfService(snap, serviceID)
	a := Advice{
		Identity:        identity,
		Service:         service,
		DialAllowed:     MayDial(snap, identityID, serviceID),
		BindAllowed:     MayBind(snap, identityID, serviceID),
		IdentityRouters: int(ofIdentity.GetCardinality()),
		ServiceRouters:  int(ofService.GetCardinality()),
		Common:          []CommonRouter{},
		Missing:         []string{},
	}
	common := ofIdentity.Clone()
	common.And(ofService)
	a.addRouters(snap, common, online)
	a.findMissing()
	return a, nil
}

func (a *Advice) addRouters(snap *state.Snapshot, common *cow.Bitmap, online func(string) bool) {
	for rec := range snap.Within(model.EdgeRouters.Def, common) {
		router := rec.(*model.EdgeRouter)
		a.Common = append(a.Common, CommonRouter{router, online(router.ID)})
	}
}

func (a *Advice) findMissing() {
	say := func(missing bool, words string) {
		if missing {
			a.Missing = append(a.Missing, words)
		}
	}
	say(!a.DialAllowed, "no service policy lets the identity dial the service")
	say(!a.BindAllowed, "no service policy lets the identity host the service")
	say(a.IdentityRouters == 0, "no edge router policy gives the identity an edge router")
	say(a.ServiceRouters == 0, "no service edge router policy gives the service an edge router")
	if a.IdentityRouters == 0 || a.ServiceRouters == 0 {
		return
	}
	offline := !slices.ContainsFunc(a.Common, func(r CommonRouter) bool { return r.Online })
	say(len(a.Common) == 0, "the identity and the service have no edge router in common")
	say(len(a.Common) > 0 && offline, "none of the edge routers in common is online")
}
