package access

import (
	"encoding/binary"

	"netkeep.internal/internal/data/state"
	"netkeep.internal/internal/data/state/cow"
	"netkeep.internal/internal/lang/kind"
	"netkeep.internal/internal/model"
)

// comparison is two moments of a network. Identities and services have the same
// numbers in both.
type comparison struct {
	was, is              *state.Snapshot
	identities, services numbering
	who                  *cow.Bitmap // identities that the change may concern
	gifts                []*gift
	movers               *cow.Bitmap // identities for whom something comes or goes
	people               []*person   // the same by number, with gaps
}

// gift is services that a policy gives, and for whom they come, go and stay.
// What a policy gives in both moments is another gift than what it gives in one.
type gift struct {
	number             uint32 // from 1
	typ                string
	services           *cow.Bitmap
	came, went, stayed *cow.Bitmap // identities; nil for nobody
	weight             weight
}

// person is what comes, goes and stays for an identity, as far as it has to do
// with services that come or go for anybody.
type person struct {
	came, went, stayed []*gift
}

func newComparison(before, after *state.Snapshot, changed []state.Ref) *comparison {
	c := &comparison{
		was: before, is: after,
		identities: newNumbering(before, after, model.Identities.Def, changed),
		services:   newNumbering(before, after, model.Services.Def, changed),
	}
	who := union{}
	who.add(c.identities.common(Affected(before, after, changed)))
	for _, ref := range changed {
		if ref.Def != model.Identities.Def {
			continue
		}
		if ord, had := before.Ordinal(ref.Def, ref.ID); had {
			who.addOne(ord)
		}
	}
	c.who = who.set()
	return c
}

// policies returns the policies, by id, that may select one of those whom the
// change may concern: all there are, or those that are filed under a role of
// theirs.
func (c *comparison) policies() map[string]bool {
	found := map[string]bool{}
	for _, m := range []struct {
		snap *state.Snapshot
		who  *cow.Bitmap
	}{{c.was, c.who}, {c.is, c.identities.own(c.who)}} {
		if int(m.who.GetCardinality()) > m.snap.Len(model.ServicePolicies.Def) {
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

// compare finds what policies give, and to whom, in either moment.
func (c *comparison) compare() {
	for id := range c.policies() {
		var before, after offer
		if p, had := model.ServicePolicies.Get(c.was, id); had {
			before = offer{p.Type, ServicePolicyIdentities.Members(c.was, p), ServicePolicyServices.Members(c.was, p)}
		}
		if p, has := model.ServicePolicies.Get(c.is, id); has {
			after = offer{
				p.Type, c.identities.common(ServicePolicyIdentities.Members(c.is, p)),
				c.services.common(ServicePolicyServices.Members(c.is, p)),
			}
		}
		c.compareOffers(before, after)
	}
}

// offer is a policy at one moment. One that is not there offers nothing.
type offer struct {
	typ              string
	people, services *cow.Bitmap
}

func (c *comparison) compareOffers(before, after offer) {
	was, is := among(before.people, c.who), among(after.people, c.who)
	if before.typ != after.typ {
		c.add(&gift{typ: before.typ, services: before.services, went: was})
		c.add(&gift{typ: after.typ, services: after.services, came: is})
		return
	}
	both := among(before.services, after.services)
	c.add(&gift{typ: after.typ, services: both, came: without(is, was), went: without(was, is), stayed: among(is, was)})
	c.add(&gift{typ: after.typ, services: without(before.services, both), went: was})
	c.add(&gift{typ: after.typ, services: without(after.services, both), came: is})
}

func (c *comparison) add(g *gift) {
	if g.services == nil || g.services.IsEmpty() {
		return
	}
	c.gifts = append(c.gifts, g)
	g.number = uint32(len(c.gifts))
}

// moves reports whether the gift comes or goes for anybody.
func (g *gift) moves() bool {
	return g.came != nil && !g.came.IsEmpty() || g.went != nil && !g.went.IsEmpty()
}

// handOut gives those for whom something comes or goes what there is to be
// weighed, and returns the scale for it.
func (c *comparison) handOut() *scale {
	var movers, atStake union
	for _, g := range c.gifts {
		if g.moves() {
			movers.add(g.came)
			movers.add(g.went)
			atStake.add(g.services)
		}
	}
	c.movers = movers.set()
	if c.movers.IsEmpty() {
		return nil
	}
	c.people = make([]*person, c.movers.Maximum()+1)
	for it := c.movers.Iterator(); it.HasNext(); {
		c.people[it.Next()] = new(person)
	}
	s := newScale(atStake.set())
	for _, g := range c.gifts {
		if g.weight = s.weigh(g.services); g.weight.none() {
			continue
		}
		c.each(g.came, func(p *person) { p.came = append(p.came, g) })
		c.each(g.went, func(p *person) { p.went = append(p.went, g) })
		c.each(g.stayed, func(p *person) { p.stayed = append(p.stayed, g) })
	}
	return s
}

// each calls do for those of a set for whom something comes or goes.
func (c *comparison) each(set *cow.Bitmap, do func(*person)) {
	if set == nil {
		return
	}
	for it := among(set, c.movers).Iterator(); it.HasNext(); {
		do(c.people[it.Next()])
	}
}

// key is the same for all for whom the same comes, goes and stays.
func (p *person) key(dst []byte) []byte {
	for _, list := range [][]*gift{p.came, p.went, p.stayed} {
		for _, g := range list {
			dst = binary.NativeEndian.AppendUint32(dst, g.number)
		}
		dst = binary.NativeEndian.AppendUint32(dst, 0) // is no gift's number
	}
	return dst
}

// among returns what two sets have in common; either may be nil.
func among(a, b *cow.Bitmap) *cow.Bitmap {
	switch {
	case a == nil || b == nil:
		return new(cow.Bitmap)
	case a == b:
		return a
	}
	common := a.Clone()
	common.And(b)
	return common
}

// numbering gives the records of a kind the same numbers in two snapshots:
// their ordinals in the first, and those that are new numbers beyond.
type numbering struct {
	of *kind.Def
	// moved is the ordinals in the second snapshot that are other numbers; to
	// and from lead from these to those and back.
	moved    *cow.Bitmap
	to, from map[uint32]uint32
}

func newNumbering(before, after *state.Snapshot, of *kind.Def, changed []state.Ref) numbering {
	n := numbering{of, new(cow.Bitmap), map[uint32]uint32{}, map[uint32]uint32{}}
	beyond := uint32(0)
	if all := before.Tagged(of, ""); all != nil {
		beyond = all.Maximum() + 1
	}
	for _, ref := range changed {
		if ref.Def != of {
			continue
		}
		is, has := after.Ordinal(of, ref.ID)
		was, had := before.Ordinal(of, ref.ID)
		if !had {
			was = beyond
			beyond++
		}
		if has && was != is {
			n.moved.Add(is)
			n.to[is], n.from[was] = was, is
		}
	}
	return n
}

// common returns the numbers of records with ordinals in the second snapshot.
func (n *numbering) common(set *cow.Bitmap) *cow.Bitmap {
	if !set.Intersects(n.moved) {
		return set
	}
	numbers := without(set, n.moved)
	for it := among(set, n.moved).Iterator(); it.HasNext(); {
		numbers.Add(n.to[it.Next()])
	}
	return numbers
}

// own returns the ordinals in the second snapshot of records with numbers. A
// number that is nobody's there may come out as anybody's.
func (n *numbering) own(set *cow.Bitmap) *cow.Bitmap {
	if len(n.from) == 0 {
		return set
	}
	own := new(cow.Bitmap)
	for it := set.Iterator(); it.HasNext(); {
		ord := it.Next()
		if is, moved := n.from[ord]; moved {
			ord = is
		}
		own.Add(ord)
	}
	return own
}
