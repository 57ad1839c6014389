// Package usage adds up what circuits carry, by service, from what the routers
// at their ends say. A router is believed for circuits that begin or end at it
// and for nothing else, so that one that lies can spoil the figures of its own
// circuits alone. It must not import rest or api.
package usage

import (
	"sync"
	"time"

	"netkeep.internal/internal/fabric/circuit"
	"netkeep.internal/internal/wire/message"
)

// Options of a Meter.
type Options struct {
	// Circuit finds one that there is.
	Circuit func(id string) (*circuit.Circuit, bool)
	// Carried is told how many bytes of a service were sent by those who use it,
	// and received by them.
	Carried func(serviceID string, sent, received uint64)
	// Told, if set, is told of what a router has counted of a circuit that begins or
	// ends at it.
	Told func(routerID, circuitID string, of Parties, span *message.Usage)
	Now  func() time.Time
}

// Meter hears what routers have counted.
type Meter struct {
	Options

	mu     sync.Mutex
	turned time.Time
	ended  [2]map[string]ends // circuits by id; the second are those of before
}

// ends is what is remembered of a circuit.
type ends struct {
	Parties
	first, last string
}

// Parties is whose a circuit is, by their ids.
type Parties struct{ Service, Client, Host string }

// Bounds of what is remembered, and of what is believed.
const (
	// remembered is how long a circuit is known at least after it has ended:
	// routers count for a minute, and tell within another.
	remembered = 3 * time.Minute
	maxEnded   = 50_000
	// maxBytes is what one circuit carries at most in the time that a router
	// counts for.
	maxBytes = 1 << 40
)

// New returns a meter that knows of nothing.
func New(opt Options) *Meter { return &Meter{Options: opt} }

// Ended remembers a circuit that is over: what it carried last is told later.
func (m *Meter) Ended(c *circuit.Circuit) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if now := m.Now(); m.ended[0] == nil || now.Sub(m.turned) >= remembered {
		m.turned, m.ended[0], m.ended[1] = now, map[string]ends{}, m.ended[0]
	}
	if len(m.ended[0]) < maxEnded {
		m.ended[0][c.ID] = endsOf(c)
	}
}

func endsOf(c *circuit.Circuit) ends {
	return ends{Parties{c.ServiceID, c.IdentityID, c.HostID}, c.Path[0], c.Path[len(c.Path)-1]}
}

// find returns what is known of a circuit.
func (m *Meter) find(id string) (ends, bool) {
	if c, ok := m.Circuit(id); ok {
		return endsOf(c), true
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, some := range m.ended {
		if e, ok := some[id]; ok {
			return e, true
		}
	}
	return ends{}, false
}

// What a router calls the bytes that came in from the end that it is.
const (
	fromDialer = "ingress.rx"
	fromHost   = "egress.rx"
)

// Heard takes what a router has counted.
func (m *Meter) Heard(routerID string, counted []message.Usage) {
	for _, span := range counted {
		for id, bucket := range span.Buckets {
			e, ok := m.find(id)
			if !ok || e.Service == "" { // it is not known yet whose it is
				continue
			}
			var sent, received uint64
			if routerID == e.first {
				sent = min(bucket.Bytes[fromDialer], maxBytes)
			}
			if routerID == e.last {
				received = min(bucket.Bytes[fromHost], maxBytes)
			}
			if sent > 0 || received > 0 {
				m.Carried(e.Service, sent, received)
			}
			if m.Told != nil && (routerID == e.first || routerID == e.last) {
				m.Told(routerID, id, e.Parties, &span)
			}
		}
	}
}
