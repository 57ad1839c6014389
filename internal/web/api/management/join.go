package management

import (
	"netkeep/internal/lang/kind"
	"netkeep/internal/model"
	"netkeep/internal/web/api"
	"netkeep/internal/web/rest"
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
