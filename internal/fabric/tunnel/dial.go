package tunnel

import (
	"context"

	"netkeep/internal/fabric/circuit"
	"netkeep/internal/fabric/control"
	"netkeep/internal/fabric/message"
	"netkeep/internal/fabric/permit"
	"netkeep/internal/fabric/wire"
	"netkeep/internal/model"
)

// onDial answers a router that dials a service.
func (t *Tunnels) onDial(r *control.Router, f *wire.Frame, m *message.CreateTunnelCircuit) {
	t.work(r, f, func(ctx context.Context) (*wire.Frame, error) {
		by := r.Author("createTunnelCircuit", f)
		who, err := t.enter(ctx, r, by)
		if err != nil {
			return nil, err
		}
		s, err := t.grant(ctx, r, by, who, request{m.ServiceName, m.SessionID, m.InstanceID, m.PeerData}, model.Dial)
		if err != nil {
			return nil, err
		}
		made, answer, err := t.Circuits.Dial(ctx, r, circuit.Request{
			Request:  permit.Request{RouterID: r.ID, SessionToken: t.Token(s), APIToken: who.Token(), Type: model.Dial},
			Instance: m.InstanceID, PeerData: m.PeerData,
		})
		if err != nil {
			return nil, err
		}
		return control.Message(message.TypeTunnelCircuitCreated, &message.TunnelCircuit{
			APISession: t.news(r, who), Session: told(s), CircuitID: made.ID, Address: answer.Ingress, PeerData: answer.PeerData, Tags: made.Tags(),
		}), nil
	})
}
