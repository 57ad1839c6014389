package wire

import (
	"slices"
	"sync"
)

// Later is what can be put off while more comes that it goes together with.
type Later interface {
	// Flush does what was put off. It does not wait.
	Flush()
}

// Batch is what is put off while packets are taken that have come together: whoever
// takes one may leave what follows from it to be done once for several of them. Who
// reads packets opens it before each, and flushes it before waiting for the next.
type Batch struct {
	mu   sync.Mutex
	open bool
	put  []Later
}

// Open has things put off until Flush.
func (b *Batch) Open() {
	b.mu.Lock()
	b.open = true
	b.mu.Unlock()
}

// Put has something done when there is nothing more to be taken without waiting,
// however often it is put until then. It reports false if that is so by now: whoever
// kept a packet until later has to do it at once.
func (b *Batch) Put(l Later) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.open && !slices.Contains(b.put, l) {
		b.put = append(b.put, l)
	}
	return b.open
}

// Flush does what was put off, and what is put off by that.
func (b *Batch) Flush() {
	for l := b.next(); l != nil; l = b.next() {
		l.Flush()
	}
}

// next takes what was put off first; with the last of it the batch is closed.
func (b *Batch) next() (l Later) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.put) == 0 {
		b.open = false
		return nil
	}
	l = b.put[0]
	b.put = slices.Delete(b.put, 0, 1)
	return l
}
