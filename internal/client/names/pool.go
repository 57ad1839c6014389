// Package names gives names of services addresses of this machine alone, and
// answers for them: Pool has the addresses, Server is the DNS server. It owns
// which name has which address, and what is answered to whom. Which names are
// ours is for its caller to know, and how the machine comes to ask here is
// another package's; it imports no other package of ours.
package names

import (
	"container/list"
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"net/netip"
	"sync"
	"time"
)

// Range is where addresses are from if nobody says: it is set aside for use
// inside of networks, and few have it.
var Range = netip.MustParsePrefix("100.64.0.0/10")

const (
	// reserved are the addresses at the beginning of a range that no name gets:
	// that of the range itself, the device's, the server's and one to spare.
	reserved = 4
	// maxNames is how many names have addresses at once: below a domain there is
	// no end of names that somebody could ask for.
	maxNames = 65_536
	// idle is how long an address is a name's after it was last asked for or
	// connected to, even if others wait: programs remember addresses for longer
	// than they are told to.
	idle = 10 * time.Minute
	// tries is how many addresses are tried for a name before the range is
	// searched.
	tries = 16
)

// Pool gives out the addresses of a range. A name keeps its address as long as
// it is used, and after that until no other is left: what was not used the
// longest is reused first. The same name gets the same address in another
// process, unless another had it first.
type Pool struct {
	prefix      netip.Prefix
	first, last uint32 // that may be given out
	max         int
	now         func() time.Time
	avoid       func(netip.Addr) bool

	mu     sync.Mutex
	byName map[string]*lease
	byAddr map[uint32]*lease
	quiet  *list.List // of leases that nobody holds, the longest unused first
	next   uint32     // where the range is searched from
}

// lease is an address that a name has.
type lease struct {
	name string
	addr uint32
	held int
	used time.Time     // if nobody holds it
	at   *list.Element // in quiet, nil if somebody holds it
}

// PoolOptions are what a pool is made of.
type PoolOptions struct {
	Prefix netip.Prefix // Range, if it is not valid
	Now    func() time.Time
	// Avoid reports addresses that mean something else, such as those of a
	// service; it may be nil. It is called with the pool locked.
	Avoid func(netip.Addr) bool
}

// FullError says that a name gets no address, since others use them all.
type FullError struct {
	Prefix netip.Prefix
	Names  int
}

func (e *FullError) Error() string {
	return fmt.Sprintf("all addresses for names in %s are in use, by %d names: choose a larger range, or wait until some were not used for %s", e.Prefix, e.Names, idle)
}

// NewPool makes a pool over a range of IPv4.
func NewPool(opt PoolOptions) (*Pool, error) {
	if !opt.Prefix.IsValid() {
		opt.Prefix = Range
	}
	p := &Pool{prefix: opt.Prefix.Masked(), now: opt.Now, avoid: opt.Avoid,
		byName: map[string]*lease{}, byAddr: map[uint32]*lease{}, quiet: list.New()}
	if !p.prefix.Addr().Is4() {
		return nil, fmt.Errorf("names cannot get addresses of %s: choose a range of IPv4, such as %s", opt.Prefix, Range)
	}
	if p.prefix.Bits() > 29 {
		return nil, fmt.Errorf("the range %s is too small for names: choose one of at least 8 addresses, such as %s", opt.Prefix, Range)
	}
	if p.prefix.Bits() < 8 {
		return nil, fmt.Errorf("the range %s is a large part of the Internet: choose one that is used inside of networks alone, such as %s", opt.Prefix, Range)
	}
	base := number(p.prefix.Addr())
	size := uint32(1) << (32 - p.prefix.Bits())
	p.first, p.last = base+reserved, base+size-2 // the last of all is for broadcasts
	p.next = p.first
	p.max = int(min(maxNames, p.last-p.first+1))
	return p, nil
}

func number(ip netip.Addr) uint32 {
	four := ip.As4()
	return binary.BigEndian.Uint32(four[:])
}

func address(n uint32) netip.Addr {
	var four [4]byte
	binary.BigEndian.PutUint32(four[:], n)
	return netip.AddrFrom4(four)
}

// Prefix is the range.
func (p *Pool) Prefix() netip.Prefix { return p.prefix }

// Addr is the address of a name, which has to be plain: of small letters and
// without a dot at its end. It counts as a use of it.
func (p *Pool) Addr(name string) (netip.Addr, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.now()
	l := p.byName[name]
	if l != nil && l.held == 0 && p.avoid != nil && p.avoid(address(l.addr)) {
		p.drop(l) // it means something else by now
		l = nil
	}
	if l == nil {
		addr, ok := p.choose(name, now)
		if !ok {
			return netip.Addr{}, &FullError{p.prefix, len(p.byName)}
		}
		l = &lease{name: name, addr: addr}
		p.byName[name], p.byAddr[addr] = l, l
	}
	if l.held == 0 {
		p.rest(l, now)
	}
	return address(l.addr), nil
}

// rest notes that nobody holds an address from now on.
func (p *Pool) rest(l *lease, now time.Time) {
	l.used = now
	if l.at == nil {
		l.at = p.quiet.PushBack(l)
	} else {
		p.quiet.MoveToBack(l.at)
	}
}

func (p *Pool) drop(l *lease) {
	delete(p.byName, l.name)
	delete(p.byAddr, l.addr)
	if l.at != nil {
		p.quiet.Remove(l.at)
	}
}

// choose finds an address that no name has: one that follows from the name, if
// it can be.
func (p *Pool) choose(name string, now time.Time) (uint32, bool) {
	if len(p.byName) >= p.max && !p.reuse(now) {
		return 0, false
	}
	hash := fnv.New64a()
	_, _ = hash.Write([]byte(name))
	sum, size := hash.Sum64(), p.last-p.first+1
	for range tries {
		if addr := p.first + uint32(sum>>32)%size; p.free(addr) {
			return addr, true
		}
		sum = sum*6364136223846793005 + 1442695040888963407
	}
	// Most of the range is taken, so that it is a small one, or it is avoided.
	for range min(size, 2*maxNames) {
		addr := p.next
		if p.next++; p.next > p.last {
			p.next = p.first
		}
		if p.free(addr) {
			return addr, true
		}
	}
	return 0, false
}

func (p *Pool) free(addr uint32) bool {
	return p.byAddr[addr] == nil && (p.avoid == nil || !p.avoid(address(addr)))
}

// reuse takes the address away that was not used the longest.
func (p *Pool) reuse(now time.Time) bool {
	front := p.quiet.Front()
	if front == nil {
		return false
	}
	oldest := front.Value.(*lease)
	if now.Sub(oldest.used) < idle {
		return false
	}
	p.drop(oldest)
	return true
}

// Name is who has an address.
func (p *Pool) Name(ip netip.Addr) (string, bool) {
	ip = ip.Unmap()
	if !p.prefix.Contains(ip) {
		return "", false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	l := p.byAddr[number(ip)]
	if l == nil {
		return "", false
	}
	return l.name, true
}

// Hold is Name for a connection: the name keeps the address until release is
// called, which may be more than once.
func (p *Pool) Hold(ip netip.Addr) (name string, release func(), ok bool) {
	ip = ip.Unmap()
	if !p.prefix.Contains(ip) {
		return "", nil, false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	l := p.byAddr[number(ip)]
	if l == nil {
		return "", nil, false
	}
	if l.at != nil {
		p.quiet.Remove(l.at)
		l.at = nil
	}
	l.held++
	return l.name, sync.OnceFunc(func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		if l.held--; l.held == 0 {
			p.rest(l, p.now())
		}
	}), true
}
