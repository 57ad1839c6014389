package access

import (
	"encoding/binary"
	"slices"

	"netkeep/internal/data/state"
	"netkeep/internal/data/state/cow"
	"netkeep/internal/lang/kind"
	"netkeep/internal/model"
)

// comparison is two moments of a network. Services have the ordinals of the
// first in both, and those that are new ordinals beyond.
type comparison struct {
	was, is moment
	people  []*person
	// moved is the services that have another ordinal in the second moment than
	// here, by that one; to and from lead there and back.
	moved    *cow.Bitmap
	to, from map[uint32]uint32
	gifts    []*gift
}

// moment is one of the two snapshots.
type moment struct {
	snap   *state.Snapshot
	people map[uint32]*person // whom the change may concern, by ordinal
	who    *cow.Bitmap        // their ordinals
}

// person is an identity whom the change may concern.
type person struct {
	was, is         kind.Record // nil if it is not there
	wasGiven, given []*gift     // by number
	// What of that came, went and stayed. Of what stayed, only what gives
	// something that is at stake.
	came, went, stayed []*gift
}

// gift is what a policy gives. If it is the same in both moments there is one
// gift, and else two.
type gift struct {
	number   uint32 // from 1
	typ      string
	services *cow.Bitmap
	moves    bool // for somebody it comes or goes
	weight   weight
}

// renumber finds the services that the second moment has other ordinals for.
func (c *comparison) renumber(changed []state.Ref) {
	c.moved, c.to, c.from = new(cow.Bitmap), map[uint32]uint32{}, map[uint32]uint32{}
	beyond := uint32(0)
	if all := c.was.snap.Tagged(model.Services.Def, ""); all != nil {
		beyond = all.Maximum() + 1
	}
	for _, ref := range changed {
		if ref.Def != model.Services.Def {
			continue
		}
		is, has := c.is.snap.Ordinal(ref.Def, ref.ID)
		was, had := c.was.snap.Ordinal(ref.Def, ref.ID)
		if !had {
			was = beyond
			beyond++
		}
		if has && was != is {
			c.moved.Add(is)
			c.to[is], c.from[was] = was, is
		}
	}
}

// common returns a set of services of the second moment in common ordinals.
func (c *comparison) common(set *cow.Bitmap) *cow.Bitmap {
	if !set.Intersects(c.moved) {
		return set
	}
	moved := set.Clone()
	moved.And(c.moved)
	set = set.Clone()
	set.AndNot(c.moved)
	for it := moved.Iterator(); it.HasNext(); {
		set.Add(c.to[it.Next()])
	}
	return set
}

// own is common the other way round.
func (c *comparison) own(set *cow.Bitmap) *cow.Bitmap {
	own := new(cow.Bitmap)
	for it := set.Iterator(); it.HasNext(); {
		ord := it.Next()
		if is, moved := c.from[ord]; moved {
			ord = is
		}
		own.Add(ord)
	}
	return own
}

// gather finds whom the change may concern: those who are affected and those
// who are no more.
func (c *comparison) gather(affected *cow.Bitmap, changed []state.Ref) {
	n := int(affected.GetCardinality())
	c.is.people, c.is.who = make(map[uint32]*person, n), new(cow.Bitmap)
	c.was.people, c.was.who = make(map[uint32]*person, n), new(cow.Bitmap)
	for rec := range c.is.snap.At(model.Identities.Def, affected) {
		old, _ := c.was.snap.Lookup(model.Identities.Def, rec.Base().ID)
		c.add(&person{was: old, is: rec})
	}
	for _, ref := range changed {
		if ref.Def != model.Identities.Def {
			continue
		}
		old, had := c.was.snap.Lookup(ref.Def, ref.ID)
		if _, has := c.is.snap.Lookup(ref.Def, ref.ID); had && !has {
			c.add(&person{was: old})
		}
	}
}

func (c *comparison) add(p *person) {
	c.people = append(c.people, p)
	c.was.add(p.was, p)
	c.is.add(p.is, p)
}

func (m *moment) add(rec kind.Record, p *person) {
	if rec == nil {
		return
	}
	ord, _ := m.snap.Ordinal(model.Identities.Def, rec.Base().ID)
	m.people[ord] = p
	m.who.Add(ord)
}

// handOut gives everybody their gifts.
func (c *comparison) handOut() {
	for id := range c.policies() {
		was, is := c.giftsOf(id)
		if was != nil {
			policy, _ := model.ServicePolicies.Get(c.was.snap, id)
			for p := range c.was.selected(policy) {
				p.wasGiven = append(p.wasGiven, was)
			}
		}
		if is != nil {
			policy, _ := model.ServicePolicies.Get(c.is.snap, id)
			for p := range c.is.selected(policy) {
				p.given = append(p.given, is)
			}
		}
	}
}

// policies returns the policies, by id, that may select one of the people:
// all there are, or those that are filed under a role of theirs.
func (c *comparison) policies() map[string]bool {
	found := map[string]bool{}
	for _, m := range []*moment{&c.was, &c.is} {
		if len(m.people) > m.snap.Len(model.ServicePolicies.Def) {
			for p := range model.ServicePolicies.All(m.snap) {
				found[p.ID] = true
			}
			continue
		}
		asked := map[string]bool{}
		for rec := range m.snap.At(model.Identities.Def, m.who) {
			for _, key := range keysOf(model.Identities.Def, rec) {
				if asked[key] {
					continue
				}
				asked[key] = true
				for p := range model.ServicePolicies.Select(m.snap, "identityRoles", key) {
					found[p.ID] = true
				}
			}
		}
	}
	return found
}

// giftsOf returns what a policy gives in either moment, nil where there is no
// such policy or it gives nothing.
func (c *comparison) giftsOf(policyID string) (was, is *gift) {
	if p, had := model.ServicePolicies.Get(c.was.snap, policyID); had {
		was = c.gift(p, ServicePolicyServices.Members(c.was.snap, p))
	}
	p, has := model.ServicePolicies.Get(c.is.snap, policyID)
	if !has {
		return was, nil
	}
	services := c.common(ServicePolicyServices.Members(c.is.snap, p))
	if was != nil && was.typ == p.Type && was.services.Equals(services) {
		return was, was
	}
	return was, c.gift(p, services)
}

func (c *comparison) gift(p *model.ServicePolicy, services *cow.Bitmap) *gift {
	if services.IsEmpty() {
		return nil
	}
	g := &gift{number: uint32(len(c.gifts) + 1), typ: p.Type, services: services}
	c.gifts = append(c.gifts, g)
	return g
}

// selected yields those of the people whom a policy selects.
func (m *moment) selected(policy kind.Record) func(yield func(*person) bool) {
	return func(yield func(*person) bool) {
		set := ServicePolicyIdentities.Members(m.snap, policy).Clone()
		set.And(m.who)
		for it := set.Iterator(); it.HasNext(); {
			if !yield(m.people[it.Next()]) {
				return
			}
		}
	}
}

// sortOut finds what came, went and stayed, and leaves those alone for whom
// everything did stay. It returns a scale for the others.
func (c *comparison) sortOut() *scale {
	c.people = slices.DeleteFunc(c.people, func(p *person) bool { return !p.sortOut() })
	var atStake union
	for _, g := range c.gifts {
		if g.moves {
			atStake.add(g.services)
		}
	}
	s := newScale(atStake.set())
	for _, g := range c.gifts {
		g.weight = s.weigh(g.services)
	}
	for _, p := range c.people {
		p.stayed = slices.DeleteFunc(p.stayed, func(g *gift) bool { return g.weight.none() })
	}
	return s
}

// sortOut reports whether something came or went.
func (p *person) sortOut() bool {
	was, is := p.wasGiven, p.given
	for len(was) > 0 || len(is) > 0 {
		switch {
		case len(is) == 0 || len(was) > 0 && was[0].number < is[0].number:
			was[0].moves = true
			p.went, was = append(p.went, was[0]), was[1:]
		case len(was) == 0 || is[0].number < was[0].number:
			is[0].moves = true
			p.came, is = append(p.came, is[0]), is[1:]
		default:
			p.stayed, was, is = append(p.stayed, is[0]), was[1:], is[1:]
		}
	}
	return len(p.came)+len(p.went) > 0
}

// key is the same for all for whom the same came, went and stayed.
func (p *person) key(dst []byte) []byte {
	for _, list := range [][]*gift{p.came, p.went, p.stayed} {
		for _, g := range list {
			dst = binary.NativeEndian.AppendUint32(dst, g.number)
		}
		dst = binary.NativeEndian.AppendUint32(dst, 0) // is no gift's number
	}
	return dst
}
