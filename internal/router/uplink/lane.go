package uplink

import (
	"context"
	"errors"
	"sync"
	"time"

	"netkeep.internal/internal/wire"
	"netkeep.internal/internal/wire/message"
)

// lanes keep what is to be done about each circuit in order, while circuits do
// not wait for each other.
type lanes struct {
	mu        sync.Mutex
	byCircuit map[string]*lane
}

// lane is what is to be done about one circuit.
type lane struct {
	queue  []func()
	cancel []context.CancelFunc // of the routes in it
	ends   bool                 // whether the last step in it is the end of the circuit
}

// Bounds of circuits that are being made, and of what waits for one of them.
const (
	maxLanes = 1024
	maxSteps = 16
)

// Times that a route may take: what it says, up to a limit.
const (
	routeWait    = 10 * time.Second
	maxRouteWait = 30 * time.Second
)

var errTooMany = errors.New("the router is making too many circuits at once; try another")

// onRoute makes a part of a circuit.
func (u *Uplink) onRoute(c *line, f *wire.Frame, m *message.Route) {
	wait := min(time.Duration(min(m.Timeout, uint64(maxRouteWait))), maxRouteWait)
	if wait <= 0 {
		wait = routeWait
	}
	ctx, cancel := context.WithTimeout(c.Context(), wait)
	started := u.lanes.add(m.CircuitID, cancel, func() {
		defer cancel()
		var peerData map[uint32][]byte
		err := ctx.Err()
		if err == nil {
			peerData, err = u.opt.Handler.Route(ctx, c.id, m)
		}
		routed(c.Channel, f, m, peerData, err)
	})
	if !started {
		cancel()
		routed(c.Channel, f, m, nil, errTooMany)
	}
}

// onUnroute ends a circuit: at once, or as soon as what is being made of it is
// made.
func (u *Uplink) onUnroute(m *message.Unroute) {
	if !u.lanes.end(m.CircuitID, m.Now, func() { u.opt.Handler.Unroute(m) }) {
		u.opt.Handler.Unroute(m)
	}
}

// add does a step of a circuit when those before it are done. It reports false
// if there is too much to do.
func (l *lanes) add(circuit string, cancel context.CancelFunc, step func()) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	at := l.byCircuit[circuit]
	switch {
	case at != nil && len(at.queue) < maxSteps:
		at.queue, at.cancel, at.ends = append(at.queue, step), append(at.cancel, cancel), false
		return true
	case at != nil || len(l.byCircuit) == maxLanes:
		return false
	}
	if l.byCircuit == nil {
		l.byCircuit = map[string]*lane{}
	}
	l.byCircuit[circuit] = &lane{queue: []func(){step}, cancel: []context.CancelFunc{cancel}}
	go l.run(circuit)
	return true
}

// end gives up what is being done about a circuit and then does the step. It
// reports false, and does nothing, if nothing is being done. Of several ends in
// a row one is enough, and one that is now counts for more.
func (l *lanes) end(circuit string, now bool, step func()) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	at := l.byCircuit[circuit]
	if at == nil {
		return false
	}
	for _, cancel := range at.cancel {
		cancel()
	}
	at.cancel = nil
	switch last := len(at.queue) - 1; {
	case !at.ends || last < 0:
		at.queue, at.ends = append(at.queue, step), true
	case now:
		at.queue[last] = step
	}
	return true
}

// run does the steps of a circuit.
func (l *lanes) run(circuit string) {
	for {
		l.mu.Lock()
		at := l.byCircuit[circuit]
		if len(at.queue) == 0 {
			delete(l.byCircuit, circuit)
			l.mu.Unlock()
			return
		}
		step := at.queue[0]
		at.queue = at.queue[1:]
		l.mu.Unlock()
		step()
	}
}
