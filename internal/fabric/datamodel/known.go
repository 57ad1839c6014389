package datamodel

import (
	"maps"
	"slices"
	"strings"
	"time"

	"netkeep.internal/internal/data/state"
	"netkeep.internal/internal/model"
	"netkeep.internal/internal/policy/access"
	"netkeep.internal/internal/wire/message"
)

// known is what one router may know at one moment, each list in the order of
// ids. It is never written once it is made.
type known struct {
	types      []message.DataConfigType
	configs    []message.DataConfig
	identities []message.DataIdentity // its own, if it may be a client
	services   []message.DataService
	dial, bind []string // ids of those services that it may dial and host
	keys       []message.PublicKey
	ord        uint32 // of its identity
	// tooMuch says that there is more than a router can be told.
	tooMuch bool
	// turns is when something else will be true though nobody changes anything;
	// never if it is zero.
	turns time.Time
}

// client reports whether the router is told that it may act as a client.
func (k *known) client() bool { return len(k.identities) > 0 }

// rests reports whether policies have a part in it.
func (k *known) rests() bool { return k.client() || k.tooMuch }

// see looks up what a router may know.
func (m *Models) see(snap *state.Snapshot, id string) *known {
	k := &known{keys: slices.Clone(m.Keys(snap))}
	slices.SortFunc(k.keys, func(a, b message.PublicKey) int { return strings.Compare(a.KeyID, b.KeyID) })
	k.keys = slices.CompactFunc(k.keys, func(a, b message.PublicKey) bool { return a.KeyID == b.KeyID })
	router, ok := model.EdgeRouters.Get(snap, id)
	if !ok || !router.IsTunnelerEnabled {
		return k
	}
	identity, ok := model.Identities.Get(snap, id)
	if !ok {
		return k
	}
	v := view{
		known: k, snap: snap, record: identity, gets: access.ConfigsFor(snap, id),
		used: map[string]*model.Config{}, usedTypes: map[string]*model.ConfigType{},
	}
	k.ord, _ = snap.Ordinal(model.Identities.Def, id)
	v.addIdentity(m.Now())
	if bytes := k.weight(); bytes > maxBody {
		// It then uses too little, and not too much.
		m.Log.Error("a router may use more services than it can be told of, and is told of none; give its identity fewer, or smaller configs",
			"router", id, "services", len(k.services), "bytes", bytes, "limit", maxBody)
		return &known{keys: k.keys, ord: k.ord, tooMuch: true}
	}
	return k
}

// weight is how many bytes it takes to tell everything, at most: each record is
// told with tags and lengths, and the id of a service up to six times.
func (k *known) weight() (bytes int) {
	const frame = 64
	for _, c := range k.configs {
		bytes += frame + len(c.ID) + len(c.TypeID) + len(c.Data)
	}
	for _, t := range k.types {
		bytes += frame + len(t.ID) + len(t.Name)
	}
	for _, s := range k.services {
		bytes += 3*frame + 6*len(s.ID) + len(s.Name)
		for _, id := range s.Configs {
			bytes += frame + len(id)
		}
	}
	for _, i := range k.identities {
		bytes += 8*frame + 4*len(i.ID) + len(i.Name) + len(i.AppData)
	}
	for _, key := range k.keys {
		bytes += frame + len(key.KeyID) + len(key.Data)
	}
	return bytes
}

// view is a look at what an identity may use.
type view struct {
	*known
	snap   *state.Snapshot
	record *model.Identity
	gets   access.Configs
	// used are the configs that come with the services, by id, with their types.
	used      map[string]*model.Config
	usedTypes map[string]*model.ConfigType
}

// addIdentity adds the identity with all that it may use, which is nothing as
// long as it is disabled.
func (v *view) addIdentity(now time.Time) {
	who := message.DataIdentity{
		ID: v.record.ID, Name: v.record.Name, Precedence: message.PrecedenceOf(v.record.DefaultHostingPrecedence),
		Cost: uint32(v.record.DefaultHostingCost), AppData: v.record.AppData, Disabled: v.record.Disabled(now),
	}
	if who.Disabled {
		if v.record.DisabledUntil != nil {
			v.turns = *v.record.DisabledUntil
		}
		v.identities = []message.DataIdentity{who}
		return
	}
	v.addServices(&who)
	v.identities = []message.DataIdentity{who}
	v.addConfigs()
}

// addServices adds what the identity may dial and host. A router has no device
// that could pass posture checks, so policies with checks give it nothing.
func (v *view) addServices(who *message.DataIdentity) {
	grants := access.Unchecked(v.snap, who.ID)
	for rec := range v.snap.Within(model.Services.Def, grants.Visible()) {
		s := rec.(*model.Service)
		ord, _ := v.snap.Ordinal(model.Services.Def, s.ID)
		if grants.Dial.Contains(ord) {
			v.dial = append(v.dial, s.ID)
		}
		if grants.Bind.Contains(ord) {
			v.bind = append(v.bind, s.ID)
		}
		v.services = append(v.services, v.describe(s))
		if cost, ok := v.record.ServiceHostingCosts[s.ID]; ok {
			put(&who.ServiceCosts, s.ID, uint32(cost))
		}
		if p, ok := v.record.ServiceHostingPrecedences[s.ID]; ok {
			put(&who.ServicePrecedences, s.ID, message.PrecedenceOf(p))
		}
	}
}

// describe is a service with the configs that the identity gets with it.
func (v *view) describe(s *model.Service) message.DataService {
	one := message.DataService{ID: s.ID, Name: s.Name, EncryptionRequired: s.EncryptionRequired}
	for c := range v.gets.Of(s) {
		typ, ok := model.ConfigTypes.Get(v.snap, c.ConfigTypeID)
		if !ok {
			continue
		}
		one.Configs = append(one.Configs, c.ID)
		v.used[c.ID], v.usedTypes[typ.ID] = c, typ
	}
	return one
}

// addConfigs adds the configs that the router needs, with their types. What
// configs are called is nothing to it.
func (v *view) addConfigs() {
	for _, id := range slices.Sorted(maps.Keys(v.used)) {
		c := v.used[id]
		v.configs = append(v.configs, message.DataConfig{ID: id, TypeID: c.ConfigTypeID, Data: c.Data})
	}
	for _, id := range slices.Sorted(maps.Keys(v.usedTypes)) {
		v.types = append(v.types, message.DataConfigType{ID: id, Name: v.usedTypes[id].Name})
	}
}

func put[V any](m *map[string]V, key string, value V) {
	if *m == nil {
		*m = map[string]V{}
	}
	(*m)[key] = value
}
