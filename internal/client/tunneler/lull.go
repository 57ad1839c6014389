package tunneler

import (
	"runtime/debug"
	"sync"
	"time"
)

// lull gives memory back to the machine when many connections have ended: what they
// had on their way would stay with the process until much more is carried.
type lull struct {
	after time.Duration // how soon; as long as it may take, if many end one after the other
	free  func()

	mu   sync.Mutex
	most int64 // connections at once, since memory was given back
	due  bool
}

const (
	// lullAfter is how long after an end memory is given back, and how often at most.
	lullAfter = 5 * time.Second
	// crowd is how many connections it takes: to look through memory costs some
	// milliseconds, and few have little.
	crowd = 8
)

func newLull() *lull { return &lull{after: lullAfter, free: debug.FreeOSMemory} }

// is is told how many connections there are.
func (l *lull) is(now int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.most = max(l.most, now)
	if l.due || l.most < crowd || now > l.most/2 {
		return
	}
	l.due = true
	time.AfterFunc(l.after, func() {
		l.mu.Lock()
		l.most, l.due = 0, false
		l.mu.Unlock()
		l.free()
	})
}
