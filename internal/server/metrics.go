package server

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"netkeep/internal/kind"
	"netkeep/internal/metrics"
)

// serveMetrics starts to answer monitoring on a listener of its own, if there
// is to be one.
func (s *Server) serveMetrics() error {
	if s.cfg.Metrics.Listen == "" {
		return nil
	}
	l, err := net.Listen("tcp", s.cfg.Metrics.Listen)
	if err != nil {
		return fmt.Errorf("listen on %s for metrics: %w; choose another address with --metrics-listen", s.cfg.Metrics.Listen, unwrapOp(err))
	}
	s.metrics = l.Addr()
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", metrics.Handler(metrics.Source{
		Snapshot: func() kind.Reader { return s.state.Snapshot() }, Inventory: s.keys.Inventory, Now: time.Now,
	}))
	srv := s.newHTTP(mux)
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

// Metrics is where monitoring may look; nil for nowhere.
func (s *Server) Metrics() net.Addr { return s.metrics }
