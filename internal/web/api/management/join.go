package management

import (
	"netkeep.internal/internal/lang/filter"
	"netkeep.internal/internal/lang/kind"
	"netkeep.internal/internal/model"
	"netkeep.internal/internal/policy/access"
	"netkeep.internal/internal/web/api"
	"netkeep.internal/internal/web/rest"
)

// narrowByRoles narrows lists of a kind with role attributes.
func narrowByRoles(d *kind.Def) func(c *rest.Call) (rest.Selection, error) {
	return func(c *rest.Call) (rest.Selection, error) {
		set, err := api.ByRoles(c, d)
		if err != nil || set == nil {
			return rest.Selection{}, err
		}
		return rest.SelectionOf(c, d, set), nil
	}
}

// narrowServices also narrows the list of services to what an identity sees.
func narrowServices(s *api.Service) func(c *rest.Call) (rest.Selection, error) {
	return func(c *rest.Call) (rest.Selection, error) {
		roles, err := api.ByRoles(c, model.Services.Def)
		if err != nil {
			return rest.Selection{}, err
		}
		view, err := api.AsIdentity(s, c)
		switch {
		case err != nil || view == nil && roles == nil:
			return rest.Selection{}, err
		case view == nil:
			return rest.SelectionOf(c, model.Services.Def, roles), nil
		}
		set := view.Services()
		if roles != nil {
			set = set.Clone()
			set.And(roles)
		}
		return rest.SelectionOf(c, model.Services.Def, set), nil
	}
}

// policySymbols let filters ask whom and what a service policy is about now, as
// its role lists select them, of those that the caller may read.
func policySymbols(c *rest.Call) []filter.Symbol[kind.Record] {
	set := func(name string, list *access.List, members *kind.Def) filter.Symbol[kind.Record] {
		each := func(rec kind.Record, yield func(kind.Record) bool) {
			for member := range c.Readable(members, c.Snap.Within(members, list.Members(c.Snap, rec))) {
				if !yield(member) {
					return
				}
			}
		}
		return filter.Symbol[kind.Record]{
			Name: name, Type: filter.String, Set: true, Sub: filter.Through(members.Symbols, each),
			Many: func(rec kind.Record, yield func(filter.Value) bool) {
				each(rec, func(member kind.Record) bool { return yield(filter.StringValue(member.Base().ID)) })
			},
		}
	}
	return []filter.Symbol[kind.Record]{
		set("identities", access.ServicePolicyIdentities, model.Identities.Def),
		set("services", access.ServicePolicyServices, model.Services.Def),
	}
}
