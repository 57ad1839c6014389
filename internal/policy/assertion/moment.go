package assertion

import (
	"netkeep.internal/internal/data/state"
	"netkeep.internal/internal/data/state/cow"
	"netkeep.internal/internal/lang/kind"
	"netkeep.internal/internal/model"
	"netkeep.internal/internal/policy/access"
)

// moment is a network with what its policies give. All sets are of the ordinals of
// the moment that is judged, though it may be the one before.
type moment struct {
	snap, judged         *state.Snapshot
	identities, services numbering
	all                  []*model.ServicePolicy
	whole                map[*model.ServicePolicy]block // what some give, of everybody
}

// newMoment returns what there is in a snapshot out of which the judged one has grown
// by changes.
func newMoment(snap, judged *state.Snapshot, changed []state.Ref) *moment {
	return &moment{
		snap: snap, judged: judged,
		identities: newNumbering(snap, judged, model.Identities.Def, changed),
		services:   newNumbering(snap, judged, model.Services.Def, changed),
	}
}

// scope is what an assertion is about.
func (m *moment) scope(a *model.Assertion) block {
	return block{
		identities: m.identities.of(access.Matching(m.snap, model.Identities.Def, a.IdentityRoles, a.Semantic)),
		services:   m.services.of(access.Matching(m.snap, model.Services.Def, a.ServiceRoles, a.Semantic)),
	}
}

// reach is when a policy counts.
type reach bool

const (
	// now is while it is in force.
	now reach = false
	// ever is until it is over: what must never be must not be written down for
	// tomorrow either.
	ever reach = true
)

// counts reports whether a policy does.
func (r reach) counts(p *model.ServicePolicy) bool {
	return p.Counts() || r == ever && p.Standing != model.Over
}

// given is what a policy gives.
func (m *moment) given(p *model.ServicePolicy, r reach) block {
	if !r.counts(p) {
		return block{cow.NewBitmap(), cow.NewBitmap(), p}
	}
	return block{
		m.identities.of(access.Matching(m.snap, model.Identities.Def, p.IdentityRoles, p.Semantic)),
		m.services.of(access.Matching(m.snap, model.Services.Def, p.ServiceRoles, p.Semantic)), p,
	}
}

// gives is what a policy gives of the pairs of a block, if it is of a type and gives
// any. It is for those that are asked of many blocks.
func (m *moment) gives(p *model.ServicePolicy, at block, typ string, r reach) (block, bool) {
	if p.Type != typ || !r.counts(p) {
		return block{}, false
	}
	all, known := m.whole[p]
	if !known {
		if all = m.given(p, ever); m.whole == nil {
			m.whole = map[*model.ServicePolicy]block{}
		}
		m.whole[p] = all
	}
	given := all.within(at)
	return given, !given.empty()
}

// policies are all that there are.
func (m *moment) policies() []*model.ServicePolicy {
	if m.all == nil {
		for p := range model.ServicePolicies.All(m.snap) {
			m.all = append(m.all, p)
		}
	}
	return m.all
}

// few is how many records may be asked for their policies one by one.
const few = 16

// near returns the policies that may give any of the pairs: those that are filed
// under a role of those on a side with few, or all.
func (m *moment) near(b block) []*model.ServicePolicy {
	if b.services.GetCardinality() < b.identities.GetCardinality() {
		return m.filed(b.services, model.Services.Def, "serviceRoles")
	}
	return m.filed(b.identities, model.Identities.Def, "identityRoles")
}

// filed returns the policies that may find any of a set.
func (m *moment) filed(set *cow.Bitmap, d *kind.Def, field string) []*model.ServicePolicy {
	if set.GetCardinality() > few {
		return m.policies()
	}
	f := newFinder(m.snap, d, field)
	for rec := range m.judged.At(d, set) {
		if m.snap != m.judged {
			was, had := m.snap.Lookup(d, rec.Base().ID)
			if !had {
				continue
			}
			rec = was
		}
		f.find(rec)
	}
	return f.found
}

// finder finds the policies that are filed under roles of records, each once.
type finder struct {
	snap  *state.Snapshot
	of    *kind.Def
	field string
	asked map[string]bool
	known map[*model.ServicePolicy]bool
	found []*model.ServicePolicy
}

func newFinder(snap *state.Snapshot, of *kind.Def, field string) *finder {
	return &finder{snap: snap, of: of, field: field, asked: map[string]bool{}, known: map[*model.ServicePolicy]bool{}}
}

func (f *finder) find(rec kind.Record) {
	f.ask("#all")
	f.ask("@" + rec.Base().ID)
	for _, attribute := range f.of.AttributesOf(rec) {
		f.ask("#" + attribute)
	}
}

func (f *finder) ask(role string) {
	if f.asked[role] {
		return
	}
	f.asked[role] = true
	for p := range model.ServicePolicies.Select(f.snap, f.field, role) {
		if !f.known[p] {
			f.known[p] = true
			f.found = append(f.found, p)
		}
	}
}

// beside returns those of the pairs that no policy of a type gives that names one of
// some identity roles. Mostly these are the ones that give what is asked for.
func (m *moment) beside(a area, typ string, roles []string) area {
	f := newFinder(m.snap, model.Identities.Def, "identityRoles")
	for _, role := range roles {
		f.ask(role)
	}
	left := area{rough: a.rough}
	for _, b := range a.blocks {
		l, rest := m.lens(b, typ, now), []block{b}
		for _, p := range f.found {
			if given, any := l.given(p); any && len(rest) <= maxBlocks {
				rest = without(rest, given)
			}
		}
		left.blocks = append(left.blocks, rest...)
	}
	return left
}

// refused returns those of the pairs that no policy of a type gives.
func (m *moment) refused(a area, typ string, r reach) area {
	left := area{rough: a.rough}
	for _, b := range a.blocks {
		left.blocks = append(left.blocks, m.refusedOf(b, typ, r)...)
	}
	return left
}

func (m *moment) refusedOf(b block, typ string, r reach) []block {
	l, left := m.lens(b, typ, r), []block{b}
	for _, p := range m.near(b) {
		given, any := l.given(p)
		if !any {
			continue
		}
		switch left = without(left, given); {
		case len(left) == 0:
			return nil
		case len(left) > maxBlocks:
			return m.refusedEach(l)
		}
	}
	return left
}

// refusedEach is refusedOf where many policies give a part each: it goes through
// those on the side with fewer.
func (m *moment) refusedEach(l *lens) (left []block) {
	b, rows, columns := l.block, l.identities.in, l.services.in
	turned := columns.GetCardinality() < rows.GetCardinality()
	if turned {
		rows, columns = columns, rows
	}
	var giving []block
	for _, p := range m.near(b) {
		given, any := l.given(p)
		if !any {
			continue
		}
		if turned {
			given.identities, given.services = given.services, given.identities
		}
		giving = append(giving, given)
	}
	for it := rows.Iterator(); it.HasNext(); {
		ord := it.Next()
		rest := columns.Clone()
		for _, given := range giving {
			if given.identities.Contains(ord) {
				rest.AndNot(given.services)
			}
		}
		if rest.IsEmpty() {
			continue
		}
		row := cow.NewBitmap()
		row.Add(ord)
		if turned {
			row, rest = rest, row
		}
		left = append(left, block{row, rest, b.by})
	}
	return left
}

// numbering leads from the ordinals of records in a snapshot to those that the same
// records have in the one that is judged. Most have the same.
type numbering struct {
	moved *cow.Bitmap // ordinals that are others, or nobody's, in the judged one
	to    map[uint32]uint32
}

func newNumbering(snap, judged *state.Snapshot, of *kind.Def, changed []state.Ref) numbering {
	n := numbering{cow.NewBitmap(), map[uint32]uint32{}}
	for _, ref := range changed {
		if ref.Def != of || snap == judged {
			continue
		}
		was, had := snap.Ordinal(of, ref.ID)
		is, has := judged.Ordinal(of, ref.ID)
		if !had || has && was == is {
			continue
		}
		n.moved.Add(was)
		if has {
			n.to[was] = is
		}
	}
	return n
}

func (n numbering) of(set *cow.Bitmap) *cow.Bitmap {
	if !set.Intersects(n.moved) {
		return set
	}
	numbers := less(set, n.moved)
	for it := common(set, n.moved).Iterator(); it.HasNext(); {
		if is, has := n.to[it.Next()]; has {
			numbers.Add(is)
		}
	}
	return numbers
}
