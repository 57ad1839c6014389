package fabric

import (
	"netkeep/internal/fabric/control"
	"netkeep/internal/fabric/message"
	"netkeep/internal/fabric/wire"
	"netkeep/internal/model"
)

// registerSmall takes what needs no part of its own.
func (f *Fabric) registerSmall() {
	ignore := func(*control.Router, *wire.Frame) {}
	for _, typ := range []int32{
		message.TypeMetrics, message.TypeRouterLinks, message.TypeLinkState, message.TypeHealthEvent, message.TypeAlerts, message.TypeMembersRequest,
		message.TypeResult,
	} {
		f.Handle(typ, ignore)
	}
	f.Handle(message.TypeInterfaces, func(r *control.Router, frame *wire.Frame) { r.Result(frame, true, "") })
	f.Handle(message.TypeCreateTunnelSession, f.onTunnelSession)
	control.On(f.Routers, message.TypeConnectEvents, f.onConnectEvents)
	control.On(f.Routers, message.TypeVerifyRouter, f.onVerify)
	control.On(f.Routers, message.TypeExtend, f.onExtend)
	control.On(f.Routers, message.TypeVerifyExtension, f.onVerifyExtension)
}

// onTunnelSession answers a router that would be a client itself. One that is
// not allowed to must be told so: it ends if nobody answers.
func (f *Fabric) onTunnelSession(r *control.Router, frame *wire.Frame) {
	r.Refuse(frame, message.CodeTunnelingNotEnabled, "this router may not act as a client")
}

// onConnectEvents hears which identities have come and gone.
func (f *Fabric) onConnectEvents(r *control.Router, _ *wire.Frame, m *message.ConnectEvents) {
	identities := make(map[string]bool, len(m.Events))
	for _, e := range m.Events {
		identities[e.IdentityID] = e.Connected
	}
	r.Carrying(identities, m.Full)
}

// onVerify answers a router that wonders who dials it.
func (f *Fabric) onVerify(r *control.Router, frame *wire.Frame, m *message.VerifyRouter) {
	router, ok := model.Routers.Get(f.opt.State.Snapshot(), m.RouterID)
	ok = ok && !router.Disabled && router.IsVerified && len(m.Fingerprints) > 0 && m.Fingerprints[0] == router.Fingerprint
	text := ""
	if !ok {
		text = "the certificate is not that router's"
	}
	r.Result(frame, ok, text)
}
