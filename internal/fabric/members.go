package fabric

import (
	"netkeep.internal/internal/data/state"
	"netkeep.internal/internal/fabric/control"
	"netkeep.internal/internal/fabric/roster"
	"netkeep.internal/internal/wire"
	"netkeep.internal/internal/wire/message"
)

// registerMembers has routers told where all controllers are: when they connect,
// when they ask, and when it changes. A controller that has its store to itself
// says nothing: its router may know it under an address that only works from
// there.
func (f *Fabric) registerMembers() {
	tell := func(r *control.Router) { tellMembers(r, f.members(f.opt.State.Snapshot())) }
	f.Joined(tell)
	f.Handle(message.TypeMembersRequest, func(r *control.Router, _ *wire.Frame) { tell(r) })
}

// members is where all controllers are; nil if routers are not to be told.
func (f *Fabric) members(snap *state.Snapshot) *message.Members {
	if f.opt.Alone {
		return nil
	}
	list, index := roster.List(snap)
	if len(list) == 0 {
		return nil
	}
	m := &message.Members{Index: uint64(index)}
	for _, c := range list {
		m.Addresses = append(m.Addresses, c.Address)
		m.Controllers = append(m.Controllers, message.Member{ID: c.ID, Endpoints: []message.Endpoint{{Address: c.Address}}})
	}
	return m
}

// membersChanged tells all routers.
func (f *Fabric) membersChanged(snap *state.Snapshot) {
	m := f.members(snap)
	for _, r := range f.All() {
		tellMembers(r, m)
	}
}

// tellMembers tells one router, unless there is nothing to tell. Those of others of
// the first generation end their process when they hear of a second controller:
// they know those that they were set up with.
func tellMembers(r *control.Router, m *message.Members) {
	if m != nil && (r.Grouped || r.Follows) {
		_ = r.Send(control.Message(message.TypeMembers, m))
	}
}
