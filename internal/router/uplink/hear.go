package uplink

import (
	"context"
	"errors"
	"fmt"
	"time"

	"netkeep.internal/internal/wire"
	"netkeep.internal/internal/wire/channel"
	"netkeep.internal/internal/wire/message"
)

// hear does what has to be done about a frame.
func (u *Uplink) hear(c *line, f *wire.Frame) {
	var err error
	switch f.Type {
	case message.TypeServerHello:
		u.introduce(c.Channel, f)
	case message.TypeAPISessionsAdded:
		err = on(f, func(m *message.APISessionsAdded) { u.added(c, f, m) })
	case message.TypeAPISessionsUpdated:
		err = on(f, func(m *message.APISessionsUpdated) { u.sessions.keep(c.id, digested(f, m.Sessions)) })
	case message.TypeAPISessionsRemoved:
		err = on(f, func(m *message.Removed) { u.sessions.remove(m.IDs, digests(f, m.Tokens)) })
	case message.TypeSessionsRemoved:
		err = on(f, func(m *message.Removed) { u.opt.Handler.SessionsRemoved(digests(f, m.Tokens)) })
	case message.TypeRoute:
		err = on(f, func(m *message.Route) { u.onRoute(c, f, m) })
	case message.TypeUnroute:
		err = on(f, u.onUnroute)
	case message.TypePeerStates:
		err = on(f, u.opt.Handler.Peers)
	case message.TypeFault:
		err = on(f, u.onFault)
	case message.TypeValidateTerminators:
		err = on(f, func(m *message.ValidateTerminators) { u.onValidate(c.Channel, f, m) })
	case message.TypeInspectRequest:
		err = on(f, func(m *message.InspectRequest) { u.onInspect(c.Channel, f, m) })
	case message.TypeTogglePipes:
		err = on(f, func(m *message.TogglePipes) { u.onToggle(c, f, m) })
	case message.TypeCertificates:
		err = on(f, func(m *message.Certificates) { u.onCertificates(c, m) })
	case message.TypeAuthorities:
		err = on(f, func(m *message.Certificates) { c.trusted.Store(&m.CAs) })
	case message.TypeMembers:
		err = on(f, u.onMembers)
	case message.TypeCircuitCreated:
		u.discard(c, f)
	default:
		u.opt.Log.Debug("the controller says what this router does not know", "type", f.Type)
	}
	if err != nil {
		c.Close(fmt.Errorf("the controller sent what cannot be read: %w", err))
	}
}

// on reads the message of a frame and hands it on.
func on[T any](f *wire.Frame, do func(*T)) error {
	m, err := message.Unmarshal[T](f.Body)
	if err == nil {
		do(m)
	}
	return err
}

// introduce tells the controller where clients reach the router, and that it
// needs no tokens of theirs: it knows them by digest.
func (u *Uplink) introduce(c *channel.Channel, f *wire.Frame) {
	hello := &message.ClientHello{Version: Release}
	for _, at := range u.edge {
		hello.Hostname = u.edge[0].Hostname
		hello.Listeners = append(hello.Listeners, message.EdgeListener{Address: at, Advertise: at})
	}
	answer := &wire.Frame{Type: message.TypeClientHello, Headers: wire.Headers{}, Body: message.Marshal(hello)}
	answer.Headers.SetBool(message.HeaderDigests, true)
	_ = c.Reply(f, answer)
}

// digests are those of the tokens in a frame, which may hold them already.
func digests(f *wire.Frame, tokens []string) []string {
	if f.Headers.Bool(message.HeaderDigests) {
		return tokens
	}
	all := make([]string, len(tokens))
	for i, token := range tokens {
		all[i] = message.Digest(token)
	}
	return all
}

// digested are API sessions with digests in place of their tokens.
func digested(f *wire.Frame, sessions []message.APISession) []message.APISession {
	if !f.Headers.Bool(message.HeaderDigests) {
		for i := range sessions {
			sessions[i].Token = message.Digest(sessions[i].Token)
		}
	}
	return sessions
}

// onFault hears that the controller wants a link closed. It has no other faults
// to tell of.
func (u *Uplink) onFault(m *message.Fault) {
	if m.Subject == message.FaultLink {
		u.opt.Handler.LinkFault(m)
	}
}

// spare does something that may wait, unless too much goes on.
func (u *Uplink) spare(do func()) bool {
	select {
	case u.work <- struct{}{}:
	default:
		return false
	}
	go func() {
		defer func() { <-u.work }()
		do()
	}()
	return true
}

// validateWait is how long a controller waits for what a router says of its
// terminators.
const validateWait = 25 * time.Second

// onValidate says which terminators there are. A controller that is not
// answered asks again.
func (u *Uplink) onValidate(c *channel.Channel, f *wire.Frame, m *message.ValidateTerminators) {
	u.spare(func() {
		ctx, cancel := context.WithTimeout(c.Context(), validateWait)
		defer cancel()
		states := u.opt.Handler.Validate(ctx, m)
		for _, t := range m.Terminators {
			if state, ok := states[t.ID]; ok {
				state.Marker = t.Marker
				states[t.ID] = state
			}
		}
		_ = c.Reply(f, frame(message.TypeTerminatorsValidated, &message.TerminatorsValidated{States: states}))
	})
}

// onInspect says what the controller wants to know.
func (u *Uplink) onInspect(c *channel.Channel, f *wire.Frame, m *message.InspectRequest) {
	started := u.spare(func() {
		answer := &message.InspectResponse{Success: true}
		values := u.opt.Handler.Inspect(c.Context(), m.Names)
		for _, name := range m.Names {
			if value, ok := values[name]; ok {
				answer.Values = append(answer.Values, message.InspectValue{Name: name, Value: value})
			}
		}
		_ = c.Reply(f, frame(message.TypeInspectResponse, answer))
	})
	if !started {
		_ = c.Reply(f, frame(message.TypeInspectResponse, &message.InspectResponse{Errors: []string{"the router is asked for too much at once"}}))
	}
}

// routed answers a route.
func routed(c *channel.Channel, f *wire.Frame, m *message.Route, peerData map[uint32][]byte, err error) {
	h := wire.Headers{}
	h.SetUint32(message.HeaderRouteAttempt, m.Attempt)
	if err == nil {
		for key, value := range peerData {
			if carried(key) {
				h[int32(key)] = value
			}
		}
		h.SetBool(message.HeaderRouteSuccess, true)
	} else {
		h.SetText(message.HeaderRouteError, err.Error())
		code := message.RouteError(0)
		if failure := (*message.RouteFailure)(nil); errors.As(err, &failure) {
			code = failure.Code
		}
		h[message.HeaderRouteErrorCode] = []byte{byte(code)}
	}
	_ = c.Reply(f, &wire.Frame{Type: message.TypeRouteResult, Headers: h, Body: []byte(m.CircuitID)})
}

// carried reports whether a key is one that the ends of a circuit may use. The
// others belong to the channel and to route results.
func carried(key uint32) bool { return key >= 1000 && (key < 1100 || key > 1109) && key < 1<<31 }

// frame is one with a message in its body.
func frame[T any](typ int32, m *T) *wire.Frame {
	return &wire.Frame{Type: typ, Body: message.Marshal(m)}
}
