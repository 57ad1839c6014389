package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"netkeep.internal/internal/data/state"
	"netkeep.internal/internal/lang/kind"
	"netkeep.internal/internal/model"
	"netkeep.internal/internal/ops/build"
	"netkeep.internal/internal/pki"
)

// Source is where the figures come from that are read when monitoring asks.
type Source struct {
	State     *state.State
	Inventory func() []pki.Item
	Ready     func() bool
	Now       func() time.Time
	Build     build.Info
	// StoreSize and DiskFree are in bytes; not ok if nobody can tell.
	StoreSize, DiskFree func() (n int64, ok bool)
	// LastSnapshot is when the last one was taken, in seconds since 1970; not ok
	// if there is none.
	LastSnapshot func() (n int64, ok bool)
	// Controllers is how many the network has, and how many of them are there;
	// Votes how many decide on what is stored, not ok if that is not known.
	Controllers func() (all, online int)
	Votes       func() (n int64, ok bool)
	// StoreAge is for how long it has not been known what the store holds, and
	// Refusing whether connections are turned away for it.
	StoreAge func() time.Duration
	Refusing func() bool
}

// watchControllers adds the figures of several controllers.
func (m *Metrics) watchControllers(s Source) {
	m.Registry.MustRegister(
		gauge("netkeep_controllers", "Controllers of the network.", nil, func() float64 { all, _ := s.Controllers(); return float64(all) }),
		gauge("netkeep_controllers_online", "Controllers of the network that are there, as this one sees it.", nil, func() float64 { _, online := s.Controllers(); return float64(online) }),
		&optional{desc("netkeep_store_votes", "Controllers that decide together on what is stored."), s.Votes},
		gauge("netkeep_store_age_seconds", "For how long this controller has not known what the store holds.", nil, func() float64 { return s.StoreAge().Seconds() }),
		gauge("netkeep_refuses_connections", "Whether this controller turns connections away for want of its store: 1 or 0.", nil, func() float64 {
			if s.Refusing() {
				return 1
			}
			return 0
		}),
	)
}

// Watch adds the figures of a source. It may be called once.
func (m *Metrics) Watch(s Source) {
	m.Registry.MustRegister(
		&certificates{s},
		gauge("netkeep_ready", "Whether the controller can serve: 1 or 0, as /health/ready says.", nil, func() float64 {
			if s.Ready() {
				return 1
			}
			return 0
		}),
		gauge("netkeep_feed_lag_seconds", "For how long memory has been behind the store.", nil, func() float64 { return s.State.Lag().Seconds() }),
		gauge("netkeep_unreadable_records", "Stored records that cannot be read.", nil, func() float64 {
			n, _ := s.State.Unreadable()
			return float64(n)
		}),
		gauge("netkeep_api_sessions", "API sessions that are open.", nil, s.count(model.APISessions.Def)),
		gauge("netkeep_sessions", "Sessions to dial or host a service that are open.", nil, s.count(model.Sessions.Def)),
	)
	m.Registry.MustRegister(
		gauge("netkeep_build_info", "Which build this is; always 1.", prometheus.Labels{
			"version": s.Build.Version, "revision": s.Build.Revision, "go": s.Build.Runtime,
		}, func() float64 { return 1 }),
		&optional{desc("netkeep_store_size_bytes", "Size of the store inside this controller on disk."), s.StoreSize},
		&optional{desc("netkeep_last_snapshot_timestamp_seconds", "When the last snapshot of the store was taken that there is, in seconds since 1970."), s.LastSnapshot},
		&optional{desc("netkeep_disk_free_bytes", "Space that is left on the disk of the data directory."), s.DiskFree},
	)
	m.watchControllers(s)
	for lane, name := range laneNames {
		m.Registry.MustRegister(gauge("netkeep_commit_queue_length", "Writes that wait for a commit, by lane.", prometheus.Labels{"lane": name},
			func() float64 { return float64(s.State.Waiting(kind.Lane(lane))) }))
	}
}

func (s Source) count(d *kind.Def) func() float64 {
	return func() float64 { return float64(s.State.Snapshot().Len(d)) }
}

func gauge(name, help string, labels prometheus.Labels, read func() float64) prometheus.Collector {
	return prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help, ConstLabels: labels}, read)
}

func desc(name, help string) *prometheus.Desc { return prometheus.NewDesc(name, help, nil, nil) }

// optional is a figure that is not there where nobody can tell it.
type optional struct {
	desc *prometheus.Desc
	read func() (int64, bool)
}

// Describe is for [prometheus.Collector].
func (o *optional) Describe(ch chan<- *prometheus.Desc) { ch <- o.desc }

// Collect is for [prometheus.Collector].
func (o *optional) Collect(ch chan<- prometheus.Metric) {
	if n, ok := o.read(); ok {
		ch <- prometheus.MustNewConstMetric(o.desc, prometheus.GaugeValue, float64(n))
	}
}
