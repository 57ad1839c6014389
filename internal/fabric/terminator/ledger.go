package terminator

import (
	"math"
	"sync"
	"time"
)

// What a terminator costs more after it failed: the first time this much, each
// further time twice what is left of it, and after every halfLife half as much.
const (
	firstPenalty = 64
	maxPenalty   = 65535
	halfLife     = 30 * time.Second
)

// maxMarks is how many terminators of one service can cost more at a time.
const maxMarks = 128

// ledger is what terminators cost more because they failed lately. Nothing is
// done as time goes by: what is left is computed from when one failed last.
type ledger struct {
	mu    sync.Mutex
	marks map[string]map[string]mark // of terminators, by service
}

// mark is what a terminator cost more at a moment.
type mark struct {
	cost float64
	at   time.Time
}

// left is what remains of a mark; 0 is nothing.
func (m mark) left(now time.Time) float64 {
	left := m.cost * math.Exp2(-float64(now.Sub(m.at))/float64(halfLife))
	if left < 1 {
		return 0
	}
	return left
}

// cost is what a terminator costs more.
func (l *ledger) cost(serviceID, id string, now time.Time) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return int(l.marks[serviceID][id].left(now))
}

// of returns what terminators of a service cost more.
func (l *ledger) of(serviceID string, now time.Time) map[string]int {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.marks[serviceID]) == 0 {
		return nil
	}
	costs := map[string]int{}
	for id, m := range l.marks[serviceID] {
		if left := m.left(now); left > 0 {
			costs[id] = int(left)
		}
	}
	return costs
}

// failed makes a terminator dearer.
func (l *ledger) failed(serviceID, id string, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.marks == nil {
		l.marks = map[string]map[string]mark{}
	}
	marks := l.marks[serviceID]
	if marks == nil {
		marks = map[string]mark{}
		l.marks[serviceID] = marks
	}
	if _, ok := marks[id]; !ok && len(marks) >= maxMarks {
		forgive(marks, now)
	}
	marks[id] = mark{min(maxPenalty, max(firstPenalty, 2*marks[id].left(now))), now}
}

// forgive drops the mark of which least is left.
func forgive(marks map[string]mark, now time.Time) {
	least, id := math.Inf(1), ""
	for i, m := range marks {
		if left := m.left(now); left < least {
			least, id = left, i
		}
	}
	delete(marks, id)
}

// succeeded makes a terminator that failed less dear.
func (l *ledger) succeeded(serviceID, id string, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	m, ok := l.marks[serviceID][id]
	if !ok {
		return
	}
	if m = (mark{m.left(now) / 2, now}); m.left(now) > 0 {
		l.marks[serviceID][id] = m
		return
	}
	l.drop(serviceID, id)
}

// forget drops what is known of a terminator that is gone.
func (l *ledger) forget(serviceID, id string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.drop(serviceID, id)
}

func (l *ledger) drop(serviceID, id string) {
	delete(l.marks[serviceID], id)
	if len(l.marks[serviceID]) == 0 {
		delete(l.marks, serviceID)
	}
}

// tidy drops marks of which nothing is left.
func (l *ledger) tidy(now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for serviceID, marks := range l.marks {
		for id, m := range marks {
			if m.left(now) == 0 {
				l.drop(serviceID, id)
			}
		}
	}
}
