package metrics

import (
	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
)

// Totals is what was counted since the start, for those who keep how it grew.
type Totals struct {
	Logins, LoginsRefused uint64 // attempts that opened a session, and those that did not
	Dials, DialsRefused   uint64 // circuits that were made, and those that were not
	// Carried is bytes in both directions by the id of a service; those of services
	// that are not told apart are under the empty one.
	Carried map[string]uint64
}

// Totals reads what monitoring sees too.
func (m *Metrics) Totals() (t Totals) {
	for one := range collected(m.logins) {
		n := uint64(one.GetCounter().GetValue())
		if labelOf(one, "outcome") == "success" {
			t.Logins += n
		} else {
			t.LoginsRefused += n
		}
	}
	for one := range collected(m.dialled) {
		t.Dials += one.GetHistogram().GetSampleCount()
	}
	for one := range collected(m.failed) {
		t.DialsRefused += uint64(one.GetCounter().GetValue())
	}
	c := &m.carried
	c.mu.Lock()
	defer c.mu.Unlock()
	t.Carried = map[string]uint64{"": c.other[0] + c.other[1]}
	for id, bytes := range c.services {
		t.Carried[id] = bytes[0] + bytes[1]
	}
	return t
}

// collected yields what a collector tells at present.
func collected(c prometheus.Collector) func(yield func(*dto.Metric) bool) {
	return func(yield func(*dto.Metric) bool) {
		told := make(chan prometheus.Metric)
		go func() {
			defer close(told)
			c.Collect(told)
		}()
		more := true
		for one := range told { // to its end, or the collector would wait for ever
			var d dto.Metric
			if more && one.Write(&d) == nil {
				more = yield(&d)
			}
		}
	}
}

func labelOf(m *dto.Metric, name string) string {
	for _, l := range m.GetLabel() {
		if l.GetName() == name {
			return l.GetValue()
		}
	}
	return ""
}
