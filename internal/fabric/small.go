package fabric

import (
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
	f.Handle(message.TypeInterfaces, func(r *control.Router, frame *wire.Frame) { r.Result(frame, true, "") })
	control.On(f.Routers, message.TypeConnectEvents, f.onConnectEvents)
	control.On(f.Routers, message.TypeHealthEvent, f.onHealth)
	control.On(f.Routers, message.TypePipeTraced, f.onTraced)
	f.Handle(message.TypeDeviceReport, f.onDeviceReport)
	control.On(f.Routers, message.TypeExtend, f.onExtend)
	control.On(f.Routers, message.TypeVerifyExtension, f.onVerifyExtension)
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
