package terminator

import (
	"cmp"
	"slices"

	"netkeep.internal/internal/data/state"
	"netkeep.internal/internal/model"
)

// Want is what a dial asks of the host that is chosen for it.
type Want struct {
	Service *model.Service
	// Host is the name of one host among several; empty if it does not matter.
	Host string
	// Sticky is the id of the terminator that a client had before.
	Sticky string
	// Path is what it costs to get to a router; ok is false if no path leads
	// there.
	Path func(routerID string) (cost int64, ok bool)
	// Tried are the ids of terminators that are out of the question.
	Tried map[string]bool
}

// maxStale is how many terminators may turn out to be of no use before all are
// looked at for that.
const maxStale = 32

// Choose returns the terminator that a circuit should end at; ok is false if
// there is none. It does not look at all that there are: those of a service are
// kept by precedence, router and cost, so what it does grows with the routers
// that have any and not with the terminators. Whether a host may still host is
// looked at only for the one that is chosen.
//
// A look at all of them would be a third of the code, and takes 5 µs for 10
// terminators at 10 routers, 70 µs for 100, 0.8 ms for 1,000 and 35 ms for
// 10,000, against 4, 4, 5 and 7 µs: every dial pays that (BenchmarkChoose).
func (h *Hosts) Choose(snap *state.Snapshot, w Want) (chosen Candidate, ok bool) {
	dynamic := h.ledger.of(w.Service.ID, h.Now())
	s := newSearch(snap, w, dynamic)
	for range maxStale {
		c, ok := s.choose()
		if !ok || usable(snap, h.Sessions, w.Service, c.Terminator) {
			return c, ok
		}
		s.except(c.Terminator, 0, true)
	}
	s.exceptAll(func(t *model.Terminator) bool { return !usable(snap, h.Sessions, w.Service, t) })
	return s.choose()
}

// search is the choice of a terminator out of a snapshot.
type search struct {
	Want
	snap   *state.Snapshot
	ranked state.Ranking
	tiers  [len(precedences)][]group
	// apart are the terminators that are not as the others beside them, by the
	// group that they are in and in its order.
	apart map[string][]exception
}

// group is the terminators at one router that have one precedence.
type group struct {
	key  string
	n    int // how many there are
	path int // what it costs to get there
}

// end comes after all of the group.
func (g group) end() string { return g.key[:len(g.key)-1] + "\x01" }

// exception is a terminator that is out of the question, or that costs more
// than it says.
type exception struct {
	Candidate
	at  string // where it is among all
	out bool
}

func newSearch(snap *state.Snapshot, w Want, dynamic map[string]int) *search {
	s := &search{Want: w, snap: snap, ranked: snap.Ranked(model.Terminators.Def), apart: map[string][]exception{}}
	for id, more := range dynamic {
		if t, ok := model.Terminators.Get(snap, id); ok && !w.Tried[id] {
			s.except(t, more, false)
		}
	}
	for id := range w.Tried {
		if t, ok := model.Terminators.Get(snap, id); ok {
			s.except(t, 0, true)
		}
	}
	return s
}

// except sets a terminator apart.
func (s *search) except(t *model.Terminator, dynamic int, out bool) {
	in, place := t.Ranked()
	apart := slices.DeleteFunc(s.apart[in], func(e exception) bool { return e.ID == t.ID })
	next := exception{Candidate{Terminator: t, Dynamic: dynamic}, in + place, out}
	i, _ := slices.BinarySearchFunc(apart, next.at, func(e exception, at string) int { return cmp.Compare(e.at, at) })
	s.apart[in] = slices.Insert(apart, i, next)
}

// exceptAll sets all terminators apart that are of no use.
func (s *search) exceptAll(useless func(*model.Terminator) bool) {
	known := map[string]exception{}
	for _, apart := range s.apart {
		for _, e := range apart {
			known[e.ID] = e
		}
	}
	clear(s.apart)
	for rec := range s.ranked.In(model.TerminatorsNamed(s.Service.ID, s.Host)) {
		t := rec.(*model.Terminator)
		in, place := t.Ranked()
		e, apart := known[t.ID]
		if !apart {
			e = exception{Candidate: Candidate{Terminator: t}, at: in + place}
		}
		if e.out = e.out || useless(t); apart || e.out {
			s.apart[in] = append(s.apart[in], e)
		}
	}
}

// within are those that are apart in a part of a group.
func (s *search) within(group, begin, end string) []exception {
	apart := s.apart[group]
	at := func(key string) int {
		i, _ := slices.BinarySearchFunc(apart, key, func(e exception, key string) int { return cmp.Compare(e.at, key) })
		return i
	}
	return apart[at(begin):at(end)]
}

// choose returns the one that the strategy takes out of the best precedence
// that has any.
func (s *search) choose() (chosen Candidate, ok bool) {
	for rank := range precedences {
		switch s.Service.TerminatorStrategy {
		case Random:
			chosen, ok = s.random(s.tier(rank))
		case Weighted:
			chosen, ok = s.weighted(s.tier(rank))
		case Sticky:
			if chosen, ok = s.again(rank); ok {
				break
			}
			chosen, ok = s.cheapest(s.tier(rank))
		default:
			chosen, ok = s.cheapest(s.tier(rank))
		}
		if ok {
			return chosen, true
		}
	}
	return Candidate{}, false
}

// tier returns the groups whose precedence counts as one of a rank, those that
// are nearest first.
func (s *search) tier(rank int) []group {
	if s.tiers[rank] != nil {
		return s.tiers[rank]
	}
	groups := []group{}
	for at, precedence := range precedences {
		if at != rank && rank != last {
			continue
		}
		all := model.TerminatorsOf(s.Service.ID, s.Host, precedence)
		for key, n := range s.ranked.Groups(all) {
			routerID := key[len(all) : len(key)-1]
			counts := at
			if model.Leaving(s.snap, routerID) {
				counts = last
			}
			if counts != rank {
				continue
			}
			if path, ok := s.Path(routerID); ok {
				groups = append(groups, group{key, n, int(path)})
			}
		}
	}
	slices.SortFunc(groups, func(a, b group) int { return cmp.Compare(a.path, b.path) })
	s.tiers[rank] = groups
	return groups
}

// again returns the terminator that the client had before, if its precedence
// is of a rank.
func (s *search) again(rank int) (Candidate, bool) {
	t, ok := model.Terminators.Get(s.snap, s.Sticky)
	if !ok || t.ServiceID != s.Service.ID || t.Identity != s.Host || standing(s.snap, t) != rank {
		return Candidate{}, false
	}
	path, ok := s.Path(t.RouterID)
	c := Candidate{Terminator: t, Path: int(path)}
	in, _ := t.Ranked()
	for _, e := range s.apart[in] {
		if e.ID == t.ID {
			ok, c.Dynamic = ok && !e.out, e.Dynamic
		}
	}
	return c, ok
}
