package asclient

import (
	"context"

	"netkeep.internal/internal/fabric/control"
	"netkeep.internal/internal/fabric/terminator"
	"netkeep.internal/internal/model"
	"netkeep.internal/internal/wire"
	"netkeep.internal/internal/wire/message"
)

// onHost answers a router that hosts a service. It asks again until it is
// answered, and after every reconnect.
func (t *Tunnels) onHost(r *control.Router, f *wire.Frame, m *message.CreateTunnelTerminator) {
	t.work(r, f, func(ctx context.Context) (*wire.Frame, error) {
		p, err := t.host(ctx, r, f, request{service: m.ServiceName, session: m.SessionID}, terminator.Offer{
			Address: m.Address, Cost: m.Cost, Precedence: m.Precedence, InstanceID: m.InstanceID, InstanceSecret: m.InstanceSecret, PeerData: m.PeerData,
		})
		if err != nil {
			return nil, err
		}
		return control.Message(message.TypeTunnelTerminatorCreated, &message.TunnelTerminator{
			APISession: t.news(r, p.who), Session: told(p.session), ID: m.Address, Started: m.Started,
		}), nil
	})
}

// onHostAsClient answers a router of the second generation that hosts.
func (t *Tunnels) onHostAsClient(r *control.Router, f *wire.Frame, m *message.HostAsClient) {
	t.Hosts.Answer(r, f, func(ctx context.Context) error {
		_, err := t.host(ctx, r, f, request{serviceID: m.ServiceID}, terminator.Offer{
			Address: m.Address, Cost: m.Cost, Precedence: m.Precedence, InstanceID: m.InstanceID, InstanceSecret: m.InstanceSecret, PeerData: m.PeerData,
		})
		return err
	}, func(o terminator.Outcome) *wire.Frame {
		return control.Message(message.TypeHostedAsClient, &message.HostedAsClient{
			ID: m.Address, Started: m.Started, Result: o.Result, Message: o.Text, ErrorCode: o.Code, Retry: o.Retry,
		})
	})
}

// host writes down that a router hosts a service.
func (t *Tunnels) host(ctx context.Context, r *control.Router, f *wire.Frame, q request, offer terminator.Offer) (permission, error) {
	q.instance, q.peerData = offer.InstanceID, offer.PeerData
	p, err := t.permit(ctx, r, r.Author("createTunnelTerminator", f), q, model.Bind)
	if err != nil {
		return p, err
	}
	offer.SessionToken, offer.APIToken, offer.Binding = t.Token(p.session), p.who.Token(), terminator.BindingTunnel
	return p, t.Hosts.Create(ctx, r, f, offer)
}

// own reports whether a terminator is one of those that a router hosts itself.
func own(r *control.Router) func(*model.Terminator) bool {
	return func(t *model.Terminator) bool { return t.Binding == terminator.BindingTunnel && t.HostID == r.ID }
}

// onUpdate answers a router that wants to be chosen otherwise.
func (t *Tunnels) onUpdate(r *control.Router, f *wire.Frame, m *message.UpdateTunnelTerminator) {
	t.work(r, f, func(ctx context.Context) (*wire.Frame, error) {
		change := terminator.Change{
			TerminatorID: m.TerminatorID, UpdateCost: m.UpdateCost, Cost: m.Cost, UpdatePrecedence: m.UpdatePrecedence, Precedence: m.Precedence,
		}
		return &wire.Frame{Type: message.TypeTunnelTerminatorUpdated}, t.Hosts.Update(ctx, r, f, change, own(r))
	})
}

// onRemove answers a router that hosts no more.
func (t *Tunnels) onRemove(r *control.Router, f *wire.Frame) {
	t.work(r, f, func(ctx context.Context) (*wire.Frame, error) {
		return &wire.Frame{Type: message.TypeTunnelTerminatorRemoved}, t.Hosts.Remove(ctx, r, f, string(f.Body), own(r))
	})
}
