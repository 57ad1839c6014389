package limit

import (
	"container/heap"
	"container/list"
	"net/netip"
)

// Rank says who goes ahead of whom where there is not enough for all.
type Rank uint8

const (
	Stranger Rank = iota // has shown nothing
	Member               // has a session
	Admin                // has an admin's session
	ranks
)

// Party is on whose account something is held or done: a stranger is known by
// its address, others by who they are.
type Party struct {
	Rank    Rank
	Address netip.Prefix // of a stranger
	ID      string       // of the others
}

// At is whoever is at an address.
func At(address netip.Addr) Party { return Party{Address: network(address)} }

// String is how the log calls it.
func (p Party) String() string {
	if p.Rank == Stranger {
		return p.Address.Addr().String()
	}
	return p.ID
}

// Share is how much of something one party may have, in percent. The zero
// value is all of it.
type Share int

// of is the share of so many, and at least one.
func (s Share) of(all int64) int64 {
	if s <= 0 || s >= 100 {
		return all
	}
	return max(1, all*int64(s)/100)
}

// crowd is parties that hold something, with what of it each may have to give
// up. First to give something up is, of the parties with the lowest rank, the
// one that holds most: so whoever takes much takes it from itself.
type crowd[T any] struct {
	by    map[Party]*group[T]
	order groups[T] // those that have something to give up
	turn  uint64
}

// group is what one party holds.
type group[T any] struct {
	party Party
	holds int64
	// What it may have to give up: what is dearer to it later, and of that the
	// oldest first.
	spare [asking + 1]list.List
	at    int // in the order, -1 if it is not there
}

// spare is one thing that a party may have to give up.
type spare[T any] struct {
	thing T
	group *group[T]
	dear  int
	turn  uint64
	entry *list.Element
}

// add counts what a party holds in addition.
func (c *crowd[T]) add(p Party, more int64) {
	g := c.group(p)
	g.holds += more
	c.sort(g)
}

// group returns that of a party, a new one if it has none.
func (c *crowd[T]) group(p Party) *group[T] {
	g := c.by[p]
	if g == nil {
		if c.by == nil {
			c.by = map[Party]*group[T]{}
		}
		g = &group[T]{party: p, at: -1}
		c.by[p] = g
	}
	return g
}

// holds is how much a party has.
func (c *crowd[T]) holds(p Party) int64 {
	if g := c.by[p]; g != nil {
		return g.holds
	}
	return 0
}

// offer says that a party may have to give a thing up, after those that are
// less dear to it.
func (c *crowd[T]) offer(p Party, thing T, dear int) *spare[T] {
	c.turn++
	g := c.group(p)
	s := &spare[T]{thing: thing, group: g, dear: dear, turn: c.turn}
	s.entry = g.spare[dear].PushBack(s)
	c.sort(g)
	return s
}

// withdraw says that a thing is not to be given up any more.
func (c *crowd[T]) withdraw(s *spare[T]) {
	s.group.spare[s.dear].Remove(s.entry)
	c.sort(s.group)
}

// first is what is to be given up first by anybody, nil if there is nothing.
func (c *crowd[T]) first() *spare[T] {
	if len(c.order) == 0 {
		return nil
	}
	return c.order[0].first()
}

// firstOf is what a party has to give up first, nil if there is nothing.
func (c *crowd[T]) firstOf(p Party) *spare[T] {
	if g := c.by[p]; g != nil {
		return g.first()
	}
	return nil
}

// sort puts a group where it belongs, and forgets one that has nothing.
func (c *crowd[T]) sort(g *group[T]) {
	switch spare := g.first() != nil; {
	case spare && g.at < 0:
		heap.Push(&c.order, g)
	case spare:
		heap.Fix(&c.order, g.at)
	case g.at >= 0:
		heap.Remove(&c.order, g.at)
	}
	if g.holds == 0 && g.at < 0 {
		delete(c.by, g.party)
	}
}

func (g *group[T]) first() *spare[T] {
	for i := range g.spare {
		if e := g.spare[i].Front(); e != nil {
			return e.Value.(*spare[T])
		}
	}
	return nil
}

// groups is a heap of those that have something to give up.
type groups[T any] []*group[T]

func (o groups[T]) Len() int { return len(o) }

func (o groups[T]) Less(i, j int) bool {
	a, b := o[i], o[j]
	if a.party.Rank != b.party.Rank {
		return a.party.Rank < b.party.Rank
	}
	if a.holds != b.holds {
		return a.holds > b.holds
	}
	first, second := a.first(), b.first()
	if first.dear != second.dear {
		return first.dear < second.dear
	}
	return first.turn < second.turn
}

func (o groups[T]) Swap(i, j int) {
	o[i], o[j] = o[j], o[i]
	o[i].at, o[j].at = i, j
}

func (o *groups[T]) Push(x any) {
	g := x.(*group[T])
	g.at = len(*o)
	*o = append(*o, g)
}

func (o *groups[T]) Pop() any {
	last := len(*o) - 1
	g := (*o)[last]
	(*o)[last] = nil
	*o = (*o)[:last]
	g.at = -1
	return g
}
