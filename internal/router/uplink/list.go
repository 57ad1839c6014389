package uplink

import (
	"slices"

	"netkeep.internal/internal/wire/message"
)

// Controller is one of those that a network has, as a list of them names it.
type Controller struct {
	ID        string   `json:"id,omitempty"` // empty if only its address is known
	Addresses []string `json:"addresses"`    // such as tls:host:6262; tried in turn
}

// Bounds of a list.
const (
	maxControllers = 64
	maxAddresses   = 8 // of one of them
	maxListText    = 256
)

// Listed are the controllers that a list names, by id where it says who they
// are and by address alone where not. What cannot be an address is left out,
// and so is a controller without any: it could not be reached.
func Listed(m *message.Members) []Controller {
	b := lister{seen: map[string]bool{}}
	for _, one := range m.Controllers {
		for _, at := range one.Endpoints {
			b.add(one.ID, at.Address)
		}
	}
	if len(b.list) == 0 {
		for _, at := range m.Addresses {
			b.add("", at)
		}
	}
	return b.list
}

// lister puts a list together.
type lister struct {
	list []Controller
	seen map[string]bool // addresses: only one controller answers at each
}

func (b *lister) add(id, address string) {
	if _, err := parseAddress(address); err != nil || len(address) > maxListText || len(id) > maxListText || b.seen[address] {
		return
	}
	at := slices.IndexFunc(b.list, func(c Controller) bool { return id != "" && c.ID == id })
	switch {
	case at >= 0 && len(b.list[at].Addresses) < maxAddresses:
		b.list[at].Addresses = append(b.list[at].Addresses, address)
	case at >= 0 || len(b.list) == maxControllers:
		return
	default:
		b.list = append(b.list, Controller{ID: id, Addresses: []string{address}})
	}
	b.seen[address] = true
}

// byAddress are controllers of whom nothing but an address is known.
func byAddress(addresses []string) []Controller {
	b := lister{seen: map[string]bool{}}
	for _, at := range addresses {
		b.add("", at)
	}
	return b.list
}

// Checked are controllers that were written down, as far as they can be some.
func Checked(list []Controller) []Controller {
	b := lister{seen: map[string]bool{}}
	for _, c := range list {
		for _, at := range c.Addresses {
			b.add(c.ID, at)
		}
	}
	return b.list
}

// onMembers hears which controllers there are. The list is one for all of them:
// an older one is not taken, whoever sends it. When no controller is connected
// any more, the next list counts whatever its number is: the network may have
// been restored to an earlier state.
func (u *Uplink) onMembers(m *message.Members) {
	list := Listed(m)
	u.mu.Lock()
	defer u.mu.Unlock()
	if len(list) == 0 || u.index != nil && m.Index <= *u.index {
		return
	}
	u.index = &m.Index
	u.follow(list)
	select {
	case u.listed <- struct{}{}:
	default: // it is known already
	}
}

// follow has a seat for each controller of a list, and no other: one that is
// missing is left, a new one is dialled, and one that has moved is dialled where
// it is now. u.mu is held.
func (u *Uplink) follow(list []Controller) {
	left := slices.Clone(u.seats)
	// Of two seats for the same controller, the one that is connected stays.
	slices.SortStableFunc(left, func(a, b *seat) int { return b.rank() - a.rank() })
	claim := func(fits func(*seat) bool) *seat {
		at := slices.IndexFunc(left, fits)
		if at < 0 {
			return nil
		}
		s := left[at]
		left = slices.Delete(left, at, at+1)
		return s
	}
	found := make([]*seat, len(list))
	for i, c := range list {
		if c.ID != "" {
			found[i] = claim(func(s *seat) bool { return s.id == c.ID })
		}
	}
	for i, c := range list {
		if found[i] == nil {
			found[i] = claim(func(s *seat) bool {
				return (s.id == "" || c.ID == "") && slices.ContainsFunc(c.Addresses, func(at string) bool { return slices.Contains(s.addresses, at) })
			})
		}
	}
	kept := slices.DeleteFunc(left, func(s *seat) bool {
		if s.pinned == "" {
			s.leave()
		}
		return s.pinned == ""
	})
	for i, c := range list {
		if found[i] == nil {
			found[i] = u.newSeat(c)
			continue
		}
		found[i].move(c)
	}
	u.seats = append(kept, found...)
}

// List is the controllers that the router knows, and whether they have told it.
func (u *Uplink) List() (list []Controller, told bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, s := range u.seats {
		list = append(list, Controller{ID: s.id, Addresses: s.listed})
	}
	return list, u.index != nil
}
