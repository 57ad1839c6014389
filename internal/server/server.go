// Package server is a whole controller: it opens the data directory, starts
// the store, the state and the APIs over it, serves them, and stops them in
// order. It is the only package that knows all the others.
package server

import (
	"context"
	"crypto"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"netkeep/internal/access"
	"netkeep/internal/api"
	"netkeep/internal/api/client"
	"netkeep/internal/api/management"
	"netkeep/internal/authn"
	"netkeep/internal/build"
	"netkeep/internal/config"
	"netkeep/internal/edge"
	"netkeep/internal/egress"
	"netkeep/internal/enroll"
	"netkeep/internal/metrics"
	"netkeep/internal/model"
	"netkeep/internal/pki"
	"netkeep/internal/posture"
	"netkeep/internal/rest"
	"netkeep/internal/session"
	"netkeep/internal/state"
	"netkeep/internal/store"
	"netkeep/internal/store/etcdstore"
	"netkeep/internal/trace"
)

// The times that a request may take.
const (
	requestTimeout = 10 * time.Second
	headerTimeout  = 5 * time.Second
	readTimeout    = 20 * time.Second
	writeTimeout   = 30 * time.Second
	idleTimeout    = 2 * time.Minute
	maxHeader      = 64 << 10
)

// Server is a running controller.
type Server struct {
	cfg      config.Config
	log      *slog.Logger
	dir      *dir
	store    store.Store
	state    *state.State
	keys     *pki.Keystore
	served   *pki.Served
	routers  edge.Routers
	access   *session.Sessions
	changes  access.LastChange
	listener net.Listener
	metrics  net.Addr
	figures  *metrics.Metrics
	tracer   *trace.Tracer // nil for none
	http     *http.Server

	admin  authn.FirstAdmin
	closed []func() error // what to close, last opened last
	stop   context.CancelFunc
	jobs   sync.WaitGroup
	failed chan error

	storeDown atomic.Bool // by the last probe
}

// Start opens everything and begins to serve. When it returns nil the
// controller answers requests.
func Start(ctx context.Context, cfg config.Config, routers edge.Routers, log *slog.Logger) (_ *Server, err error) {
	s := &Server{cfg: cfg, log: log, routers: routers, figures: metrics.New(time.Now), failed: make(chan error, 1)}
	defer func() {
		if err != nil {
			_ = s.close()
		}
	}()
	// The port first: a taken one is the commonest mistake, and a controller
	// that cannot serve should not touch anything.
	if s.listener, err = net.Listen("tcp", cfg.Listen); err != nil {
		return nil, fmt.Errorf("listen on %s: %w; is another controller running? choose another address with --listen", cfg.Listen, unwrapOp(err))
	}
	s.onClose(func() error {
		if err := s.listener.Close(); !errors.Is(err, net.ErrClosed) {
			return err
		}
		return nil
	})
	if err = s.openTracer(ctx); err != nil {
		return nil, err
	}
	if s.dir, err = openDir(cfg.Data); err != nil {
		return nil, err
	}
	s.onClose(s.dir.close)
	if err = s.openKeys(); err != nil {
		return nil, err
	}
	if s.store, err = openStore(ctx, cfg, s.dir, log); err != nil {
		return nil, err
	}
	s.onClose(s.store.Close)
	s.access = &session.Sessions{
		Reports: new(posture.Reports), Failures: new(posture.Failures), Changes: &s.changes, Now: time.Now, Log: log,
	}
	if s.state, err = state.Open(ctx, s.store, model.All, state.Options{Logger: log, Applied: s.applied, Stored: s.stored}); err != nil {
		return nil, err
	}
	s.onClose(func() error { s.state.Close(); return nil })
	hasher := authn.NewHasher()
	hasher.Queued = s.figures.Hashing
	if err = s.prepare(ctx, hasher); err != nil {
		return nil, err
	}
	return s, s.serve(hasher)
}

// applied passes every change of memory on to those who must know at once.
func (s *Server) applied(before, after *state.Snapshot, changed []state.Ref) {
	if before == nil {
		s.changes.Reset(after.Time)
		s.access.Applied(nil, after, nil, nil)
		return
	}
	affected := s.changes.Apply(before, after, changed)
	s.access.Applied(before, after, changed, affected)
	edge.DropLost(s.routers, before, after, changed)
}

// openKeys opens the keystore and picks the certificate to serve.
func (s *Server) openKeys() (err error) {
	host, _, err := net.SplitHostPort(s.Address())
	if err != nil {
		return fmt.Errorf("advertise address %s: %w", s.Address(), err)
	}
	opt := pki.Options{Now: time.Now, Algorithm: pki.Algorithm(s.cfg.Keys.Algorithm)}
	if ip := net.ParseIP(host); ip != nil {
		opt.IPs = []net.IP{ip}
	} else {
		opt.DNSNames = []string{host}
	}
	if s.keys, err = pki.Open(s.dir.sub("pki"), opt); err != nil {
		return err
	}
	if s.cfg.TLS.Cert != "" {
		s.served, err = pki.Serve(s.cfg.TLS.Cert, s.cfg.TLS.Key, time.Now, s.log)
	} else {
		s.served, err = s.keys.Served(s.log)
	}
	return err
}

// serve puts the APIs together and starts to answer.
func (s *Server) serve(hasher *authn.Hasher) error {
	key, err := s.keys.MACKey("api session tokens")
	if err != nil {
		return err
	}
	if s.access.Key, err = s.keys.MACKey("session tokens"); err != nil {
		return err
	}
	s.access.State = s.state
	run, stop := context.WithCancel(context.Background())
	s.stop = stop
	if err := s.serveMetrics(); err != nil {
		return err
	}
	tokens := authn.NewTokens(egress.New(egress.Options{Strict: s.cfg.Egress.Strict}).Get, time.Now, s.log)
	sessions := &authn.Sessions{State: s.state, Tokens: tokens, Key: key, Timeout: s.cfg.Session.Timeout, Now: time.Now, Log: s.log}
	s.jobs.Go(func() { sessions.Flush(run, min(90*time.Second, s.cfg.Session.Timeout/4)) })
	s.jobs.Go(func() { sessions.Sweep(run, 5*time.Second) })
	s.jobs.Go(func() { s.access.Enforce(run) })
	s.jobs.Go(func() { s.renewCertificate(run, 12*time.Hour) })
	s.jobs.Go(func() { s.watchStore(run, time.Second) })
	passwords := &authn.Passwords{Hasher: hasher, Sessions: sessions, Now: time.Now}
	handler, err := NewHandler(s.state, &api.Service{
		Sessions: sessions, Passwords: passwords,
		Desk: &enroll.Desk{
			State: s.state, Signer: s.keys.Signer(), Bundle: s.keys.TrustBundle(), Passwords: passwords, Now: time.Now,
			Lifetimes: enroll.Lifetimes(s.cfg.Lifetimes),
		},
		Certs: &authn.Certificates{Bundle: s.keys.TrustBundle(), Now: time.Now}, Tokens: tokens,
		Factors: &authn.Factors{State: s.state, Now: time.Now, Issuer: "netkeep"},
		Address: s.Address(), Started: time.Now(), Bundle: s.keys.TrustBundle(),
		Issuer: &enroll.Issuer{Address: s.Address(), Key: s.servedKey},
		Access: s.access, Routers: s.routers, LoggedIn: s.figures.Login,
	}, s.log, s.watch)
	if err != nil {
		return err
	}
	s.http = &http.Server{
		Handler: s.checks().Wrap(handler), ReadHeaderTimeout: headerTimeout, ReadTimeout: readTimeout, WriteTimeout: writeTimeout,
		IdleTimeout: idleTimeout, MaxHeaderBytes: maxHeader,
		ErrorLog: slog.NewLogLogger(s.log.Handler(), slog.LevelDebug),
	}
	tlsListener := tls.NewListener(s.listener, s.served.TLSConfig())
	s.jobs.Go(func() {
		if err := s.http.Serve(tlsListener); !errors.Is(err, http.ErrServerClosed) {
			s.fail(fmt.Errorf("serve: %w", err))
		}
	})
	return nil
}

// servedKey is the key of the certificate that is served now.
func (s *Server) servedKey() crypto.Signer { return s.served.Current().PrivateKey.(crypto.Signer) }

// NewHandler builds both APIs over a state. Each is shown to watch once it is
// whole.
func NewHandler(st *state.State, svc *api.Service, log *slog.Logger, watch func(*rest.API)) (http.Handler, error) {
	svc.Specs = &api.Specs{}
	newAPI := func(name, title, root string) *rest.API {
		return &rest.API{
			Name: name, Title: title, Version: api.Version, Root: root,
			State: st, Gate: svc.Gate, Log: log, Timeout: requestTimeout,
		}
	}
	h := &router{
		client:     newAPI("edge-client", "Edge Client API", api.ClientRoot),
		management: newAPI("edge-management", "Edge Management API", api.ManagementRoot),
		instance:   state.NewID(), version: build.Version,
	}
	client.Mount(h.client, svc)
	management.Mount(h.management, svc)
	for _, a := range []*rest.API{h.client, h.management} {
		if err := svc.Specs.Add(a, svc.Started); err != nil {
			return nil, err
		}
		watch(a)
	}
	return h, nil
}

// renewCertificate keeps our own server certificate from running out.
func (s *Server) renewCertificate(ctx context.Context, every time.Duration) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			if err := s.keys.RenewIfDue(); err != nil {
				s.log.Error("renewing the server certificate failed", "error", err)
			}
		}
	}
}

// watchStore notices when the store in this process cannot go on, for want of
// disk space say. Reads would still be answered from memory, so somebody must
// say that nothing is stored any more.
func (s *Server) watchStore(ctx context.Context, every time.Duration) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			if err := s.probeStore(ctx); errors.Is(err, etcdstore.ErrFailed) {
				s.fail(fmt.Errorf("the store stopped: %w", err))
				return
			}
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

// Address is where clients reach the controller.
func (s *Server) Address() string {
	if s.cfg.Advertise != "" {
		return s.cfg.Advertise
	}
	return s.listener.Addr().String()
}

// Keys returns the keystore.
func (s *Server) Keys() *pki.Keystore { return s.keys }

// State returns the model.
func (s *Server) State() *state.State { return s.state }

// NewAdmin returns the first admin's credentials if this start made up a
// password for it; they are nowhere else.
func (s *Server) NewAdmin() (authn.FirstAdmin, bool) { return s.admin, s.admin.Password != "" }

// Failed delivers the error of a server that stopped by itself.
func (s *Server) Failed() <-chan error { return s.failed }

// Reload reads the server certificate again.
func (s *Server) Reload() error { return s.served.Reload() }

// Stop lets running requests finish, then closes everything.
func (s *Server) Stop(ctx context.Context) error {
	err := s.http.Shutdown(ctx)
	if err != nil {
		err = errors.Join(fmt.Errorf("waiting for requests to finish: %w", err), s.http.Close())
	}
	return errors.Join(err, s.close())
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
