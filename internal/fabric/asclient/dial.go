package asclient

import (
	"context"

	"netkeep.internal/internal/fabric/circuit"
	"netkeep.internal/internal/fabric/control"
	"netkeep.internal/internal/fabric/permit"
	"netkeep.internal/internal/model"
	"netkeep.internal/internal/wire"
	"netkeep.internal/internal/wire/message"
)

// onDial answers a router that dials a service.
func (t *Tunnels) onDial(r *control.Router, f *wire.Frame, m *message.CreateTunnelCircuit) {
	t.begin(r, f, r.ForDial, func(ctx context.Context) (*wire.Frame, error) {
		p, made, err := t.dial(ctx, r, f, request{service: m.ServiceName, session: m.SessionID, instance: m.InstanceID, peerData: m.PeerData})
		if err != nil {
			return nil, err
		}
		return control.Message(message.TypeTunnelCircuitCreated, &message.TunnelCircuit{
			APISession: t.news(r, p.who), Session: told(p.session), CircuitID: made.CircuitID, Address: made.Address, PeerData: made.PeerData, Tags: made.Tags,
		}), nil
	})
}

// onDialAsClient answers a router of the second generation that dials.
func (t *Tunnels) onDialAsClient(r *control.Router, f *wire.Frame, m *message.DialAsClient) {
	t.begin(r, f, r.ForDial, func(ctx context.Context) (*wire.Frame, error) {
		_, made, err := t.dial(ctx, r, f, request{service: m.ServiceName, instance: m.InstanceID, peerData: m.PeerData})
		if err != nil {
			return nil, err
		}
		return control.Message(message.TypeDialedAsClient, made), nil
	})
}

// dial makes a circuit for a router.
func (t *Tunnels) dial(ctx context.Context, r *control.Router, f *wire.Frame, q request) (permission, *message.DialedAsClient, error) {
	p, err := t.permit(ctx, r, r.Author("createTunnelCircuit", f), q, model.Dial)
	if err != nil {
		return p, nil, err
	}
	made, answer, err := t.Circuits.Dial(ctx, r, circuit.Request{
		Request:  permit.Request{RouterID: r.ID, SessionToken: t.Token(p.session), APIToken: p.who.Token(), Type: model.Dial},
		Instance: q.instance, PeerData: q.peerData,
	})
	if err != nil {
		return p, nil, err
	}
	return p, &message.DialedAsClient{CircuitID: made.ID, Address: answer.Ingress, PeerData: answer.PeerData, Tags: made.Marks()}, nil
}
