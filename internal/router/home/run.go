package home

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"sync"
	"syscall"
	"time"

	"netkeep.internal/internal/ops/health"
	"netkeep.internal/internal/ops/metrics"
	"netkeep.internal/internal/router/node"
	"netkeep.internal/internal/router/uplink"
)

// Running is a router that has started.
type Running struct {
	Router *node.Router
	// Listening is where clients connect, Metrics where monitoring looks; nil
	// for nowhere.
	Listening, Metrics net.Addr

	station *Station
	end     context.CancelFunc
	parts   sync.WaitGroup
	done    chan struct{}
	err     error
}

// Start starts the router. It goes on until Stop.
func (s *Station) Start() (*Running, error) {
	listeners, err := s.listen()
	if err != nil {
		return nil, err
	}
	shut := func() {
		for _, l := range listeners {
			_ = l.Close()
		}
	}
	r, err := s.newRouter(listeners)
	if err != nil {
		shut()
		return nil, err
	}
	run := &Running{Router: r, Listening: listeners[0].Addr(), station: s, done: make(chan struct{})}
	ctx, end := context.WithCancel(context.Background())
	run.end = end
	if err := run.serveMetrics(ctx); err != nil {
		end()
		shut()
		return nil, err
	}
	run.parts.Go(func() { s.tend(ctx, r) })
	run.parts.Go(func() { s.resume(ctx, r) })
	go func() {
		run.err = r.Run(ctx)
		end()
		run.parts.Wait()
		close(run.done)
	}()
	return run, nil
}

// newRouter puts the router together.
func (s *Station) newRouter(listeners []net.Listener) (*node.Router, error) {
	controllers, serverName := s.papers.Controllers, ""
	if in := s.opt.Inside; in != nil {
		controllers, serverName = in.Controllers, in.ServerName
	}
	edge := listeners[0].Addr()
	link := listeners[len(listeners)-1].Addr()
	return node.New(node.Options{
		ID: s.papers.ID, Controllers: controllers, ServerName: serverName,
		Known: s.known(controllers), Pinned: s.opt.Inside != nil, Listed: func(list []uplink.Controller) { s.keepList(controllers, list) },
		Papers: s.current, Calling: s.calling, Listeners: listeners,
		EdgeAddresses: s.settings.addresses(edge, true), LinkAddresses: s.settings.addresses(link, len(listeners) == 1),
		LinkGroups: s.settings.LinkGroups,
		Version:    uplink.Version(s.opt.Version, s.opt.Revision, s.opt.Built),
		Now:        s.opt.Now, Log: s.opt.Log,
	})
}

// listen opens the router's addresses.
func (s *Station) listen() (all []net.Listener, err error) {
	if in := s.opt.Inside; in != nil {
		return []net.Listener{in.Listener}, nil
	}
	for _, at := range []string{s.settings.Listen, s.settings.LinkListen} {
		if at == "" {
			continue
		}
		l, err := net.Listen("tcp", at)
		if err != nil {
			for _, open := range all {
				_ = open.Close()
			}
			return nil, s.cannotListen(at, err)
		}
		all = append(all, l)
	}
	return all, nil
}

// cannotListen says what to do about an address.
func (s *Station) cannotListen(at string, err error) error {
	what := "choose another address"
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		what = "another program has it, maybe a copy of this router: stop that, or choose another address"
	case errors.Is(err, syscall.EACCES):
		what = "ports below 1024 need a right of their own: choose another, or give the program cap_net_bind_service"
	}
	if op := (*net.OpError)(nil); errors.As(err, &op) {
		err = op.Err
	}
	return fmt.Errorf("listen on %s: %w; %s in %s", at, err, what, s.path(settingsFile))
}

// Done is closed when the router has stopped.
func (r *Running) Done() <-chan struct{} { return r.done }

// Err is why it stopped by itself; nil if it did not.
func (r *Running) Err() error {
	<-r.done
	return r.err
}

// quietTime is how long the controller may take to note that we stop.
const quietTime = 3 * time.Second

// Stop ends the router, when its circuits have ended or the time for that is
// over. While it waits, the controller is asked to end no new circuits here.
func (r *Running) Stop(ctx context.Context) error {
	r.drain(ctx)
	r.end()
	return r.Err()
}

func (r *Running) drain(ctx context.Context) {
	s := r.station
	if r.Router.Figures().Circuits == 0 || s.settings.Drain == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, s.settings.Drain)
	defer cancel()
	if r.Router.Status().Connected {
		s.quiet(ctx, r.Router)
	}
	s.opt.Log.Info("waiting for circuits to end", "circuits", r.Router.Figures().Circuits, "at_most", s.settings.Drain.String())
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for r.Router.Figures().Circuits > 0 {
		select {
		case <-tick.C:
		case <-r.done:
			return
		case <-ctx.Done():
			return
		}
	}
}

// quiet asks to be left alone, and notes that it was us: whoever else asked for
// it must take it back.
func (s *Station) quiet(ctx context.Context, r *node.Router) {
	ctx, cancel := context.WithTimeout(ctx, quietTime)
	defer cancel()
	err := os.WriteFile(s.path(quietFile), nil, 0o600)
	if err == nil {
		err = r.Controller().Quiesce(ctx, true)
	}
	if err != nil {
		s.opt.Log.Warn("the controller was not told that the router stops", "error", err)
	}
}

// resume takes back that we asked to be left alone, as soon as we are connected.
func (s *Station) resume(ctx context.Context, r *node.Router) {
	if _, err := os.Stat(s.path(quietFile)); err != nil {
		return
	}
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for {
		if r.Status().Connected && r.Controller().Quiesce(ctx, false) == nil {
			if err := os.Remove(s.path(quietFile)); err != nil && isThere(err) {
				s.opt.Log.Warn("a note of the last stop could not be removed", "error", err)
			}
			return
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// checks are what it takes to carry something.
func (r *Running) checks() health.Checks {
	return health.Checks{
		{Name: "controller", Fails: func() string {
			if r.Router.Status().Connected {
				return ""
			}
			return "there is no connection to the controller, nor to any other"
		}},
		{Name: "certificate", Fails: func() string {
			if s := r.station; s.opt.Now().After(s.expires()) {
				return "the router's certificate has expired"
			}
			return ""
		}},
	}
}

// Times of requests of monitoring.
const (
	headerTime = 5 * time.Second
	answerTime = 10 * time.Second
)

// serveMetrics answers monitoring, if it is to. That the usual port is taken is
// no reason not to run: nobody asked for it.
func (r *Running) serveMetrics(ctx context.Context) error {
	s := r.station
	at := s.settings.Metrics
	switch at {
	case MetricsOff:
		return nil
	case MetricsAuto:
		at = MetricsAddress
	}
	l, err := net.Listen("tcp", at)
	switch {
	case err != nil && s.settings.Metrics == MetricsAuto:
		s.opt.Log.Warn("metrics are not served; choose an address with metricsListen, or off", "address", at, "error", err)
		return nil
	case err != nil:
		return s.cannotListen(at, err)
	}
	r.Metrics = l.Addr()
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", metrics.Router(r.Figures))
	srv := &http.Server{Handler: r.checks().Wrap(mux), ReadHeaderTimeout: headerTime, ReadTimeout: headerTime, WriteTimeout: answerTime}
	context.AfterFunc(ctx, func() { _ = srv.Close() })
	r.parts.Go(func() {
		if err := srv.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			s.opt.Log.Error("serving metrics failed", "error", err)
		}
	})
	return nil
}

// Figures are what monitoring sees.
func (r *Running) Figures() metrics.RouterFigures {
	f := r.Router.Figures()
	controllers, connected := r.Router.Controller().Statuses(), 0
	for _, s := range controllers {
		if s.Connected {
			connected++
		}
	}
	return metrics.RouterFigures{
		Controllers: len(controllers), ControllersConnected: connected,
		Connected: r.Router.Status().Connected, Ready: r.checks().Ready(), Remaining: r.station.expires().Sub(r.station.opt.Now()),
		Clients: f.Clients, Terminators: f.Terminators, Circuits: f.Circuits, Links: f.Links, Sessions: f.Sessions,
		Entered: f.Entered, Left: f.Left, Lost: f.Lost,
	}
}
