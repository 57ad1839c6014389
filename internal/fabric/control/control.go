// Package control is where routers connect to this controller: it finds out
// who they are, keeps one channel to each, and hands what they say to the parts
// of the program that asked for it. It knows who is connected; what sessions,
// terminators and circuits are is for packages beside it, which register with
// it. It must not import rest or api.
package control

import (
	"crypto/tls"
	"crypto/x509"
	"log/slog"
	"maps"
	"net"
	"net/netip"
	"slices"
	"sync"
	"time"

	"netkeep.internal/internal/data/state"
	"netkeep.internal/internal/fabric/herald"
	"netkeep.internal/internal/model"
	"netkeep.internal/internal/ops/audit"
	"netkeep.internal/internal/ops/limit"
	"netkeep.internal/internal/wire"
	"netkeep.internal/internal/wire/channel"
	"netkeep.internal/internal/wire/message"
)

// Options of Routers.
type Options struct {
	State *state.State
	// Bundle is what the certificates of routers chain to at present.
	Bundle func() []*x509.Certificate
	// ID is how routers tell controllers apart. It must outlive restarts.
	ID string
	// Build is what this controller runs.
	Build model.RouterVersion
	// Kept is told of every connection that a router was let in with, so that
	// it need not give way to others.
	Kept func(net.Conn)
	// Misbehaved is told in a word of what routers do that none should, for
	// monitoring.
	Misbehaved func(reason string)
	// Recorder takes note of who connects, is lost, is refused or misbehaves.
	Recorder *audit.Recorder
	// Herald tells of identities that are connected to routers to those who look.
	Herald *herald.Herald
	// Several is whether there are other controllers, or may be.
	Several bool
	// Bearers is whether clients may come with access tokens.
	Bearers bool
	// Changed is told of every router that connects or leaves, or says something
	// else of itself; nobody is if it is nil.
	Changed func(routerID string)
	Now     func() time.Time
	Log     *slog.Logger
}

// Routers are the connected routers.
type Routers struct {
	opt      Options
	handlers map[int32]func(*Router, *wire.Frame)
	joined   []func(*Router)
	left     []func(*Router)
	conduct  conduct

	mu      sync.RWMutex
	byID    map[string]*Router
	silent  map[string]*Router              // second connections of these, that they have not used
	carried map[string]map[*Router]struct{} // routers by the identities connected to them
	unsure  map[string]string               // identities that were connected to a router that is lost, while somebody looks: by id, its id
	closed  bool
	// suspended is closed when routers may connect again; nil while they may.
	suspended chan struct{}
}

// capabilities is what this controller can do, and tells routers of both
// generations to do: sessions come over the control connection and session
// tokens are JWTs.
const capabilities = message.CanTerminatorV2 | message.CanOneSidedLinks | message.CanCircuitV2 | message.CanGroups | message.CanTokensAreJWTs

// can is what a router is told that this controller can do. That there is a data
// model, by which those of the first generation go then, it says as soon as there may
// be others: a router that learnt it with the second controller would end its process.
// Those that take access tokens, for which they look there for keys, are told in any
// case. What a router is told follows from what it runs and from settings, so that it
// hears the same as long as it runs; a controller that comes to others says it to all.
func (rs *Routers) can(r *Router) []byte {
	if rs.tells(r) {
		return []byte{capabilities | message.CanDataModel}
	}
	return []byte{capabilities}
}

// tells reports whether a router is told that there is a data model.
func (rs *Routers) tells(r *Router) bool { return rs.opt.Several || rs.opt.Bearers && r.early }

// New returns routers of whom none is connected.
func New(opt Options) *Routers {
	if opt.Changed == nil {
		opt.Changed = func(string) {}
	}
	rs := &Routers{
		opt: opt, handlers: map[int32]func(*Router, *wire.Frame){}, byID: map[string]*Router{}, silent: map[string]*Router{}, carried: map[string]map[*Router]struct{}{}, unsure: map[string]string{},
	}
	rs.conduct.init(opt.Now)
	return rs
}

// Handle has frames of a type taken by fn, which must not wait: while it runs,
// its router is not listened to. Handlers are registered before the first
// router connects.
func (rs *Routers) Handle(typ int32, fn func(r *Router, f *wire.Frame)) {
	if rs.handlers[typ] != nil {
		panic("control: two parts of the program take the same frames")
	}
	rs.handlers[typ] = fn
}

// On has messages of a type taken by fn, under the rules of Handle. A router
// that sends what is none loses its connection.
func On[T any](rs *Routers, typ int32, fn func(r *Router, f *wire.Frame, m *T)) {
	rs.Handle(typ, func(r *Router, f *wire.Frame) {
		m, err := message.Unmarshal[T](f.Body)
		if err != nil {
			r.fail(err)
			return
		}
		fn(r, f, m)
	})
}

// Joined has fn told of every router that connects, before anything that it
// says is heard.
func (rs *Routers) Joined(fn func(*Router)) { rs.joined = append(rs.joined, fn) }

// Left has fn told of every router whose connection is over. It may have a new
// one by then.
func (rs *Routers) Left(fn func(*Router)) { rs.left = append(rs.left, fn) }

// Serve takes the connections of a listener until it closes.
func (rs *Routers) Serve(l net.Listener, config *tls.Config) error {
	for {
		conn, err := l.Accept()
		if err != nil {
			return err
		}
		go rs.Take(tls.Server(conn, config))
	}
}

// Take makes a connection that of a router, or ends it. It returns when the
// connection is over.
func (rs *Routers) Take(conn *tls.Conn) {
	deadline := rs.opt.Now().Add(helloWait)
	serve, err := rs.admit(conn, deadline)
	if err == nil {
		rs.opt.Kept(conn)
		serve()
	} else {
		from, _ := netip.ParseAddrPort(conn.RemoteAddr().String())
		if rs.conduct.strange.Take(limit.At(from.Addr())) == 0 {
			rs.opt.Log.Warn("a router was not let in", "address", from.String(), "error", clip(err.Error()))
		}
		rs.noteRefused(from.String(), err)
		_ = channel.Refuse(conn, deadline, "refused: "+publicReason(err))
		_ = conn.Close()
	}
}

// Get returns a connected router.
func (rs *Routers) Get(id string) (*Router, bool) {
	rs.mu.RLock()
	defer rs.mu.RUnlock()
	r, ok := rs.byID[id]
	return r, ok
}

// All returns the connected routers.
func (rs *Routers) All() []*Router {
	rs.mu.RLock()
	defer rs.mu.RUnlock()
	all := make([]*Router, 0, len(rs.byID))
	for _, r := range rs.byID {
		all = append(all, r)
	}
	return all
}

// connections are all that routers have, those among them that they have not used.
func (rs *Routers) connections() []*Router {
	rs.mu.RLock()
	defer rs.mu.RUnlock()
	return append(slices.Collect(maps.Values(rs.byID)), slices.Collect(maps.Values(rs.silent))...)
}

// Connected returns what a connected router says of itself.
func (rs *Routers) Connected(id string) (*model.Presence, bool) {
	r, ok := rs.Get(id)
	if !ok {
		return nil, false
	}
	return r.Presence(), true
}

// Drop ends a router's connection, if it has one, unless it is here with this
// certificate.
func (rs *Routers) Drop(id, except string) {
	rs.mu.RLock()
	both := []*Router{rs.byID[id], rs.silent[id]}
	rs.mu.RUnlock()
	for _, r := range both {
		if r != nil && r.Fingerprint() != except {
			r.ch.Close(errShutOut)
		}
	}
}

// Close ends all connections and takes no more.
func (rs *Routers) Close() {
	rs.mu.Lock()
	rs.closed = true
	rs.mu.Unlock()
	for _, r := range rs.connections() {
		r.ch.Close(nil)
	}
}

// Suspend ends all connections and takes no more until Resume: somebody else may
// answer for this controller.
func (rs *Routers) Suspend() {
	rs.mu.Lock()
	if rs.suspended == nil {
		rs.suspended = make(chan struct{})
	}
	rs.mu.Unlock()
	for _, r := range rs.connections() {
		r.ch.Close(errSuspended)
	}
}

// Resume takes routers again.
func (rs *Routers) Resume() {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	if rs.suspended != nil {
		close(rs.suspended)
		rs.suspended = nil
	}
}

// suspendedWait is how long one that connects waits for a controller that is about
// to have its place again, instead of coming back later.
const suspendedWait = 2 * time.Second

// awaitResume waits while nobody may connect, but not for long.
func (rs *Routers) awaitResume() error {
	rs.mu.RLock()
	suspended := rs.suspended
	rs.mu.RUnlock()
	if suspended == nil {
		return nil
	}
	select {
	case <-suspended:
		return nil
	case <-time.After(suspendedWait):
		return errSuspended
	}
}

// register makes a router the one with its id. used says that it has shown that it
// uses the connection.
func (rs *Routers) register(r *Router, used bool) error {
	defer rs.opt.Changed(r.ID) // when the mutex is free
	rs.mu.Lock()
	defer rs.mu.Unlock()
	old := rs.byID[r.ID]
	switch {
	case rs.closed:
		return errStopping
	case rs.suspended != nil:
		return errSuspended
	case old != nil && !used && !r.continues(old):
		// One at a time, or a router could have as many as it likes.
		if other := rs.silent[r.ID]; other != nil {
			defer func() { go other.ch.Close(errReplaced) }()
		}
		rs.silent[r.ID] = r
		return errFormer
	}
	rs.listen(r)
	if old != nil {
		// The newer connection counts: the router itself knows best that the
		// old one is gone.
		defer func() { go old.ch.Close(errReplaced) }()
	}
	rs.byID[r.ID] = r
	r.entered.Store(true)
	return nil
}

// listen takes note that a connection is not one any more that says nothing. The
// caller holds the mutex.
func (rs *Routers) listen(r *Router) {
	if rs.silent[r.ID] == r {
		delete(rs.silent, r.ID)
	}
}

// forget takes note of a connection that is over, once.
func (rs *Routers) forget(r *Router, reason error) {
	rs.mu.Lock()
	rs.listen(r)
	if !r.entered.Load() || r.left {
		rs.mu.Unlock()
		return
	}
	r.left = true
	lost := rs.byID[r.ID] == r && !rs.closed
	if rs.byID[r.ID] == r {
		delete(rs.byID, r.ID)
	}
	rs.mu.Unlock()
	if lost {
		r.note(audit.RouterLost, r.Remote(), said(reason))
	}
	rs.opt.Changed(r.ID)
	rs.loses(r)
	r.Say(slog.LevelInfo, "router disconnected", "name", r.Name, "reason", reason)
	for _, fn := range rs.left {
		fn(r)
	}
}
