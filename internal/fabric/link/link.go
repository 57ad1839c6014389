// Package link is the links between routers: routers make them by themselves,
// once they are told of each other; here it is written down which there are and
// what they cost, and circuits find their way by that. It keeps them in memory
// only, as routers tell them again whenever they connect. It must not import
// rest or api, nor circuit: who is concerned when a link goes is told so.
package link

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"netkeep.internal/internal/data/state"
	"netkeep.internal/internal/fabric/control"
	"netkeep.internal/internal/fabric/path"
	"netkeep.internal/internal/model"
	"netkeep.internal/internal/wire"
	"netkeep.internal/internal/wire/message"
)

// Link is a connection between two routers.
type Link struct {
	ID       string
	From, To string // routers; the first has dialled
	Protocol string
	Address  string // that was dialled
	// Iteration counts how often it was dialled.
	Iteration uint32
	Conns     []message.LinkConn
	// Latency is what each of both ends has measured last, 0 if nothing yet.
	Latency [2]time.Duration
	Since   time.Time
}

// unmeasured is what the latency of a link is taken for until an end has
// measured it: better a link that is known than one that is not.
const unmeasured = 65 * time.Second

// StaticCost is what a link costs whatever its latency.
const StaticCost = 1

// Cost is what it costs to send something over the link.
func (l *Link) Cost() int64 {
	cost := int64(StaticCost)
	for _, latency := range l.Latency {
		if latency == 0 {
			latency = unmeasured
		}
		cost += latency.Milliseconds()
	}
	return cost
}

// Other is the end that is not the one named; ok is false if that is none.
func (l *Link) Other(routerID string) (other string, ok bool) {
	switch routerID {
	case l.From:
		return l.To, true
	case l.To:
		return l.From, true
	}
	return "", false
}

// Options of Links.
type Options struct {
	State   *state.State
	Routers *control.Routers
	// Graph is kept up to date with what is known of routers and links.
	Graph *path.Graph
	// Lost is told of links that are gone.
	Lost func(ids []string)
	// Found is told when there may be a path where there was none.
	Found func()
	// Usage is told what a router has counted of its circuits.
	Usage func(routerID string, counted []message.Usage)
	Now   func() time.Time
	Log   *slog.Logger
}

// Links is the links that there are.
type Links struct {
	Options
	peers peers

	mu       sync.RWMutex
	byID     map[string]*Link            // never changed, only replaced
	byRouter map[string]map[string]*Link // of either end
	dialled  map[string]int              // how many each router says that it has dialled
}

// New returns links of which there are none.
func New(opt Options) *Links {
	l := &Links{Options: opt, byID: map[string]*Link{}, byRouter: map[string]map[string]*Link{}, dialled: map[string]int{}}
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

// Get returns the link with an id.
func (l *Links) Get(id string) (Link, bool) {
	l.mu.RLock()
	defer l.mu.RUnlock()
	if found := l.byID[id]; found != nil {
		return *found, true
	}
	return Link{}, false
}

// All returns the links in the order of their ids.
func (l *Links) All() []Link {
	l.mu.RLock()
	all := make([]Link, 0, len(l.byID))
	for _, link := range l.byID {
		all = append(all, *link)
	}
	l.mu.RUnlock()
	slices.SortFunc(all, func(a, b Link) int { return strings.Compare(a.ID, b.ID) })
	return all
}

// Len is how many links there are.
func (l *Links) Len() int {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return len(l.byID)
}

// Usable reports whether both ends of a link are connected.
func (l *Links) Usable(link Link) bool {
	_, from := l.Routers.Get(link.From)
	_, to := l.Routers.Get(link.To)
	return from && to
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
			closeLink(r, said.ID, said.Iteration)
			continue
		}
		found = l.add(r, said) || found
	}
	if m.All {
		l.drop(l.those(r.ID, func(link *Link) bool { return link.From == r.ID && !listed[link.ID] }), "its router does not name it any more")
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
	case old != nil && (old.From != r.ID || old.To != said.Destination):
		offence, detail = control.Invented, fmt.Sprintf("it tells of a link that is between others: %.64q", said.ID)
		return false
	case old != nil && old.Iteration >= said.Iteration:
		return false
	// What others say that they have dialled is not this router's doing.
	case old == nil && l.dialled[r.ID] >= maxLinks:
		offence, detail = control.TooMuch, fmt.Sprintf("it tells of more than %d links that it has dialled", maxLinks)
		return false
	}
	link := &Link{
		ID: said.ID, From: r.ID, To: said.Destination, Protocol: said.Protocol, Address: said.DialAddress, Iteration: said.Iteration,
		Conns: clipConns(said.Conns.Conns), Since: l.Now(),
	}
	if old == nil {
		l.dialled[r.ID]++
		r.Say(slog.LevelInfo, "link up", "link", link.ID, "from", link.From, "to", link.To, "address", link.Address)
	}
	l.put(link)
	return true
}

func clipConns(conns []message.LinkConn) []message.LinkConn {
	conns = conns[:min(len(conns), maxConns)]
	return slices.DeleteFunc(slices.Clone(conns), func(c message.LinkConn) bool { return len(c.Type)+len(c.Local)+len(c.Remote) > maxText })
}

// put makes a link the one with its id, and tells the graph. The caller has the
// mutex.
func (l *Links) put(link *Link) {
	if old := l.byID[link.ID]; old == nil || old.Cost() != link.Cost() {
		l.Graph.SetLink(path.Link{ID: link.ID, A: link.From, B: link.To, Cost: link.Cost()})
	}
	l.byID[link.ID] = link
	for _, end := range []string{link.From, link.To} {
		if l.byRouter[end] == nil {
			l.byRouter[end] = map[string]*Link{}
		}
		l.byRouter[end][link.ID] = link
	}
}

// change replaces a link that a router is an end of.
func (l *Links) change(routerID, id string, with func(*Link)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	old := l.byID[id]
	if old == nil || old.From != routerID && old.To != routerID {
		return
	}
	link := *old
	with(&link)
	l.put(&link)
}

// onState hears that a link has more or fewer connections than before.
func (l *Links) onState(r *control.Router, _ *wire.Frame, m *message.LinkState) {
	l.change(r.ID, m.ID, func(link *Link) {
		if link.From == r.ID && link.Iteration == m.Iteration {
			link.Conns = clipConns(m.Conns.Conns)
		}
	})
}

// those returns the links of a router that are so.
func (l *Links) those(routerID string, so func(*Link) bool) []*Link {
	l.mu.RLock()
	defer l.mu.RUnlock()
	var found []*Link
	for _, link := range l.byRouter[routerID] {
		if so(link) {
			found = append(found, link)
		}
	}
	return found
}

// drop forgets links, unless they were made again meanwhile, and tells those
// whom it concerns.
func (l *Links) drop(links []*Link, reason string) {
	var ids []string
	l.mu.Lock()
	for _, link := range links {
		if now := l.byID[link.ID]; now == nil || now.Iteration != link.Iteration || !now.Since.Equal(link.Since) {
			continue
		}
		delete(l.byID, link.ID)
		if l.dialled[link.From]--; l.dialled[link.From] == 0 {
			delete(l.dialled, link.From)
		}
		for _, end := range []string{link.From, link.To} {
			if delete(l.byRouter[end], link.ID); len(l.byRouter[end]) == 0 {
				delete(l.byRouter, end)
			}
		}
		l.Graph.RemoveLink(link.ID)
		ids = append(ids, link.ID)
		l.Routers.Say(link.From, slog.LevelInfo, "link lost", "link", link.ID, "from", link.From, "to", link.To, "reason", reason)
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
	if link == nil || m.Iteration < link.Iteration {
		return
	}
	other, ok := link.Other(r.ID)
	if !ok {
		return
	}
	l.drop([]*Link{link}, "one end says so")
	if peer, connected := l.Routers.Get(other); connected && m.Subject == message.FaultLink {
		closeLink(peer, link.ID, link.Iteration)
	}
}

// closeLink has a router end a link.
func closeLink(r *control.Router, id string, iteration uint32) {
	_ = r.Send(control.Message(message.TypeFault, &message.Fault{Subject: message.FaultLink, ID: id, Iteration: iteration}))
}

// Removed takes a router out that is in the network no more: its links end,
// whether it likes it or not.
func (l *Links) Removed(routerID string) {
	links := l.those(routerID, func(*Link) bool { return true })
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
