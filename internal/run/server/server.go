// Package server is a whole controller: it opens the data directory, starts
// the store, the state and the APIs over it, serves them, and stops them in
// order. It is the only package that knows all the others.
package server

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"netkeep.internal/internal/auth/authn"
	"netkeep.internal/internal/data/backup"
	"netkeep.internal/internal/data/duty"
	"netkeep.internal/internal/data/keyring"
	"netkeep.internal/internal/data/state"
	"netkeep.internal/internal/data/store"
	"netkeep.internal/internal/data/store/etcdstore"
	"netkeep.internal/internal/fabric"
	"netkeep.internal/internal/fabric/herald"
	"netkeep.internal/internal/fabric/roster"
	"netkeep.internal/internal/fabric/whereabouts"
	"netkeep.internal/internal/ops/alert"
	"netkeep.internal/internal/ops/archive"
	"netkeep.internal/internal/ops/audit"
	"netkeep.internal/internal/ops/clock"
	"netkeep.internal/internal/ops/config"
	"netkeep.internal/internal/ops/limit"
	"netkeep.internal/internal/ops/metrics"
	"netkeep.internal/internal/ops/recent"
	"netkeep.internal/internal/ops/trace"
	"netkeep.internal/internal/pki"
	"netkeep.internal/internal/policy/grant"
	"netkeep.internal/internal/policy/validity"
	"netkeep.internal/internal/web/rest"
)

// sweepEvery is how often sessions are removed that are over.
const sweepEvery = 5 * time.Second

// Server is a running controller.
type Server struct {
	cfg       config.Config
	log       *slog.Logger
	dir       *dir
	store     store.Store
	snapshots *backup.Snapshots
	state     *state.State
	kept      *state.Kept // of memory as it was; nil if it is not kept
	recorder  *audit.Recorder
	attesting sync.Mutex // held by who compares keys with what the log was told of
	keys      *pki.Keystore
	sealer    *pki.Sealer
	handover  *pki.Handover // nil if the store is not shared
	peerLate  atomic.Bool   // keys were handed over, and the certificate for the others is still of those before
	served    *pki.Served
	own       *pki.Served // the certificate of the network, if another is served
	roster    *roster.Roster
	book      *whereabouts.Book // nil if there is no other controller
	duties    *duty.Duties
	archive   *archive.Archive // nil for none
	outlets   []outletJob
	receivers []*alert.Receiver
	clock     *clock.Clock // of what begins and ends, and of what is stored
	validity  *validity.Keeper
	fabric    *fabric.Fabric
	herald    *herald.Herald
	listener  net.Listener
	// management is the listener of the Management API; nil if it has none of
	// its own.
	management net.Listener
	// control is the listener of routers; nil if they use the first.
	control net.Listener
	// reserve is the listener of routers of a controller that is gone; nil for
	// none.
	reserve net.Listener
	inner   inner
	metrics net.Addr
	figures *metrics.Metrics
	day     *recent.Day
	tracer  *trace.Tracer // nil for none
	// connections are those of all listeners, and handshakes those of routers
	// that have just begun.
	connections limit.Connections
	handshakes  limit.Turns
	http        []*http.Server
	streams     *rest.Streams

	admin  authn.FirstAdmin
	closed []func() error // what to close, last opened last
	stop   context.CancelFunc
	jobs   sync.WaitGroup
	failed chan error

	storeDown atomic.Bool // by the last probe
	refused   atomic.Bool // whether connections were, by the last look
	// storeFailed is whether the store in this process cannot go on.
	storeFailed atomic.Bool
	found       found                     // by the last probe that was answered; its own
	heard       atomic.Pointer[time.Time] // until when memory has all that the store had
	last        atomic.Pointer[found]     // found, for others
	reports     reports                   // of the controllers of the network
	votes       atomic.Int64              // of those that keep the store, 0 if that is not known
	// The keys of tokens, what rests on keys of before, and who has which.
	tokenKeys     atomic.Pointer[[][]byte]
	sessionTokens *grant.Tokens
	left          atomic.Pointer[turnLeft]
	ring          atomic.Pointer[keyring.Ring]
	trusts        []string    // the CAs between members of the store, since the start
	keysRefused   string      // why a change of keys was not made, of one goroutine
	held          atomic.Bool // whether the store keeps a format of before for others
	differs       bool        // whether keys were found to differ, of the same
}

// Start opens everything and begins to serve. When it returns nil the
// controller answers requests.
func Start(ctx context.Context, cfg config.Config, log *slog.Logger) (_ *Server, err error) {
	s := &Server{
		cfg: cfg, log: log, clock: clock.New(time.Now), figures: metrics.New(time.Now), failed: make(chan error, 1),
		connections: limit.Connections{Max: cfg.Limits.Connections, Share: limit.Share(cfg.Limits.Share)},
		handshakes:  limit.Turns{Max: runtime.GOMAXPROCS(0), Queue: maxHandshakes},
	}
	defer func() {
		if err != nil {
			if s.fabric != nil { // it may serve by now
				_ = s.drain(ctx)
			}
			_ = s.close()
		}
	}()
	if err = Check(cfg); err != nil {
		return nil, err
	}
	// The ports first: a taken one is the commonest mistake, and a controller
	// that cannot serve should not touch anything.
	if err = s.listen(); err != nil {
		return nil, err
	}
	if err = s.openTracer(ctx); err != nil {
		return nil, err
	}
	if s.dir, err = openDir(cfg.Data); err != nil {
		return nil, err
	}
	s.onClose(s.dir.close)
	if err = s.dir.finished(); err != nil {
		return nil, err
	}
	if err = s.join(ctx); err != nil {
		return nil, err
	}
	if err = s.openData(ctx); err != nil {
		return nil, err
	}
	if err = s.openState(ctx); err != nil {
		return nil, err
	}
	hasher := authn.NewHasher()
	hasher.Queued = s.figures.Hashing
	if err = s.prepare(ctx, hasher); err != nil {
		return nil, err
	}
	if err = s.openRoster(ctx); err != nil {
		return nil, err
	}
	if err = s.settleKeys(ctx, s.roster.ID()); err != nil {
		return nil, err
	}
	s.takeKeys(ctx)
	if err = s.serve(hasher); err != nil {
		return nil, err
	}
	s.noteAddress()
	s.noteMonitoring()
	s.noteServed()
	if err = s.addAdmin(ctx, hasher); err != nil {
		_ = errors.Join(s.stopInner(), s.drain(ctx)) // which is served already
		return nil, err
	}
	return s, nil
}

// Fingerprint is by what people recognise the network's root CA.
func (s *Server) Fingerprint() string {
	sum := sha256.Sum256(s.keys.Root().Raw)
	return hex.EncodeToString(sum[:])
}

// watchStore notices when the store in this process cannot go on, for want of
// disk space say. What is known is answered from memory for as long as that is
// so: clients that only ask go on working. Once there is space the controller
// ends, since only a new process can open the store again.
func (s *Server) watchStore(ctx context.Context, every time.Duration) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	var failed error
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		err := s.probeStore(ctx)
		s.noteRefusing()
		switch {
		case errors.Is(err, etcdstore.ErrRemoved):
			s.fail(errRemoved)
			return
		case errors.Is(err, etcdstore.ErrOutdated):
			s.fail(errOutdated)
			return
		case failed != nil && s.dir.hasSpace():
			s.fail(fmt.Errorf("the store stopped, and can go on in a new process: %w", failed))
			return
		case failed == nil && errors.Is(err, store.ErrFailed):
			failed = err
			s.storeFailed.Store(true)
			s.log.Error("the store stopped; what is known is still answered, and nothing can be changed until there is space on the disk", "error", err)
		}
	}
}

// fail reports why the server stopped by itself; the first reason counts.
func (s *Server) fail(err error) {
	select {
	case s.failed <- err:
	default:
	}
}

// Keys returns the keystore.
func (s *Server) Keys() *pki.Keystore { return s.keys }

// Store returns the log that the model is kept in.
func (s *Server) Store() store.Store { return s.store }

// State returns the model.
func (s *Server) State() *state.State { return s.state }

// NewAdmin returns the first admin's credentials if this start made up a
// password for it; they are nowhere else.
func (s *Server) NewAdmin() (authn.FirstAdmin, bool) { return s.admin, s.admin.Password != "" }

// Failed delivers the error of a server that stopped by itself.
func (s *Server) Failed() <-chan error { return s.failed }

// Reload reads the server certificate again, and who signs.
func (s *Server) Reload() error {
	s.takeKeys(context.Background())
	return s.served.Reload()
}

func (s *Server) onClose(f func() error) { s.closed = append(s.closed, f) }

// close closes what was opened, the last first.
func (s *Server) close() error {
	if s.stop != nil {
		s.stop()
		s.jobs.Wait()
	}
	var err error
	for i := len(s.closed) - 1; i >= 0; i-- {
		err = errors.Join(err, s.closed[i]())
	}
	return err
}

// unwrapOp leaves out the address that the message already has.
func unwrapOp(err error) error {
	if op, ok := errors.AsType[*net.OpError](err); ok {
		return op.Err
	}
	return err
}
