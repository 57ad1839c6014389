package access

import (
	"iter"
	"slices"
	"strings"

	"netkeep.internal/internal/data/state"
	"netkeep.internal/internal/data/state/cow"
	"netkeep.internal/internal/lang/kind"
	"netkeep.internal/internal/model"
)

// Grants is what service policies give an identity.
type Grants struct {
	Dial, Bind *cow.Bitmap // services
	// Policies select the identity, by id. What they give may be nothing.
	Policies []*model.ServicePolicy
}

// Services returns what policies let an identity use. Admins may use all
// services without a policy; that is ServicesWithAdmin.
func Services(snap *state.Snapshot, identityID string) Grants {
	return services(snap, identityID, func(*model.ServicePolicy) bool { return true })
}

// Unchecked is Services by those policies alone that no device is refused by, for
// identities that have none.
func Unchecked(snap *state.Snapshot, identityID string) Grants {
	return services(snap, identityID, func(p *model.ServicePolicy) bool {
		return !slices.ContainsFunc(Checks(snap, p), func(c *model.PostureCheck) bool { return !c.OnlyTells() })
	})
}

func services(snap *state.Snapshot, identityID string, counts func(*model.ServicePolicy) bool) Grants {
	var g Grants
	all := snap.Tagged(model.Services.Def, "")
	dial, bind := union{all: all}, union{all: all}
	if identity, ok := snap.Lookup(model.Identities.Def, identityID); ok {
		for rec := range ServicePolicyIdentities.Policies(snap, identity) {
			p := rec.(*model.ServicePolicy)
			if !counts(p) {
				continue
			}
			g.Policies = append(g.Policies, p)
			if p.Type == model.Dial {
				ServicePolicyServices.add(&dial, snap, p)
			} else {
				ServicePolicyServices.add(&bind, snap, p)
			}
		}
	}
	slices.SortFunc(g.Policies, byID)
	g.Dial, g.Bind = dial.set(), bind.set()
	return g
}

// ServicesWithAdmin is Services, except that an admin may dial and host
// everything. The policies stay those that select the identity.
func ServicesWithAdmin(snap *state.Snapshot, identityID string) Grants {
	g := Services(snap, identityID)
	if identity, ok := model.Identities.Get(snap, identityID); ok && identity.Admin() {
		g.Dial = everyone(snap, model.Services.Def)
		g.Bind = g.Dial
	}
	return g
}

// Visible returns the services that may be dialed or hosted.
func (g Grants) Visible() *cow.Bitmap {
	var u union
	u.add(g.Dial)
	if !g.Bind.IsEmpty() {
		u.add(g.Bind)
	}
	return u.set()
}

// Permissions is what may be done with a service.
func (g Grants) Permissions(snap *state.Snapshot, service *model.Service) []string {
	ord, _ := snap.Ordinal(model.Services.Def, service.ID)
	switch dial, bind := g.Dial.Contains(ord), g.Bind.Contains(ord); {
	case dial && bind:
		return permissions
	case bind:
		return permissions[:1]
	case dial:
		return permissions[1:]
	}
	return nil
}

// permissions is all that there are.
var permissions = []string{model.Bind, model.Dial}

// Over returns those of the policies that give a service, by id.
func (g Grants) Over(service *model.Service) []*model.ServicePolicy {
	var over []*model.ServicePolicy
	k := keysOf(model.Services.Def, service)
	for _, p := range g.Policies {
		if k.match(p.ServiceRoles, p.Semantic) {
			over = append(over, p)
		}
	}
	return over
}

// MayDial reports whether a policy lets the identity dial the service.
func MayDial(snap *state.Snapshot, identityID, serviceID string) bool {
	return granted(snap, identityID, serviceID, model.Dial)
}

// MayBind reports whether a policy lets the identity host the service.
func MayBind(snap *state.Snapshot, identityID, serviceID string) bool {
	return granted(snap, identityID, serviceID, model.Bind)
}

// Granting returns the policies of a type that give the identity the service,
// by id.
func Granting(snap *state.Snapshot, identityID, serviceID, typ string) []*model.ServicePolicy {
	return slices.SortedFunc(granting(snap, identityID, serviceID, typ), byID)
}

func granted(snap *state.Snapshot, identityID, serviceID, typ string) bool {
	for range granting(snap, identityID, serviceID, typ) {
		return true
	}
	return false
}

func granting(snap *state.Snapshot, identityID, serviceID, typ string) iter.Seq[*model.ServicePolicy] {
	return func(yield func(*model.ServicePolicy) bool) {
		identity, ok := snap.Lookup(model.Identities.Def, identityID)
		if !ok {
			return
		}
		service, ok := snap.Lookup(model.Services.Def, serviceID)
		if !ok {
			return
		}
		k := keysOf(model.Services.Def, service)
		for rec := range ServicePolicyIdentities.Policies(snap, identity) {
			p := rec.(*model.ServicePolicy)
			if p.Type == typ && k.match(p.ServiceRoles, p.Semantic) && !yield(p) {
				return
			}
		}
	}
}

// EdgeRouters returns the edge routers that an identity may connect to.
func EdgeRouters(snap *state.Snapshot, identityID string) *cow.Bitmap {
	return across(snap, EdgeRouterPolicyIdentities, EdgeRouterPolicyRouters, identityID)
}

// IdentitiesOfRouter returns the identities that may connect to an edge router.
func IdentitiesOfRouter(snap *state.Snapshot, routerID string) *cow.Bitmap {
	return across(snap, EdgeRouterPolicyRouters, EdgeRouterPolicyIdentities, routerID)
}

// RoutersOfService returns the edge routers that a service may be used
// through.
func RoutersOfService(snap *state.Snapshot, serviceID string) *cow.Bitmap {
	return across(snap, ServiceEdgeRouterPolicyServices, ServiceEdgeRouterPolicyRouters, serviceID)
}

// CommonRouters returns the edge routers through which an identity may use a
// service: those that both may use.
func CommonRouters(snap *state.Snapshot, identityID, serviceID string) *cow.Bitmap {
	common := EdgeRouters(snap, identityID).Clone()
	common.And(RoutersOfService(snap, serviceID))
	return common
}

func byID[R kind.Record](a, b R) int { return strings.Compare(a.Base().ID, b.Base().ID) }

// Checks returns the posture checks of a service policy, by id.
func Checks(snap *state.Snapshot, p *model.ServicePolicy) []*model.PostureCheck {
	if len(p.PostureCheckRoles) == 0 {
		return nil
	}
	var checks []*model.PostureCheck
	for rec := range snap.Within(model.PostureChecks.Def, ServicePolicyChecks.Members(snap, p)) {
		checks = append(checks, rec.(*model.PostureCheck))
	}
	return checks
}
