package management

import (
	"netkeep/internal/access"
	"netkeep/internal/api"
	"netkeep/internal/filter"
	"netkeep/internal/kind"
	"netkeep/internal/model"
	"netkeep/internal/rest"
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

// serviceJoins let filters look into the configs of a service.
func serviceJoins(r kind.Reader) []filter.Symbol[kind.Record] {
	configs, _ := model.Services.Symbols.Lookup("configs")
	symbol := *configs
	symbol.Sub = filter.Through(model.Configs.Symbols, func(rec kind.Record, yield func(kind.Record) bool) {
		for _, id := range rec.(*model.Service).Configs {
			if c, ok := r.Lookup(model.Configs.Def, id); ok && !yield(c) {
				return
			}
		}
	})
	return []filter.Symbol[kind.Record]{symbol}
}

// roleParams narrow a list to the records that a role list selects.
var roleParams = []rest.Param{
	{Name: "roleFilter", Doc: "Roles (#attribute or @id) of which entries must have all, or any.", Schema: kind.ListOf(api.Text)},
	{Name: "roleSemantic", Doc: "AllOf, which is the default, or AnyOf.", Schema: api.Text},
}

func narrowByRoles(d *kind.Def) func(c *rest.Call) (rest.Records, error) {
	return func(c *rest.Call) (rest.Records, error) {
		params := c.Request.URL.Query()
		roles, semantic := params["roleFilter"], params.Get("roleSemantic")
		if len(roles) == 0 && semantic == "" {
			return nil, nil
		}
		set, err := access.Filter(c.Snap, d, roles, semantic)
		if err != nil {
			return nil, err
		}
		return c.Snap.Within(d, set), nil
	}
}
