package link

import (
	"context"
	"encoding/json"
	"log/slog"
	"sync"
	"time"

	"netkeep.internal/internal/data/state"
	"netkeep.internal/internal/fabric/control"
	"netkeep.internal/internal/model"
	"netkeep.internal/internal/wire"
	"netkeep.internal/internal/wire/message"
)

// peers is the routers of whom the others have yet to be told.
type peers struct {
	mu    sync.Mutex
	dirty map[string]struct{}
	wake  chan struct{}
	known sync.Map // of connected routers, what others are told of each
}

func (p *peers) init() { p.dirty, p.wake = map[string]struct{}{}, make(chan struct{}, 1) }

// healthy is what others are told of a connected router. It stays the same as
// long as the router is connected.
func (p *peers) healthy(r *control.Router) []byte {
	if state, ok := p.known.Load(r); ok {
		return state.([]byte)
	}
	state := encode(healthy(r))
	p.known.Store(r, state)
	return state
}

// changed has everybody told of a router.
func (p *peers) changed(routerID string) {
	p.mu.Lock()
	p.dirty[routerID] = struct{}{}
	p.mu.Unlock()
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

func (p *peers) take() map[string]struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	taken := p.dirty
	p.dirty = map[string]struct{}{}
	return taken
}

// gather is how long changes are gathered after some were told. When hundreds
// of routers connect at once, each is told of hundreds in one frame.
const gather = 50 * time.Millisecond

// Run tells routers of each other until ctx ends.
func (l *Links) Run(ctx context.Context) {
	pause := time.NewTimer(0)
	defer pause.Stop()
	for {
		select {
		case <-l.peers.wake:
		case <-ctx.Done():
			return
		}
		select {
		case <-pause.C:
		case <-ctx.Done():
			return
		}
		l.tell(l.peers.take())
		pause.Reset(gather)
	}
}

// tell tells every router how others are.
func (l *Links) tell(of map[string]struct{}) {
	snap := l.State.Snapshot()
	states := make(map[string][]byte, len(of))
	var all []byte
	for id := range of {
		states[id] = encode(l.peer(snap, id))
		all = append(all, states[id]...)
	}
	for _, r := range l.Routers.All() {
		body := all
		if _, itself := of[r.ID]; itself {
			body = nil
			for id, state := range states {
				if id != r.ID {
					body = append(body, state...)
				}
			}
		}
		if len(body) > 0 {
			_ = r.Send(&wire.Frame{Type: message.TypePeerStates, Body: body})
		}
	}
}

// encode returns the bytes of a list with one state. Those of several, one after
// the other, are a list of all of them.
func encode(p message.PeerState) []byte {
	return message.Marshal(&message.PeerStates{Changes: []message.PeerState{p}})
}

// peer is what others need to know of a router: where it can be reached, all of
// it, since what is left out would end links.
func (l *Links) peer(snap *state.Snapshot, id string) message.PeerState {
	if !linkable(snap, id) {
		return message.PeerState{ID: id, State: message.PeerRemoved}
	}
	r, connected := l.Routers.Get(id)
	if !connected {
		return message.PeerState{ID: id, State: message.PeerUnhealthy}
	}
	return healthy(r)
}

func healthy(r *control.Router) message.PeerState {
	return message.PeerState{ID: r.ID, State: message.PeerHealthy, Version: r.Speaks(), Listeners: r.Listeners}
}

// greet tells a router that has just connected of all others.
func (l *Links) greet(r *control.Router) {
	snap := l.State.Snapshot()
	var all []byte
	for _, other := range l.Routers.All() {
		if other.ID != r.ID && linkable(snap, other.ID) {
			all = append(all, l.peers.healthy(other)...)
		}
	}
	if len(all) > 0 {
		_ = r.Send(&wire.Frame{Type: message.TypePeerStates, Body: all})
	}
}

// reconcileWait is how long a router has to say which links it has.
const reconcileWait = 20 * time.Second

// reconcile asks a router that has just connected which links it has: what is
// not among them is gone, and those to routers that are in the network no more
// must go.
func (l *Links) reconcile(ctx context.Context, r *control.Router) {
	asked := l.those(r.ID, func(*model.Link) bool { return true })
	ctx, cancel := context.WithTimeout(ctx, reconcileWait)
	defer cancel()
	var said struct {
		Links []struct {
			ID   string `json:"id"`
			Dest string `json:"dest"`
		} `json:"links"`
	}
	text, err := r.Inspect(ctx, "links")
	if err == nil {
		err = json.Unmarshal([]byte(text), &said)
	}
	if err != nil {
		if r.Context().Err() == nil {
			r.Say(slog.LevelWarn, "a router does not say which links it has", "error", err)
		}
		return
	}
	has := map[string]bool{}
	gone := map[string]bool{}
	snap := l.State.Snapshot()
	for _, link := range said.Links {
		has[link.ID] = true
		if !linkable(snap, link.Dest) {
			gone[link.Dest] = true
		}
	}
	var lost []*model.Link
	for _, link := range asked {
		if !has[link.ID] {
			lost = append(lost, link)
		}
	}
	l.drop(lost, "its router has it no more")
	if len(gone) > 0 {
		removed := &message.PeerStates{}
		for id := range gone {
			removed.Changes = append(removed.Changes, message.PeerState{ID: id, State: message.PeerRemoved})
		}
		_ = r.Send(control.Message(message.TypePeerStates, removed))
	}
}

// Review looks at everything: anything may have changed.
func (l *Links) Review(snap *state.Snapshot) {
	for _, r := range l.Routers.All() {
		if record, ok := model.Routers.Get(snap, r.ID); ok {
			l.Changed(record)
		}
	}
	seen := map[string]bool{}
	for _, link := range l.list() {
		for _, end := range []string{link.SourceID, link.DestID} {
			if !seen[end] && !linkable(snap, end) {
				l.Removed(end)
			}
			seen[end] = true
		}
	}
}
