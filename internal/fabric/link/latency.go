package link

import (
	"strings"
	"time"

	"netkeep.internal/internal/fabric/control"
	"netkeep.internal/internal/model"
	"netkeep.internal/internal/wire"
	"netkeep.internal/internal/wire/message"
)

// onMetrics hears how long things take on a router's links. Both ends measure a
// link, and each is believed for its own half only.
func (l *Links) onMetrics(r *control.Router, f *wire.Frame) {
	l.Heard(r, f)
	m, err := message.Unmarshal[message.Metrics](f.Body)
	if err != nil {
		// Nothing depends on it, and a busy router may say more than one
		// message may hold.
		l.Log.Debug("what a router has measured cannot be read", "router", r.ID, "error", err)
		return
	}
	l.Usage(r.ID, m.Usage)
	mean := func(name string) time.Duration {
		if h := m.Histograms[name]; h.Count > 0 && h.Mean > 0 && h.Mean < float64(time.Hour) {
			return time.Duration(h.Mean)
		}
		return 0
	}
	for name := range m.Histograms {
		id, of := strings.CutPrefix(name, "link.")
		id, is := strings.CutSuffix(id, ".latency")
		if latency := mean(name); of && is && latency > 0 {
			l.change(r.ID, id, func(link *model.Link) { measure(link, r.ID, latency+mean("link."+id+".queue_time")) })
		}
	}
}

// measure takes note of what an end has measured.
func measure(link *model.Link, routerID string, latency time.Duration) {
	if routerID == link.SourceID {
		link.SourceLatency = latency
	} else {
		link.DestLatency = latency
	}
}

// Latencies returns what the ends of all links have measured.
func (l *Links) Latencies() []time.Duration {
	l.mu.RLock()
	defer l.mu.RUnlock()
	var all []time.Duration
	for _, link := range l.byID {
		for _, latency := range []time.Duration{link.SourceLatency, link.DestLatency} {
			if latency > 0 {
				all = append(all, latency)
			}
		}
	}
	return all
}
