package tunnel

import (
	"context"

	"netkeep/internal/fabric/control"
	"netkeep/internal/fabric/message"
	"netkeep/internal/fabric/terminator"
	"netkeep/internal/fabric/wire"
	"netkeep/internal/model"
)

// onHost answers a router that hosts a service. It asks again until it is
// answered, and after every reconnect.
func (t *Tunnels) onHost(r *control.Router, f *wire.Frame, m *message.CreateTunnelTerminator) {
	t.work(r, f, func(ctx context.Context) (*wire.Frame, error) {
		by := r.Author("createTunnelTerminator", f)
		who, err := t.enter(ctx, r, by)
		if err != nil {
			return nil, err
		}
		s, err := t.grant(ctx, r, by, who, request{m.ServiceName, m.SessionID, m.InstanceID, m.PeerData}, model.Bind)
		if err != nil {
			return nil, err
		}
		err = t.Hosts.Create(ctx, r, f, terminator.Offer{
			SessionToken: t.Token(s), APIToken: who.Token(), Binding: terminator.BindingTunnel, Address: m.Address, Cost: m.Cost,
			Precedence: m.Precedence, InstanceID: m.InstanceID, InstanceSecret: m.InstanceSecret, PeerData: m.PeerData,
		})
		if err != nil {
			return nil, err
		}
		return control.Message(message.TypeTunnelTerminatorCreated, &message.TunnelTerminator{
			APISession: t.news(r, who), Session: told(s), ID: m.Address, Started: m.Started,
		}), nil
	})
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
