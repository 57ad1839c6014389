package terminator

import (
	"math"
	"math/rand/v2"
	"slices"

	"netkeep.internal/internal/model"
)

// lot is terminators side by side of which any may be drawn, or a single one
// that is not as those beside it.
type lot struct {
	group
	begin, end string // where it begins and ends among all
	n          int    // how many there are to draw from
	cost       int    // what the cheapest of them costs in all
	single     *Candidate
}

// whole makes a lot of a group; there may be nothing in it.
func (s *search) whole(g group) lot {
	l := lot{group: g, begin: g.key, end: g.end(), n: g.n, cost: g.path}
	l.n -= len(s.within(l.key, l.begin, l.end))
	return l
}

// next makes a lot of the first terminator from a place of a group on, and of
// those that are dearer than it by not more than a bound. ok is false if there
// is none.
func (s *search) next(g group, key string, dearer func(cost int) int) (l lot, ok bool) {
	rec, at, ok := s.ranked.From(key)
	if !ok || at >= g.end() {
		return lot{}, false
	}
	cost := rec.(*model.Terminator).Cost
	most := model.CostPlace(min(math.MaxUint16, cost+dearer(cost)))
	return lot{group: g, begin: at, end: g.key + most + "\x00", cost: g.path + cost}, true
}

// count says how many there are to draw from, and reports whether there are
// any.
func (s *search) count(l *lot) bool {
	l.n = s.ranked.Before(l.end) - s.ranked.Before(l.begin) - len(s.within(l.key, l.begin, l.end))
	return l.n > 0
}

// singles are the terminators of a group that cost more than they say.
func (s *search) singles(g group) (lots []lot) {
	for _, e := range s.apart[g.key] {
		if !e.out {
			c := e.Candidate
			c.Path = g.path
			lots = append(lots, lot{group: g, n: 1, cost: c.cost(), single: &c})
		}
	}
	return lots
}

// draw returns any one of a lot that was counted.
func (s *search) draw(l lot) Candidate {
	if l.single != nil {
		return *l.single
	}
	var gaps []int
	for _, e := range s.within(l.key, l.begin, l.end) {
		gaps = append(gaps, s.ranked.Ahead(e.Terminator))
	}
	slices.Sort(gaps)
	at := s.ranked.Before(l.begin) + rand.IntN(l.n)
	for _, gap := range gaps {
		if gap <= at {
			at++
		}
	}
	return Candidate{Terminator: s.ranked.At(at).(*model.Terminator), Path: l.path}
}

// byNumber is how lots are drawn if all in them are alike.
func byNumber(l lot) float64 { return float64(l.n) }

// cheapest returns one of those that cost least, so that equals share the load.
func (s *search) cheapest(groups []group) (Candidate, bool) {
	var best []lot
	consider := func(l lot) {
		if len(best) > 0 && l.cost < best[0].cost {
			best = best[:0]
		}
		best = append(best, l)
	}
	dearer := func(cost int) bool { return len(best) > 0 && cost > best[0].cost }
	for _, g := range groups {
		if dearer(g.path) {
			break // and so are all others
		}
		for _, l := range s.singles(g) {
			if !dearer(l.cost) {
				consider(l)
			}
		}
		for key := g.key; ; {
			l, ok := s.next(g, key, func(int) int { return 0 })
			if !ok || dearer(l.cost) {
				break
			}
			if s.count(&l) {
				consider(l)
				break
			}
			key = l.end
		}
	}
	if len(best) == 0 {
		return Candidate{}, false
	}
	return s.draw(draw(best, byNumber)), true
}

// random returns any one of them.
func (s *search) random(groups []group) (Candidate, bool) {
	var lots []lot
	for _, g := range groups {
		lots = append(lots, s.singles(g)...)
		if l := s.whole(g); l.n > 0 {
			lots = append(lots, l)
		}
	}
	if len(lots) == 0 {
		return Candidate{}, false
	}
	return s.draw(draw(lots, byNumber)), true
}

// weighted returns one of them, each the more likely the less it costs. It is
// drawn as if all in a group were as cheap as the cheapest, and put back as often
// as it is dearer. Where that takes too long because costs are far apart, each
// group is taken apart first.
func (s *search) weighted(groups []group) (Candidate, bool) {
	var lots []lot
	for _, g := range groups {
		lots = append(lots, s.singles(g)...)
		l := s.whole(g)
		if cheapest, ok := s.next(g, g.key, func(int) int { return 0 }); ok && l.n > 0 {
			l.cost = cheapest.cost
			lots = append(lots, l)
		}
	}
	if len(lots) == 0 {
		return Candidate{}, false
	}
	if chosen, ok := s.drawByWeight(lots, 8); ok {
		return chosen, true
	}
	lots = lots[:0]
	for _, g := range groups {
		lots = append(append(lots, s.singles(g)...), s.steps(g)...)
	}
	chosen, _ := s.drawByWeight(lots, 100) // more than it ever takes
	return chosen, true
}

// steps takes a group apart into lots in which nobody costs more than twice what
// the cheapest does. There are at most 17.
func (s *search) steps(g group) (lots []lot) {
	for key := g.key; ; {
		l, ok := s.next(g, key, func(cost int) int { return cost + g.path })
		if !ok {
			return lots
		}
		if s.count(&l) {
			lots = append(lots, l)
		}
		key = l.end
	}
}

// drawByWeight draws until it keeps one; ok is false if it has put back all.
func (s *search) drawByWeight(lots []lot, times int) (chosen Candidate, ok bool) {
	for range times {
		l := draw(lots, func(l lot) float64 { return float64(l.n) * weight(l.cost) })
		if chosen = s.draw(l); rand.Float64()*weight(l.cost) < weight(chosen.cost()) {
			return chosen, true
		}
	}
	return chosen, false
}
