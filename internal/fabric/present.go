package fabric

import (
	"iter"
	"slices"
	"strings"

	"netkeep.internal/internal/fabric/whereabouts"
	"netkeep.internal/internal/lang/kind"
	"netkeep.internal/internal/model"
)

// here is what a router says of itself that is connected under this id.
func (f *Fabric) here(routerID string) (*model.Presence, bool) { return f.Routers.Connected(routerID) }

// ids are the routers that are connected under this id.
func (f *Fabric) ids() []string {
	var ids []string
	for _, r := range f.All() {
		ids = append(ids, r.ID)
	}
	return ids
}

// Connected returns what a router says of itself that is connected to a controller,
// whichever it is.
func (f *Fabric) Connected(routerID string) (*model.Presence, bool) {
	var all []*model.Presence
	for _, f := range f.both() {
		if p, ok := f.here(routerID); ok {
			all = append(all, p)
		}
	}
	if f.opt.Book != nil {
		all = append(all, f.opt.Book.Of(routerID)...)
	}
	return whereabouts.Oldest(all)
}

// anywhere reports whether a router is connected to any controller; it is nil where
// there is one.
func (f *Fabric) anywhere() func(routerID string) bool {
	if f.opt.Book == nil {
		return nil
	}
	return func(routerID string) bool {
		_, online := f.Connected(routerID)
		if !online && f.opt.Beside != nil {
			_, online = f.opt.Beside.Connected(routerID)
		}
		return online
	}
}

// presences is who is connected, for those who look at it.
type presences struct{ *Fabric }

// Lookup returns the presence of a router.
func (p presences) Lookup(id string) (kind.Record, bool) {
	found, ok := p.Connected(id)
	if !ok {
		return nil, false
	}
	return found, true
}

// All yields the presences by the ids of their routers.
func (p presences) All() iter.Seq[kind.Record] {
	return func(yield func(kind.Record) bool) {
		for _, id := range p.online() {
			if found, ok := p.Connected(id); ok && !yield(found) {
				return
			}
		}
	}
}

// Len is how many routers are connected.
func (p presences) Len() int { return len(p.online()) }

// online are the routers that are connected to a controller, in the order of their
// ids.
func (p presences) online() []string {
	var ids []string
	for _, f := range p.both() {
		ids = append(ids, f.ids()...)
	}
	if p.opt.Book != nil {
		ids = append(ids, p.opt.Book.Routers()...)
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}

// circuits is the circuits of this controller, and of the one in whose place it is.
type circuits struct{ *Fabric }

// Lookup returns the circuit with an id.
func (c circuits) Lookup(id string) (kind.Record, bool) {
	for _, f := range c.both() {
		if found, ok := f.Circuits.Source().Lookup(id); ok {
			return found, true
		}
	}
	return nil, false
}

// All yields the circuits by id.
func (c circuits) All() iter.Seq[kind.Record] {
	var all []kind.Record
	for _, f := range c.both() {
		all = slices.AppendSeq(all, f.Circuits.Source().All())
	}
	slices.SortFunc(all, func(a, b kind.Record) int { return strings.Compare(a.Base().ID, b.Base().ID) })
	return slices.Values(all)
}

// Len is how many circuits there are.
func (c circuits) Len() (n int) {
	for _, f := range c.both() {
		n += f.Circuits.Len()
	}
	return n
}
