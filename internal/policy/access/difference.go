package access

import (
	"cmp"
	"slices"
	"strings"

	"netkeep/internal/data/state"
	"netkeep/internal/lang/kind"
	"netkeep/internal/model"
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
	c := comparison{was: moment{snap: before}, is: moment{snap: after}}
	c.renumber(changed)
	c.gather(Affected(before, after, changed), changed)
	c.handOut()
	return c.report(c.sortOut(), max)
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
	return a.Type == b.Type && a.Semantic == b.Semantic &&
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
	var parts []part
	known := map[string]balance{}
	for _, p := range c.people {
		key = p.key(key[:0])
		b, ok := known[string(key)]
		if !ok {
			b = scale.balance(p)
			known[string(key)] = b
		}
		d.Gained += b.gained
		d.Lost += b.lost
		if b.gained > 0 {
			parts = append(parts, part{nameOf(p.is), p, true})
		}
		if b.lost > 0 {
			parts = append(parts, part{nameOf(p.was), p, false})
		}
	}
	slices.SortFunc(parts, func(a, b part) int { return strings.Compare(a.name, b.name) })
	for i, e := range parts {
		// Two may have had the same name, one after the other: all of a name are
		// listed before any is cut off.
		if len(d.Pairs) >= max && (i == 0 || e.name != parts[i-1].name) {
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
	name   string // of the identity
	person *person
	gained bool
}

func nameOf(identity kind.Record) string { return identity.(*model.Identity).Name }

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
	identity, snap := e.person.was, c.was.snap
	if e.gained {
		identity, snap = e.person.is, c.is.snap
	}
	for _, typ := range types {
		gained, set := scale.sets(e.person, typ)
		if e.gained {
			set = c.own(gained)
		}
		for rec := range snap.At(model.Services.Def, set) {
			service := rec.(*model.Service)
			pairs = append(pairs, Pair{identity.Base().ID, e.name, service.ID, service.Name, typ, e.gained})
		}
	}
	return pairs
}
