package server

import (
	"bytes"
	"context"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-json-experiment/json"

	"netkeep.internal/internal/data/state"
	"netkeep.internal/internal/data/store"
	"netkeep.internal/internal/data/store/storetest"
	"netkeep.internal/internal/lang/fault"
	"netkeep.internal/internal/model"
	"netkeep.internal/internal/ops/clock"
	"netkeep.internal/internal/ops/health"
	"netkeep.internal/internal/pki"
	"netkeep.internal/internal/web/rest"
)

// watched is a server with nothing but what its health depends on. The clock
// of its certificate's maker is ahead by so much.
func watched(t *testing.T, ahead time.Duration) (*Server, *storetest.Faulty) {
	t.Helper()
	faults := storetest.NewFaulty(storetest.NewMemory())
	s := &Server{store: faults, log: slog.New(slog.DiscardHandler), clock: clock.New(time.Now), failed: make(chan error, 1)}
	keys, err := pki.Open(t.TempDir(), pki.Options{
		Now: func() time.Time { return time.Now().Add(ahead) }, Algorithm: "P-256", IPs: []net.IP{{127, 0, 0, 1}},
	})
	if err != nil {
		t.Fatal(err)
	}
	if s.served, err = keys.Served(s.log); err != nil {
		t.Fatal(err)
	}
	if s.state, err = state.Open(t.Context(), faults, model.All, state.Options{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.state.Close)
	now := time.Now()
	s.heard.Store(&now)
	return s, faults
}

// probe has the store probed every second.
func probe(t *testing.T, s *Server) {
	ctx, cancel := context.WithCancel(t.Context())
	s.jobs.Go(func() { s.watchStore(ctx, time.Second) })
	t.Cleanup(func() { cancel(); s.jobs.Wait() })
}

// ails fails the test unless /health/ready complains of just this.
func ails(t *testing.T, s *Server, want map[string]string) {
	t.Helper()
	synctest.Wait()
	w := httptest.NewRecorder()
	s.checks().Wrap(http.NotFoundHandler()).ServeHTTP(w, httptest.NewRequest(http.MethodGet, health.ReadyPath, nil))
	var a health.Answer
	if err := json.Unmarshal(w.Body.Bytes(), &a); err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, r := range a.Checks {
		if !r.OK {
			got[r.Name] = r.Reason
		}
	}
	if !maps.Equal(got, want) || len(a.Checks) != 5 || (w.Code == http.StatusOK) != (len(want) == 0) {
		t.Errorf("status %d with %v, want %v", w.Code, got, want)
	}
}

func TestReadyStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, faults := watched(t, 0)
		probe(t, s)
		<-time.After(1500 * time.Millisecond) // between two probes, as are all times here
		ails(t, s, nil)
		faults.FailNext(storetest.Last, storetest.ErrInjected)
		<-time.After(time.Second)
		ails(t, s, map[string]string{"store": "the store does not answer"})
		<-time.After(time.Second)
		ails(t, s, nil)
		faults.BlockNext(storetest.Last) // for good
		faults.FailNext(storetest.Last, storetest.ErrInjected)
		<-time.After(3 * time.Second)
		ails(t, s, nil) // it may still answer
		<-time.After(time.Second)
		ails(t, s, map[string]string{"store": "the store does not answer"})
		<-time.After(time.Second)
		ails(t, s, nil)
	})
}

// TestLostStore loses the store of several controllers for longer than the
// settings allow, and gets it back: both are said once, and in between nobody
// who is logged in is believed.
func TestLostStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, faults := watched(t, 0)
		var log bytes.Buffer
		s.log = slog.New(slog.NewTextHandler(&log, nil))
		s.cfg.Store.Endpoints, s.cfg.Store.Grace = []string{"a"}, 10*time.Second
		gate := s.knowing(func(*rest.Call) (rest.Caller, error) { return nil, nil })
		asked := func() error {
			synctest.Wait()
			_, err := gate(nil)
			return err
		}
		probe(t, s)
		<-time.After(1500 * time.Millisecond)
		for range 12 {
			faults.FailNext(storetest.Last, storetest.ErrInjected)
		}
		<-time.After(9 * time.Second)
		if err := asked(); err != nil {
			t.Errorf("after 9 seconds: %v", err)
		}
		<-time.After(2 * time.Second)
		if err := asked(); !fault.Is(err, fault.CodeUnavailable) {
			t.Errorf("after 11 seconds: %v", err)
		}
		alone, _ := watched(t, 0)
		alone.cfg.Store.Grace = s.cfg.Store.Grace
		alone.heard.Store(s.heard.Load())
		if _, err := alone.knowing(func(*rest.Call) (rest.Caller, error) { return nil, nil })(nil); err != nil {
			t.Errorf("a store that nobody shares: %v", err)
		}
		<-time.After(2 * time.Second)
		if err := asked(); err != nil {
			t.Errorf("when it is back: %v", err)
		}
		lines := strings.Split(strings.TrimSpace(log.String()), "\n")
		if len(lines) != 2 || !strings.Contains(lines[0], "the store does not answer") ||
			!strings.Contains(lines[1], "the store answers again") || !strings.Contains(lines[1], "after=13s") {
			t.Errorf("it logged\n%s", log.String())
		}
	})
}

func TestReadyMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, faults := watched(t, 0)
		gate := faults.HoldNext()
		if err := s.state.Update(t.Context(), state.Program("test"), func(tx *state.Tx) error { return model.Seed(tx) }); err != nil {
			t.Fatal(err)
		}
		<-time.After(maxLag)
		ails(t, s, nil)
		<-time.After(2 * time.Second)
		ails(t, s, map[string]string{"memory": "memory has been behind the store for 12s"})
		gate.Open()
		ails(t, s, nil)
	})
}

// TestReadyRecords has records that cannot be read, until they are repaired.
func TestReadyRecords(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _ := watched(t, 0)
		put := func(key, value string) {
			t.Helper()
			op := store.Op{Key: key, Value: []byte(value), Prev: store.Any}
			if _, err := s.store.Put(t.Context(), store.Head{}, []store.Op{op}); err != nil {
				t.Fatal(err)
			}
		}
		put("gadget/1", "of a newer version")
		ails(t, s, nil)
		put("service/a", "?")
		ails(t, s, map[string]string{"records": "the stored record service/a cannot be read; run an integrity scan"})
		put("service/b", "?")
		ails(t, s, map[string]string{"records": "2 stored records cannot be read, service/a among them; run an integrity scan"})
		put("service/a", `{"id":"a"}`)
		ails(t, s, map[string]string{"records": "the stored record service/b cannot be read; run an integrity scan"})
		put("service/b", `{"id":"b"}`)
		ails(t, s, nil)
		put("service/"+strings.Repeat("x", 5000), "?")
		ails(t, s, map[string]string{"records": "the stored record service/" + strings.Repeat("x", 72) + "... cannot be read; run an integrity scan"})
	})
}

func TestReadyCertificate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _ := watched(t, 48*time.Hour)
		leaf := s.served.Current().Leaf
		at := func(moment time.Time) string { return moment.UTC().Format(time.RFC3339) }
		ails(t, s, map[string]string{"certificate": "the server certificate is not valid before " + at(leaf.NotBefore)})
		<-time.After(48 * time.Hour)
		ails(t, s, nil)
		<-time.After(time.Until(leaf.NotAfter) + time.Second)
		ails(t, s, map[string]string{"certificate": "the server certificate expired at " + at(leaf.NotAfter)})
	})
}
