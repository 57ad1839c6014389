package server

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/pprof"
	"time"

	"netkeep.internal/internal/disk"
	"netkeep.internal/internal/ops/build"
	"netkeep.internal/internal/ops/config"
	"netkeep.internal/internal/ops/metrics"
)

// profileTime is how long a profile may be taken for.
const profileTime = 2 * time.Minute

// serveMetrics starts to answer monitoring on a listener of its own, if there
// is to be one.
func (s *Server) serveMetrics() error {
	// What is watched has to be there.
	s.openArchive()
	if err := s.openOutlets(); err != nil {
		return err
	}
	s.figures.Watch(metrics.Source{
		State: s.state, Inventory: s.inventory, Ready: s.checks().Ready, Now: time.Now, Build: build.Read(),
		StoreSize: s.storeSize, DiskFree: s.diskFree, LastSnapshot: s.lastSnapshot,
		Controllers: s.controllers, Votes: s.countVotes, StoreAge: func() time.Duration { return time.Since(*s.heard.Load()) }, Refusing: s.refusing,
	})
	s.figures.WatchAudit(s.auditFigures())
	l, err := s.listenForMetrics()
	if l == nil || err != nil {
		return err
	}
	s.metrics = l.Addr()
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", s.figures.Handler())
	srv := s.newHTTP(s.checks().Wrap(mux))
	if s.cfg.Metrics.Pprof {
		addProfiles(mux)
		srv.WriteTimeout = profileTime + s.cfg.Timeouts.Write
	}
	s.jobs.Go(func() {
		if err := srv.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			s.log.Error("serving metrics failed", "error", err)
		}
	})
	// Closed before the jobs are waited for.
	stop := s.stop
	s.stop = func() {
		stop()
		_ = srv.Close()
	}
	return nil
}

// storeSize is the size of the store, if it is ours.
func (s *Server) storeSize() (int64, bool) {
	if own, ok := s.store.(interface{ Size() (int64, bool) }); ok {
		return own.Size()
	}
	return 0, false
}

// diskFree is the space that is left for the data directory.
func (s *Server) diskFree() (int64, bool) { return disk.Free(s.cfg.Data) }

// lastSnapshot is when the last snapshot was begun that there is, in seconds
// since 1970.
func (s *Server) lastSnapshot() (int64, bool) {
	last, ok := s.snapshots.Last()
	return last.Time.Unix(), ok
}

// listenForMetrics returns the listener for monitoring; nil for none. That the
// usual port is taken is no reason not to run: nobody asked for it.
func (s *Server) listenForMetrics() (net.Listener, error) {
	at := metricsAddress(s.cfg)
	if at == "" {
		return nil, nil
	}
	l, err := net.Listen("tcp", at)
	switch {
	case err != nil && s.cfg.Metrics.Listen == config.MetricsAuto:
		s.log.Warn("metrics are not served; choose an address with --metrics-listen, or off", "address", at, "error", unwrapOp(err))
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("listen on %s for metrics: %w; choose another address with --metrics-listen", at, unwrapOp(err))
	}
	return l, nil
}

func addProfiles(mux *http.ServeMux) {
	mux.HandleFunc("GET /debug/pprof/", pprof.Index)
	mux.HandleFunc("GET /debug/pprof/cmdline", pprof.Cmdline)
	mux.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("GET /debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("GET /debug/pprof/trace", pprof.Trace)
}

// Metrics is where monitoring may look; nil for nowhere.
func (s *Server) Metrics() net.Addr { return s.metrics }
