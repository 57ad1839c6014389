package metrics_test

import (
	"context"
	"errors"
	"maps"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"

	"netkeep.internal/internal/data/state"
	"netkeep.internal/internal/data/store"
	"netkeep.internal/internal/data/store/storetest"
	"netkeep.internal/internal/lang/fault"
	"netkeep.internal/internal/lang/kind"
	"netkeep.internal/internal/model"
	"netkeep.internal/internal/ops/build"
	"netkeep.internal/internal/ops/metrics"
	"netkeep.internal/internal/pki"
)

// scrape returns what monitoring sees.
func scrape(t *testing.T, m *metrics.Metrics) string {
	t.Helper()
	w := httptest.NewRecorder()
	m.Handler().ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	if w.Code != 200 {
		t.Fatalf("status %d: %s", w.Code, w.Body)
	}
	return w.Body.String()
}

// wants fails the test for every line that is missing.
func wants(t *testing.T, got string, lines ...string) {
	t.Helper()
	for _, line := range lines {
		if !strings.Contains(got, "\n"+line+"\n") {
			t.Errorf("%s is missing", line)
		}
	}
	if t.Failed() {
		t.Log(regexp.MustCompile(`(?m)^(#|go_|process_).*\n`).ReplaceAllString(got, ""))
	}
}

// full returns figures with everything that a controller has.
func full(t *testing.T, m *metrics.Metrics) *state.State {
	t.Helper()
	st, err := state.Open(t.Context(), storetest.NewMemory(), model.All, state.Options{Stored: m.Stored})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(st.Close)
	m.Watch(metrics.Source{
		State: st, Inventory: func() []pki.Item { return nil }, Ready: func() bool { return false }, Now: time.Now,
		Build: build.Info{Version: "v1", Revision: "abc", Runtime: "go1"}, StoreSize: func() (int64, bool) { return 20480, true }, DiskFree: func() (int64, bool) { return 0, false },
		LastSnapshot: func() (int64, bool) { return 1769860800, true },
		Controllers:  func() (all, online int) { return 3, 2 }, Votes: func() (int64, bool) { return 3, true },
		StoreAge: func() time.Duration { return 1500 * time.Millisecond }, Refusing: func() bool { return true },
	})
	m.WatchValidity(maps.All(map[string]func() int{"grant": func() int { return 4 }}))
	m.WatchAudit(metrics.Audit{
		Archived: func() (int64, bool) { return 500, true }, ArchiveFailing: func() time.Duration { return time.Minute },
		Outlets: func(yield func(metrics.Outlet) bool) { yield(metrics.Outlet{Name: "http", Behind: 7}) },
	})
	m.WatchFabric(metrics.Fabric{
		State: st, Online: func() int { return 3 }, Counts: func() (links, circuits int) { return 5, 7 }, Moved: func() uint64 { return 2 },
		Latencies: func() []time.Duration { return []time.Duration{4e6, 1e6, 2e6, 3e6} },
	})
	return st
}

func TestRequests(t *testing.T) {
	m := metrics.New(time.Now)
	answered := m.API("edge-client", slices.Values([]string{"listServices", "detailService"}), "unknown")
	answered("listServices", 200, 3*time.Millisecond)
	answered("listServices", 201, 30*time.Millisecond)
	answered("listServices", 503, time.Minute)
	answered("unknown", 404, 0)
	answered("/an/id/that/is/no/operation", 404, 0)
	answered("unknown", 7000, 0)
	got := scrape(t, m)
	wants(t, got,
		`netkeep_requests_total{api="edge-client",operation="listServices",status="2xx"} 2`,
		`netkeep_requests_total{api="edge-client",operation="listServices",status="5xx"} 1`,
		`netkeep_requests_total{api="edge-client",operation="unknown",status="4xx"} 2`,
		`netkeep_requests_total{api="edge-client",operation="unknown",status="0xx"} 1`,
		`netkeep_request_duration_seconds_bucket{api="edge-client",operation="listServices",le="0.005"} 1`,
		`netkeep_request_duration_seconds_bucket{api="edge-client",operation="listServices",le="0.05"} 2`,
		`netkeep_request_duration_seconds_bucket{api="edge-client",operation="listServices",le="+Inf"} 3`,
	)
	if strings.Contains(got, "detailService") {
		t.Error("an operation is shown that was never used")
	}
	if n := testing.AllocsPerRun(100, func() { answered("listServices", 200, time.Millisecond) }); n != 0 {
		t.Errorf("counting a request allocates %v times", n)
	}
}

func TestLogins(t *testing.T) {
	m := metrics.New(time.Now)
	for _, err := range []error{
		nil, fault.New(fault.CodeAuth, ""), fault.Invalid("username", "is required", nil),
		fault.New(fault.CodeUnavailable, ""), context.DeadlineExceeded,
	} {
		m.Login("password", err)
	}
	wants(t, scrape(t, m),
		`netkeep_logins_total{method="password",outcome="success"} 1`,
		`netkeep_logins_total{method="password",outcome="denied"} 2`,
		`netkeep_logins_total{method="password",outcome="error"} 2`,
	)
}

func TestHashing(t *testing.T) {
	now := time.Unix(0, 0)
	m := metrics.New(func() time.Time { return now })
	first, second := m.Hashing(), m.Hashing()
	wants(t, scrape(t, m), `netkeep_password_hash_queue_length 2`)
	now = now.Add(300 * time.Millisecond)
	first()
	wants(t, scrape(t, m), `netkeep_password_hash_queue_length 1`, `netkeep_password_hash_wait_seconds_sum 0.3`)
	second()
	wants(t, scrape(t, m), `netkeep_password_hash_queue_length 0`, `netkeep_password_hash_wait_seconds_count 2`)
}

func TestCommits(t *testing.T) {
	m := metrics.New(time.Now)
	st := full(t, m)
	if err := st.Update(t.Context(), state.Program("test"), func(tx *state.Tx) error { return model.Seed(tx) }); err != nil {
		t.Fatal(err)
	}
	err := st.UpdateSessions(t.Context(), state.Program("test"), func(tx *state.Tx) error {
		return model.APISessions.Create(tx, &model.APISession{Meta: kind.Meta{ID: tx.NewSessionID()}, TokenHash: "x"})
	})
	if err != nil {
		t.Fatal(err)
	}
	m.Stored(state.Stored{Lane: kind.Model, Err: store.ErrConflict})
	m.Stored(state.Stored{Lane: kind.Session, Err: errors.New("no answer"), Took: 20 * time.Second})
	wants(t, scrape(t, m),
		`netkeep_commits_total{lane="model"} 1`, `netkeep_commits_total{lane="session"} 1`,
		`netkeep_commit_conflicts_total{lane="model"} 1`, `netkeep_commit_conflicts_total{lane="session"} 0`,
		`netkeep_commit_failures_total{lane="model"} 0`, `netkeep_commit_failures_total{lane="session"} 1`,
		`netkeep_commit_writes_sum{lane="model"} 1`, `netkeep_commit_writes_count{lane="session"} 1`,
		`netkeep_commit_duration_seconds_count{lane="model"} 2`, `netkeep_commit_duration_seconds_bucket{lane="session",le="10"} 1`,
		`netkeep_commit_queue_length{lane="model"} 0`, `netkeep_commit_queue_length{lane="session"} 0`,
		`netkeep_api_sessions 1`, `netkeep_sessions 0`, `netkeep_ready 0`, `netkeep_unreadable_records 0`,
		`netkeep_build_info{go="go1",revision="abc",version="v1"} 1`, `netkeep_store_size_bytes 20480`,
		`netkeep_controllers 3`, `netkeep_controllers_online 2`, `netkeep_store_votes 3`, `netkeep_store_age_seconds 1.5`, `netkeep_refuses_connections 1`,
		`netkeep_ending_within_day{kind="grant"} 4`,
	)
	if got := scrape(t, m); strings.Contains(got, "netkeep_disk_free_bytes") {
		t.Error("a figure is shown that nobody can tell")
	}
}

// TestLint has Prometheus judge names and helps.
func TestLint(t *testing.T) {
	m := metrics.New(time.Now)
	full(t, m)
	m.API("edge-client", slices.Values([]string{"x"}), "unknown")("x", 200, 0)
	m.Login("password", nil)
	problems, err := promlint.New(strings.NewReader(scrape(t, m))).Lint()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		if strings.HasPrefix(p.Metric, "netkeep_") {
			t.Errorf("%s: %s", p.Metric, p.Text)
		}
	}
}

// TestDocumented checks that operators are told of every figure, and of none
// that there is not.
func TestDocumented(t *testing.T) {
	m := metrics.New(time.Now)
	full(t, m)
	descs := make(chan *prometheus.Desc)
	go func() {
		m.Registry.Describe(descs)
		close(descs)
	}()
	exported := map[string]bool{}
	name := regexp.MustCompile(`fqName: "(netkeep_\w+)"`)
	for d := range descs {
		if found := name.FindStringSubmatch(d.String()); found != nil {
			exported[found[1]] = true
		}
	}
	text, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "operations.md"))
	if err != nil {
		t.Fatal(err)
	}
	told := map[string]bool{}
	for _, found := range regexp.MustCompile(`netkeep_\w+`).FindAllString(string(text), -1) {
		for _, suffix := range []string{"_bucket", "_count", "_sum"} { // the series of a histogram
			if base := strings.TrimSuffix(found, suffix); exported[base] {
				found = base
			}
		}
		told[found] = true
	}
	if diff := cmp.Diff(slices.Sorted(maps.Keys(exported)), slices.Sorted(maps.Keys(told))); diff != "" {
		t.Errorf("exported and documented metrics differ (-exported +documented):\n%s", diff)
	}
}

// BenchmarkRequest is what counting adds to every request.
func BenchmarkRequest(b *testing.B) {
	answered := metrics.New(time.Now).API("edge-client", slices.Values([]string{"listServices"}), "unknown")
	b.ReportAllocs()
	for b.Loop() {
		answered("listServices", 200, time.Millisecond)
	}
}
