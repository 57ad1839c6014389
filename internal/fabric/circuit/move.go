package circuit

import (
	"sync"
	"time"
)

// move is that a circuit needs another path.
type move struct {
	circuit string
	// unless says when it does not after all, by the time that its turn comes:
	// nil if it always does.
	unless func(*Circuit) bool
}

// moves is the circuits that need another path.
type moves struct {
	mu       sync.Mutex
	queue    []move
	queued   map[string]bool
	stranded map[string]time.Time // since when those have no path that have none
	adopted  map[string]time.Time // since when something is known of those that are older than this controller
	wake     chan struct{}
}

func (m *moves) init() {
	m.queued, m.stranded, m.adopted = map[string]bool{}, map[string]time.Time{}, map[string]time.Time{}
	m.wake = make(chan struct{}, movers)
}

// add has circuits moved.
func (m *moves) add(unless func(*Circuit) bool, ids ...string) {
	m.mu.Lock()
	for _, id := range ids {
		if !m.queued[id] {
			m.queued[id] = true
			m.queue = append(m.queue, move{id, unless})
		}
	}
	m.mu.Unlock()
	for range min(len(ids), movers) {
		select {
		case m.wake <- struct{}{}:
		default:
			return
		}
	}
}

func (m *moves) take() (next move, ok bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.queue) == 0 {
		m.queue = nil
		return move{}, false
	}
	next, m.queue = m.queue[0], m.queue[1:]
	delete(m.queued, next.circuit)
	return next, true
}

// strand takes note of a circuit that has no path; since says since when.
func (m *moves) strand(id string, now time.Time) (since time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	since, was := m.stranded[id]
	if !was {
		since = now
		m.stranded[id] = now
	}
	return since
}

func (m *moves) landed(id string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.stranded, id)
}

// forget is for a circuit that is over.
func (m *moves) forget(id string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.stranded, id)
	delete(m.adopted, id)
}

func (m *moves) isStranded(id string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	_, is := m.stranded[id]
	return is
}

// adopt takes note of a circuit of which something has just become known.
func (m *moves) adopt(id string, now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.adopted[id] = now
}

// doubtful returns the circuits that were adopted before a time.
func (m *moves) doubtful(before time.Time) (ids []string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for id, since := range m.adopted {
		if since.Before(before) {
			ids = append(ids, id)
			delete(m.adopted, id)
		}
	}
	return ids
}

func (m *moves) waiting() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	ids := make([]string, 0, len(m.stranded))
	for id := range m.stranded {
		ids = append(ids, id)
	}
	return ids
}
