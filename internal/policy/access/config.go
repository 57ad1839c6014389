package access

import (
	"iter"

	"netkeep.internal/internal/data/state"
	"netkeep.internal/internal/lang/kind"
	"netkeep.internal/internal/model"
)

// Configs is the configs of services as one identity is to use them.
type Configs struct {
	snap *state.Snapshot
	own  map[string][]*model.ServiceConfig // by service
}

// ConfigsFor returns how an identity is to use services.
func ConfigsFor(snap *state.Snapshot, identityID string) Configs {
	c := Configs{snap, map[string][]*model.ServiceConfig{}}
	for o := range model.ServiceConfigs.Select(snap, "identityId", identityID) {
		c.own[o.ServiceID] = append(c.own[o.ServiceID], o)
	}
	return c
}

// Of yields the configs of a service. Those that the identity has for itself
// take the place of the service's own.
func (c Configs) Of(service *model.Service) iter.Seq[*model.Config] {
	return func(yield func(*model.Config) bool) {
		own := c.own[service.ID]
		for _, id := range service.Configs {
			if config, ok := model.Configs.Get(c.snap, id); ok && !overridden(own, config.ConfigTypeID) && !yield(config) {
				return
			}
		}
		for _, o := range own {
			if config, ok := model.Configs.Get(c.snap, o.ConfigID); ok && !yield(config) {
				return
			}
		}
	}
}

func overridden(own []*model.ServiceConfig, typeID string) bool {
	for _, o := range own {
		if o.ConfigTypeID == typeID {
			return true
		}
	}
	return false
}

// Append adds a JSON object with the data of a service's configs by the name of
// their type: those that are wanted.
func (c Configs) Append(dst []byte, service *model.Service, wanted func(*model.Config) bool) []byte {
	dst = append(dst, '{')
	for config := range c.Of(service) {
		if typ, ok := model.ConfigTypes.Get(c.snap, config.ConfigTypeID); ok && wanted(config) {
			dst = kind.AppendMember(dst, typ.Name, func(dst []byte) []byte { return append(dst, config.Data...) })
		}
	}
	return append(dst, '}')
}
