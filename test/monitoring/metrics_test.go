package monitoring_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"netkeep.internal/internal/data/store"
	"netkeep.internal/internal/ops/config"
	"netkeep.internal/internal/run/server"
	"netkeep.internal/test/servertest"
)

// TestHealth asks both listeners, anonymously.
func TestHealth(t *testing.T) {
	s := servertest.Start(t)
	for _, base := range []string{s.URL, beside(s, "")} {
		if status, text := get(t, s, base+"/health/live"); status != http.StatusOK || text != `{"status":"ok","checks":[]}` {
			t.Errorf("%s: live is %d: %s", base, status, text)
		}
		const ready = `{"status":"ok","checks":[{"name":"store","ok":true},{"name":"memory","ok":true},{"name":"records","ok":true},{"name":"certificate","ok":true},{"name":"clock","ok":true},{"name":"archive","ok":true}]}`
		if status, text := get(t, s, base+"/health/ready"); status != http.StatusOK || text != ready {
			t.Errorf("%s: ready is %d: %s", base, status, text)
		}
	}
	for line := range strings.Lines(strings.Join(s.Log(), "\n")) {
		if strings.Contains(line, "/health") {
			t.Errorf("a probe is logged: %s", line)
		}
	}
}

// TestClockBehind has something stored in the future, as a machine leaves it whose clock
// was set back since: the controller says so and is not ready.
func TestClockBehind(t *testing.T) {
	s := servertest.Start(t)
	const id = "of-tomorrow"
	op := store.Op{Key: "config-type/" + id, Value: []byte(`{"id":"` + id + `","name":"` + id + `"}`)}
	servertest.Eventually(t, soon, "a write of tomorrow", func() bool {
		mark, err := s.Store().Load(t.Context(), func(store.Record) error { return nil })
		if err != nil {
			t.Fatal(err)
		}
		head := store.Head{Time: time.Now().Add(24 * time.Hour), End: mark.End, Writes: []store.Write{{Author: store.Author{Kind: store.Program, Name: "test"}, Ops: 1}}}
		_, err = s.Store().Commit(t.Context(), mark.Head, head, []store.Op{op})
		return err == nil
	})
	servertest.Eventually(t, soon, "not ready", func() bool {
		status, text := get(t, s, s.URL+"/health/ready")
		return status == http.StatusServiceUnavailable && strings.Contains(text, `{"name":"clock","ok":false,"reason":"the clock of this machine is 2`) && strings.Contains(text, "behind what was last stored")
	})
}

// TestFailingSnapshots has snapshots taken onto a disk that is not there: a
// warning, with which the controller goes on to serve.
func TestFailingSnapshots(t *testing.T) {
	gone := filepath.Join(t.TempDir(), "gone")
	if err := os.Symlink("/nonexistent/disk", gone); err != nil {
		t.Fatal(err)
	}
	s, err := servertest.Open(t.TempDir(), func(c *config.Config) { c.Snapshots.Every, c.Snapshots.Dir = time.Hour, gone })
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { // not with Close: that it is logged is right
		if err := s.Stop(context.Background()); err != nil {
			t.Error(err)
		}
	})
	var status int
	var text string
	servertest.Eventually(t, soon, "a warning", func() bool {
		status, text = get(t, s, s.URL+"/health/ready")
		return strings.Contains(text, `"status":"warning"`)
	})
	if status != http.StatusOK || !strings.Contains(text, `{"name":"snapshots","ok":false,"reason":"the last scheduled snapshot failed at `) || strings.Contains(text, "disk") {
		t.Errorf("ready is %d: %s", status, text)
	}
	if got := s.Admin(t).Get("status").Want(http.StatusOK); got.At("data.health") != "warning" || got.At("data.lastSnapshot") != nil {
		t.Errorf("the status is %s", got.Raw)
	}
	servertest.Eventually(t, soon, "an entry of it", func() bool {
		entries := s.Admin(t).Get("audit-entries?filter=" + url.QueryEscape(`event = "snapshot-failed"`)).Want(http.StatusOK).List()
		return len(entries) > 0 && entries[0]["outcome"] == "failed" && entries[0]["reason"] != nil && entries[0]["actorName"] == "snapshots"
	})
	if !s.Logged("a scheduled snapshot failed; it is tried again") {
		t.Error("the log does not say it")
	}
	if _, figures := get(t, s, beside(s, "/metrics")); strings.Contains(figures, "netkeep_last_snapshot") || !strings.Contains(figures, "netkeep_ready 1") {
		t.Error("the metrics tell of a snapshot, or that the controller is not ready")
	}
}

// TestUnreadableRecord has a stored record that cannot be read. The controller
// is not ready until it is taken out.
func TestUnreadableRecord(t *testing.T) {
	s, err := servertest.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { // not with Close: that it is logged is right
		if err := s.Stop(context.Background()); err != nil {
			t.Error(err)
		}
	})
	admin := s.Admin(t)
	id := admin.Post("services", M{"name": "web", "encryptionRequired": true}).Want(http.StatusCreated).ID()
	op := store.Op{Key: "service/" + id, Value: []byte("{"), Prev: store.Any}
	if _, err := s.Store().Put(t.Context(), store.Head{}, []store.Op{op}); err != nil {
		t.Fatal(err)
	}
	var text string
	ready := func() bool {
		var status int
		status, text = get(t, s, s.URL+"/health/ready")
		return status == http.StatusOK
	}
	servertest.Eventually(t, soon, "not being ready", func() bool { return !ready() })
	if !strings.Contains(text, `{"name":"records","ok":false,"reason":"the stored record service/`+id+` cannot be read; run an integrity scan"}`) {
		t.Errorf("ready is %s", text)
	}
	if now := scrape(t, s); now["netkeep_unreadable_records"] != 1 || now["netkeep_ready"] != 0 {
		t.Errorf("%v records cannot be read and ready is %v", now["netkeep_unreadable_records"], now["netkeep_ready"])
	}
	admin.Post("database/fix-data-integrity", nil).Want(http.StatusAccepted)
	servertest.Eventually(t, time.Minute, "being ready again", ready)
	if now := scrape(t, s); now["netkeep_unreadable_records"] != 0 || now["netkeep_ready"] != 1 {
		t.Errorf("%v records cannot be read and ready is %v", now["netkeep_unreadable_records"], now["netkeep_ready"])
	}
}

// TestMetrics makes requests of known numbers and finds them counted.
func TestMetrics(t *testing.T) {
	s := servertest.Start(t)
	before := scrape(t, s)
	admin := s.Admin(t) // logs in
	for i := range 3 {
		admin.Post("config-types", M{"name": fmt.Sprint("type-", i), "schema": M{}}).Want(http.StatusCreated)
	}
	admin.Post("config-types", M{}).Fails(http.StatusBadRequest, "COULD_NOT_VALIDATE", "name")
	admin.Get("nothing-here").Want(http.StatusNotFound)
	nobody := s.Nobody(t)
	nobody.Post("authenticate?method=password", M{"username": servertest.Username, "password": "wrong"}).Want(http.StatusUnauthorized)
	nobody.Post("authenticate?method=magic", M{}).Want(http.StatusBadRequest)
	nobody.Get("/version").Want(http.StatusOK)
	var after map[string]float64
	servertest.Eventually(t, soon, "the last request being counted", func() bool {
		after = scrape(t, s)
		return after[`netkeep_requests_total{api="edge-client",operation="listVersion",status="2xx"}`] > 0
	})
	for series, want := range map[string]float64{
		`netkeep_requests_total{api="edge-management",operation="createConfigType",status="2xx"}`:    3,
		`netkeep_requests_total{api="edge-management",operation="createConfigType",status="4xx"}`:    1,
		`netkeep_request_duration_seconds_count{api="edge-management",operation="createConfigType"}`: 4,
		`netkeep_requests_total{api="edge-management",operation="unknown",status="4xx"}`:             1,
		`netkeep_requests_total{api="edge-management",operation="authenticate",status="2xx"}`:        1,
		`netkeep_requests_total{api="edge-client",operation="listVersion",status="2xx"}`:             1,
		`netkeep_logins_total{method="password",outcome="success"}`:                                  1,
		`netkeep_logins_total{method="password",outcome="denied"}`:                                   1,
		`netkeep_commits_total{lane="model"}`:                                                        3,
		`netkeep_commit_writes_sum{lane="model"}`:                                                    3,
		`netkeep_commit_duration_seconds_count{lane="model"}`:                                        3,
		`netkeep_commit_conflicts_total{lane="model"}`:                                               0,
		`netkeep_commit_failures_total{lane="model"}`:                                                0,
		`netkeep_api_sessions`:                      1,
		`netkeep_sessions`:                          0,
		`netkeep_password_hash_wait_seconds_count`:  2,
		`netkeep_password_hash_queue_length`:        0,
		`netkeep_commit_queue_length{lane="model"}`: 0,
	} {
		if got := after[series] - before[series]; got != want {
			t.Errorf("%s grew by %v, want %v", series, got, want)
		}
	}
	// The session, and the entry of its login, at once or later.
	if session := `netkeep_commits_total{lane="session"}`; after[session] <= before[session] {
		t.Errorf("%s has not grown", session)
	}
	if after["netkeep_ready"] != 1 || after["go_goroutines"] == 0 || after["process_open_fds"] == 0 {
		t.Errorf("ready %v, %v goroutines, %v files", after["netkeep_ready"], after["go_goroutines"], after["process_open_fds"])
	}
	for series := range after {
		if strings.Contains(series, "magic") {
			t.Errorf("a client made up the label in %s", series)
		}
	}
}

// TestFiguresOfTheDisk finds what an operator needs to see a disk fill up and snapshots
// stay away: how large the store is, what room is left, and when the last one was taken.
func TestFiguresOfTheDisk(t *testing.T) {
	s := servertest.Start(t)
	const last = "netkeep_last_snapshot_timestamp_seconds"
	before := scrape(t, s)
	if _, there := before[last]; there {
		t.Error("the time of a snapshot is told that there is not")
	}
	if size, free := before["netkeep_store_size_bytes"], before["netkeep_disk_free_bytes"]; size < 4096 || free < 1<<20 {
		t.Errorf("the store has %v bytes, and %v are left", size, free)
	}
	// Names of snapshots have the second, and nothing less.
	begun := float64(time.Now().Unix())
	s.Admin(t).Post("database/snapshot", nil).Want(http.StatusOK)
	if at := scrape(t, s)[last]; at < begun || at > float64(time.Now().Unix())+1 {
		t.Errorf("the last snapshot is of %v, and was begun at %v", at, begun)
	}
}

// TestFeedLag is over soon after a write.
func TestFeedLag(t *testing.T) {
	s := servertest.Start(t)
	s.Admin(t).Post("config-types", M{"name": "x", "schema": M{}}).Want(http.StatusCreated)
	servertest.Eventually(t, soon, "the feed repeating a write", func() bool { return scrape(t, s)["netkeep_feed_lag_seconds"] == 0 })
}

func TestProfiles(t *testing.T) {
	without := servertest.Start(t)
	with := servertest.Start(t, func(c *config.Config) { c.Metrics.Pprof = true })
	for s, want := range map[*servertest.Server]int{without: http.StatusNotFound, with: http.StatusOK} {
		for _, path := range []string{"/debug/pprof/", "/debug/pprof/heap", "/debug/pprof/cmdline", "/debug/pprof/symbol"} {
			if status, _ := get(t, s, beside(s, path)); status != want {
				t.Errorf("%s: status %d, want %d", path, status, want)
			}
		}
		if status, _ := get(t, s, s.URL+"/debug/pprof/"); status != http.StatusNotFound {
			t.Errorf("the API's address answers with status %d", status)
		}
	}
	_, err := servertest.Open(t.TempDir(), func(c *config.Config) { c.Metrics.Pprof, c.Metrics.Listen = true, "0.0.0.0:0" })
	if err == nil || !strings.Contains(err.Error(), "metrics.pprof needs metrics.listen to be a loopback address") {
		t.Errorf("profiles on every address: %v", err)
	}
}

// TestNoMetrics turns them off.
func TestNoMetrics(t *testing.T) {
	s := servertest.Start(t, func(c *config.Config) { c.Metrics.Listen = config.MetricsOff })
	if at := s.Metrics(); at != nil {
		t.Errorf("metrics are at %s", at)
	}
	s.Nobody(t).Get("/version").Want(http.StatusOK)
}

// TestTakenAddress has another process on the address. One that was asked for
// must be had, and the usual one need not.
func TestTakenAddress(t *testing.T) {
	other, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	taken := other.Addr().String()
	_, err = servertest.Open(t.TempDir(), func(c *config.Config) { c.Metrics.Listen = taken })
	if want := "listen on " + taken + " for metrics: bind: address already in use; choose another address with --metrics-listen"; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("asked for: %v, want %s", err, want)
	}
	usual, err := net.Listen("tcp", config.MetricsAddress)
	if err == nil { // if not, another program has it, which does as well
		defer usual.Close()
	}
	cfg := config.Default()
	cfg.Data, cfg.Listen, cfg.Admin.Password = t.TempDir(), "127.0.0.1:0", servertest.Password
	var log bytes.Buffer
	s, err := server.Start(t.Context(), cfg, slog.New(slog.NewTextHandler(&log, nil)))
	if err != nil {
		t.Fatalf("the usual address: %v", err)
	}
	defer func() {
		if err := s.Stop(t.Context()); err != nil {
			t.Error(err)
		}
		if n := strings.Count(log.String(), "level=WARN"); n != 1 || !strings.Contains(log.String(), "address=127.0.0.1:1281") {
			t.Errorf("%d warnings in:\n%s", n, log.String())
		}
	}()
	if s.Metrics() != nil {
		t.Errorf("metrics are at %s", s.Metrics())
	}
}
