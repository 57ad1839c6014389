package client

import (
	"net/http"
	"slices"

	"netkeep.internal/internal/lang/fault"
	"netkeep.internal/internal/lang/kind"
	"netkeep.internal/internal/model"
	"netkeep.internal/internal/policy/explain"
	"netkeep.internal/internal/web/api"
	"netkeep.internal/internal/web/rest"
)

// sessionTokenParam lets a client that goes on with a session learn that it is
// gone: it makes a new one upon 404 alone.
var sessionTokenParam = rest.TextParam("session-token",
	"Token of the session that the caller is about to go on with; if that session is gone, the answer is 404.").InHeader()

// mountServices offers services as the caller sees them. What it may neither
// dial nor host does not exist for it. Changing them is for admins.
func mountServices(a *rest.API, s *api.Service) {
	services := rest.Resource{
		Kind: model.Services.Def, Noun: "service", Derived: api.ServiceColumns(s), Asked: api.ServiceSymbols,
		Auth: rest.Full, Verbs: kind.Lists, Params: api.RoleParams, Without: api.ServiceAsking,
		Narrow: func(c *rest.Call) (rest.Selection, error) { return visible(s, c) },
	}
	view := services.Mount(a).View
	rest.Show(a, rest.Op{
		Method: http.MethodGet, Path: "/services/{id}", Name: "detailService", Tag: "services",
		Doc: "Get one of the services that the caller may use.", Auth: rest.Full,
	}, view, func(c *rest.Call, _ rest.None) (kind.Record, error) { return seen(s, c) })
	changes := services
	changes.Auth, changes.Verbs = rest.Admin, kind.Replaces|kind.Patches|kind.Deletes
	changes.Mount(a)
	rest.ShowList(a, rest.Op{
		Method: http.MethodGet, Path: "/services/{id}/terminators", Name: "listServiceTerminators", Tag: "services",
		Doc: "List the terminators of a service that the caller may use.", Auth: rest.Full,
	}, a.PartialView("clientTerminator", model.Terminators.Def, append(base, "service", "serviceId", "routerId", "identity")), func(c *rest.Call) (rest.Records, error) {
		service, err := seen(s, c)
		if err != nil {
			return nil, err
		}
		return c.Snap.Select(model.Terminators.Def, "service", service.Base().ID), nil
	})
	// Newer clients ask here, instead of for their session, which routers are
	// left to them.
	rest.Handle(a, rest.Op{
		Method: http.MethodGet, Path: "/services/{id}/edge-routers", Name: "listServiceEdgeRouters", Tag: "services",
		Doc: "List the edge routers through which the caller may use a service.", Auth: rest.Full, Polled: true,
		Params: []rest.Parameter{sessionTokenParam},
	}, func(c *rest.Call, _ rest.None) (api.ServiceRouters, error) {
		service, err := seen(s, c)
		if err != nil {
			return api.ServiceRouters{}, err
		}
		if token := sessionTokenParam.Of(c); token != "" {
			held, ok := s.Grants.Recognise(c.Snap, token)
			if !ok { // unless another controller gave it out a moment ago
				if _, err := c.LookAgain(); err != nil {
					return api.ServiceRouters{}, err
				}
				held, ok = s.Grants.Recognise(c.Snap, token)
			}
			if !ok || held.IdentityID != api.Caller(c).Identity().ID || held.ServiceID != service.Base().ID || !s.Grants.Live(c.Snap, held) {
				return api.ServiceRouters{}, fault.New(fault.CodeNotFound, "the session of this token is gone; make a new one")
			}
		}
		return s.RoutersOf(c, service.Base().ID), nil
	})
	mountOwnServices(a, s)
}

// reach is what the caller of a request can do now.
var reach rest.Memo[*explain.Reach]

// obstacle is what keeps the caller from a service: from using it, or from
// hosting it if it may do no more.
func obstacle(s *api.Service, c *rest.Call, service *model.Service) string {
	r, ok := reach.Of(c)
	if !ok {
		r = s.Explainer().Reach(c.Snap, api.Caller(c).Session())
		reach.Keep(c, r)
	}
	typ := model.Bind
	if slices.Contains(s.View(c).Permissions(service), model.Dial) {
		typ = model.Dial
	}
	return r.Obstacle(service, typ)
}

// mountOwnServices offers people what clients find out by trying: whether they
// could use their services now. It is a list of its own because clients ask for
// services all the time, and for this nobody does.
func mountOwnServices(a *rest.API, s *api.Service) {
	why := rest.Derived{
		Name: "obstacle", Doc: "What keeps the caller from using the service now, or from hosting it if it may only do that; empty if nothing does.", Schema: api.Text,
		Append: func(dst []byte, c *rest.Call, rec kind.Record) []byte {
			return kind.AppendText(dst, obstacle(s, c, rec.(*model.Service)))
		},
	}
	now := api.Flag("reachable", "Whether nothing keeps the caller from using the service now, from one of its devices.",
		func(c *rest.Call, service *model.Service) bool { return obstacle(s, c, service) == "" })
	rest.ShowList(a, rest.Op{
		Method: http.MethodGet, Path: "/current-identity/services", Name: "listCurrentIdentityServices", Tag: "current-identity",
		Doc: "List the services that the caller may use or host, and whether it could now.", Auth: rest.Full,
	}, a.PartialView("ownService", model.Services.Def, append(base, "name", "roleAttributes", "encryptionRequired", "permissions", "config", "reachable", "obstacle"),
		append(api.ServiceColumns(s), now, why)...),
		func(c *rest.Call) (rest.Records, error) {
			return c.Snap.Within(model.Services.Def, s.View(c).Services()), nil
		})
}

// visible is the services that the caller may use and that the request's roles
// select.
func visible(s *api.Service, c *rest.Call) (rest.Selection, error) {
	roles, err := api.ByRoles(c, model.Services.Def)
	if err != nil {
		return rest.Selection{}, err
	}
	set := s.View(c).Services()
	if roles != nil {
		set = set.Clone()
		set.And(roles)
	}
	return rest.SelectionOf(c, model.Services.Def, set), nil
}

func seen(s *api.Service, c *rest.Call) (kind.Record, error) {
	id := c.Param("id")
	service, ok := c.Snap.Lookup(model.Services.Def, id)
	if !ok || !s.View(c).Sees(id) {
		return nil, fault.NotFound("service", id)
	}
	return service, nil
}
