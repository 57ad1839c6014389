package limit

import (
	"cmp"
	"context"
	"net"
	"net/http"
	"net/netip"
	"sync"
)

// Connections is how many may be open at a time, and how many of them one
// address may have. When there are that many, a new one takes the place of
// another of the address that has most: the oldest that has shown nothing, if
// there is none the one that has waited longest for its next request, and only
// then the one that has been sending a body or taking an answer for longest. A
// connection with a request that is worked on is never closed for another, nor
// is one that is kept; if there are no others, it is the new one that goes.
//
// A quarter of the places is for those that have shown nothing yet, or those
// that arrive together would push each other out before they can greet.
type Connections struct {
	Max   int
	Share Share

	mu    sync.Mutex
	open  int
	crowd crowd[*conn] // all, and of them those that have shown something
	fresh crowd[*conn] // those that have shown nothing
	// greeting is how many these are.
	greeting int
}

// greeters is the part of all places that are for those who have shown nothing.
const greeters = 4

// How dear a connection is.
const (
	silent  = iota // no request of it was worked on; it may not even have greeted
	waiting        // one was, and it may send another
	asking         // it is sending the body of one, or taking the answer
	busy           // one is worked on
)

// conn is a connection in the books, which guard all of it.
type conn struct {
	net.Conn
	book  *Connections
	party Party

	asking  bool
	working int // requests
	served  bool
	spare   *spare[*conn] // nil if it is not to be given up
	kept    bool
	gone    bool
}

// Listener makes room for whatever a listener accepts. It goes below TLS: a
// connection counts before it has shown anything.
func (c *Connections) Listener(l net.Listener) net.Listener { return &listener{l, c} }

type listener struct {
	net.Listener
	book *Connections
}

func (l *listener) Accept() (net.Conn, error) {
	for {
		accepted, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if conn := l.book.enter(accepted); conn != nil {
			return conn, nil
		}
		_ = accepted.Close()
	}
}

// enter finds a place for a connection, and returns nil if there is none.
func (c *Connections) enter(accepted net.Conn) *conn {
	from, _ := netip.ParseAddrPort(accepted.RemoteAddr().String()) // all without an address are one
	one := &conn{Conn: accepted, book: c, party: At(from.Addr())}
	c.mu.Lock()
	defer c.mu.Unlock()
	share := c.Share.of(int64(c.Max))
	if c.crowd.holds(one.party) >= share && !c.evict(c.firstOf(one.party, share)) {
		return nil
	}
	if c.open >= c.Max && !c.evict(c.first()) {
		return nil
	}
	c.open++
	c.crowd.add(one.party, 1)
	c.offer(one, silent)
	return one
}

// first is the connection that gives way first of all, nil if none does.
func (c *Connections) first() *spare[*conn] {
	known := c.crowd.first()
	if fresh := c.fresh.first(); known == nil || c.greeting > c.Max/greeters {
		return cmp.Or(fresh, known)
	}
	return known
}

// firstOf is the same among those of a party that has its share.
func (c *Connections) firstOf(p Party, share int64) *spare[*conn] {
	known := c.crowd.firstOf(p)
	if fresh := c.fresh.firstOf(p); known == nil || c.fresh.holds(p) > share/greeters {
		return cmp.Or(fresh, known)
	}
	return known
}

// offer says that a connection may be closed for another.
func (c *Connections) offer(one *conn, dear int) {
	if dear == silent {
		c.greeting++
		c.fresh.add(one.party, 1)
		one.spare = c.fresh.offer(one.party, one, dear)
		return
	}
	one.spare = c.crowd.offer(one.party, one, dear)
}

// evict closes a connection to make room.
func (c *Connections) evict(s *spare[*conn]) bool {
	if s == nil {
		return false
	}
	one := s.thing
	c.leave(one)
	// Whoever serves it sees the end; closing may wait for the network.
	go func() { _ = one.Conn.Close() }()
	return true
}

// leave takes a connection out of the books.
func (c *Connections) leave(one *conn) {
	if one.gone {
		return
	}
	one.gone = true
	c.open--
	c.withdraw(one)
	if !one.kept {
		c.crowd.add(one.party, -1)
	}
}

func (c *Connections) withdraw(one *conn) {
	switch {
	case one.spare == nil:
		return
	case one.spare.dear == silent:
		c.greeting--
		c.fresh.withdraw(one.spare)
		c.fresh.add(one.party, -1)
	default:
		c.crowd.withdraw(one.spare)
	}
	one.spare = nil
}

// NetConn is the connection itself.
func (one *conn) NetConn() net.Conn { return one.Conn }

// Close closes the connection and takes it out of the books.
func (one *conn) Close() error {
	one.book.mu.Lock()
	one.book.leave(one)
	one.book.mu.Unlock()
	return one.Conn.Close()
}

// Context notes which connection a request comes by, as http.Server.ConnContext.
func (c *Connections) Context(ctx context.Context, served net.Conn) context.Context {
	return context.WithValue(ctx, connKey{}, booked(served))
}

type connKey struct{}

// Handler notes which connections have sent a request.
func (c *Connections) Handler(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if one, _ := r.Context().Value(connKey{}).(*conn); one != nil {
			one.note(func() { one.asking = true })
		}
		next.ServeHTTP(w, r)
	})
}

// Changed notes which connections were answered, as http.Server.ConnState: all
// of an answer has left by then.
func (c *Connections) Changed(served net.Conn, state http.ConnState) {
	if one := booked(served); one != nil && state == http.StateIdle {
		one.note(func() { one.asking = false })
	}
}

// Work says that a request is all there and is worked on: until that is over,
// the connection it came by is not closed for another.
func Work(ctx context.Context) (over func()) {
	one, _ := ctx.Value(connKey{}).(*conn)
	if one == nil {
		return func() {}
	}
	one.note(func() { one.working++; one.served = true })
	return func() { one.note(func() { one.working-- }) }
}

// note changes what a connection does, and with that how dear it is.
func (one *conn) note(change func()) {
	one.book.mu.Lock()
	defer one.book.mu.Unlock()
	if change(); one.gone || one.kept {
		return
	}
	dear := one.dear()
	if one.spare != nil && one.spare.dear == dear {
		return
	}
	one.book.withdraw(one)
	if dear < busy {
		one.book.offer(one, dear)
	}
}

func (one *conn) dear() int {
	switch {
	case one.working > 0:
		return busy
	case one.asking:
		return asking
	case one.served:
		return waiting
	}
	return silent
}

// Keep says that a connection is not to be closed for another from now on, and
// no longer counts for its address: that of a router, say, that has shown who
// it is. It still counts for all.
func (c *Connections) Keep(served net.Conn) {
	one := booked(served)
	if one == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if !one.gone && !one.kept {
		one.kept = true
		c.withdraw(one)
		c.crowd.add(one.party, -1)
	}
}

// Open is how many there are.
func (c *Connections) Open() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.open
}

// booked finds the connection of the books that another one is made of.
func booked(served net.Conn) *conn {
	for {
		switch over := served.(type) {
		case *conn:
			return over
		case interface{ NetConn() net.Conn }:
			served = over.NetConn()
		default:
			return nil
		}
	}
}
