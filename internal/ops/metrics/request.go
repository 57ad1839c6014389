package metrics

import (
	"iter"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// classes are the statuses in labels, by their first digit.
var classes = [...]string{"0xx", "1xx", "2xx", "3xx", "4xx", "5xx"}

// operationMetrics is what is counted of one operation. Each series is made
// when it is first needed, so that a scrape shows what is used, and is at hand
// from then on.
type operationMetrics struct {
	answered [len(classes)]func() prometheus.Counter // by class
	took     func() prometheus.Observer
}

func (m *Metrics) operation(api, name string) *operationMetrics {
	o := &operationMetrics{
		took: sync.OnceValue(func() prometheus.Observer { return m.duration.WithLabelValues(api, name) }),
	}
	for i, class := range classes {
		o.answered[i] = sync.OnceValue(func() prometheus.Counter { return m.requests.WithLabelValues(api, name, class) })
	}
	return o
}

// API returns what counts the requests of an API. It knows the named
// operations; requests of any other are those of other.
func (m *Metrics) API(api string, operations iter.Seq[string], other string) func(operation string, status int, took time.Duration) {
	rest := m.operation(api, other)
	byName := map[string]*operationMetrics{}
	for name := range operations {
		byName[name] = m.operation(api, name)
	}
	return func(operation string, status int, took time.Duration) {
		o, known := byName[operation]
		if !known {
			o = rest
		}
		class := status / 100
		if class < 0 || class >= len(classes) {
			class = 0
		}
		o.answered[class]().Inc()
		o.took().Observe(took.Seconds())
	}
}

// Stream counts an answer that goes on for as long as its caller likes, until what
// it returns is told why it ended. Both must be words of the program.
func (m *Metrics) Stream(operation string) (ended func(reason string)) {
	open := m.streams.WithLabelValues(operation)
	open.Inc()
	return func(reason string) {
		open.Dec()
		m.ended.WithLabelValues(operation, reason).Inc()
	}
}
