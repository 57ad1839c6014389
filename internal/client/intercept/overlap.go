package intercept

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Overlap is something that two rules want and one has.
type Overlap struct {
	Winner, Loser *Rule
	// At is the winner's address, Of the loser's: they are the same, or the
	// winner's is the more specific.
	At, Of   Address
	Protocol string
	Ports    Ports
}

// String says who has what, and why.
func (o Overlap) String() string {
	why := "its address is the more specific"
	if o.At == o.Of {
		why = "its name comes first"
		if o.width(o.Winner) < o.width(o.Loser) {
			why = "it has fewer ports"
		}
	}
	return fmt.Sprintf("both %s (%s) and %s (%s) intercept %s port %s: it leads to %s, since %s; if that is not meant, give %s another address or port",
		o.Winner.Service, o.At, o.Loser.Service, o.Of, o.Protocol, o.Ports, o.Winner.Service, why, o.Loser.Service)
}

// width is that of the smallest range of a rule with the ports in it.
func (o Overlap) width(r *Rule) int {
	least := 1 << 16
	for _, p := range r.Ports {
		if p.Low <= o.Ports.Low && o.Ports.High <= p.High {
			least = min(least, p.width())
		}
	}
	return least
}

// MaxOverlaps is how many are reported: who has more than that has one mistake,
// many times.
const MaxOverlaps = 1000

// Overlaps are those of the whole table, up to MaxOverlaps of them. What lost inside of a
// spot is no longer compared with what is outside of it. To find them takes as long as to
// make the table, which can be used meanwhile.
func (t *Table) Overlaps() []Overlap {
	f := &finder{}
	for _, s := range t.ordered() {
		for wider := range t.around(s.address) {
			for _, protocol := range []string{TCP, UDP} {
				if wider == s {
					f.inside(s, protocol)
				} else {
					f.between(s, wider, protocol)
				}
			}
			if f.full() {
				return f.found
			}
		}
	}
	return f.found
}

// ordered are the spots by their addresses, so that the same rules have the same
// report.
func (t *Table) ordered() []*spot {
	all := t.spots()
	slices.SortFunc(all, func(a, b *spot) int {
		if order := cmp.Compare(a.address.name, b.address.name); order != 0 {
			return order
		}
		if a.address.name != "" { // one of the two is wild
			return strings.Compare(a.address.String(), b.address.String())
		}
		return a.address.prefix.Compare(b.address.prefix)
	})
	return all
}

// around yields the spots that hold all of an address: first its own.
func (t *Table) around(a Address) func(func(*spot) bool) {
	if a.name == "" {
		return func(yield func(*spot) bool) {
			for s := range t.holding(a.prefix.Addr()) {
				if s.address.prefix.Bits() <= a.prefix.Bits() && !yield(s) {
					return
				}
			}
		}
	}
	if !a.wild {
		return t.naming(a.name)
	}
	return func(yield func(*spot) bool) {
		// Whatever is below the domain is also below those above it.
		for s := range t.naming("a." + a.name) {
			if s.address.wild && !yield(s) {
				return
			}
		}
	}
}

// finder collects overlaps.
type finder struct{ found []Overlap }

func (f *finder) full() bool { return len(f.found) >= MaxOverlaps }

func (f *finder) add(o Overlap) {
	if o.Winner != o.Loser && !f.full() {
		f.found = append(f.found, o)
	}
}

// inside finds who lost ports of one address.
func (f *finder) inside(s *spot, protocol string) {
	side := s.side(protocol)
	if len(side.claims) < 2 {
		return
	}
	for _, c := range side.claims {
		for _, sh := range side.shares[side.from(c.ports.Low):] {
			if sh.ports.Low > c.ports.High || f.full() {
				break
			}
			f.add(Overlap{sh.rule, c.rule, s.address, s.address, protocol, common(sh.ports, c.ports)})
		}
	}
}

// between finds who lost a part of an address to a more specific one.
func (f *finder) between(s, wider *spot, protocol string) {
	other := wider.side(protocol)
	for _, mine := range s.side(protocol).shares {
		for _, theirs := range other.shares[other.from(mine.ports.Low):] {
			if theirs.ports.Low > mine.ports.High || f.full() {
				break
			}
			f.add(Overlap{mine.rule, theirs.rule, s.address, wider.address, protocol, common(mine.ports, theirs.ports)})
		}
	}
}

func common(a, b Ports) Ports { return Ports{max(a.Low, b.Low), min(a.High, b.High)} }
