// Package link is the links between routers: routers make them by themselves,
// once they are told of each other; here it is written down which there are and
// what they cost, and circuits find their way by that. It keeps them in memory
// only, as routers tell them again whenever they connect. It must not import
// rest or api, nor circuit: who is concerned when a link goes is told so.
package link

import (
	"context"
	"fmt"
	"iter"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"netkeep.internal/internal/data/state"
	"netkeep.internal/internal/fabric/control"
	"netkeep.internal/internal/fabric/path"
	"netkeep.internal/internal/lang/kind"
	"netkeep.internal/internal/model"
	"netkeep.internal/internal/wire"
	"netkeep.internal/internal/wire/message"
)

// unmeasured is what the latency of a link is taken for until an end has
// measured it: better a link that is known than one that is not.
const unmeasured = 65 * time.Second

// staticCost is what a link costs whatever its latency.
const staticCost = 1

// cost is what it costs to send something over a link.
func cost(l *model.Link) int64 {
	cost := l.StaticCost
	for _, latency := range []time.Duration{l.SourceLatency, l.DestLatency} {
		if latency == 0 {
			latency = unmeasured
		}
		cost += latency.Milliseconds()
	}
	return cost
}

// Options of Links.
type Options struct {
	State   *state.State
	Routers *control.Routers
	// Graph is kept up to date with what is known of routers and links.
	Graph *path.Graph
	// Lost is told of links that are gone.
	Lost func(ids []string)
	// Told is told of links that come and go: up, down, or faulted if an end says so.
	// It must be quick.
	Told func(link *model.Link, verb, reason string)
	// Found is told when there may be a path where there was none.
	Found func()
	// Usage is told what a router has counted of its circuits.
	Usage func(routerID string, counted []message.Usage)
	// Heard is given all that a router says that it has measured.
	Heard func(r *control.Router, f *wire.Frame)
	// Controller is the id of this one.
	Controller string
	Now        func() time.Time
	Log        *slog.Logger
}

// Links is the links that there are, the Source of their kind.
type Links struct {
	Options
	peers peers

	mu       sync.RWMutex
	byID     map[string]*model.Link            // never changed, only replaced
	byRouter map[string]map[string]*model.Link // of either end
	dialled  map[string]int                    // how many each router says that it has dialled
}

// New returns links of which there are none.
func New(opt Options) *Links {
	l := &Links{Options: opt, byID: map[string]*model.Link{}, byRouter: map[string]map[string]*model.Link{}, dialled: map[string]int{}}
	l.peers.init()
	return l
}

// Register has routers tell of links.
func (l *Links) Register() {
	l.Routers.Joined(l.onJoined)
	l.Routers.Left(l.onLeft)
	control.On(l.Routers, message.TypeRouterLinks, l.onLinks)
	control.On(l.Routers, message.TypeLinkState, l.onState)
	control.On(l.Routers, message.TypeVerifyRouter, l.onVerify)
	l.Routers.Handle(message.TypeMetrics, l.onMetrics)
}

// Lookup returns the link with an id.
func (l *Links) Lookup(id string) (kind.Record, bool) {
	l.mu.RLock()
	found := l.byID[id]
	l.mu.RUnlock()
	if found == nil {
		return nil, false
	}
	return l.shown(found), true
}

// All yields the links by id.
func (l *Links) All() iter.Seq[kind.Record] {
	return func(yield func(kind.Record) bool) {
		for _, link := range l.list() {
			if !yield(l.shown(link)) {
				return
			}
		}
	}
}

// list returns the links by id, as they were last told.
func (l *Links) list() []*model.Link {
	l.mu.RLock()
	all := slices.Collect(maps.Values(l.byID))
	l.mu.RUnlock()
	slices.SortFunc(all, func(a, b *model.Link) int { return strings.Compare(a.ID, b.ID) })
	return all
}

// Len is how many links there are.
func (l *Links) Len() int {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return len(l.byID)
}

// shown is a link as it is at the moment: whether it can be used is up to who is
// connected, and not told when that changes.
func (l *Links) shown(link *model.Link) *model.Link {
	_, source := l.Routers.Get(link.SourceID)
	_, dest := l.Routers.Get(link.DestID)
	if source && dest {
		return link
	}
	down := *link
	down.State, down.Down = model.LinkUnknown, true
	return &down
}

// Bounds of what a router may say of its links.
const (
	maxLinks = 10_000 // that it has dialled
	maxText  = 256
	maxConns = 16
)

// onLinks hears which links a router has made: all after it has connected, and
// then each new one.
func (l *Links) onLinks(r *control.Router, _ *wire.Frame, m *message.Links) {
	snap := l.State.Snapshot()
	listed := make(map[string]bool, len(m.Links))
	found := false
	for i := range m.Links {
		said := &m.Links[i]
		listed[said.ID] = true
		if !linkable(snap, said.Destination) {
			// It may have been deleted while its neighbour was away.
			closeLink(r, said.ID, int(said.Iteration))
			continue
		}
		found = l.add(r, said) || found
	}
	if m.All {
		l.drop(l.those(r.ID, func(link *model.Link) bool { return link.SourceID == r.ID && !listed[link.ID] }), "its router does not name it any more")
	}
	if found {
		l.Found()
	}
}

// linkable reports whether a router may have links.
func linkable(snap *state.Snapshot, routerID string) bool {
	r, ok := model.Routers.Get(snap, routerID)
	return ok && r.IsVerified && !r.Disabled
}

// add takes note of a link; it reports whether it is new.
func (l *Links) add(r *control.Router, said *message.Link) bool {
	if said.ID == "" || len(said.ID) > 64 || said.Destination == r.ID || len(said.Protocol) > maxText || len(said.DialAddress) > maxText {
		r.Misbehaves(control.Invented, fmt.Sprintf("it tells of a link that cannot be: %.64q", said.ID))
		return false
	}
	offence, detail := control.Reason(""), ""
	// Not under the mutex: it may end the connection, of which we are told.
	defer func() {
		if offence != "" {
			r.Misbehaves(offence, detail)
		}
	}()
	l.mu.Lock()
	defer l.mu.Unlock()
	old := l.byID[said.ID]
	switch {
	case old != nil && (old.SourceID != r.ID || old.DestID != said.Destination):
		offence, detail = control.Invented, fmt.Sprintf("it tells of a link that is between others: %.64q", said.ID)
		return false
	case old != nil && old.Iteration >= int(said.Iteration):
		return false
	// What others say that they have dialled is not this router's doing.
	case old == nil && l.dialled[r.ID] >= maxLinks:
		offence, detail = control.TooMuch, fmt.Sprintf("it tells of more than %d links that it has dialled", maxLinks)
		return false
	}
	now := kind.MomentOf(l.Now())
	link := &model.Link{
		Meta:     kind.Meta{ID: said.ID, CreatedAt: now, UpdatedAt: now},
		SourceID: r.ID, DestID: said.Destination, Protocol: said.Protocol, DialAddress: said.DialAddress, Iteration: int(said.Iteration),
		StaticCost: staticCost, State: model.LinkConnected, Conns: connsOf(said.Conns.Conns), ControllerID: l.Controller,
	}
	if old != nil {
		link.StaticCost, link.Down = old.StaticCost, old.Down // it is the same, dialled again
	}
	l.put(link)
	if old == nil {
		l.dialled[r.ID]++
		l.Told(link, "up", "") // whole: who is told reads it from now on
		r.Say(slog.LevelInfo, "link up", "link", link.ID, "from", link.SourceID, "to", link.DestID, "address", link.DialAddress)
	}
	return true
}

// connsOf are the connections that a router says a link consists of, as many as
// are believed.
func connsOf(said []message.LinkConn) []model.LinkConn {
	var conns []model.LinkConn
	for _, c := range said[:min(len(said), maxConns)] {
		if len(c.Type)+len(c.Local)+len(c.Remote) <= maxText {
			conns = append(conns, model.LinkConn{Type: c.Type, Source: c.Local, Dest: c.Remote})
		}
	}
	return conns
}

// put makes a link the one with its id, at what it costs now, and tells the
// graph. The caller has the mutex.
func (l *Links) put(link *model.Link) {
	link.Cost = cost(link)
	switch old := l.byID[link.ID]; {
	case link.Down && (old == nil || !old.Down):
		l.Graph.RemoveLink(link.ID)
	case !link.Down && (old == nil || old.Cost != link.Cost || old.Down):
		l.Graph.SetLink(path.Link{ID: link.ID, A: link.SourceID, B: link.DestID, Cost: link.Cost})
	}
	l.byID[link.ID] = link
	for _, end := range []string{link.SourceID, link.DestID} {
		if l.byRouter[end] == nil {
			l.byRouter[end] = map[string]*model.Link{}
		}
		l.byRouter[end][link.ID] = link
	}
}

// change replaces a link that a router is an end of.
func (l *Links) change(routerID, id string, with func(*model.Link)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	old := l.byID[id]
	if old == nil || old.SourceID != routerID && old.DestID != routerID {
		return
	}
	link := *old
	with(&link)
	l.put(&link)
}

// onState hears that a link has more or fewer connections than before.
func (l *Links) onState(r *control.Router, _ *wire.Frame, m *message.LinkState) {
	l.change(r.ID, m.ID, func(link *model.Link) {
		if link.SourceID == r.ID && link.Iteration == int(m.Iteration) {
			link.Conns = connsOf(m.Conns.Conns)
		}
	})
}

// those returns the links of a router that are so.
func (l *Links) those(routerID string, so func(*model.Link) bool) []*model.Link {
	l.mu.RLock()
	defer l.mu.RUnlock()
	var found []*model.Link
	for _, link := range l.byRouter[routerID] {
		if so(link) {
			found = append(found, link)
		}
	}
	return found
}

// drop forgets links, unless they were made again meanwhile, and tells those
// whom it concerns.
func (l *Links) drop(links []*model.Link, reason string) { l.lose(links, "down", reason) }

func (l *Links) lose(links []*model.Link, verb, reason string) {
	var ids []string
	l.mu.Lock()
	for _, link := range links {
		if now := l.byID[link.ID]; now == nil || now.Iteration != link.Iteration || now.CreatedAt != link.CreatedAt {
			continue
		}
		delete(l.byID, link.ID)
		if l.dialled[link.SourceID]--; l.dialled[link.SourceID] == 0 {
			delete(l.dialled, link.SourceID)
		}
		for _, end := range []string{link.SourceID, link.DestID} {
			if delete(l.byRouter[end], link.ID); len(l.byRouter[end]) == 0 {
				delete(l.byRouter, end)
			}
		}
		l.Graph.RemoveLink(link.ID)
		ids = append(ids, link.ID)
		l.Told(link, verb, reason)
		l.Routers.Say(link.SourceID, slog.LevelInfo, "link lost", "link", link.ID, "from", link.SourceID, "to", link.DestID, "reason", reason)
	}
	l.mu.Unlock()
	if len(ids) > 0 {
		l.Lost(ids)
	}
}

// Fault hears that a link is gone, from one of its ends. Often it is one that
// was never told of: routers that dial each other keep one of two.
func (l *Links) Fault(r *control.Router, m *message.Fault) {
	l.mu.RLock()
	link := l.byID[m.ID]
	l.mu.RUnlock()
	if link == nil || int(m.Iteration) < link.Iteration {
		return
	}
	other, ok := link.Other(r.ID)
	if !ok {
		return
	}
	l.lose([]*model.Link{link}, "faulted", "one end says so")
	if peer, connected := l.Routers.Get(other); connected && m.Subject == message.FaultLink {
		closeLink(peer, link.ID, link.Iteration)
	}
}

// closeLink has a router end a link.
func closeLink(r *control.Router, id string, iteration int) {
	_ = r.Send(control.Message(message.TypeFault, &message.Fault{Subject: message.FaultLink, ID: id, Iteration: uint32(iteration)}))
}

// Removed takes a router out that is in the network no more: its links end,
// whether it likes it or not.
func (l *Links) Removed(routerID string) {
	links := l.those(routerID, func(*model.Link) bool { return true })
	l.drop(links, "its router is in the network no more")
	for _, link := range links {
		other, _ := link.Other(routerID)
		if peer, connected := l.Routers.Get(other); connected {
			closeLink(peer, link.ID, link.Iteration)
		}
	}
	l.peers.changed(routerID)
}

// detour is what any other way may cost more before one leads over a router that is
// about to stop.
const detour = 1_000_000

// Changed takes note of how a connected router may be used.
func (l *Links) Changed(r *model.Router) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, connected := l.Routers.Get(r.ID); connected {
		use := path.Router{Cost: r.Cost, NoTraversal: r.NoTraversal}
		if r.Quiesced {
			use.Cost += detour
		}
		l.Graph.SetRouter(r.ID, use)
	}
}

// onJoined puts a router among those that paths may lead over.
func (l *Links) onJoined(r *control.Router) {
	snap := l.State.Snapshot()
	if record, ok := model.Routers.Get(snap, r.ID); ok {
		l.Changed(record)
	}
	l.greet(r)
	l.peers.changed(r.ID)
	r.Go(func(ctx context.Context) { l.reconcile(ctx, r) })
	l.Found()
}

// onLeft takes it out. Its links may go on without us, and so do the circuits
// over them; new ones cannot be made, as it would have to be told.
func (l *Links) onLeft(r *control.Router) {
	l.mu.Lock()
	// Not if it has connected again already.
	if _, connected := l.Routers.Get(r.ID); !connected {
		l.Graph.RemoveRouter(r.ID)
	}
	l.mu.Unlock()
	l.peers.known.Delete(r)
	l.peers.changed(r.ID)
}

// onVerify answers a router that wonders who dials it.
func (l *Links) onVerify(r *control.Router, frame *wire.Frame, m *message.VerifyRouter) {
	router, ok := model.Routers.Get(l.State.Snapshot(), m.RouterID)
	ok = ok && !router.Disabled && router.IsVerified && len(m.Fingerprints) > 0 && m.Fingerprints[0] == router.Fingerprint
	text := ""
	if !ok {
		text = "the certificate is not that router's"
	}
	r.Result(frame, ok, text)
}
