package server

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"time"

	"netkeep.internal/internal/data/state"
	"netkeep.internal/internal/data/store"
	"netkeep.internal/internal/lang/fault"
	"netkeep.internal/internal/ops/health"
	"netkeep.internal/internal/ops/trace"
	"netkeep.internal/internal/web/rest"
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
	checks := health.Checks{
		{Name: "store", Fails: s.storeFails},
		{Name: "memory", Fails: s.memoryFails},
		{Name: "records", Fails: s.recordsFail},
		{Name: "certificate", Fails: s.certificateFails},
		{Name: "clock", Fails: s.clockFails},
	}
	if s.cfg.Shared() {
		checks = append(checks, health.Check{Name: "controllers", Fails: s.controllersFail, Minor: true})
	}
	if s.cfg.Router != "" {
		checks = append(checks, health.Check{Name: "router", Fails: s.routerFails, Minor: true})
	}
	if s.archive != nil {
		checks = append(checks, health.Check{Name: "archive", Fails: s.archive.Failing})
	}
	if len(s.outlets) > 0 {
		checks = append(checks, health.Check{Name: "outlets", Fails: s.outletsFail, Minor: true})
	}
	if s.cfg.Snapshots.Every > 0 {
		checks = append(checks, health.Check{Name: "snapshots", Fails: s.snapshots.Failing, Minor: true})
	}
	return checks
}

// storeFails tells how the last probe went. There is one a second, however
// many ask.
func (s *Server) storeFails() string {
	switch {
	case s.storeFailed.Load():
		return "the store has stopped, for want of disk space most likely"
	case s.storeDown.Load():
		return strings.TrimSuffix("the store does not answer: "+s.wants(), ": ")
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
	return outOfTime(cert.Leaf)
}

// outOfTime says why a server certificate is not good now, if it is not.
func outOfTime(leaf *x509.Certificate) string {
	now := time.Now()
	switch {
	case now.After(leaf.NotAfter):
		return "the server certificate expired at " + leaf.NotAfter.UTC().Format(time.RFC3339)
	case now.Before(leaf.NotBefore):
		return "the server certificate is not valid before " + leaf.NotBefore.UTC().Format(time.RFC3339)
	}
	return ""
}

// certificateFlaw says why a server certificate is not good now for those who
// come by these addresses, if it is not; empty ones are of nobody.
func certificateFlaw(leaf *x509.Certificate, addresses ...string) error {
	if reason := outOfTime(leaf); reason != "" {
		return errors.New(reason)
	}
	for _, address := range addresses {
		host, _, err := net.SplitHostPort(address)
		if err != nil || host == "" {
			continue
		}
		if err := leaf.VerifyHostname(host); err != nil {
			return fmt.Errorf("the server certificate is not made out to the advertised host %s: %w", host, err)
		}
	}
	return nil
}

// probeStore asks the store for something small and remembers whether it
// answered. That it does not any more is logged once, and so is that it does
// again.
func (s *Server) probeStore(ctx context.Context) error {
	probe, cancel := context.WithTimeout(ctx, probeTime)
	defer cancel()
	start, last := time.Now(), *s.heard.Load()
	rev, err := s.store.Last(probe)
	if ctx.Err() != nil {
		return err // we are stopping
	}
	s.reached() // what the last probe found, which memory has had time for
	if err == nil {
		s.found = found{rev, start}
		s.last.Store(&found{rev, start})
		s.reached()
	}
	switch was := s.storeDown.Swap(err != nil); {
	case err != nil && !was:
		s.log.Warn("the store does not answer; what is asked is answered from memory, for a while", "error", err)
	case err == nil && was:
		s.log.Info("the store answers again", "after", start.Sub(last).Truncate(time.Millisecond).String())
	}
	return err
}

// found is how far the store was at some time.
type found struct {
	rev store.Rev
	at  time.Time
}

// reached notes until when nothing is unknown, if memory has all that the store
// had.
func (s *Server) reached() {
	if at := s.found.at; s.state.Snapshot().Rev >= s.found.rev && at.After(*s.heard.Load()) {
		s.heard.Store(&at)
	}
}

// errCutOff is for those who are logged in to a controller that does not know
// what others have changed, who may not be any more.
var errCutOff = fault.New(fault.CodeUnavailable, "this controller has lost its store and does not know what was changed since; try again later, or ask another controller")

// cutOff reports whether a controller that shares its store with others has not
// heard from it for too long.
func (s *Server) cutOff() bool {
	grace := s.cfg.Store.Grace
	return s.cfg.Shared() && (time.Since(*s.heard.Load()) > grace || s.state.Lag() > grace)
}

// knowing is a gate that lets nobody in while the controller is cut off.
func (s *Server) knowing(gate rest.Gate) rest.Gate {
	return func(c *rest.Call) (rest.Caller, error) {
		if s.cutOff() {
			return nil, errCutOff
		}
		return gate(c)
	}
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
