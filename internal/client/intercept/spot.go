package intercept

import (
	"cmp"
	"container/heap"
	"slices"
)

// spot is one address of a table, and who has which of its ports.
type spot struct {
	address  Address
	tcp, udp side
}

// side is one protocol of a spot.
type side struct {
	claims []claim
	// shares are who has which ports, in order and without an overlap.
	shares []share
}

// claim is what a rule wants of a spot.
type claim struct {
	rule  *Rule
	ports Ports
	order int
}

type share struct {
	ports Ports
	rule  *Rule
}

func (s *spot) side(protocol string) *side {
	switch protocol {
	case TCP:
		return &s.tcp
	case UDP:
		return &s.udp
	}
	return &side{}
}

func (s *spot) claim(r *Rule, order int) {
	for _, protocol := range r.Protocols {
		side := s.side(protocol)
		side.claims = slices.Grow(side.claims, len(r.Ports))
		for _, p := range r.Ports {
			if p.Low <= p.High {
				side.claims = append(side.claims, claim{r, p, order})
			}
		}
	}
}

// better orders claims of one spot: who has fewer ports comes first.
func better(a, b claim) int {
	return cmp.Or(
		cmp.Compare(a.ports.width(), b.ports.width()),
		cmp.Compare(a.rule.Service, b.rule.Service),
		cmp.Compare(a.order, b.order),
		cmp.Compare(a.ports.Low, b.ports.Low),
	)
}

func (s *spot) decide() {
	s.tcp.decide()
	s.udp.decide()
}

// open are the claims that a port is in, the best first, and some that ended
// before it.
type open []claim

func (o open) Len() int           { return len(o) }
func (o open) Less(i, j int) bool { return better(o[i], o[j]) < 0 }
func (o open) Swap(i, j int)      { o[i], o[j] = o[j], o[i] }
func (o *open) Push(c any)        { *o = append(*o, c.(claim)) }
func (o *open) Pop() any {
	last := (*o)[len(*o)-1]
	*o = (*o)[:len(*o)-1]
	return last
}

// decide walks over the ports from one at which something begins or ends to the
// next, so that its time does not grow with how many want the same.
func (s *side) decide() {
	slices.SortFunc(s.claims, func(a, b claim) int { return cmp.Compare(a.ports.Low, b.ports.Low) })
	if s.agreed() {
		s.shares = make([]share, len(s.claims))
		for i, c := range s.claims {
			s.shares[i] = share{c.ports, c.rule}
		}
		return
	}
	steps := make([]int, 0, 2*len(s.claims))
	for _, c := range s.claims {
		steps = append(steps, int(c.ports.Low), int(c.ports.High)+1)
	}
	slices.Sort(steps)
	steps = slices.Compact(steps)
	next, active := 0, open{}
	for i, at := range steps {
		for ; next < len(s.claims) && int(s.claims[next].ports.Low) == at; next++ {
			heap.Push(&active, s.claims[next])
		}
		for len(active) > 0 && int(active[0].ports.High) < at {
			heap.Pop(&active)
		}
		if len(active) > 0 {
			s.give(Ports{uint16(at), uint16(steps[i+1] - 1)}, active[0].rule)
		}
	}
}

// agreed reports whether no two claims want the same port, as is nearly always
// so. They are sorted.
func (s *side) agreed() bool {
	for i := 1; i < len(s.claims); i++ {
		if s.claims[i].ports.Low <= s.claims[i-1].ports.High {
			return false
		}
	}
	return true
}

// give adds a share, to the last one if that is the same rule's.
func (s *side) give(p Ports, r *Rule) {
	if n := len(s.shares); n > 0 && s.shares[n-1].rule == r && int(s.shares[n-1].ports.High)+1 == int(p.Low) {
		s.shares[n-1].ports.High = p.High
		return
	}
	s.shares = append(s.shares, share{p, r})
}

// from is the index of the first share that does not end before a port.
func (s *side) from(port uint16) int {
	i, _ := slices.BinarySearchFunc(s.shares, port, func(sh share, port uint16) int { return cmp.Compare(sh.ports.High, port) })
	return i
}

// winner is who has a port, or nil.
func (s *spot) winner(protocol string, port uint16) *Rule {
	side := s.side(protocol)
	if i := side.from(port); i < len(side.shares) && side.shares[i].ports.Low <= port {
		return side.shares[i].rule
	}
	return nil
}
