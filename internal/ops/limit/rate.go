// Package limit keeps what clients may ask for within bounds: how often
// somebody may try something, how many connections there are, how much memory
// the bodies of requests may take, how many requests are worked on, and whose
// turn it is. Where there is not enough for all, it sees to it that whoever
// takes most goes short first. It imports nothing of ours and knows nothing of
// what is asked.
package limit

import (
	"net/netip"
	"sync"
	"time"
)

// Rate is how often each of many may do something. Whoever was quiet may do a
// minute's worth at once. The zero value allows everything.
type Rate[K comparable] struct {
	PerMinute int
	Now       func() time.Time

	mu   sync.Mutex
	paid map[K]time.Time // until when a key has used up its share
}

// maxKeys bounds the memory for keys. When there are more, some start afresh.
const maxKeys = 1 << 16

// each is how long one use lasts.
func (r *Rate[K]) each() time.Duration { return time.Minute / time.Duration(r.PerMinute) }

// Take counts one attempt. It returns 0 if it may go on, and otherwise how
// long to wait: then it is not counted.
func (r *Rate[K]) Take(key K) time.Duration {
	if r.PerMinute <= 0 {
		return 0
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.Now()
	wait := r.wait(key, now)
	if wait == 0 {
		r.note(key, now)
	}
	return wait
}

// Note counts something that happened, whether it was allowed or not.
func (r *Rate[K]) Note(key K) {
	if r.PerMinute <= 0 {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.Now()
	// One too many at most: what goes on for long must not count for ever.
	if r.wait(key, now) == 0 {
		r.note(key, now)
	}
}

// Wait is how long an attempt would have to wait now.
func (r *Rate[K]) Wait(key K) time.Duration {
	if r.PerMinute <= 0 {
		return 0
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.wait(key, r.Now())
}

// Since is how long it takes until nothing of a key counts any more; 0 if
// nothing does now.
func (r *Rate[K]) Since(key K) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	return max(0, r.paid[key].Sub(r.Now()))
}

func (r *Rate[K]) wait(key K, now time.Time) time.Duration {
	until := r.paid[key]
	if until.Before(now) {
		return 0
	}
	return max(0, until.Sub(now)+r.each()-time.Minute)
}

func (r *Rate[K]) note(key K, now time.Time) {
	until := r.paid[key]
	if until.Before(now) {
		until = now
	}
	if r.paid == nil {
		r.paid = map[K]time.Time{}
	}
	if _, known := r.paid[key]; !known && len(r.paid) >= maxKeys {
		r.forget(now)
	}
	r.paid[key] = until.Add(r.each())
}

// forget drops the keys that are quiet, and others until half are left, so
// that it is not needed again soon.
func (r *Rate[K]) forget(now time.Time) {
	for key, until := range r.paid {
		if until.Before(now) || len(r.paid) > maxKeys/2 {
			delete(r.paid, key)
		}
	}
}

// network is what counts as one address: all of IPv6's that one customer
// usually has.
func network(a netip.Addr) netip.Prefix {
	a = a.Unmap()
	bits := a.BitLen()
	if a.Is6() {
		bits = 64
	}
	p, _ := a.WithZone("").Prefix(bits) // the zero prefix for no address
	return p
}
