package assertion

import (
	"slices"

	"netkeep.internal/internal/data/state"
	"netkeep.internal/internal/data/state/cow"
	"netkeep.internal/internal/lang/kind"
	"netkeep.internal/internal/model"
	"netkeep.internal/internal/policy/access"
)

// trial looks for those who break an assertion after a change and did not before. It
// looks at what the change concerns: policies that changed, and identities and services
// that policies find otherwise than before.
type trial struct {
	was, is *moment // was is nil if nothing counts as before
	changed []state.Ref

	policies             []change
	present              []*model.ServicePolicy // of them, as they are after
	identities, services *cow.Bitmap            // that changed and are there, by ordinal

	ofIdentities func() []*model.ServicePolicy // that may find one of them
	ofServices   func() []*model.ServicePolicy
	shifted      func() []change // policies that changed, or that find other identities
}

// change is a policy before and after; nil for none.
type change struct{ was, is *model.ServicePolicy }

func newTrial(before, after *state.Snapshot, changed []state.Ref) *trial {
	t := &trial{is: newMoment(after, after, nil), identities: cow.NewBitmap(), services: cow.NewBitmap()}
	if before == nil {
		return t
	}
	t.changed = access.Moving(before, after, changed)
	t.was = newMoment(before, after, t.changed)
	for _, ref := range t.changed {
		switch ref.Def {
		case model.ServicePolicies.Def:
			var c change
			c.was, _ = model.ServicePolicies.Get(before, ref.ID)
			c.is, _ = model.ServicePolicies.Get(after, ref.ID)
			if t.policies = append(t.policies, c); c.is != nil {
				t.present = append(t.present, c.is)
			}
		case model.Identities.Def:
			add(t.identities, after, ref)
		case model.Services.Def:
			add(t.services, after, ref)
		}
	}
	t.ofIdentities = lazily(func() []*model.ServicePolicy { return t.near(t.is, model.Identities.Def, "identityRoles").found })
	t.ofServices = lazily(func() []*model.ServicePolicy { return t.near(t.is, model.Services.Def, "serviceRoles").found })
	t.shifted = lazily(t.shifts)
	return t
}

func add(set *cow.Bitmap, snap *state.Snapshot, ref state.Ref) {
	if ord, ok := snap.Ordinal(ref.Def, ref.ID); ok {
		set.Add(ord)
	}
}

func lazily[T any](find func() []T) func() []T {
	var found []T
	done := false
	return func() []T {
		if !done {
			found, done = find(), true
		}
		return found
	}
}

// near finds the policies of a moment that are filed under roles of those who changed.
func (t *trial) near(m *moment, of *kind.Def, field string) *finder {
	f := newFinder(m.snap, of, field)
	for _, ref := range t.changed {
		if ref.Def != of {
			continue
		}
		if rec, ok := m.snap.Lookup(of, ref.ID); ok {
			f.find(rec)
		}
	}
	return f
}

// shifts returns the policies that changed and those that stayed as they are and may
// have been about a changed identity, or be now.
func (t *trial) shifts() []change {
	list := slices.Clone(t.policies)
	known := map[string]bool{}
	for _, c := range list {
		for _, p := range []*model.ServicePolicy{c.was, c.is} {
			if p != nil {
				known[p.ID] = true
			}
		}
	}
	for _, m := range []*moment{t.was, t.is} {
		for _, p := range t.near(m, model.Identities.Def, "identityRoles").found {
			if !known[p.ID] {
				known[p.ID] = true
				list = append(list, change{p, p})
			}
		}
	}
	return list
}

// same reports whether two forms of an assertion expect the same, of whomever.
func same(old, a *model.Assertion) bool { return old.Expect == a.Expect && old.Type == a.Type }

// equal reports whether they expect the same of the same.
func equal(old, a *model.Assertion) bool {
	return same(old, a) && old.Semantic == a.Semantic &&
		slices.Equal(old.IdentityRoles, a.IdentityRoles) && slices.Equal(old.ServiceRoles, a.ServiceRoles)
}

// former returns the form of an assertion before the change, if who broke it then did
// so as one does now, and whether it is to be looked at as a whole.
func (t *trial) former(a *model.Assertion) (old *model.Assertion, whole bool) {
	if t.was == nil {
		return nil, true
	}
	old, had := model.Assertions.Get(t.was.snap, a.ID)
	switch {
	case !had || !same(old, a):
		return nil, true
	case old == a || equal(old, a):
		return old, false
	}
	return old, true
}

// never returns pairs that the assertion forbids.
func (t *trial) never(a *model.Assertion) area {
	old, whole := t.former(a)
	scope := t.is.scope(a)
	var found area
	look := func(at block, policies func() []*model.ServicePolicy) {
		if at.empty() {
			return
		}
		l := t.is.lens(at, a.Type, ever)
		for _, p := range policies() {
			if b, any := l.given(p); any {
				found.add(b)
			}
		}
	}
	if whole {
		look(scope, func() []*model.ServicePolicy { return t.is.near(scope) })
	} else {
		for _, p := range t.present {
			if b, any := t.is.gives(p, scope, a.Type, ever); any {
				found.add(b)
			}
		}
		look(block{common(t.identities, scope.identities), scope.services, nil}, t.ofIdentities)
		look(block{scope.identities, common(t.services, scope.services), nil}, t.ofServices)
	}
	if found.empty() || old == nil {
		return found
	}
	then := t.was.scope(old)
	if found.count() > maxCounted {
		some := sample(found, func(pair block) bool { return !pair.meets(then) || len(t.was.refusedOf(pair, a.Type, ever)) > 0 })
		if !some.empty() {
			return some
		}
	}
	fresh := found.without(then)
	fresh.join(t.was.refused(found.within(then), a.Type, ever))
	return fresh
}

// maxCounted is how many pairs are told apart from those of before in order to say how
// many they are: others wait for the write. maxTried is how many are tried one by one.
var (
	maxCounted = 10_000
	maxTried   = 100
)

// sample returns some of the pairs that break an assertion, found by trying.
func sample(found area, breaks func(pair block) bool) area {
	some, tried := area{rough: true, most: found.count()}, 0
	for _, b := range found.blocks {
		for who := b.identities.Iterator(); who.HasNext(); {
			one := cow.NewBitmap()
			one.Add(who.Next())
			for what := b.services.Iterator(); what.HasNext(); {
				if tried++; tried > maxTried || len(some.blocks) == maxListed {
					return some
				}
				thing := cow.NewBitmap()
				thing.Add(what.Next())
				if pair := (block{one, thing, b.by}); breaks(pair) {
					some.blocks = append(some.blocks, pair)
				}
			}
		}
	}
	return some
}

// always returns pairs that the assertion asks for and that nobody gives.
func (t *trial) always(a *model.Assertion) area {
	old, whole := t.former(a)
	scope := t.is.scope(a)
	var at area // that may be refused
	if whole {
		at.add(scope)
	} else {
		t.lost(&at, a.Type, scope)
		at.add(block{common(t.identities, scope.identities), scope.services, nil})
		at.add(block{scope.identities, common(t.services, scope.services), nil})
	}
	var then block
	if old != nil {
		then = t.was.scope(old)
	}
	if at = t.is.beside(at, a.Type, a.IdentityRoles); at.count() > maxCounted {
		some := sample(at, func(pair block) bool {
			return len(t.is.refusedOf(pair, a.Type, now)) > 0 && (old == nil || !pair.meets(then) || len(t.was.refusedOf(pair, a.Type, now)) == 0)
		})
		if !some.empty() {
			return some
		}
	}
	found := t.is.refused(at, a.Type, now)
	if found.empty() || old == nil {
		return found
	}
	fresh, in := found.without(then), found.within(then)
	fresh.join(in.minus(t.was.refused(in, a.Type, now)))
	return fresh
}

// lost adds what policies of a type gave and give no more.
func (t *trial) lost(at *area, typ string, scope block) {
	for _, c := range t.policies {
		if c.was == nil {
			continue
		}
		gave, any := t.was.gives(c.was, scope, typ, now)
		if !any {
			continue
		}
		gave.by = nil // it does no more
		left := []block{gave}
		if c.is != nil {
			if gives, any := t.is.gives(c.is, scope, typ, now); any {
				left = without(left, gives)
			}
		}
		for _, b := range left {
			at.add(b)
		}
	}
}

// somebody returns services that have somebody on the other side and nobody on this.
func (t *trial) somebody(a *model.Assertion) *cow.Bitmap {
	old, whole := t.former(a)
	at := t.is.scope(a).services
	if !whole {
		moved := t.services.Clone()
		then, since := newAudience(t.was.snap, old), newAudience(t.is.snap, a)
		for _, c := range t.shifted() {
			t.moves(moved, c, then, since)
		}
		at = common(at, moved)
	}
	found := t.is.alone(a, at)
	if found.IsEmpty() || old == nil {
		return found
	}
	return less(found, t.was.alone(old, common(t.was.scope(old).services, found)))
}

// moves adds the services of a policy that may have lost the last who used them, or
// got the first on the other side.
func (t *trial) moves(moved *cow.Bitmap, c change, then, since *audience) {
	if c.was != c.is {
		if c.was != nil {
			moved.Or(t.was.given(c.was, now).services)
		}
		if c.is != nil {
			moved.Or(t.is.given(c.is, now).services)
		}
		return
	}
	if then.hears(c.was) != since.hears(c.is) {
		moved.Or(t.is.given(c.is, now).services)
	}
}

// alone returns those of some services that have somebody on the other side and none
// of the identities on this.
func (m *moment) alone(a *model.Assertion, services *cow.Bitmap) *cow.Bitmap {
	left, found := services.Clone(), cow.NewBitmap()
	if left.IsEmpty() {
		return found
	}
	policies, among, heard := m.filed(services, model.Services.Def, "serviceRoles"), newSide(m.snap, model.Services.Def, m.services, services), newAudience(m.snap, a)
	for _, p := range policies {
		if p.Type != a.Type {
			continue
		}
		if given := among.found(p.ServiceRoles, p.Semantic); given != nil && heard.hears(p) {
			left.AndNot(given)
		}
		if left.IsEmpty() {
			return found
		}
	}
	for _, p := range policies {
		if p.Type == a.Type {
			continue
		}
		if given := among.found(p.ServiceRoles, p.Semantic); given != nil && given.Intersects(left) && heard.hears(p) {
			found.Or(common(given, left))
		}
	}
	return found
}

// noPolicy returns policies that pair what the assertion does not want to be paired.
func (t *trial) noPolicy(a *model.Assertion) (found []*model.ServicePolicy) {
	old, whole := t.former(a)
	if whole {
		for _, p := range t.is.policies() {
			if !pairs(p, a) {
				continue
			}
			if old != nil {
				if was, had := model.ServicePolicies.Get(t.was.snap, p.ID); had && pairs(was, old) {
					continue
				}
			}
			found = append(found, p)
		}
		return found
	}
	for _, c := range t.policies {
		if c.is != nil && pairs(c.is, a) && (c.was == nil || !pairs(c.was, old)) {
			found = append(found, c.is)
		}
	}
	return found
}

// pairs reports whether a policy has a role of each list of an assertion, and is not
// over.
func pairs(p *model.ServicePolicy, a *model.Assertion) bool {
	if !ever.counts(p) {
		return false
	}
	in := func(list []string) func(string) bool {
		return func(role string) bool { return slices.Contains(list, role) }
	}
	return p.Type == a.Type && slices.ContainsFunc(p.IdentityRoles, in(a.IdentityRoles)) && slices.ContainsFunc(p.ServiceRoles, in(a.ServiceRoles))
}
