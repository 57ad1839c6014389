// Package server is a whole controller: it opens the data directory, starts
// the store, the state and the APIs over it, serves them, and stops them in
// order. It is the only package that knows all the others.
package server

import (
	"context"
	"crypto"
	"crypto/sha256"
	"crypto/x509"
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
	"netkeep.internal/internal/auth/enroll"
	"netkeep.internal/internal/auth/people"
	"netkeep.internal/internal/data/backup"
	"netkeep.internal/internal/data/duty"
	"netkeep.internal/internal/data/keyring"
	"netkeep.internal/internal/data/state"
	"netkeep.internal/internal/data/store"
	"netkeep.internal/internal/data/store/etcdstore"
	"netkeep.internal/internal/fabric"
	"netkeep.internal/internal/fabric/herald"
	"netkeep.internal/internal/fabric/roster"
	"netkeep.internal/internal/fabric/seam"
	"netkeep.internal/internal/fabric/whereabouts"
	"netkeep.internal/internal/model"
	"netkeep.internal/internal/ops/archive"
	"netkeep.internal/internal/ops/audit"
	"netkeep.internal/internal/ops/build"
	"netkeep.internal/internal/ops/config"
	"netkeep.internal/internal/ops/egress"
	"netkeep.internal/internal/ops/limit"
	"netkeep.internal/internal/ops/metrics"
	"netkeep.internal/internal/ops/recent"
	"netkeep.internal/internal/ops/trace"
	"netkeep.internal/internal/pki"
	"netkeep.internal/internal/policy/access"
	"netkeep.internal/internal/policy/grant"
	"netkeep.internal/internal/policy/posture"
	"netkeep.internal/internal/web/api"
	"netkeep.internal/internal/web/api/client"
	fabricapi "netkeep.internal/internal/web/api/fabric"
	"netkeep.internal/internal/web/api/management"
	"netkeep.internal/internal/web/rest"
)

// sweepEvery is how often sessions are removed that are over.
const sweepEvery = 5 * time.Second

// How much there may be of everything at a time.
const (
	maxBodies   = 16 << 20 // bytes of request bodies
	maxAnswers  = 64 << 20 // bytes of answers that are being sent
	maxMoving   = 1000     // bodies that are being sent, and answers
	maxRequests = 1000     // requests in work
	// leastRate is how many bytes a second must come of a body that takes long.
	leastRate = 8 << 10
	// What one connection may have going on, and how much of what it sends
	// waits until it is wanted.
	maxStreams    = 100
	receiveBuffer = 64 << 10
	// streamPulse is how often a stream shows that it is there: often enough for
	// what lies between, which forgets connections that are still.
	streamPulse = 15 * time.Second
)

// Server is a running controller.
type Server struct {
	cfg       config.Config
	log       *slog.Logger
	dir       *dir
	store     store.Store
	snapshots *backup.Snapshots
	state     *state.State
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
	trusts        []string // the CAs between members of the store, since the start
	keysRefused   string   // why a change of keys was not made, of one goroutine
	held          bool     // whether the store keeps a format of before for others
	differs       bool     // whether keys were found to differ, of the same
}

// Start opens everything and begins to serve. When it returns nil the
// controller answers requests.
func Start(ctx context.Context, cfg config.Config, log *slog.Logger) (_ *Server, err error) {
	s := &Server{
		cfg: cfg, log: log, figures: metrics.New(time.Now), failed: make(chan error, 1),
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

// openData opens the store and the keys, which must be of one network, and
// brings the store to the format of this version.
func (s *Server) openData(ctx context.Context) error {
	if err := s.openStore(ctx); err != nil {
		return err
	}
	if err := s.catchUp(ctx); err != nil {
		return err
	}
	if err := s.checkOwner(ctx); err != nil {
		return err
	}
	if err := s.openKeys(); err != nil {
		return err
	}
	if err := s.openSnapshots(); err != nil {
		return err
	}
	return s.migrate(ctx)
}

// openState loads everything that is stored.
func (s *Server) openState(ctx context.Context) (err error) {
	now := time.Now()
	s.heard.Store(&now)
	opt := state.Options{Logger: s.log, Stored: s.stored, Outgrown: s.fail, Seal: s.sealer, Journal: audit.Journal{}}
	if len(s.cfg.Store.Endpoints) > 0 {
		opt.Patience = clusterTime
	}
	if s.state, err = state.Open(ctx, s.store, model.All, opt); err != nil {
		return err
	}
	s.onClose(func() error { s.state.Close(); return nil })
	s.recorder = audit.NewRecorder(s.state, time.Now)
	s.recorder.Counted = s.figures.Noted
	s.onClose(func() error { s.recorder.Close(); return nil })
	return nil
}

// newGrants returns the sessions to dial and host of a controller, whole and
// told of every change.
func newGrants(st *state.State, holders *authn.APISessions, tokens *grant.Tokens, log *slog.Logger) *grant.Grants {
	changes := new(access.LastChange)
	sessions := &grant.Grants{
		State: st, Usable: holders.Usable, Failures: new(posture.Failures), Changes: changes, Tokens: tokens, Now: time.Now, Log: log,
	}
	attend(st, changes, sessions)
	return sessions
}

// attend has those told of every change of memory who must know before the
// writer is answered: a client that hears of a change from whoever made it must
// find that there is something to reload, and its sessions must be among those
// to be looked at.
func attend(st *state.State, changes *access.LastChange, sessions *grant.Grants) {
	st.Attend(func(before, after *state.Snapshot, changed []state.Ref) {
		if before == nil {
			changes.Reset(after.Time)
			sessions.Applied(nil, after, nil, nil)
			return
		}
		affected := changes.Apply(before, after, changed)
		sessions.Applied(before, after, changed, affected)
	})
}

// openKeystore opens the keys of the network, and what they seal.
func (s *Server) openKeystore(opt pki.Options) (err error) {
	if s.keys, err = pki.Open(s.dir.sub(keysDir), opt); err != nil {
		return err
	}
	s.sealer = s.keys.Sealer()
	return nil
}

// openKeys opens the keystore and picks the certificate to serve.
func (s *Server) openKeys() (err error) {
	opt := pki.Options{Now: time.Now, Algorithm: pki.Algorithm(s.cfg.Keys.Algorithm), Log: s.log}
	if opt.DNSNames, opt.IPs, err = s.names(); err != nil {
		return err
	}
	if err = s.openKeystore(opt); err != nil {
		return err
	}
	if s.cfg.TLS.Cert != "" {
		if s.own, err = s.keys.Served(s.log); err != nil {
			return err
		}
		s.served, err = pki.Serve(s.cfg.TLS.Cert, s.cfg.TLS.Key, time.Now, s.log)
	} else {
		s.served, err = s.keys.Served(s.log)
	}
	if err != nil {
		return err
	}
	s.served.Flaw = s.certificateFlaw
	s.served.Loaded = func(leaf *x509.Certificate) {
		s.judgeCertificate(leaf)
		s.noteServed()
	}
	s.judgeCertificate(s.served.Current().Leaf)
	return nil
}

// serve puts the APIs together and starts to answer.
func (s *Server) serve(hasher *authn.Hasher) error {
	if err := s.useSecrets(); err != nil {
		return err
	}
	run, stop := context.WithCancel(context.Background())
	s.stop = stop
	if err := s.serveMetrics(); err != nil {
		return err
	}
	tokens := authn.NewTokens(egress.New(egress.Options{Strict: s.cfg.Egress.Strict}).Get, time.Now, s.log)
	tokens.People = people.NewRegister(s.state, time.Now)
	sessions := &authn.APISessions{State: s.state, Tokens: tokens, Keys: s.apiKeys, Timeout: s.cfg.Session.Timeout, Lifetime: s.cfg.Session.Lifetime, Most: s.cfg.Limits.APISessions, Now: time.Now, Log: s.log}
	grants := newGrants(s.state, sessions, s.sessionTokens, s.log)
	grants.CutOff = s.cutOff
	s.recorder.At(s.roster.ID())
	s.noteRestored()
	s.attest()
	s.jobs.Go(func() { s.recorder.Run(run) })
	s.jobs.Go(func() { grants.Changes.Wake(run) })
	s.divide(run, sessions, grants)
	s.jobs.Go(func() { sessions.Flush(run, min(90*time.Second, s.cfg.Session.Timeout/4)) })
	passwords := authn.NewPasswords(hasher, sessions, time.Now, s.cfg.Limits.Guesses)
	desk := &enroll.Desk{
		State: s.state, Signer: s.keys.Signer(), Bundle: s.keys.TrustBundle, Passwords: passwords, Tokens: tokens, Now: time.Now, Log: s.log,
		Recorder: s.recorder, Lifetimes: enroll.Lifetimes(s.cfg.Lifetimes), SessionCertificates: s.cfg.Limits.SessionCertificates,
	}
	shared := s.share(run)
	s.openFabric(sessions, grants, desk, shared)
	s.remember(run)
	s.jobs.Go(func() { s.fabric.Run(run) })
	s.jobs.Go(func() { s.roster.Run(run) })
	if s.book != nil {
		s.jobs.Go(func() { s.book.Follow(run) })
	}
	s.serveRouters(run)
	s.serveReserve(run)
	s.jobs.Go(func() { seam.DropLost(run, s.state, s.fabric) })
	s.jobs.Go(func() { s.renewCertificate(run, 12*time.Hour) })
	s.jobs.Go(func() { s.followKeys(run, time.Second) })
	s.jobs.Go(func() { s.turnSecrets(run, sessions) })
	s.jobs.Go(func() { s.watchStore(run, time.Second) })
	s.jobs.Go(func() { s.watchMembers(run, time.Second) })
	s.jobs.Go(func() { s.report(run) })
	scanner := s.newScanner()
	s.jobs.Go(func() { scanner.Run(run) })
	entries := &audit.Log{State: s.state}
	s.jobs.Go(func() { entries.Follow(run, keepEvery) })
	handler, err := s.newAPIs(shared, &api.Service{
		Sessions: sessions, Passwords: passwords,
		Desk:  desk,
		Certs: &authn.Certificates{Bundle: s.keys.TrustBundle, Now: time.Now, Log: s.log}, Tokens: tokens,
		Factors: &authn.Factors{State: s.state, Now: time.Now, Issuer: "netkeep"},
		Address: s.Address(), ManagementAddress: s.ManagementAddress(), Started: time.Now(), Bundle: s.keys.TrustBundle, Outdated: s.outdated,
		Issuer: &enroll.Issuer{Places: s.places, Roots: s.roots, Key: s.servedKey},
		Grants: grants, Routers: s.fabric, Choose: s.fabric.Hosts.Choose, Fabric: s.fabric.View(), ControllerID: s.fabric.ID(), Controllers: s.roster, Announce: s.cfg.Cluster.Announce, Integrity: scanner, Snapshots: s.snapshots, Cluster: cluster{s}, Audit: entries, Recorder: s.recorder, Herald: s.herald,
		Health: s.checks(), Certificates: s.inventory, StoreSize: s.storeSize, DiskFree: s.diskFree, LoggedIn: s.figures.Login, Day: s.day,
		Logins:      limit.Rate[limit.Party]{PerMinute: s.cfg.Limits.Logins, Now: time.Now},
		Enrollments: limit.Rate[limit.Party]{PerMinute: s.cfg.Limits.Enrollments, Now: time.Now},
	})
	if err != nil {
		return err
	}
	s.answer(handler)
	return s.startInner(desk)
}

// servedKey is the key of the certificate that is served now.
func (s *Server) servedKey() crypto.Signer { return s.served.Current().PrivateKey.(crypto.Signer) }

// newAPIs builds the APIs over the state.
func (s *Server) newAPIs(shared *rest.Shared, svc *api.Service) (*apis, error) {
	svc.Specs = &api.Specs{}
	share, t := limit.Share(s.cfg.Limits.Share), s.cfg.Timeouts
	bodies := &limit.Bodies{Bytes: maxBodies, Max: maxMoving, Share: share, Now: time.Now}
	answers := &limit.Bodies{Bytes: maxAnswers, Max: maxMoving, Share: share, Now: time.Now}
	requests := &limit.Slots{Max: maxRequests, Share: share}
	s.streams = &rest.Streams{
		Slots: limit.Slots{Max: s.cfg.Limits.Streams, Each: s.cfg.Limits.IdentityStreams},
		Pulse: streamPulse, Patience: t.Write, Began: s.figures.Stream,
	}
	svc.Streams, svc.Network = s.streams, func() string { return s.Fingerprint()[:16] }
	s.state.Attend(svc.Review)
	newAPI := func(name, title, doc, root string) *rest.API {
		return &rest.API{
			Name: name, Title: title, Doc: doc, Version: api.Version, Root: root, Groups: api.Groups,
			State: s.state, Shared: shared, Gate: s.knowing(svc.Gate), Log: s.log, Timeout: t.Request, Sending: t.Write, MaxBody: int64(s.cfg.Limits.Body),
			Bodies: bodies, Requests: requests, Answers: answers, Streams: s.streams,
			StrangerPace: limit.Pace{First: t.Body}, Pace: limit.Pace{First: t.Body, Least: leastRate, Last: t.Read},
		}
	}
	h := &apis{
		client:     newAPI("edge-client", "Edge Client API", "What clients need to enroll, to authenticate and to use services.", api.ClientRoot),
		management: newAPI("edge-management", "Edge Management API", "What those need who run the network.", api.ManagementRoot),
		fabric:     newAPI("fabric", "Fabric API", "What routers make between them, for those who run the network.", api.FabricRoot),
		instance:   state.NewID(), version: build.Version,
	}
	// A router may know the token of somebody who runs the network.
	h.management.Key, h.fabric.Key = rest.KeyOnly, rest.KeyOnly
	client.Mount(h.client, svc)
	management.Mount(h.management, svc)
	fabricapi.Mount(h.fabric, svc)
	for _, a := range []*rest.API{h.client, h.management, h.fabric} {
		if err := svc.Specs.Add(a, svc.Started); err != nil {
			return nil, err
		}
		s.watch(a)
	}
	h.console = s.newConsole(h)
	return h, nil
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
