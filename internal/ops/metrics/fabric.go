package metrics

import (
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"netkeep.internal/internal/data/state"
	"netkeep.internal/internal/model"
)

// Fabric is where the figures of routers come from that are read when monitoring
// asks.
type Fabric struct {
	State *state.State
	// Online is how many routers are connected, and Counts how many links and
	// circuits there are.
	Online func() int
	Counts func() (links, circuits int)
	// Latencies are those of all links that were measured.
	Latencies func() []time.Duration
	// Moved is how many circuits got another path.
	Moved func() uint64
	// Offences are the words for what routers do that none should.
	Offences []string
}

// outcomes are why a circuit was not made.
var outcomes = []string{"refused", "encryption", "no-host", "host", "router", "internal"}

// WatchFabric adds the figures of routers. It may be called once.
func (m *Metrics) WatchFabric(f Fabric) {
	m.carried.state = f.State
	m.Registry.MustRegister(
		gauge("netkeep_routers_online", "Routers that are connected to this controller.", nil, func() float64 { return float64(f.Online()) }),
		gauge("netkeep_links", "Links between routers.", nil, func() float64 {
			links, _ := f.Counts()
			return float64(links)
		}),
		gauge("netkeep_circuits", "Circuits that are open.", nil, func() float64 {
			_, circuits := f.Counts()
			return float64(circuits)
		}),
		prometheus.NewCounterFunc(prometheus.CounterOpts{
			Name: "netkeep_circuits_moved_total", Help: "Circuits that were led over another path because of a lost link or router.",
		}, func() float64 { return float64(f.Moved()) }),
		&latencies{f.Latencies}, &m.carried, m.dialled, m.failed, m.offences,
	)
	for _, reason := range outcomes {
		m.failed.WithLabelValues(reason)
	}
	for _, reason := range f.Offences {
		m.offences.WithLabelValues(reason)
	}
}

// Misbehaved counts what a router did that none should. reason is one of a few
// words.
func (m *Metrics) Misbehaved(reason string) { m.offences.WithLabelValues(reason).Inc() }

// Dialled counts an attempt to make a circuit. reason is one of a few words for
// why there is none; empty if there is.
func (m *Metrics) Dialled(reason string, took time.Duration) {
	switch {
	case reason == "":
		m.dialled.Observe(took.Seconds())
	case slices.Contains(outcomes, reason):
		m.failed.WithLabelValues(reason).Inc()
	default:
		m.failed.WithLabelValues("internal").Inc()
	}
}

// latencies shows how long links take: a link each would be too many series.
type latencies struct{ read func() []time.Duration }

var (
	latencyDesc = prometheus.NewDesc("netkeep_link_latency_seconds",
		"Latency that the ends of links measure, by share: half of them are at or below the one of 0.5.", []string{"share"}, nil)
	shares = []struct {
		label string
		at    float64
	}{{"0.5", 0.5}, {"0.9", 0.9}, {"1", 1}}
)

// Describe is for [prometheus.Collector].
func (l *latencies) Describe(ch chan<- *prometheus.Desc) { ch <- latencyDesc }

// Collect is for [prometheus.Collector].
func (l *latencies) Collect(ch chan<- prometheus.Metric) {
	all := l.read()
	if len(all) == 0 {
		return
	}
	slices.Sort(all)
	for _, q := range shares {
		at := all[max(0, int(q.at*float64(len(all))+0.5)-1)]
		ch <- prometheus.MustNewConstMetric(latencyDesc, prometheus.GaugeValue, at.Seconds(), q.label)
	}
}

// carried is the bytes that services carried. Only so many are told apart.
type carried struct {
	state *state.State

	mu       sync.Mutex
	services map[string]*[2]uint64 // sent and received, by id
	other    [2]uint64
}

// maxServices is how many services have series of their own.
const maxServices = 200

var carriedDesc = prometheus.NewDesc("netkeep_carried_bytes_total",
	"Bytes that circuits carried, by service and direction as those see it who use it; other is all services beyond the first 200.", []string{"service", "direction"}, nil)

// Carried counts bytes of a service that those sent who use it, and received.
func (m *Metrics) Carried(serviceID string, sent, received uint64) {
	c := &m.carried
	c.mu.Lock()
	defer c.mu.Unlock()
	at := c.services[serviceID]
	if at == nil {
		if at = &c.other; c.room() {
			at = new([2]uint64)
			c.services[serviceID] = at
		}
	}
	at[0] += sent
	at[1] += received
}

// room makes room for another service, in the place of those that are gone; it
// reports false if there is none.
func (c *carried) room() bool {
	if c.services == nil {
		c.services = map[string]*[2]uint64{}
	}
	if len(c.services) < maxServices {
		return true
	}
	snap := c.state.Snapshot()
	for id := range c.services {
		if _, there := model.Services.Get(snap, id); !there {
			delete(c.services, id)
		}
	}
	return len(c.services) < maxServices
}

// Describe is for [prometheus.Collector].
func (c *carried) Describe(ch chan<- *prometheus.Desc) { ch <- carriedDesc }

// Collect is for [prometheus.Collector].
func (c *carried) Collect(ch chan<- prometheus.Metric) {
	show := func(service string, bytes [2]uint64) {
		for i, direction := range []string{"sent", "received"} {
			ch <- prometheus.MustNewConstMetric(carriedDesc, prometheus.CounterValue, float64(bytes[i]), service, direction)
		}
	}
	snap := c.state.Snapshot()
	c.mu.Lock()
	defer c.mu.Unlock()
	other := c.other
	for id, bytes := range c.services {
		switch service, there := model.Services.Get(snap, id); {
		case there && service.Name != "other":
			show(service.Name, *bytes)
		case there:
			other[0], other[1] = other[0]+bytes[0], other[1]+bytes[1]
		}
	}
	show("other", other)
}
