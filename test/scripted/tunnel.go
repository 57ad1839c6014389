package scripted

import (
	"context"
	"fmt"

	"netkeep.internal/internal/wire"
	"netkeep.internal/internal/wire/message"
)

// What a router of the first generation says that is a client itself.

// BeginTunnel asks for the API session of the router's own identity.
func (r *Router) BeginTunnel(ctx context.Context, m message.CreateTunnelSession) (*message.TunnelSession, error) {
	return ask[message.TunnelSession](ctx, r, frame(message.TypeCreateTunnelSession, &m), message.TypeTunnelSessionCreated)
}

// HostTunnel asks for a terminator for the router itself.
func (r *Router) HostTunnel(ctx context.Context, m message.CreateTunnelTerminator) (*message.TunnelTerminator, error) {
	return ask[message.TunnelTerminator](ctx, r, frame(message.TypeCreateTunnelTerminator, &m), message.TypeTunnelTerminatorCreated)
}

// DialTunnel asks for a circuit for the router itself.
func (r *Router) DialTunnel(ctx context.Context, m message.CreateTunnelCircuit) (*message.TunnelCircuit, error) {
	return ask[message.TunnelCircuit](ctx, r, frame(message.TypeCreateTunnelCircuit, &m), message.TypeTunnelCircuitCreated)
}

// UpdateTunnel changes how the router itself is chosen as a host.
func (r *Router) UpdateTunnel(ctx context.Context, m message.UpdateTunnelTerminator) error {
	_, err := ask[struct{}](ctx, r, frame(message.TypeUpdateTunnelTerminator, &m), message.TypeTunnelTerminatorUpdated)
	return err
}

// RemoveTunnel says that the router itself hosts no more.
func (r *Router) RemoveTunnel(ctx context.Context, id string) error {
	_, err := ask[struct{}](ctx, r, &wire.Frame{Type: message.TypeRemoveTunnelTerminator, Body: []byte(id)}, message.TypeTunnelTerminatorRemoved)
	return err
}

// ListTunnel asks what the router itself may use, unless that is what it knows.
// The answer is a frame of its own.
func (r *Router) ListTunnel(version []byte) error {
	return r.Send(&wire.Frame{Type: message.TypeListTunnelServices, Body: version})
}

// DialAsClient asks for a circuit for the router itself, as routers of the
// second generation do.
func (r *Router) DialAsClient(ctx context.Context, m message.DialAsClient) (*message.DialedAsClient, error) {
	return ask[message.DialedAsClient](ctx, r, frame(message.TypeDialAsClient, &m), message.TypeDialedAsClient)
}

// HostAsClient asks for a terminator for the router itself.
func (r *Router) HostAsClient(ctx context.Context, m message.HostAsClient) (*message.HostedAsClient, error) {
	return ask[message.HostedAsClient](ctx, r, frame(message.TypeHostAsClient, &m), message.TypeHostedAsClient)
}

func frame[T any](typ int32, m *T) *wire.Frame {
	return &wire.Frame{Type: typ, Body: message.Marshal(m)}
}

// ask sends a frame and returns what an answer of a type says.
func ask[T any](ctx context.Context, r *Router, f *wire.Frame, answer int32) (*T, error) {
	reply, err := r.Request(ctx, f)
	if err != nil {
		return nil, err
	}
	switch reply.Type {
	case answer:
		return message.Unmarshal[T](reply.Body)
	case message.TypeError:
		return nil, message.RefusalIn(reply)
	}
	return nil, fmt.Errorf("the answer is of type %d", reply.Type)
}
