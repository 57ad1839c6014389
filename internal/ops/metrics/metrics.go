// Package metrics is what monitoring sees of a controller, in the form that
// Prometheus reads. Others tell it what happens, by functions that they are
// given, and the rest it reads from snapshots when it is asked. Labels are
// names that the program knows, and of a bounded number of services theirs;
// never ids. It is the only package that knows
// Prometheus and must not import rest, authn or api.
package metrics

import (
	"errors"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"netkeep.internal/internal/data/state"
	"netkeep.internal/internal/data/store"
	"netkeep.internal/internal/lang/fault"
	"netkeep.internal/internal/lang/kind"
)

// Metrics is the figures of one controller.
type Metrics struct {
	// Registry has all of them.
	Registry *prometheus.Registry

	now      func() time.Time
	requests *prometheus.CounterVec
	duration *prometheus.HistogramVec
	logins   *prometheus.CounterVec
	noted    *prometheus.CounterVec
	streams  *prometheus.GaugeVec
	ended    *prometheus.CounterVec // streams that were
	lanes    [2]laneMetrics         // by kind.Lane
	queued   prometheus.Gauge
	waited   prometheus.Histogram
	dialled  prometheus.Histogram   // circuits that were made
	failed   *prometheus.CounterVec // those that were not
	offences *prometheus.CounterVec // what routers did that none should
	posture  *prometheus.CounterVec
	carried  carried
}

// laneMetrics is what is counted of the commits of one lane.
type laneMetrics struct {
	stored, conflicts, failures prometheus.Counter
	writes, took                prometheus.Observer
}

// The bounds of histograms: of requests and commits in seconds, of waits for a
// processor in seconds, of writes that share a commit.
var (
	durations = []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 10}
	waits     = []float64{.001, .01, .05, .1, .25, .5, 1, 2.5, 5, 10}
	sizes     = []float64{1, 2, 4, 8, 16, 32, 64}
)

// laneNames are the lanes in labels.
var laneNames = [2]string{kind.Model: "model", kind.Session: "session"}

// New returns figures that are all zero.
func New(now func() time.Time) *Metrics {
	m := &Metrics{
		Registry: prometheus.NewRegistry(), now: now,
		requests: counters("netkeep_requests_total", "Requests by API, operation and class of status.", "api", "operation", "status"),
		duration: histograms("netkeep_request_duration_seconds", "How long requests took, by API and operation.", durations, "api", "operation"),
		logins:   counters("netkeep_logins_total", "Attempts to authenticate by method and outcome: success, denied, or error if it could not be told.", "method", "outcome"),
		noted:    counters("netkeep_audit_events_total", "What happened that is no change, by event and by what became of it: recorded if it has an entry in the audit log, joined if it is counted in that of others which are alike, crowded if it is only counted since there were too many.", "event", "result"),
		streams: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "netkeep_streams", Help: "Streams of events that are open, by operation.",
		}, []string{"operation"}),
		ended: counters("netkeep_streams_ended_total", "Streams of events that ended, by operation and by why: left if the client closed it, slow if it did not read, session if it may not go on, server if the controller stopped, source if there was no more.", "operation", "reason"),
		queued: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "netkeep_password_hash_queue_length", Help: "Passwords that wait for their turn to be hashed.",
		}),
		waited: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "netkeep_password_hash_wait_seconds", Help: "How long passwords waited for their turn to be hashed.", Buckets: waits,
		}),
		dialled: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "netkeep_dial_duration_seconds", Help: "How long it took to make circuits; its count is how many were made.", Buckets: durations,
		}),
		failed:   counters("netkeep_dial_failures_total", "Circuits that were not made, by reason.", "reason"),
		posture:  counters("netkeep_posture_failures_total", "Posture checks that a device failed when it asked for a service, by type and by mode of the check: enforce if that refused it, report if it only would have.", "mode", "type"),
		offences: counters("netkeep_router_misbehaviour_total", "What routers did that none should, by reason; the log names the router.", "reason"),
	}
	m.Registry.MustRegister(
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		m.requests, m.duration, m.logins, m.noted, m.streams, m.ended, m.queued, m.waited, m.posture,
	)
	m.addLanes()
	return m
}

// addLanes adds what is counted of commits.
func (m *Metrics) addLanes() {
	stored := counters("netkeep_commits_total", "Commits that the store took, by lane.", "lane")
	conflicts := counters("netkeep_commit_conflicts_total", "Commits that lost to another controller and were tried again, by lane.", "lane")
	failures := counters("netkeep_commit_failures_total", "Commits that the store did not take or did not answer, by lane.", "lane")
	writes := histograms("netkeep_commit_writes", "How many writes shared a commit, by lane.", sizes, "lane")
	took := histograms("netkeep_commit_duration_seconds", "How long the store took for a commit, by lane.", durations, "lane")
	m.Registry.MustRegister(stored, conflicts, failures, writes, took)
	for lane, name := range laneNames {
		m.lanes[lane] = laneMetrics{
			stored: stored.WithLabelValues(name), conflicts: conflicts.WithLabelValues(name), failures: failures.WithLabelValues(name),
			writes: writes.WithLabelValues(name), took: took.WithLabelValues(name),
		}
	}
}

func counters(name, help string, labels ...string) *prometheus.CounterVec {
	return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
}

func histograms(name, help string, buckets []float64, labels ...string) *prometheus.HistogramVec {
	return prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: name, Help: help, Buckets: buckets}, labels)
}

// Handler answers scrapes.
func (m *Metrics) Handler() http.Handler {
	return promhttp.HandlerFor(m.Registry, promhttp.HandlerOpts{})
}

// Stored counts an attempt to write to the store. It is for [state.Options].
func (m *Metrics) Stored(s state.Stored) {
	lane := &m.lanes[s.Lane]
	switch {
	case s.Err == nil:
		lane.stored.Inc()
		lane.writes.Observe(float64(s.Writes))
	case errors.Is(s.Err, store.ErrConflict):
		lane.conflicts.Inc()
	default:
		lane.failures.Inc()
	}
	lane.took.Observe(s.Took.Seconds())
}

// PostureFailed counts a posture check that a device failed.
func (m *Metrics) PostureFailed(typ, mode string) { m.posture.WithLabelValues(mode, typ).Inc() }

// Login counts an attempt to authenticate; err is nil if it succeeded. method
// must be one of few.
func (m *Metrics) Login(method string, err error) {
	outcome := "success"
	if err != nil {
		switch fault.CodeOf(err) {
		case fault.CodeUnavailable, fault.CodeTimeout, fault.CodeUnhandled:
			outcome = "error"
		default:
			outcome = "denied"
		}
	}
	m.logins.WithLabelValues(method, outcome).Inc()
}

// Noted counts something for the audit log. Both words must be of few.
func (m *Metrics) Noted(event, result string) { m.noted.WithLabelValues(event, result).Inc() }

// Hashing counts a password that waits for its turn to be hashed, until over
// is called.
func (m *Metrics) Hashing() (over func()) {
	start := m.now()
	m.queued.Inc()
	return func() {
		m.queued.Dec()
		m.waited.Observe(m.now().Sub(start).Seconds())
	}
}
