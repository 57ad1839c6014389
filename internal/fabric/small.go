package fabric

import (
	"net"
	"reflect"
	"strings"

	"netkeep.internal/internal/fabric/control"
	"netkeep.internal/internal/model"
	"netkeep.internal/internal/policy/access"
	"netkeep.internal/internal/wire"
	"netkeep.internal/internal/wire/message"
)

// registerSmall takes what needs no part of its own.
func (f *Fabric) registerSmall() {
	ignore := func(*control.Router, *wire.Frame) {}
	for _, typ := range []int32{message.TypeAlerts, message.TypeResult} {
		f.Handle(typ, ignore)
	}
	control.On(f.Routers, message.TypeInterfaces, onInterfaces)
	control.On(f.Routers, message.TypeConnectEvents, f.onConnectEvents)
	control.On(f.Routers, message.TypeHealthEvent, f.onHealth)
	control.On(f.Routers, message.TypePipeTraced, f.onTraced)
	f.Handle(message.TypeDeviceReport, f.onDeviceReport)
	control.On(f.Routers, message.TypeExtend, f.onExtend)
	control.On(f.Routers, message.TypeVerifyExtension, f.onVerifyExtension)
}

// Bounds of what is kept of a router's machine.
const (
	maxInterfaces  = 64
	maxOnInterface = 8  // addresses of one
	maxWord        = 64 // bytes of a name or an address
)

// onInterfaces hears which network interfaces a router's machine has. They are shown and decide
// nothing, so what is more than machines have is left out.
func onInterfaces(r *control.Router, frame *wire.Frame, m *message.Interfaces) {
	word := func(s string) string { return strings.ToValidUTF8(s[:min(len(s), maxWord)], "") }
	list := []model.Interface{}
	for _, i := range m.Interfaces[:min(len(m.Interfaces), maxInterfaces)] {
		flags := net.Flags(i.Flags)
		one := model.Interface{
			Name: word(i.Name), HardwareAddress: word(i.HardwareAddress), MTU: i.MTU, Index: i.Index,
			IsUp: flags&net.FlagUp != 0, IsBroadcast: flags&net.FlagBroadcast != 0, IsLoopback: flags&net.FlagLoopback != 0,
			IsRunning: flags&net.FlagRunning != 0, IsMulticast: flags&net.FlagMulticast != 0, Addresses: []string{},
		}
		for _, a := range i.Addresses[:min(len(i.Addresses), maxOnInterface)] {
			one.Addresses = append(one.Addresses, word(a))
		}
		list = append(list, one)
	}
	if reflect.DeepEqual(r.Presence().Interfaces, list) {
		r.Result(frame, true, "")
		return
	}
	if !r.Changes() { // other controllers are told of each
		r.Result(frame, false, "its interfaces change too often")
		return
	}
	r.Describe(func(p *model.Presence) { p.Interfaces = list })
	r.Result(frame, true, "")
}

// onHealth hears how a check of a host went. It changes nothing: a host that
// wants to be chosen otherwise because of it says so.
func (f *Fabric) onHealth(r *control.Router, _ *wire.Frame, m *message.HealthEvent) {
	f.opt.Log.Debug("a host was checked", "router", r.ID, "terminator", m.TerminatorID, "passed", m.Passed)
}

// onConnectEvents hears which identities have come and gone. Nobody counts whom
// there is not, and who may not use the router: one may have been deleted, or lost
// it, while the router had yet to hear of it.
func (f *Fabric) onConnectEvents(r *control.Router, _ *wire.Frame, m *message.ConnectEvents) {
	snap := f.opt.Sessions.Timely(f.opt.State.Snapshot())
	identities, may := make(map[string]bool), access.IdentitiesOfRouter(snap, r.ID)
	for _, e := range m.Events {
		who, ok := model.Identities.Get(snap, e.IdentityID)
		if !ok {
			continue
		}
		if ord, ok := snap.Ordinal(model.Identities.Def, who.ID); ok && (who.ID == r.ID || may.Contains(ord)) {
			identities[who.ID] = e.Connected
			f.tellClient(r, who.ID, e.Times)
		}
	}
	r.Carrying(identities, m.Full)
}
