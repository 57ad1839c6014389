// Package limit keeps what clients may ask for within bounds: how often an
// address may try something, how many connections there are, how much memory
// the bodies of requests may take, and how many requests are worked on. Where
// there is not enough for all, it sees to it that whoever takes most goes short
// first. It imports nothing of ours and knows nothing of what is asked.
package limit

import (
	"net/netip"
	"sync"
	"time"
)

// Rate is how often each address may do something. An address that was quiet
// may do a minute's worth at once. The zero value allows everything.
type Rate struct {
	PerMinute int
	Now       func() time.Time

	mu   sync.Mutex
	paid map[netip.Prefix]time.Time // until when an address has used up its share
}

// maxAddresses bounds the memory for addresses. When there are more, some
// start afresh.
const maxAddresses = 1 << 16

// Take counts one attempt of an address. It returns 0 if it may go on, and
// otherwise how long to wait.
func (r *Rate) Take(address netip.Addr) time.Duration {
	if r.PerMinute <= 0 {
		return 0
	}
	each := time.Minute / time.Duration(r.PerMinute)
	key := network(address)
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.Now()
	until := r.paid[key]
	if until.Before(now) {
		until = now
	}
	until = until.Add(each)
	if wait := until.Sub(now) - time.Minute; wait > 0 {
		return wait
	}
	if r.paid == nil {
		r.paid = map[netip.Prefix]time.Time{}
	}
	if _, known := r.paid[key]; !known && len(r.paid) >= maxAddresses {
		r.forget(now)
	}
	r.paid[key] = until
	return 0
}

// forget drops the addresses that are quiet, and others until half are left,
// so that it is not needed again soon.
func (r *Rate) forget(now time.Time) {
	for key, until := range r.paid {
		if until.Before(now) || len(r.paid) > maxAddresses/2 {
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
