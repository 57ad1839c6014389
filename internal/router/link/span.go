// Package link is the links from this router to others: which there should be,
// how they are dialled and accepted, which of two that are the same stays, and
// what controllers are told of them. It carries packets and knows nothing of
// circuits: what arrives is handed on, and what is offered is sent or refused.
//
// It must not import what knows circuits or controllers: it is told of peers,
// and asks and tells by the functions of its Options.
package link

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"slices"
	"strings"
	"sync"
	"time"

	"netkeep.internal/internal/pki"
	"netkeep.internal/internal/router/lookup"
	"netkeep.internal/internal/wire"
	"netkeep.internal/internal/wire/message"
)

// Options of Links. No function of them is called while a lock is held, and all
// may be called from several goroutines.
type Options struct {
	// ID is this router's.
	ID string
	// Dial connects to another router at an address like tls:host:port, and
	// makes sure that it is that router; see TLSDial.
	Dial func(ctx context.Context, address, peer string) (net.Conn, error)
	// Roots are those by whom the certificates of other routers must be issued.
	Roots func() *pki.Roots
	// Verify asks a controller whether a certificate is a router's.
	Verify func(ctx context.Context, routerID, fingerprint string) error
	// Report tells controllers of links that this router has dialled: of new
	// ones, or of all of them. It may lose what it is given while there is no
	// controller: Connected has all told again.
	Report func(links []message.Link, complete bool)
	// Fault tells controllers that a link is gone, or that it is going because
	// another takes its place. It reports whether they were told; if not, it is
	// called again every few seconds, and when Connected is.
	Fault func(f message.Fault) bool
	// State, if set, tells controllers that a link that this router has dialled
	// has other connections than before.
	State func(m message.LinkState)
	// Strands is how many connections are to carry the data of a link that this
	// router dials, beside one for acknowledgements; with less than two, one is
	// for everything.
	Strands int
	// Measured, if set, is called when there is a latency of one more link: until
	// controllers are told of it, they take the link for a slow one.
	Measured func()
	// Admitted, if set, is told of sockets that have shown whose they are.
	Admitted func(conn net.Conn)
	// Arrived takes what came over a link, and owns it. It must not block: nothing
	// else comes over that link while it runs.
	Arrived func(linkID string, p *wire.Packet)
	// Listeners are where others reach this router.
	Listeners []message.Listener
	// Dialers say whom it dials.
	Dialers []Dialer
	Now     func() time.Time
	Log     *slog.Logger
	// Complain, if set, reports whether the log may tell that somebody was turned
	// away: whoever it is must not be able to fill it.
	Complain func(conn net.Conn) bool
}

// Dialer is a way in which this router dials others.
type Dialer struct {
	// Binding is the network interface that it is bound to, if it is to one.
	Binding string
	// Groups are those of the listeners that it dials.
	Groups []string
}

// DefaultGroup is that of listeners and dialers of which nothing else is said.
const DefaultGroup = "default"

// Bounds on what there is at once. Whoever asks for more is refused.
const (
	maxLinks     = 10_000 // controllers take no more of a router
	maxPerPeer   = 32     // of those; two interfaces each give eight, and redials of them
	maxPeers     = 10_000
	maxListeners = 16 // of a peer
)

// Links is the links of a router.
type Links struct {
	opt  Options
	over context.Context // ends with Run
	end  context.CancelFunc
	wake chan struct{} // has an element while there is something to tell

	dialling chan struct{} // an element for each that is being dialled
	large    sync.Map      // of peers, who reads much from each

	mu     sync.RWMutex
	byID   map[string]*Link   // every link that can be sent over
	open   *lookup.Map[*Link] // the same, for every packet that is
	byKey  map[string]*Link   // of those that do the same, the one that stays
	byPeer map[string]map[*Link]struct{}
	peers  map[string]*peer
	halves map[string]*half // by the id of the connection
	// bundles are the links that others have dialled and may add connections to.
	bundles map[bundleKey]*Link
	gate    gate
	news    news
}

// New returns no links: they come once there are peers, and Run.
func New(opt Options) *Links {
	l := &Links{
		opt: opt, wake: make(chan struct{}, 1), dialling: make(chan struct{}, maxDialling),
		byID: map[string]*Link{}, open: lookup.New[*Link](), byKey: map[string]*Link{}, byPeer: map[string]map[*Link]struct{}{},
		peers: map[string]*peer{}, halves: map[string]*half{}, bundles: map[bundleKey]*Link{},
	}
	// A router with one listener and one dialer dials from where it listens:
	// its peers tell links apart by that.
	if len(opt.Listeners) == 1 && len(opt.Dialers) == 1 && opt.Dialers[0].Binding == "" {
		l.opt.Dialers = []Dialer{{Binding: opt.Listeners[0].LocalBinding, Groups: opt.Dialers[0].Groups}}
	}
	l.over, l.end = context.WithCancel(context.Background())
	l.gate.init()
	l.news.init()
	return l
}

// errOver is why links end with the router.
var errOver = errors.New("span: the router stops")

// Run tells controllers of links until ctx ends, and ends all links then.
func (l *Links) Run(ctx context.Context) {
	again := time.NewTicker(faultRepeat)
	defer again.Stop()
	for {
		select {
		case <-l.wake:
		case <-again.C:
		case <-ctx.Done():
			l.stop()
			return
		}
		l.tell()
	}
}

// stop ends all links, and makes sure that there are no more.
func (l *Links) stop() {
	l.mu.Lock()
	l.end()
	for _, p := range l.peers {
		for _, t := range p.targets {
			t.forget()
		}
	}
	clear(l.peers)
	all := make([]*Link, 0, len(l.byID)+len(l.halves))
	for _, k := range l.byID {
		all = append(all, k)
	}
	for _, h := range l.halves {
		all = append(all, h.link)
	}
	l.mu.Unlock()
	for _, k := range all {
		k.close(errOver)
	}
}

// Get returns the link with an id.
func (l *Links) Get(id string) (*Link, bool) { return l.open.Get(id) }

// All returns the links in the order of their ids.
func (l *Links) All() []*Link {
	l.mu.RLock()
	all := make([]*Link, 0, len(l.byID))
	for _, k := range l.byID {
		all = append(all, k)
	}
	l.mu.RUnlock()
	slices.SortFunc(all, func(a, b *Link) int { return strings.Compare(a.id, b.id) })
	return all
}

// errTold is why a link ends that a controller does not want.
var errTold = errors.New("span: a controller says that it is gone")

// Close ends a link because a controller says that it is gone, unless it has
// been dialled again since.
func (l *Links) Close(id string, iteration uint32) {
	if k, ok := l.Get(id); ok && iteration >= k.iteration {
		k.close(errTold)
	}
}
