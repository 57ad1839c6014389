// Package intercept says which service a packet or a name is for: it reads the
// configurations of services, and makes a table of what they say, in which it is
// decided who has an address that several want. It owns those rules and nothing
// that runs: no socket, no clock, no file. It imports no other package of ours.
package intercept

import (
	"net/netip"
	"slices"
	"strings"
)

// Table knows for every address, name and port whose it is. It never changes:
// when services do, there is another. Lookups allocate nothing.
type Table struct {
	names   map[string]*spot // by name
	domains map[string]*spot // by the domain that they are below
	blocks  map[netip.Prefix]*spot
	// lengths are those that blocks have, the longest first, of IPv4 and IPv6.
	lengths4, lengths6 []int
}

// New makes a table. Of several rules that want the same, the one with the more
// specific address has it: a longer block, a name before a domain, a longer
// domain before a shorter; then the one with fewer ports in its range, then the
// one whose service's name comes first, then the one that is given first.
// Overlaps says where that was to be decided.
func New(rules []*Rule) *Table {
	t := &Table{names: map[string]*spot{}, domains: map[string]*spot{}, blocks: map[netip.Prefix]*spot{}}
	for order, r := range rules {
		for _, a := range r.Addresses {
			t.at(a).claim(r, order)
		}
	}
	for _, s := range t.spots() {
		s.decide()
	}
	for block := range t.blocks {
		to := &t.lengths6
		if block.Addr().Is4() {
			to = &t.lengths4
		}
		if !slices.Contains(*to, block.Bits()) {
			*to = append(*to, block.Bits())
		}
	}
	for _, l := range [][]int{t.lengths4, t.lengths6} {
		slices.Sort(l)
		slices.Reverse(l)
	}
	return t
}

// at is the spot of an address, which is made if there is none.
func (t *Table) at(a Address) *spot {
	s := t.find(a)
	if s != nil {
		return s
	}
	s = &spot{address: a}
	switch {
	case a.wild:
		t.domains[a.name] = s
	case a.name != "":
		t.names[a.name] = s
	default:
		t.blocks[a.prefix] = s
	}
	return s
}

func (t *Table) find(a Address) *spot {
	switch {
	case a.wild:
		return t.domains[a.name]
	case a.name != "":
		return t.names[a.name]
	}
	return t.blocks[a.prefix]
}

// spots are all, in the order of their addresses.
func (t *Table) spots() []*spot {
	all := make([]*spot, 0, len(t.names)+len(t.domains)+len(t.blocks))
	for _, s := range t.names {
		all = append(all, s)
	}
	for _, s := range t.domains {
		all = append(all, s)
	}
	for _, s := range t.blocks {
		all = append(all, s)
	}
	return all
}

// ByAddr is the rule for connections to an address, or nil.
func (t *Table) ByAddr(protocol string, to netip.AddrPort) *Rule {
	for s := range t.holding(to.Addr()) {
		if r := s.winner(protocol, to.Port()); r != nil {
			return r
		}
	}
	return nil
}

// holding yields the spots of blocks with an address in them, the most specific
// first.
func (t *Table) holding(ip netip.Addr) func(func(*spot) bool) {
	return func(yield func(*spot) bool) {
		ip := ip.Unmap().WithZone("")
		lengths := t.lengths6
		if ip.Is4() {
			lengths = t.lengths4
		}
		for _, bits := range lengths {
			block, err := ip.Prefix(bits)
			if err != nil {
				return
			}
			if s := t.blocks[block]; s != nil && !yield(s) {
				return
			}
		}
	}
}

// ByName is the rule for connections to a name, or nil.
func (t *Table) ByName(protocol, name string, port uint16) *Rule {
	for s := range t.naming(name) {
		if r := s.winner(protocol, port); r != nil {
			return r
		}
	}
	return nil
}

// naming yields the spots that a name is of, the most specific first.
func (t *Table) naming(name string) func(func(*spot) bool) {
	return func(yield func(*spot) bool) {
		name, ok := plainASCII(strings.TrimSuffix(name, "."))
		if !ok {
			return
		}
		if s := t.names[name]; s != nil && !yield(s) {
			return
		}
		if len(t.domains) == 0 {
			return
		}
		for dot := strings.IndexByte(name, '.'); dot >= 0; dot = strings.IndexByte(name, '.') {
			name = name[dot+1:]
			if s := t.domains[name]; s != nil && !yield(s) {
				return
			}
		}
	}
}

// Covers reports whether a name is one of those that are intercepted, on some
// port. It has to be as it travels, in ASCII; large letters and a dot at the end
// make no difference.
func (t *Table) Covers(name string) bool {
	for range t.naming(name) {
		return true
	}
	return false
}

// Holds reports whether an IP address is in a block of those that are
// intercepted, on some port.
func (t *Table) Holds(ip netip.Addr) bool {
	for range t.holding(ip) {
		return true
	}
	return false
}

// Names are those that have to be asked for here, in order: names, and domains
// with *. before them whose names below are meant.
func (t *Table) Names() []string {
	all := make([]string, 0, len(t.names)+len(t.domains))
	for name := range t.names {
		all = append(all, name)
	}
	for domain := range t.domains {
		all = append(all, "*."+domain)
	}
	slices.Sort(all)
	return all
}
