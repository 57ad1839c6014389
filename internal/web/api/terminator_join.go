package api

import (
	"sync"

	"netkeep.internal/internal/lang/filter"
	"netkeep.internal/internal/lang/kind"
	"netkeep.internal/internal/model"
	"netkeep.internal/internal/web/rest"
)

// TerminatorSymbols let filters name a terminator's service and router, as far as the
// caller may read them.
func TerminatorSymbols(c *rest.Call) []filter.Symbol[kind.Record] {
	names := sync.OnceValue(c.Shown)
	name := func(symbol string, d *kind.Def, id func(*model.Terminator) string) filter.Symbol[kind.Record] {
		return filter.Symbol[kind.Record]{Name: symbol, Type: filter.String, One: func(rec kind.Record) filter.Value {
			target, ok := names().Lookup(d, id(rec.(*model.Terminator)))
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
