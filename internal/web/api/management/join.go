package management

import (
	"netkeep/internal/lang/filter"
	"netkeep/internal/lang/kind"
	"netkeep/internal/model"
	"netkeep/internal/web/api"
	"netkeep/internal/web/rest"
)

// terminatorJoins let filters name a terminator's service and router.
func terminatorJoins(r kind.Reader) []filter.Symbol[kind.Record] {
	name := func(symbol string, d *kind.Def, id func(*model.Terminator) string) filter.Symbol[kind.Record] {
		return filter.Symbol[kind.Record]{Name: symbol, Type: filter.String, One: func(rec kind.Record) filter.Value {
			target, ok := r.Lookup(d, id(rec.(*model.Terminator)))
			if !ok {
				return filter.Value{}
			}
			return filter.StringValue(d.Label(target))
		}}
	}
	return []filter.Symbol[kind.Record]{
		name("service.name", model.Services.Def, func(t *model.Terminator) string { return t.ServiceID }),
		name("router.name", model.Routers.Def, func(t *model.Terminator) string { return t.RouterID }),
	}
}

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
