package node

import (
	"sync"
	"sync/atomic"
	"time"

	"netkeep.internal/internal/wire/message"
)

// usage counts what the circuits carry that begin or end here.
type usage struct {
	now func() time.Time

	mu     sync.Mutex
	since  time.Time
	total  [2]uint64           // that entered and left, of what was taken
	meters map[string][]*meter // by circuit: both ends may be here
}

// meter counts at one end of a circuit.
type meter struct {
	names   *[2]string
	in, out atomic.Uint64 // bytes that entered the network, and left it
	closed  atomic.Bool
}

// What controllers call the directions at either end.
var (
	ingress = [2]string{"ingress.rx", "ingress.tx"}
	egress  = [2]string{"egress.rx", "egress.tx"}
)

func (u *usage) init(now func() time.Time) {
	u.now, u.since, u.meters = now, now(), map[string][]*meter{}
}

// meter returns one for the end of a circuit; count is told of every message,
// and done when there are no more.
func (u *usage) meter(circuit string, hosts bool) (count func(in bool, bytes int), done func()) {
	m := &meter{names: &ingress}
	if hosts {
		m.names = &egress
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	u.meters[circuit] = append(u.meters[circuit], m)
	return m.count, func() { m.closed.Store(true) }
}

func (m *meter) count(in bool, bytes int) {
	if in {
		m.in.Add(uint64(bytes))
	} else {
		m.out.Add(uint64(bytes))
	}
}

// take returns what was counted since the last time, and forgets those that
// are done.
func (u *usage) take() []message.Usage {
	now := u.now()
	u.mu.Lock()
	defer u.mu.Unlock()
	took := message.Usage{Start: u.since.Unix(), Length: uint64(now.Sub(u.since).Seconds()), Buckets: map[string]message.CircuitUsage{}}
	for circuit, meters := range u.meters {
		bytes, left := map[string]uint64{}, meters[:0]
		for _, m := range meters {
			if !m.closed.Load() { // nothing is counted after that
				left = append(left, m)
			}
			for i, n := range [2]uint64{m.in.Swap(0), m.out.Swap(0)} {
				if u.total[i] += n; n > 0 {
					bytes[m.names[i]] += n
				}
			}
		}
		if u.meters[circuit] = left; len(left) == 0 {
			delete(u.meters, circuit)
		}
		if len(bytes) > 0 {
			took.Buckets[circuit] = message.CircuitUsage{Bytes: bytes}
		}
	}
	u.since = now
	if len(took.Buckets) == 0 {
		return nil
	}
	return []message.Usage{took}
}

// totals are the bytes that entered and left since the start.
func (u *usage) totals() (entered, left uint64) {
	u.mu.Lock()
	defer u.mu.Unlock()
	entered, left = u.total[0], u.total[1]
	for _, meters := range u.meters {
		for _, m := range meters {
			entered, left = entered+m.in.Load(), left+m.out.Load()
		}
	}
	return entered, left
}
