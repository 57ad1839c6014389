package server

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"

	"netkeep/internal/data/state"
	"netkeep/internal/ops/health"
	"netkeep/internal/ops/trace"
	"netkeep/internal/web/rest"
)

const (
	// maxLag is how long memory may be behind the store before others should
	// serve instead.
	maxLag = 10 * time.Second
	// probeTime is how long the store may take to answer a probe.
	probeTime = 3 * time.Second
	// flushTime is how long a stop waits for the collector of traces.
	flushTime = 3 * time.Second
)

// checks are what it takes to serve.
func (s *Server) checks() health.Checks {
	return health.Checks{
		{Name: "store", Fails: s.storeFails},
		{Name: "memory", Fails: s.memoryFails},
		{Name: "records", Fails: s.recordsFail},
		{Name: "certificate", Fails: s.certificateFails},
	}
}

// storeFails tells how the last probe went. There is one a second, however
// many ask.
func (s *Server) storeFails() string {
	if s.storeDown.Load() {
		return "the store does not answer"
	}
	return ""
}

func (s *Server) memoryFails() string {
	if lag := s.state.Lag(); lag > maxLag {
		return fmt.Sprintf("memory has been behind the store for %s", lag.Truncate(time.Second))
	}
	return ""
}

// recordsFail names a record that cannot be read: what memory lacks may be what
// forbids something.
func (s *Server) recordsFail() string {
	const most = 80 // bytes of a key, which anybody may have written
	n, one := s.state.Unreadable()
	if len(one) > most {
		one = strings.ToValidUTF8(one[:most], "") + "..."
	}
	switch n {
	case 0:
		return ""
	case 1:
		return "the stored record " + one + " cannot be read; run an integrity scan"
	}
	return fmt.Sprintf("%d stored records cannot be read, %s among them; run an integrity scan", n, one)
}

func (s *Server) certificateFails() string {
	cert, err := s.served.GetCertificate(nil) // which looks at the files now and then
	if err != nil {
		return "there is no server certificate"
	}
	leaf, now := cert.Leaf, time.Now()
	switch {
	case now.After(leaf.NotAfter):
		return "the server certificate expired at " + leaf.NotAfter.UTC().Format(time.RFC3339)
	case now.Before(leaf.NotBefore):
		return "the server certificate is not valid before " + leaf.NotBefore.UTC().Format(time.RFC3339)
	}
	return ""
}

// probeStore asks the store for something small and remembers whether it
// answered.
func (s *Server) probeStore(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, probeTime)
	defer cancel()
	_, _, err := s.store.Get(ctx, "-")
	s.storeDown.Store(err != nil)
	return err
}

// stored passes on what becomes of writes.
func (s *Server) stored(w state.Stored) {
	s.figures.Stored(w)
	if s.tracer == nil {
		return
	}
	for ctx := range w.Contexts() {
		s.tracer.Commit(ctx, w.Start, w.Took, w.Writes, w.Err)
	}
}

// openTracer starts to trace, if the environment says so.
func (s *Server) openTracer(ctx context.Context) (err error) {
	if s.tracer, err = trace.Open(ctx, s.log); s.tracer == nil {
		return err
	}
	s.onClose(func() error {
		ctx, cancel := context.WithTimeout(context.Background(), flushTime)
		defer cancel()
		// A collector that does not answer must not make a stop fail.
		if err := s.tracer.Close(ctx); err != nil {
			s.log.Warn("the last traces could not be sent", "error", err)
		}
		return nil
	})
	return nil
}

// watch has the requests of an API counted and traced.
func (s *Server) watch(a *rest.API) {
	a.Answered = s.figures.API(a.Name, func(yield func(string) bool) {
		for _, op := range a.Operations() {
			if !yield(op.Name) {
				return
			}
		}
	}, rest.Unknown)
	if s.tracer != nil {
		a.Trace = func(r *http.Request, op rest.Op) (context.Context, func(int)) {
			return s.tracer.Request(r, op.Name, a.Root+op.Path)
		}
	}
}
