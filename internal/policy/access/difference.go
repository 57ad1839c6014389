package access

import (
	"cmp"
	"iter"
	"slices"
	"strings"

	"netkeep.internal/internal/data/state"
	"netkeep.internal/internal/data/state/cow"
	"netkeep.internal/internal/lang/kind"
	"netkeep.internal/internal/model"
)

// Pair is an identity and a service that it may use since a change, or may no
// more.
type Pair struct {
	IdentityID, Identity string // id and name, as they are while the identity may
	ServiceID, Service   string
	Type                 string // Dial or Bind
	Gained               bool   // or else lost
}

// Delta is what a change gives and takes.
type Delta struct {
	Gained, Lost int    // how many pairs there are of each
	Pairs        []Pair // the first of them, by names of identity and service and by type
	More         bool   // there are others
}

// Difference says which services policies give an identity in after and not in
// before, and the other way round. It lists max pairs at most. Who comes into
// being gains, and who is deleted loses, as do those of a service. What admins
// may without a policy does not count.
//
// changed must hold every record that differs between the snapshots, and after
// must have grown out of before.
//
// It looks at those whom the change concerns, once at all of them who have the
// same policies, and there at the services that move for anybody.
func Difference(before, after *state.Snapshot, changed []state.Ref, max int) Delta {
	changed = moving(before, after, changed)
	if len(changed) == 0 {
		return Delta{}
	}
	c := newComparison(before, after, changed)
	c.compare()
	return c.report(c.handOut(), max)
}

// moving returns those of the changed records that can move a service to or
// from somebody.
func moving(before, after *state.Snapshot, changed []state.Ref) []state.Ref {
	var left []state.Ref
	for _, c := range changed {
		old, had := before.Lookup(c.Def, c.ID)
		next, has := after.Lookup(c.Def, c.ID)
		switch c.Def {
		case model.Identities.Def, model.Services.Def:
			was, _ := before.Ordinal(c.Def, c.ID)
			is, _ := after.Ordinal(c.Def, c.ID)
			if had && has && was == is && slices.Equal(c.Def.AttributesOf(old), c.Def.AttributesOf(next)) {
				continue
			}
		case model.ServicePolicies.Def:
			if had && has && movesNothing(old.(*model.ServicePolicy), next.(*model.ServicePolicy)) {
				continue
			}
		default:
			continue
		}
		left = append(left, c)
	}
	return left
}

func movesNothing(a, b *model.ServicePolicy) bool {
	return a.Type == b.Type && a.Semantic == b.Semantic && a.Standing == b.Standing &&
		slices.Equal(a.IdentityRoles, b.IdentityRoles) && slices.Equal(a.ServiceRoles, b.ServiceRoles)
}

// types is what a service policy may allow, in order.
var types = [...]string{model.Bind, model.Dial}

// balance is how many services somebody gains and loses.
type balance struct{ gained, lost int }

// report counts, and lists the first pairs.
func (c *comparison) report(scale *scale, max int) Delta {
	var d Delta
	var key []byte
	gainers, losers := new(cow.Bitmap), new(cow.Bitmap)
	known := map[string]balance{}
	for it := c.movers.Iterator(); it.HasNext(); {
		number := it.Next()
		p := c.people[number]
		key = p.key(key[:0])
		b, ok := known[string(key)]
		if !ok {
			b = scale.balance(p)
			known[string(key)] = b
		}
		d.Gained += b.gained
		d.Lost += b.lost
		if b.gained > 0 {
			gainers.Add(number)
		}
		if b.lost > 0 {
			losers.Add(number)
		}
	}
	parts := append(c.parts(gainers, true), c.parts(losers, false)...)
	slices.SortFunc(parts, func(a, b part) int { return strings.Compare(a.identity.Name, b.identity.Name) })
	for i, e := range parts {
		// Two may have had the same name, one after the other: all of a name are
		// listed before any is cut off.
		if len(d.Pairs) >= max && (i == 0 || e.identity.Name != parts[i-1].identity.Name) {
			break
		}
		d.Pairs = c.appendPairs(d.Pairs, scale, e)
	}
	slices.SortFunc(d.Pairs, Pair.compare)
	d.Pairs = d.Pairs[:min(max, len(d.Pairs))]
	d.More = d.Gained+d.Lost > len(d.Pairs)
	return d
}

// part is what somebody gains, or what somebody loses.
type part struct {
	identity *model.Identity // as it is while it may
	person   *person
	gained   bool
}

// parts are those of identities by number.
func (c *comparison) parts(numbers *cow.Bitmap, gained bool) []part {
	parts := make([]part, 0, numbers.GetCardinality())
	for number, rec := range c.records(c.identities, numbers, gained) {
		parts = append(parts, part{rec.(*model.Identity), c.people[number], gained})
	}
	return parts
}

// records yields the records with some numbers as they are in the second
// snapshot, or in the first.
func (c *comparison) records(n numbering, numbers *cow.Bitmap, second bool) iter.Seq2[uint32, kind.Record] {
	snap, ordinals := c.was, numbers
	if second {
		snap, ordinals = c.is, n.own(numbers)
	}
	return func(yield func(uint32, kind.Record) bool) {
		it := ordinals.Iterator()
		for rec := range snap.At(n.of, ordinals) { // in the same order
			number := it.Next()
			if to, moved := n.to[number]; moved && second {
				number = to
			}
			if !yield(number, rec) {
				return
			}
		}
	}
}

func (p Pair) compare(q Pair) int {
	byNames := cmp.Or(strings.Compare(p.Identity, q.Identity), strings.Compare(p.Service, q.Service), strings.Compare(p.Type, q.Type))
	switch {
	case byNames != 0 || p.Gained == q.Gained:
		return byNames
	case q.Gained:
		return -1
	}
	return 1
}

func (c *comparison) appendPairs(pairs []Pair, scale *scale, e part) []Pair {
	for _, typ := range types {
		gained, services := scale.sets(e.person, typ)
		if e.gained {
			services = gained
		}
		for _, rec := range c.records(c.services, services, e.gained) {
			service := rec.(*model.Service)
			pairs = append(pairs, Pair{e.identity.ID, e.identity.Name, service.ID, service.Name, typ, e.gained})
		}
	}
	return pairs
}
