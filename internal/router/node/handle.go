package node

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"netkeep.internal/internal/router/forward"
	"netkeep.internal/internal/wire/message"
)

// Bindings of terminators: clients that host, and addresses.
const (
	edgeBinding      = "edge"
	transportBinding = "transport"
)

// Route makes this router's part of a circuit.
func (r *Router) Route(ctx context.Context, from string, m *message.Route) (map[uint32][]byte, error) {
	var told map[uint32][]byte
	ends := m.Egress != nil && !r.table.Has(m.Egress.Address)
	if ends {
		var err error
		if told, err = r.egress(ctx, from, m); err != nil {
			return nil, err
		}
	}
	err := r.table.Route(m.CircuitID, from, m.Forwards)
	if err != nil && ends { // who hosts has a connection by now, of which nobody else would ever say that it is over
		r.table.Abort(m.Egress.Address)
	}
	if missing, ok := errors.AsType[*forward.Fault](err); ok && missing.Link {
		_ = r.uplink.Fault(message.Fault{Subject: message.FaultLink, ID: missing.Address})
		return nil, &message.RouteFailure{Code: message.RouteInvalidLink, Text: missing.Error()}
	}
	return told, err
}

// egress has a circuit end here.
func (r *Router) egress(ctx context.Context, owner string, m *message.Route) (map[uint32][]byte, error) {
	switch m.Egress.Binding {
	case edgeBinding:
		return nil, r.door.Egress(ctx, owner, m.CircuitID, m.Egress)
	case transportBinding:
		return r.exits.Dial(ctx, owner, m.CircuitID, m.Egress)
	}
	return nil, &message.RouteFailure{
		Code: message.RouteMisconfigured,
		Text: fmt.Sprintf("this router knows no way out called %q; it knows %s and %s", m.Egress.Binding, edgeBinding, transportBinding),
	}
}

// quiet is how long nothing must have passed on a circuit before it is taken
// away that may end what it does.
const quiet = 5 * time.Second

// Unroute takes a circuit away: at once, or when nothing passes on it any more. One
// whose ends are gone is not waited for: their last words are sent again and again.
func (r *Router) Unroute(m *message.Unroute) {
	since, carried := r.table.Quiet(m.CircuitID)
	switch {
	case !carried:
	case m.Now || since >= quiet || r.table.Spent(m.CircuitID):
		r.table.Unroute(m.CircuitID)
	default:
		time.AfterFunc(quiet-since, func() { r.Unroute(m) })
	}
}

// maxInspected is how many clients are asked at once whether they still host.
const maxInspected = 32

// Validate says which of these terminators there are.
func (r *Router) Validate(ctx context.Context, m *message.ValidateTerminators) map[string]message.TerminatorState {
	states := make(map[string]message.TerminatorState, len(m.Terminators))
	var mu sync.Mutex
	var asked sync.WaitGroup
	slots := make(chan struct{}, maxInspected)
	for _, t := range m.Terminators {
		slots <- struct{}{}
		asked.Go(func() {
			defer func() { <-slots }()
			s := r.validate(ctx, t, !m.PostCreate)
			mu.Lock()
			defer mu.Unlock()
			states[t.ID] = s
		})
	}
	asked.Wait()
	return states
}

// Why a terminator is not valid.
const (
	unknownBinding    = 0
	unknownTerminator = 1
)

func (r *Router) validate(ctx context.Context, t message.Terminator, ask bool) message.TerminatorState {
	switch {
	case t.Binding == transportBinding:
		return message.TerminatorState{Valid: true}
	case t.Binding != edgeBinding:
		return message.TerminatorState{Reason: unknownBinding, Detail: "this router knows no such way out"}
	case r.door.Validate(ctx, t.Address, ask):
		return message.TerminatorState{Valid: true}
	}
	return message.TerminatorState{Reason: unknownTerminator, Detail: "nobody hosts under this address here"}
}

// SessionsRemoved ends what was made with sessions that are over.
func (r *Router) SessionsRemoved(digests []string) {
	for _, digest := range digests {
		r.door.EndSession(digest)
	}
}

// circuits are those that are carried here, as JSON.
func (r *Router) circuits() string {
	text, _ := json.Marshal(map[string]any{"circuits": r.table.Circuits()}) // texts alone
	return string(text)
}

// controllers are those that the router knows, as JSON.
func (r *Router) controllers() string {
	type controller struct {
		ID         string `json:"controllerId"`
		Address    string `json:"address"`
		Connected  bool   `json:"isConnected"`
		Responsive bool   `json:"isResponsive"`
		Latency    string `json:"latency,omitempty"`
		Problem    string `json:"problem,omitempty"`
	}
	all := []controller{}
	for _, s := range r.uplink.Statuses() {
		c := controller{ID: s.ControllerID, Address: s.Address, Connected: s.Connected, Responsive: s.Responsive, Problem: s.Problem}
		if s.Latency > 0 {
			c.Latency = s.Latency.String()
		}
		all = append(all, c)
	}
	text, _ := json.Marshal(map[string]any{"controllers": all}) // texts alone
	return string(text)
}

// Connected tells a controller anew what it may not know.
func (r *Router) Connected() {
	r.links.Connected()
	r.door.Connected()
}

// Disconnected is when a controller is away. What there is goes on.
func (r *Router) Disconnected() {}

// Peers is told of other routers.
func (r *Router) Peers(m *message.PeerStates) { r.links.Peers(m) }

// LinkFault is told of a link that is to be closed.
func (r *Router) LinkFault(m *message.Fault) { r.links.Close(m.ID, m.Iteration) }
