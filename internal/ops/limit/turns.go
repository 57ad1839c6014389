package limit

import (
	"context"
	"sync"
)

// Turns is a queue for something that only a few may do at a time. The parties
// that wait take turns, however often each has asked. When the queue is full,
// the party that waits most often gives up what it asked for last.
type Turns struct {
	Max   int // at a time
	Queue int // that wait

	mu      sync.Mutex
	running int
	waiting []*turn // the oldest first
	had     map[Party]uint64
	count   uint64
}

// turn is somebody who waits.
type turn struct {
	party Party
	told  chan error // nil when its turn has come
}

// Wait waits for a party's turn, which is over when done is called. It fails
// with ErrFull if too many wait, or if ctx ends first.
func (t *Turns) Wait(ctx context.Context, p Party) (done func(), err error) {
	one := &turn{party: p, told: make(chan error, 1)}
	t.mu.Lock()
	if _, known := t.had[p]; !known {
		t.note(p) // a newcomer waits behind those who wait already
	}
	t.waiting = append(t.waiting, one)
	t.next()
	if len(t.waiting) > t.Queue {
		t.overflow()
	}
	t.mu.Unlock()
	select {
	case err := <-one.told:
		if err != nil {
			return nil, err
		}
	case <-ctx.Done():
		t.giveUp(one)
		return nil, ctx.Err()
	}
	return sync.OnceFunc(t.done), nil
}

// done ends a turn.
func (t *Turns) done() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.running--
	t.next()
}

// giveUp takes somebody out of the queue, or passes its turn on.
func (t *Turns) giveUp(one *turn) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for i, w := range t.waiting {
		if w == one {
			t.drop(i)
			return
		}
	}
	if err := <-one.told; err == nil {
		t.running--
		t.next()
	}
}

// next gives free turns to those whose party had its last one longest ago.
func (t *Turns) next() {
	for t.running < t.Max && len(t.waiting) > 0 {
		first := 0
		for i, w := range t.waiting {
			if t.had[w.party] < t.had[t.waiting[first].party] {
				first = i
			}
		}
		one := t.drop(first)
		t.running++
		t.count++
		t.note(one.party)
		one.told <- nil
	}
}

// note remembers that a party had its turn just now.
func (t *Turns) note(p Party) {
	if len(t.had) >= maxKeys || t.had == nil {
		t.had = map[Party]uint64{} // all start afresh
	}
	t.had[p] = t.count
}

// overflow turns away the one who came last of those that wait most often.
func (t *Turns) overflow() {
	waits, last := map[Party]int{}, map[Party]int{}
	most := t.waiting[0].party
	for i, w := range t.waiting {
		waits[w.party]++
		last[w.party] = i
		if waits[w.party] >= waits[most] { // of several, the last to come
			most = w.party
		}
	}
	t.drop(last[most]).told <- ErrFull
}

func (t *Turns) drop(i int) *turn {
	one := t.waiting[i]
	t.waiting = append(t.waiting[:i], t.waiting[i+1:]...)
	return one
}

// Waiting is how many wait.
func (t *Turns) Waiting() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.waiting)
}
