package explain

import (
	"fmt"

	"netkeep.internal/internal/data/state/cow"
	"netkeep.internal/internal/lang/kind"
	"netkeep.internal/internal/model"
	"netkeep.internal/internal/policy/access"
)

// routes is the edge routers that have a part in it.
type routes struct {
	identity, service, common *cow.Bitmap
	online                    []*model.EdgeRouter // of the common ones
	offline                   []*model.EdgeRouter
}

func (q *question) findRoutes() {
	q.routes = routes{
		identity: access.EdgeRouters(q.snap, q.identity.ID),
		service:  access.RoutersOfService(q.snap, q.service.ID),
		common:   q.chain.Routers(),
	}
	for rec := range q.snap.Within(model.EdgeRouters.Def, q.routes.common) {
		router := rec.(*model.EdgeRouter)
		if q.Online(router.ID) {
			q.routes.online = append(q.routes.online, router)
		} else {
			q.routes.offline = append(q.routes.offline, router)
		}
	}
}

// side is one of the two sides that edge routers have to be given to.
type side struct {
	link    string
	member  kind.Record
	def     *kind.Def
	name    string
	from    *access.List // that selects the member
	to      *access.List // that gives it routers
	policy  *kind.Def
	flag    string // for the member's role list
	list    string // the field of that list
	routers *cow.Bitmap
	others  *cow.Bitmap // routers of the other side
}

func (q *question) identitySide() side {
	return side{
		routerPolicyLink, q.identity, model.Identities.Def, q.identity.Name,
		access.EdgeRouterPolicyIdentities, access.EdgeRouterPolicyRouters,
		model.EdgeRouterPolicies.Def, "--identity-roles", "identityRoles", q.routes.identity, q.routes.service,
	}
}

func (q *question) serviceSide() side {
	return side{
		servicePathLink, q.service, model.Services.Def, q.service.Name,
		access.ServiceEdgeRouterPolicyServices, access.ServiceEdgeRouterPolicyRouters,
		model.ServiceEdgeRouterPolicies.Def, "--service-roles", "serviceRoles", q.routes.service, q.routes.identity,
	}
}

func (q *question) routerPolicyLink() Link { return q.sideLink(q.identitySide()) }
func (q *question) servicePathLink() Link  { return q.sideLink(q.serviceSide()) }

// sideLink holds if policies give a side any edge router.
func (q *question) sideLink(s side) Link {
	l := Link{Link: s.link, Passed: !s.routers.IsEmpty(), Because: []Cause{}}
	if !l.Passed {
		l.What = "no " + spoken(s.policy) + " gives " + s.name + " an edge router"
		l.mend(q.giveRouter(s))
		return l
	}
	l.What = s.name + " may use " + q.routerNames(s.routers)
	for policy := range s.from.Policies(q.snap, s.member) {
		if s.to.Members(q.snap, policy).IsEmpty() {
			continue
		}
		if len(l.Because) >= maxCauses {
			break
		}
		l.Because = append(l.Because, cause(s.policy, policy.Base().ID, s.policy.Label(policy), ""))
		for _, role := range s.from.Reasons(policy, s.member) {
			l.Because = append(l.Because, cause(s.def, s.member.Base().ID, s.name, role))
		}
	}
	return l
}

// routerNames names the first of some edge routers.
func (q *question) routerNames(set *cow.Bitmap) string {
	n, names := int(set.GetCardinality()), []string{}
	for rec := range q.snap.At(model.EdgeRouters.Def, set) {
		if names = append(names, rec.(*model.EdgeRouter).Name); len(names) == maxNamesInSentence {
			break
		}
	}
	text := some(names)
	if n > len(names) {
		text += fmt.Sprintf(" and %d more", n-len(names))
	}
	if n == 1 {
		return "edge router " + text
	}
	return "edge routers " + text
}

// routerLink holds if a router that both may use is online.
func (q *question) routerLink() Link {
	l, r := Link{Link: routerLink, Because: []Cause{}}, q.routes
	add := func(routers []*model.EdgeRouter) {
		for _, router := range routers {
			l.Because = append(l.Because, cause(model.EdgeRouters.Def, router.ID, router.Name, ""))
		}
	}
	switch {
	case q.chain.Routed() != nil:
		l.What = fmt.Sprintf("%s and %s have no edge router in common", q.identity.Name, q.service.Name)
		l.mend(q.giveCommon())
	case len(r.online) == 0:
		l.What = "none of the edge routers that both may use is online"
		l.Remedy = "start " + some(names(r.offline))
		add(r.offline)
	default:
		l.Passed = true
		l.What = fmt.Sprintf("both may use %s, which is online", r.online[0].Name)
		if len(r.online) > 1 {
			l.What = "both may use " + some(names(r.online)) + ", which are online"
		}
		add(r.online)
	}
	return l
}

func names(routers []*model.EdgeRouter) (list []string) {
	for _, r := range routers {
		list = append(list, r.Name)
	}
	return list
}

// terminatorLink holds if somebody hosts the service at any router to which a
// path leads from one that the identity can use now.
func (q *question) terminatorLink() Link {
	l := Link{Link: terminatorLink, Because: []Cause{}}
	var at []string
	seen := map[string]bool{}
	for _, router := range q.routes.online {
		for _, t := range q.Hosts(q.snap, q.service, router.ID) {
			if seen[t.ID] {
				continue
			}
			seen[t.ID] = true
			l.Because = append(l.Because, cause(model.Terminators.Def, t.ID, t.Address, ""))
			host, known := model.Routers.Get(q.snap, t.RouterID)
			if known && !seen[host.ID] {
				seen[host.ID] = true
				at = append(at, host.Name)
				l.Because = append(l.Because, cause(model.Routers.Def, host.ID, host.Name, ""))
			}
		}
	}
	if len(seen) > 0 {
		l.Passed = true
		l.What = fmt.Sprintf("%s is hosted at %s, to which a path leads", q.service.Name, some(at))
		return l
	}
	l.What = "nobody hosts " + q.service.Name
	for t := range model.Terminators.Select(q.snap, "service", q.service.ID) {
		l.What = fmt.Sprintf("nobody hosts %s at a router that is online and to which a path leads from one that %s may use for it", q.service.Name, q.identity.Name)
		l.Because = append(l.Because, cause(model.Terminators.Def, t.ID, t.Address, ""))
		if len(l.Because) == maxCauses {
			break
		}
	}
	l.Remedy = q.howToHost()
	return l
}

// howToHost is what somebody has to do so that there is a host.
func (q *question) howToHost() string {
	where := "a router that is online"
	if len(q.routes.online) > 0 {
		where = some(names(q.routes.online)) + ", or at another router with a path from there"
	}
	hosts := access.WhoCan(q.snap, q.service.ID, model.Bind)
	for host := range q.snap.At(model.Identities.Def, hosts) {
		return fmt.Sprintf("have %s, or another that may host %s, host it at %s", host.(*model.Identity).Name, q.service.Name, where)
	}
	return fmt.Sprintf("let an identity host %s by a service policy of type Bind, and have it host at %s", q.service.Name, where)
}
