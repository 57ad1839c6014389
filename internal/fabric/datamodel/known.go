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
	identities []message.DataIdentity // its own, if it may be a client, and bearers of tokens
	services   []message.DataService
	checks     []message.DataCheck // that policies of bearers go by
	policies   []policy
	keys       []message.PublicKey
	ords       []uint32 // of the identities
	sessions   []string // API sessions of whose tokens it knows the bearers
	ended      []ended  // those that are over, while somebody may have a token
	// tooMuch says that there is more than a router can be told.
	tooMuch bool
	// turns is when something else will be true though nobody changes anything;
	// never if it is zero.
	turns time.Time
}

// rests reports whether policies have a part in it.
func (k *known) rests() bool { return len(k.identities) > 0 || k.tooMuch }

// turn notes that something will be true at a time that is not now.
func (k *known) turn(at time.Time) {
	if k.turns.IsZero() || at.Before(k.turns) {
		k.turns = at
	}
}

// see looks up what a router may know that knew something else before, which is nil if
// it begins anew. shares is what is known of what bearers of tokens may use.
func (m *Models) see(snap *state.Snapshot, t *told, shares map[string]share) *known {
	id := t.id
	k := &known{keys: slices.Clone(m.Keys(snap))}
	slices.SortFunc(k.keys, func(a, b message.PublicKey) int { return strings.Compare(a.KeyID, b.KeyID) })
	k.keys = slices.CompactFunc(k.keys, func(a, b message.PublicKey) bool { return a.KeyID == b.KeyID })
	router, there := model.EdgeRouters.Get(snap, id)
	if identity, ok := model.Identities.Get(snap, id); ok && there && router.IsTunnelerEnabled {
		v := view{
			known: k, snap: snap, record: identity, gets: access.ConfigsFor(snap, id),
			used: map[string]*model.Config{}, usedTypes: map[string]*model.ConfigType{},
		}
		ord, _ := snap.Ordinal(model.Identities.Def, id)
		k.ords = append(k.ords, ord)
		v.addIdentity(m.Now())
	}
	if m.Bearing > 0 {
		m.addBearers(k, snap, t, shares)
	}
	if bytes := k.weight(); bytes > maxBody {
		// It then uses too little, and not too much.
		m.Log.Error("a router and the clients at it may use more services than it can be told of, and it is told of none; give its identity fewer, or smaller configs, or let fewer clients use it",
			"router", id, "services", len(k.services), "clients", len(k.sessions), "bytes", bytes, "limit", maxBody)
		return &known{keys: k.keys, ords: k.ords, tooMuch: true}
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
	for _, p := range k.policies {
		bytes += 4*frame + 4*len(p.id) + len(p.identity)
		for _, id := range slices.Concat(p.services, p.checks) {
			bytes += 4 + len(id)
		}
	}
	for i := range k.checks {
		bytes += frame + len(message.Marshal(&k.checks[i]))
	}
	for _, e := range k.ended {
		bytes += frame + len(e.id)
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
	// dial and bind are the ids of those services that it may dial and host.
	dial, bind []string
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
			v.turn(*v.record.DisabledUntil)
		}
	} else {
		v.addServices(&who)
	}
	v.identities = []message.DataIdentity{who}
	v.policies = []policy{
		{id: bindPolicy, typ: message.PolicyBind, identity: who.ID, services: v.bind},
		{id: dialPolicy, typ: message.PolicyDial, identity: who.ID, services: v.dial},
	}
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
