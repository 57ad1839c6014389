package fabric

import (
	"time"

	"netkeep.internal/internal/data/state"
	"netkeep.internal/internal/fabric/control"
	"netkeep.internal/internal/fabric/roster"
	"netkeep.internal/internal/model"
	"netkeep.internal/internal/wire"
	"netkeep.internal/internal/wire/message"
)

// registerMembers has routers told where all controllers are: when they connect,
// when they ask, and when it changes. A controller that has its store to itself
// says nothing: its router may know it under an address that only works from
// there.
func (f *Fabric) registerMembers() {
	tell := func(r *control.Router) { tellMembers(r, f.members(f.opt.State.Snapshot(), everMoved)) }
	f.Joined(tell)
	f.Handle(message.TypeMembersRequest, func(r *control.Router, _ *wire.Frame) { tell(r) })
}

// members is where all controllers are. Its numbers are even; the odd one before is
// that of the same list without those that are elsewhere now, which comes first:
// routers of the second generation look at the address of one that they know only
// after it was missing. A router that has the list takes neither.
type members struct{ without, all *message.Members }

// everMoved and movedSince report whether a controller is elsewhere than it was. A
// router that connects may have missed any move.
func everMoved(c *model.Controller) bool { return !c.MovedAt.IsZero() }

func movedSince(before *state.Snapshot) func(*model.Controller) bool {
	return func(c *model.Controller) bool {
		was, there := model.Controllers.Get(before, c.ID)
		return there && was.At() != "" && was.At() != c.At()
	}
}

// members returns where all controllers are; nil if routers are not to be told.
func (f *Fabric) members(snap *state.Snapshot, moved func(*model.Controller) bool) *members {
	if f.opt.Alone {
		return nil
	}
	list, index := roster.List(snap)
	// Those of the first generation that host something themselves hear nothing for
	// ten seconds when a controller is back, unless they know who leads and are
	// connected to that one. Whoever tells of a change first will do.
	all := &message.Members{Index: 2 * uint64(index), Leader: true}
	without := &message.Members{Index: all.Index - 1}
	add := func(to *message.Members, c *model.Controller) {
		to.Addresses = append(to.Addresses, c.At())
		to.Controllers = append(to.Controllers, message.Member{ID: c.ID, Endpoints: []message.Endpoint{{Address: c.At()}}})
	}
	for _, c := range list {
		if c.At() == "" {
			continue
		}
		if add(all, c); !moved(c) {
			add(without, c)
		}
	}
	m := &members{all: all}
	if few := len(without.Controllers); few > 0 && few < len(all.Controllers) {
		m.without = without
	}
	return m
}

// laterBy is how much later those tell a router of a change to whom it does not
// fall. Routers of the first generation that hear the same from several at one
// moment take it several times, and dial as often.
const laterBy = time.Second

// membersChanged tells all routers: each is told at once by one controller, and
// later by the others, so that it hears of it whoever is connected.
func (f *Fabric) membersChanged(snap *state.Snapshot, moved func(*model.Controller) bool) {
	m := f.members(snap, moved)
	if m == nil {
		return
	}
	var later []*control.Router
	for _, r := range f.All() {
		if f.opt.ID == f.opt.By && f.opt.Mine("controllers of "+r.ID) {
			tellMembers(r, m)
		} else {
			later = append(later, r)
		}
	}
	if len(later) == 0 {
		return
	}
	time.AfterFunc(laterBy, func() {
		m := f.members(f.opt.State.Snapshot(), everMoved)
		for _, r := range later {
			tellMembers(r, m)
		}
	})
}

// tellMembers tells one router, unless there is nothing to tell. Those that are not
// of the second generation follow who moves.
func tellMembers(r *control.Router, m *members) {
	if m == nil || len(m.all.Controllers) == 0 {
		return
	}
	if m.without != nil && r.Grouped && !r.Follows {
		_ = r.Send(control.Message(message.TypeMembers, m.without))
	}
	_ = r.Send(control.Message(message.TypeMembers, m.all))
}
