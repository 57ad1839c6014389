package link

import (
	"sync"
	"time"

	"netkeep.internal/internal/wire/message"
)

// latency is what a link took lately: the signs of life of the last minute.
type latency struct {
	mu    sync.Mutex
	took  [6]time.Duration
	count int
	heard time.Time // the last one; the zero time if there was none
}

// unheard is how long a link may go without a sign of life before it counts as
// one that nothing should be sent over, and lost is the latency that says so.
const (
	unheard = 30 * time.Second
	lost    = 8888888888888 * time.Nanosecond
)

// echoed takes note of a sign of life.
func (k *Link) echoed(took time.Duration) {
	if took < 0 || took > silence+unheard {
		return // it answers what was not asked
	}
	if k.latency.add(took, k.links.opt.Now()) && k.links.opt.Measured != nil {
		k.links.opt.Measured()
	}
}

// add reports whether it was the first.
func (m *latency) add(took time.Duration, now time.Time) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.took[m.count%len(m.took)] = took
	m.count++
	m.heard = now
	return m.count == 1
}

// heard is when the link last gave a sign of life, or began.
func (k *Link) heard() time.Time {
	k.latency.mu.Lock()
	defer k.latency.mu.Unlock()
	if k.latency.heard.IsZero() {
		return k.since
	}
	return k.latency.heard
}

// histogram is how the link's latency was spread lately.
func (k *Link) histogram() message.Histogram {
	last := k.heard()
	m := &k.latency
	m.mu.Lock()
	defer m.mu.Unlock()
	if k.links.opt.Now().Sub(last) > unheard {
		return message.Histogram{Count: 1, Min: int64(lost), Max: int64(lost), Mean: float64(lost)}
	}
	took := m.took[:min(m.count, len(m.took))]
	if len(took) == 0 {
		return message.Histogram{}
	}
	h := message.Histogram{Count: int64(len(took)), Min: int64(took[0])}
	for _, d := range took {
		h.Min, h.Max = min(h.Min, int64(d)), max(h.Max, int64(d))
		h.Mean += float64(d) / float64(len(took))
	}
	return h
}

// Latency is what the link took lately, there and back; 0 if that is not known.
func (k *Link) Latency() time.Duration { return time.Duration(k.histogram().Mean) }

// Latencies are what links took lately, as controllers take them: those that
// were measured, under their names.
func (l *Links) Latencies() map[string]message.Histogram {
	all := map[string]message.Histogram{}
	for _, k := range l.All() {
		if h := k.histogram(); h.Count > 0 {
			all["link."+k.id+".latency"] = h
		}
	}
	return all
}
