package alert_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"netkeep.internal/internal/data/state"
	"netkeep.internal/internal/data/store/storetest"
	"netkeep.internal/internal/model"
	"netkeep.internal/internal/ops/alert"
	"netkeep.internal/internal/ops/audit"
	"netkeep.internal/internal/ops/egress"
	"netkeep.internal/internal/ops/outlet"
)

const secret = "correct-horse-battery-staple"

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func open(t *testing.T, memory *storetest.Memory, now func() time.Time) *state.State {
	t.Helper()
	s, err := state.Open(context.Background(), memory, model.All, state.Options{Journal: audit.Journal{}, Frozen: true, Now: now})
	must(t, err)
	t.Cleanup(s.Close)
	return s
}

// happen adds entries of an event, each of another target, in one write.
func happen(t *testing.T, s *state.State, e *audit.Event, targets ...string) {
	t.Helper()
	must(t, s.UpdateSessions(t.Context(), state.Program("test"), func(tx *state.Tx) error {
		for _, id := range targets {
			tx.Tell(audit.Entry(audit.Fact{Event: e, By: state.Program("test"), Target: audit.Target{Kind: "router", ID: id, Name: id}}, "here", tx.Now()))
		}
		return nil
	}))
}

// inbox is a receiver that keeps what it takes, in order.
type inbox struct {
	mu     sync.Mutex
	came   []alert.Alert
	answer func(a alert.Alert) int // the status
	before func(w http.ResponseWriter, r *http.Request) (answered bool)
	asked  int
}

func (in *inbox) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if in.before != nil && in.before(w, r) {
		return
	}
	in.mu.Lock()
	defer in.mu.Unlock()
	in.asked++
	body, ok := verify(r, secret)
	var a alert.Alert
	if !ok || json.Unmarshal(body, &a) != nil || r.Header.Get(alert.IDHeader) != a.ID || r.Header.Get("Content-Type") != "application/json" {
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	if in.answer != nil {
		if status := in.answer(a); status != http.StatusOK {
			w.WriteHeader(status)
			return
		}
	}
	in.came = append(in.came, a)
	fmt.Fprint(w, "thanks\x1b[2J\n")
}

// list is what came, as event and target.
func (in *inbox) list() (all []string) {
	in.mu.Lock()
	defer in.mu.Unlock()
	for _, a := range in.came {
		all = append(all, strings.TrimSpace(a.Event+" "+a.TargetName))
	}
	return all
}

func (in *inbox) count() int { return len(in.list()) }

func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !is(); {
		if time.Now().After(deadline) {
			t.Fatalf("%s: it did not happen", what)
		}
		<-time.After(time.Millisecond)
	}
}

// begin has a receiver sent alerts, until the test ends or what it returns is called.
func begin(t *testing.T, s *state.State, in *inbox, now func() time.Time, change ...func(*alert.Receiver)) (r *alert.Receiver, stop func()) {
	srv := httptest.NewServer(in)
	t.Cleanup(srv.Close)
	r = &alert.Receiver{
		Name: "ops", URL: srv.URL + "/secret/path", Secret: secret, On: alert.Usual(), Network: "net", ID: "alert-ops",
		State: s, Client: egress.New(egress.Options{}), Now: now, Log: slog.New(slog.DiscardHandler),
	}
	for _, f := range change {
		f(r)
	}
	_, err := r.Load(t.Context())
	must(t, err)
	f := &outlet.Follower{Name: "ops", Log: &audit.Log{State: s}, Outlet: r, At: r, Again: time.Millisecond, Now: now, Logger: slog.New(slog.DiscardHandler)}
	ctx, cancel := context.WithCancel(context.Background())
	ran := make(chan struct{})
	go func() { f.Run(ctx); close(ran) }()
	stop = sync.OnceFunc(func() { cancel(); <-ran })
	t.Cleanup(stop)
	return r, stop
}

// TestReceiver has alerts come signed, in order and once, what is older than the receiver
// not, and what is no alert neither; after a restart it goes on where it was.
func TestReceiver(t *testing.T) {
	s := open(t, storetest.NewMemory(), time.Now)
	happen(t, s, audit.RouterOffline, "before")
	in := new(inbox)
	r, stop := begin(t, s, in, time.Now)
	happen(t, s, audit.RouterOffline, "paris")
	happen(t, s, audit.RouterConnected, "paris")
	happen(t, s, audit.RouterOnline, "paris")
	happen(t, s, audit.RouterOnline, "paris") // the same as a moment ago
	happen(t, s, audit.SnapshotFailed, "last")
	want := []string{"router-offline paris", "router-online paris", "snapshot-failed last"}
	eventually(t, "all came", func() bool { return in.count() == len(want) })
	if got := in.list(); fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("%q came, want %q", got, want)
	}
	if a := in.came[0]; a.Text != "netkeep: router offline: router paris" || a.Network != "net" || !strings.HasPrefix(a.ID, "net-") || a.Controller != "here" {
		t.Errorf("an alert is %+v", a)
	}
	eventually(t, "it is noted", func() bool {
		rec, ok := model.AlertReceivers.Get(s.Snapshot(), r.ID)
		return ok && rec.Delivered == 3 && rec.DeliveredAt != nil && rec.Error == ""
	})
	if got := r.Counts(); got != (alert.Counts{Sent: 3, Repeated: 1}) {
		t.Errorf("counted: %+v", got)
	}
	stop()
	happen(t, s, audit.DiskLow, "meanwhile")
	other := new(inbox)
	begin(t, s, other, time.Now)
	eventually(t, "it goes on", func() bool { return other.count() == 1 })
	if got := other.list(); got[0] != "disk-low meanwhile" {
		t.Errorf("after a restart %q came", got)
	}
}

// TestReceiverFails has a receiver that is away, then does not understand one alert: what
// waits comes when it is back, once, and the one is given up alone.
func TestReceiverFails(t *testing.T) {
	s := open(t, storetest.NewMemory(), time.Now)
	in := &inbox{answer: func(alert.Alert) int { return http.StatusServiceUnavailable }}
	r, _ := begin(t, s, in, time.Now)
	happen(t, s, audit.RouterOffline, "a", "b", "bad", "c")
	record := func() *model.AlertReceiver {
		rec, _ := model.AlertReceivers.Get(s.Snapshot(), r.ID)
		return rec
	}
	eventually(t, "it is told", func() bool { return record().Error != "" })
	if rec := record(); !strings.Contains(rec.Error, "503") || strings.Contains(rec.Error, "secret") || rec.FailedAt == nil {
		t.Errorf("it says %+v", rec)
	}
	in.mu.Lock()
	tried := map[string]int{}
	in.answer = func(a alert.Alert) int {
		if tried[a.TargetName]++; a.TargetName == "bad" || a.TargetName == "b" && tried["b"] == 1 {
			return map[string]int{"bad": http.StatusBadRequest, "b": http.StatusBadGateway}[a.TargetName]
		}
		return http.StatusOK
	}
	in.mu.Unlock()
	eventually(t, "the others come", func() bool { return in.count() == 3 })
	if got := fmt.Sprint(in.list()); got != "[router-offline a router-offline b router-offline c]" {
		t.Errorf("%s came", got)
	}
	in.mu.Lock()
	if tried["bad"] != 3 || in.came[2].Dropped != 1 {
		t.Errorf("it was tried %d times, and of those before the last says %d", tried["bad"], in.came[2].Dropped)
	}
	in.mu.Unlock()
	eventually(t, "it is noted", func() bool { rec := record(); return rec.Error == "" && rec.Dropped == 1 && rec.Delivered == 3 })
}

// TestTooMany has more alerts than anybody reads, and some that nobody wants any more.
func TestTooMany(t *testing.T) {
	var mu sync.Mutex
	at := time.Now()
	now := func() time.Time { mu.Lock(); defer mu.Unlock(); return at }
	s := open(t, storetest.NewMemory(), now)
	in := &inbox{}
	r, stop := begin(t, s, in, now)
	var many []string
	for i := range 100 {
		many = append(many, fmt.Sprint("r", i))
	}
	happen(t, s, audit.RouterOffline, many...)
	eventually(t, "some come", func() bool { return r.Counts() == alert.Counts{Sent: 30, Dropped: 70} })
	mu.Lock()
	at = at.Add(time.Minute)
	mu.Unlock()
	happen(t, s, audit.RouterOffline, "next")
	eventually(t, "one more", func() bool { return in.count() == 31 })
	if a := in.came[30]; a.TargetName != "next" || a.Dropped != 70 {
		t.Errorf("the next is %+v", a)
	}
	stop()
	happen(t, s, audit.RouterOffline, "yesterday")
	mu.Lock()
	at = at.Add(25 * time.Hour)
	mu.Unlock()
	happen(t, s, audit.RouterOffline, "today")
	late := &inbox{answer: func(alert.Alert) int { return http.StatusOK }}
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		text, _ := io.ReadAll(req.Body)
		var a alert.Alert
		must(t, json.Unmarshal(text, &a))
		late.mu.Lock()
		defer late.mu.Unlock()
		late.came = append(late.came, a)
	}))
	defer srv.Close()
	r.URL = srv.URL
	must(t, r.Send(t.Context(), entries(t, s)))
	if got := late.list(); fmt.Sprint(got) != "[router-offline today]" {
		t.Errorf("%q came a day later", got)
	}
}

// entries are all of the log.
func entries(t *testing.T, s *state.State) (all []outlet.Entry) {
	t.Helper()
	log := &audit.Log{State: s}
	for line, err := range log.Read(t.Context(), 1, audit.Head(s.Snapshot()).Last) {
		must(t, err)
		rec, err := line.Entry()
		must(t, err)
		all = append(all, outlet.Entry{Record: rec})
	}
	return all
}

// TestTest sends one that somebody asked for, and says what came of it.
func TestTest(t *testing.T) {
	s := open(t, storetest.NewMemory(), time.Now)
	in := new(inbox)
	r, _ := begin(t, s, in, time.Now)
	if got := r.Test(t.Context(), "ann"); got.Err != nil || got.Answer != "thanks [2J" {
		t.Errorf("it says %+v", got)
	}
	if in.came[0].Event != alert.Test || in.came[0].Actor != "ann" {
		t.Errorf("%+v came", in.came[0])
	}
	r.Secret = "another-secret-than-theirs"
	if got := r.Test(t.Context(), "ann"); got.Err == nil || !strings.Contains(got.Err.Error(), "401") || strings.Contains(got.Err.Error(), "path") {
		t.Errorf("it says %+v", got)
	}
}

// TestOppositeIsNews has a router come and go within minutes: whatever was told last of
// it is what is so.
func TestOppositeIsNews(t *testing.T) {
	s, in := open(t, storetest.NewMemory(), time.Now), &inbox{}
	begin(t, s, in, time.Now)
	want := []string{}
	for _, e := range []*audit.Event{audit.RouterOffline, audit.RouterOnline, audit.RouterOffline, audit.RouterOffline, audit.RouterOnline, audit.RouterOnline} {
		happen(t, s, e, "edge")
		if now := e.Name + " edge"; len(want) == 0 || want[len(want)-1] != now { // or it is the same again
			want = append(want, now)
		}
	}
	eventually(t, "the last is told", func() bool { return in.count() >= len(want) })
	happen(t, s, audit.RouterOffline, "another")
	want = append(want, audit.RouterOffline.Name+" another")
	eventually(t, "what comes after is told", func() bool { return in.count() >= len(want) })
	if got := in.list(); strings.Join(got, ", ") != strings.Join(want, ", ") {
		t.Errorf("it was told %v, not %v", got, want)
	}
}
