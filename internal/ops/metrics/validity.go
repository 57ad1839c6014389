package metrics

import (
	"iter"

	"github.com/prometheus/client_golang/prometheus"
)

// WatchValidity adds how many records of each kind end by themselves within a day. It
// may be called once.
func (m *Metrics) WatchValidity(ending iter.Seq2[string, func() int]) {
	for kind, count := range ending {
		m.Registry.MustRegister(gauge("netkeep_ending_within_day", "Policies and grants that count and end by themselves within a day, by kind.",
			prometheus.Labels{"kind": kind}, func() float64 { return float64(count()) }))
	}
}
