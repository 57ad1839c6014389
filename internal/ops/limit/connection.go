package limit

import (
	"container/list"
	"net"
	"net/http"
	"sync"
	"time"
)

// Connections is how many may be open at a time. When there are that many, a
// new one takes the place of the one that has waited longest without a
// request, or, if none waits, of the one that has been longest about its
// request. So nobody shuts others out by connecting and doing nothing, or by
// doing it slowly.
type Connections struct {
	Max int
	Now func() time.Time

	mu   sync.Mutex
	open map[net.Conn]*list.Element
	by   [3]list.List // connections by what they do, the longest at it first
}

// What a connection does.
const (
	fresh   = iota // it has yet to send a request
	busy           // it is sending one, or is being answered
	waiting        // it was answered
)

// connection is an entry in the books.
type connection struct {
	net.Conn
	doing int
	since time.Time
}

// Listener makes room for whatever a listener accepts.
func (c *Connections) Listener(l net.Listener) net.Listener { return &listener{l, c} }

type listener struct {
	net.Listener
	limit *Connections
}

func (l *listener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err == nil {
		l.limit.makeRoom()
	}
	return conn, err
}

// makeRoom closes connections until there is room for one more.
func (c *Connections) makeRoom() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for len(c.open) >= c.Max {
		conn := c.expendable().Conn
		c.forget(conn)
		// Whoever serves it sees the end; closing may wait for the network.
		go func() { _ = conn.Close() }()
	}
}

// expendable is the one to go first. There must be some.
func (c *Connections) expendable() *connection {
	var first *connection
	for _, doing := range []int{waiting, fresh, busy} {
		e := c.by[doing].Front()
		if e == nil {
			continue
		}
		one := e.Value.(*connection)
		if doing == waiting {
			return one
		}
		if first == nil || one.since.Before(first.since) {
			first = one
		}
	}
	return first
}

// Changed is told of every connection, as http.Server.ConnState.
func (c *Connections) Changed(conn net.Conn, state http.ConnState) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, known := c.open[conn]; !known && state != http.StateNew {
		return // it had to go
	}
	c.forget(conn)
	switch state {
	case http.StateNew:
		c.note(conn, fresh)
	case http.StateActive:
		c.note(conn, busy)
	case http.StateIdle:
		c.note(conn, waiting)
	}
}

func (c *Connections) note(conn net.Conn, doing int) {
	if c.open == nil {
		c.open = map[net.Conn]*list.Element{}
	}
	c.open[conn] = c.by[doing].PushBack(&connection{conn, doing, c.Now()})
}

// Keep takes a connection out of the books: it belongs to somebody who is
// known, and stays until it ends by itself.
func (c *Connections) Keep(conn net.Conn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.forget(conn)
}

// forget drops a connection from the books.
func (c *Connections) forget(conn net.Conn) {
	if e, ok := c.open[conn]; ok {
		c.by[e.Value.(*connection).doing].Remove(e)
		delete(c.open, conn)
	}
}

// Open is how many there are.
func (c *Connections) Open() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.open)
}
