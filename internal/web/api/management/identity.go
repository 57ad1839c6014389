package management

import (
	"net/http"

	"netkeep.internal/internal/data/state"
	"netkeep.internal/internal/lang/fault"
	"netkeep.internal/internal/lang/filter"
	"netkeep.internal/internal/lang/kind"
	"netkeep.internal/internal/model"
	"netkeep.internal/internal/policy/access"
	"netkeep.internal/internal/web/api"
	"netkeep.internal/internal/web/rest"
)

// disableIn says for how long an identity is disabled. Nothing or less, and
// more than a hundred years, is until it is enabled again.
type disableIn struct {
	DurationMinutes int `json:"durationMinutes" kind:"required" doc:"For how many minutes; 0 or less until somebody enables the identity."`
}

func mountIdentities(a *rest.API, s *api.Service) {
	op := func(method, path, name, need, doc string) rest.Op {
		return rest.Op{Method: method, Path: "/identities/{id}" + path, Name: name, Tag: "identities", Doc: doc, Auth: rest.Admin, Need: need}
	}
	rest.Handle(a, op(http.MethodPost, "/disable", "disableIdentity", "identity:disable", "Disable an identity for a while, or until it is enabled."),
		func(c *rest.Call, in disableIn) (rest.Empty, error) { return rest.Empty{}, disable(c, s, in) })
	rest.Handle(a, op(http.MethodPost, "/enable", "enableIdentity", "identity:disable", "Clear all disabled state of an identity, and have its password work again."),
		func(c *rest.Call, _ rest.None) (rest.Empty, error) {
			err := editIdentity(c, func(_ *state.Tx, i *model.Identity) error {
				i.DisabledAt, i.DisabledUntil = nil, nil
				return nil
			})
			if err == nil {
				s.Passwords.Forgive(c.Param("id"))
			}
			return rest.Empty{}, err
		})
	rest.Handle(a, op(http.MethodGet, "/policy-advice/{serviceId}", "getIdentityPolicyAdvice", "access:read",
		"Say whether an identity can use a service, and what is missing."),
		func(c *rest.Call, _ rest.None) (adviceOut, error) { return advise(c, s) })
	rest.Handle(a, op(http.MethodDelete, "/mfa", "removeIdentityMfa", "identity:reset-mfa", "Take an identity's second factor away."),
		func(c *rest.Call, _ rest.None) (rest.Empty, error) {
			return rest.Empty{}, s.Factors.Drop(c.Context(), c.Author(), c.Param("id"))
		})
	mountServiceConfigs(a)
	mountPosture(a, s)
	mountTraces(a, s)
}

// disable shuts the identity out and ends its sessions.
func disable(c *rest.Call, s *api.Service, in disableIn) error {
	err := editIdentity(c, func(tx *state.Tx, i *model.Identity) error {
		if i.LastOwner(tx, tx.Now()) {
			return fault.New(fault.CodeUnchangeable, "the default admin cannot be disabled: there would be nobody left who can always get back in; end its sessions or change its password instead")
		}
		i.Disable(tx.Now(), in.DurationMinutes)
		return nil
	})
	if err != nil {
		return err
	}
	return s.Sessions.EndAll(c.Context(), c.Author(), "identityId", c.Param("id"))
}

func editIdentity(c *rest.Call, change func(tx *state.Tx, i *model.Identity) error) error {
	return c.State.Update(c.Context(), c.Author(), func(tx *state.Tx) error {
		return model.Identities.Edit(tx, c.Param("id"), func(i *model.Identity) error { return change(tx, i) })
	})
}

// adviceOut is what policies give an identity on a service.
type adviceOut struct {
	IdentityID          string      `json:"identityId" doc:"Id of the identity."`
	Identity            rest.Ref    `json:"identity" doc:"Name and address of the identity."`
	ServiceID           string      `json:"serviceId" doc:"Id of the service."`
	Service             rest.Ref    `json:"service" doc:"Name and address of the service."`
	IsDialAllowed       bool        `json:"isDialAllowed" doc:"Whether a service policy lets the identity use the service."`
	IsBindAllowed       bool        `json:"isBindAllowed" doc:"Whether a service policy lets the identity host the service."`
	IdentityRouterCount int         `json:"identityRouterCount" doc:"How many edge routers the identity may connect to."`
	ServiceRouterCount  int         `json:"serviceRouterCount" doc:"Through how many edge routers the service may be used."`
	CommonRouters       []routerRef `json:"commonRouters" doc:"Edge routers that both may use, of which one must be online."`
	Missing             []string    `json:"missing" doc:"What is missing, in sentences; empty if the identity can use the service."`
}

// routerRef is a router that identity and service share.
type routerRef struct {
	rest.Ref
	IsOnline bool `json:"isOnline" doc:"Whether the router is connected to the controller."`
}

func advise(c *rest.Call, s *api.Service) (adviceOut, error) {
	identity, service := c.Param("id"), c.Param("serviceId")
	online := func(routerID string) bool {
		_, online := s.Routers.Connected(routerID)
		return online
	}
	advice, err := access.Advise(c.Snap, identity, service, online)
	if err != nil {
		return adviceOut{}, err
	}
	out := adviceOut{
		IdentityID: identity, Identity: rest.RefOf(c, model.Identities.Def, identity),
		ServiceID: service, Service: rest.RefOf(c, model.Services.Def, service),
		IsDialAllowed: advice.DialAllowed, IsBindAllowed: advice.BindAllowed,
		IdentityRouterCount: advice.IdentityRouters, ServiceRouterCount: advice.ServiceRouters,
		Missing: advice.Missing,
	}
	for _, r := range advice.Common {
		out.CommonRouters = append(out.CommonRouters, routerRef{rest.RefOf(c, model.EdgeRouters.Def, r.ID), r.Online})
	}
	return out, nil
}

// assignment gives an identity a config for a service.
type assignment struct {
	ServiceID string `json:"serviceId" kind:"required" doc:"Id of the service for which the identity gets another config."`
	ConfigID  string `json:"configId" kind:"required" doc:"Id of the config that it gets in place of the one of the same type."`
}

// assigned is such a config in lists.
type assigned struct {
	ServiceID string   `json:"serviceId" doc:"Id of the service for which the identity gets another config."`
	Service   rest.Ref `json:"service" doc:"Name and address of that service."`
	ConfigID  string   `json:"configId" doc:"Id of the config that the identity gets."`
	Config    rest.Ref `json:"config" doc:"Name and address of that config."`
}

var assignedOutput = kind.NewOutput[assigned]()

func mountServiceConfigs(a *rest.API) {
	rest.Resource{Kind: model.ServiceConfigs.Def, Auth: rest.Admin, Verbs: kind.Lists | kind.Gets}.Mount(a)
	const path = "/identities/{id}/service-configs"
	op := func(method, name, verb, doc string) rest.Op {
		return rest.Op{Method: method, Path: path, Name: name, Tag: "identities", Doc: doc, Auth: rest.Admin, Need: "service-config:" + verb}
	}
	list := op(http.MethodGet, "listIdentitysServiceConfigs", "read", "List the configs that an identity gets instead of a service's own.")
	list.Entries = assignedOutput.Schema()
	rest.Handle(a, list, listServiceConfigs)
	rest.Handle(a, op(http.MethodPost, "associateIdentitysServiceConfigs", "create", "Give an identity configs instead of a service's own."),
		func(c *rest.Call, in rest.Batch[assignment]) (rest.Empty, error) {
			return rest.Empty{}, c.State.Update(c.Context(), c.Author(), func(tx *state.Tx) error { return assign(c, tx, in) })
		})
	remove := op(http.MethodDelete, "disassociateIdentitysServiceConfigs", "delete", "Take configs back; all of them if none are named.")
	remove.BodyOptional = true
	rest.Handle(a, remove, func(c *rest.Call, in rest.Batch[assignment]) (rest.Empty, error) {
		return rest.Empty{}, c.State.Update(c.Context(), c.Author(), func(tx *state.Tx) error { return unassign(c, tx, in) })
	})
}

func listServiceConfigs(c *rest.Call, _ rest.None) (rest.List, error) {
	id := c.Param("id")
	if err := knowIdentity(c, c.Snap, id); err != nil {
		return rest.List{}, err
	}
	var all []*model.ServiceConfig
	for o := range model.ServiceConfigs.Select(c.Snap, "identityId", id) {
		all = append(all, o)
	}
	return rest.List{
		Page: filter.Page{Limit: int64(len(all))}, Total: int64(len(all)), Fields: []string{}, Len: len(all),
		Append: func(dst []byte, i int) []byte {
			return assignedOutput.Append(dst, &assigned{
				ServiceID: all[i].ServiceID, Service: rest.RefOf(c, model.Services.Def, all[i].ServiceID),
				ConfigID: all[i].ConfigID, Config: rest.RefOf(c, model.Configs.Def, all[i].ConfigID),
			})
		},
	}, nil
}

// knowIdentity refuses an identity that the caller may not know of, as if it were not there.
func knowIdentity(c *rest.Call, r kind.Reader, id string) error {
	if who, ok := model.Identities.Get(r, id); !ok || !c.Knows(model.Identities.Def, who) {
		return fault.NotFound("identity", id)
	}
	return nil
}

// assign adds overrides. One of the same service and type is replaced.
func assign(c *rest.Call, tx *state.Tx, in rest.Batch[assignment]) error {
	identity := c.Param("id")
	if err := knowIdentity(c, tx, identity); err != nil {
		return err
	}
	for _, a := range in.Items {
		o := &model.ServiceConfig{IdentityID: identity, ServiceID: a.ServiceID, ConfigID: a.ConfigID}
		if err := c.Confine(tx, model.ServiceConfigs.Def, &model.ServiceConfig{}, o); err != nil { // whoever gets a config reads it
			return err
		}
		if err := o.Identify(tx); err != nil {
			return err
		}
		if _, there := model.ServiceConfigs.Get(tx, o.ID); there {
			if err := model.ServiceConfigs.Delete(tx, o.ID); err != nil {
				return err
			}
		}
		if err := model.ServiceConfigs.Create(tx, o); err != nil {
			return err
		}
	}
	return nil
}

// unassign removes the overrides that are named, or all.
func unassign(c *rest.Call, tx *state.Tx, in rest.Batch[assignment]) error {
	identity := c.Param("id")
	if err := knowIdentity(c, tx, identity); err != nil {
		return err
	}
	named := map[assignment]bool{}
	for _, a := range in.Items {
		named[a] = true
	}
	var ids []string
	for o := range model.ServiceConfigs.Select(tx, "identityId", identity) {
		if len(named) == 0 || named[assignment{o.ServiceID, o.ConfigID}] {
			ids = append(ids, o.ID)
		}
	}
	for _, id := range ids {
		if err := model.ServiceConfigs.Delete(tx, id); err != nil {
			return err
		}
	}
	return nil
}
