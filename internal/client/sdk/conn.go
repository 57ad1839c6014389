package sdk

import (
	"cmp"
	"context"
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"netkeep.internal/internal/wire"
	"netkeep.internal/internal/wire/cipher"
	"netkeep.internal/internal/wire/message"
	"netkeep.internal/internal/wire/stream"
)

// chunk is how much of what a program writes becomes one message. The largest
// datagram is shorter: what is written whole is read whole.
const chunk = 64 << 10

// carrier is how the messages of one connection travel: held by routers, or by
// us.
type carrier interface {
	// offer hands a message on, unless it would have to wait for room.
	offer(m outgoing) bool
	// write hands a message on and waits for room until ctx ends.
	write(ctx context.Context, m outgoing) error
	// next is the next message that has arrived, if there is one.
	next() (incoming, bool)
	// take is told what arrived on the way, where frames are read.
	take(p *wire.Packet)
	// closed is told that the router knows the connection no longer; why is nil if
	// that is as it should be.
	closed(why error)
	// close ends the connection behind what was written.
	close()
	// cut ends it at once: its router is gone.
	cut(err error)
}

// outgoing is a message that is sent, and incoming one that has arrived.
type (
	outgoing struct {
		data  []byte
		flags uint32
	}
	incoming struct {
		data []byte
		fin  bool  // nothing follows
		err  error // nothing follows, and something is missing
	}
)

// Conn is a connection through the network to the other end of a service. It
// is a net.Conn that can also be closed for writing alone.
type Conn struct {
	router  *router
	number  uint32
	about   Info
	dialled bool // by this client, which waits for the router's answer
	c       atomic.Pointer[carrier]

	readable chan struct{} // has an element when there may be something to read

	reading struct {
		sync.Mutex
		keys   *cipher.Keys // until the other end's header has come
		opener *cipher.Opener
		rest   []byte
		room   *[]byte // where rest is, unless it is in memory of its own
		err    error   // what every later read gives
	}
	readUntil *deadline

	writing struct {
		sync.Mutex
		sealer  *cipher.Sealer
		pending *outgoing // made, and not taken yet
		fin     bool
	}
	writeUntil *deadline

	mu     sync.Mutex
	gone   error // why nothing more can be read or written; under mu
	closed bool  // from here
}

// Info is what is known of a connection.
type Info struct {
	Service string
	// Circuit is what the connection is called in the network.
	Circuit string
	// Router is the name of the edge router that it goes over.
	Router string
	// Caller is who dialled, in its own words, which may be anybody's; empty for
	// one who dials.
	Caller string
	// Dialer and DialerName are who dialled, as the controller says: the id and
	// the name of an identity. Routers before the second generation do not pass
	// them on.
	Dialer, DialerName string
	// Data is what the dialer gave along.
	Data []byte
}

// Who is the name of who dialled, as the controller says, or else the id; empty
// if neither is known.
func (i Info) Who() string { return cmp.Or(i.DialerName, i.Dialer) }

func newConn(r *router, about Info) *Conn {
	about.Router = r.name
	return &Conn{
		router: r, about: about, readable: make(chan struct{}, 1),
		readUntil: newDeadline(), writeUntil: newDeadline(),
	}
}

func (c *Conn) carrier() carrier     { return *c.c.Load() }
func (c *Conn) carriedBy(by carrier) { c.c.Store(&by) }

// named implements end. Until it is known who holds the flow, routers do.
func (c *Conn) named(number uint32) {
	c.number = number
	c.carriedBy(newPlain(c))
}

// Info returns what is known of the connection.
func (c *Conn) Info() Info { return c.about }

// errEnded says that the other end, or the network, has ended a connection.
var errEnded = errors.New("the connection was ended by the other side")

// wake has a reader look again.
func (c *Conn) wake() {
	select {
	case c.readable <- struct{}{}:
	default: // it will
	}
}

// encrypt begins to seal what is sent, and expects what comes to be sealed.
func (c *Conn) encrypt(keys *cipher.Keys) error {
	sealer, header, err := keys.Sealer()
	if err != nil {
		return err
	}
	c.reading.keys, c.writing.sealer = keys, sealer
	err = c.send(outgoing{data: header})
	if errors.Is(err, errEnded) || errors.Is(err, stream.ErrRefused) {
		return nil // the other end has said all that it has to say, which can be read
	}
	return err
}

// state returns why the connection is of no use any more.
func (c *Conn) state() (gone error, closed bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.gone, c.closed
}

// Read implements net.Conn.
func (c *Conn) Read(p []byte) (int, error) {
	r := &c.reading
	r.Lock()
	defer r.Unlock()
	for len(r.rest) == 0 {
		if _, closed := c.state(); closed {
			return 0, net.ErrClosed
		}
		if r.err != nil {
			return 0, r.err
		}
		if isClosed(c.readUntil.passed()) {
			return 0, os.ErrDeadlineExceeded
		}
		// Before the look for a message: what came before the end is read.
		gone, _ := c.state()
		m, ok := c.carrier().next()
		switch {
		case ok:
			r.rest, r.err = c.unseal(m)
			continue
		case gone != nil:
			r.err = gone
			continue
		case len(p) == 0:
			return 0, nil
		}
		select {
		case <-c.readable:
		case <-c.readUntil.passed():
		}
	}
	n := copy(p, r.rest)
	if r.rest = r.rest[n:]; len(r.rest) == 0 {
		r.rest = nil // what it was a part of may go
		if r.room != nil {
			rooms.Put(r.room)
			r.room = nil
		}
	}
	return n, nil
}

// rooms are memory for messages that are opened, which connections use in turns: one
// that carries much would make it anew for each.
var rooms = sync.Pool{New: func() any {
	room := make([]byte, cipher.Room(chunk))
	return &room
}}

// short is the length of messages that get memory of their own: they take little, and
// what is slow to be read takes no more than it needs.
const short = 4 << 10

// unseal returns what a program gets of a message.
func (c *Conn) unseal(m incoming) (data []byte, err error) {
	r := &c.reading
	if m.fin {
		err = io.EOF
	}
	switch {
	case m.err != nil:
		return nil, m.err
	case len(m.data) == 0 && m.fin:
	case r.keys != nil:
		opener, e := r.keys.Opener(m.data)
		if e != nil {
			return nil, e
		}
		r.opener, r.keys = opener, nil
	case r.opener != nil:
		var tag cipher.Tag
		var room []byte
		if len(m.data) > short {
			r.room = rooms.Get().(*[]byte)
			room = *r.room
		}
		plain, tag, e := r.opener.Open(room, m.data)
		if e != nil {
			return nil, e
		}
		if data = plain; tag == cipher.Final {
			err = io.EOF
		}
	default:
		data = m.data
	}
	return data, err
}

// Write implements net.Conn. It returns when everything was handed on, which
// may be long before it arrives.
func (c *Conn) Write(p []byte) (n int, err error) {
	w := &c.writing
	w.Lock()
	defer w.Unlock()
	for {
		if err := c.flush(); err != nil {
			return n, err
		}
		if len(p) == 0 {
			return n, nil
		}
		part := p[:min(len(p), chunk)]
		m := outgoing{}
		if w.sealer != nil {
			if m.data, err = w.sealer.Seal(part, cipher.Message); err != nil {
				return n, err
			}
		} else {
			m.data = append([]byte(nil), part...) // the caller may use it again
		}
		// A sealed message must be sent, whatever happens: it has its place.
		w.pending = &m
		n, p = n+len(part), p[len(part):]
	}
}

// send hands a message on that no program wrote.
func (c *Conn) send(m outgoing) error {
	c.writing.Lock()
	defer c.writing.Unlock()
	if err := c.flush(); err != nil {
		return err
	}
	c.writing.pending = &m
	return c.flush()
}

// flush hands on what is pending. If that takes too long it stays so: the next
// who writes tries again.
func (c *Conn) flush() error {
	w := &c.writing
	if err := c.unwritable(); err != nil {
		if w.pending != nil && c.carrier().offer(*w.pending) {
			w.pending = nil
		}
		return err
	}
	if w.pending == nil {
		return nil
	}
	// Not offered first: what finds no room on the socket would be lost, and
	// sent again when its acknowledgement is overdue.
	err := c.carrier().write(c.writeUntil.context(), *w.pending)
	switch gone, closed := c.state(); {
	case err == nil:
		w.pending = nil
	case closed:
		return net.ErrClosed
	case gone != nil:
		return errEnded
	}
	return err
}

// unwritable returns why nothing is written now.
func (c *Conn) unwritable() error {
	switch gone, closed := c.state(); {
	case closed || c.writing.fin:
		return net.ErrClosed
	case gone == io.EOF:
		return errEnded
	case gone != nil:
		return gone
	case isClosed(c.writeUntil.passed()):
		return os.ErrDeadlineExceeded
	}
	return nil
}

// CloseWrite tells the other end that nothing more is written. What it sends
// can still be read.
func (c *Conn) CloseWrite() error {
	c.writing.Lock()
	defer c.writing.Unlock()
	if c.writing.fin {
		return nil
	}
	if err := c.flush(); err != nil {
		return err
	}
	c.writing.pending = &outgoing{flags: message.DataFIN}
	err := c.flush()
	c.writing.fin = true
	return err
}

// Close implements net.Conn. What was written before still goes.
func (c *Conn) Close() error {
	c.mu.Lock()
	if c.closed {
		c.mu.Unlock()
		return nil
	}
	c.closed = true
	gone := c.gone
	c.mu.Unlock()
	c.readUntil.end()
	c.writeUntil.end()
	c.wake()
	if gone == nil {
		c.writing.Lock()
		if w := &c.writing; w.pending != nil && c.carrier().offer(*w.pending) {
			w.pending = nil
		}
		c.writing.Unlock()
	}
	c.carrier().close()
	return nil
}

// SetDeadline implements net.Conn.
func (c *Conn) SetDeadline(t time.Time) error {
	c.readUntil.set(t)
	c.writeUntil.set(t)
	return nil
}

// SetReadDeadline implements net.Conn.
func (c *Conn) SetReadDeadline(t time.Time) error {
	c.readUntil.set(t)
	return nil
}

// SetWriteDeadline implements net.Conn.
func (c *Conn) SetWriteDeadline(t time.Time) error {
	c.writeUntil.set(t)
	return nil
}

// Addr is an address in the network: the name of a service or of somebody.
type Addr string

// Network implements net.Addr.
func (Addr) Network() string { return "overlay" }

func (a Addr) String() string { return string(a) }

// LocalAddr implements net.Conn.
func (c *Conn) LocalAddr() net.Addr {
	if c.number >= message.FirstAssigned {
		return Addr(c.about.Service)
	}
	return Addr(c.router.client.Name())
}

// RemoteAddr implements net.Conn. It never is what a dialer says of itself.
func (c *Conn) RemoteAddr() net.Addr {
	if c.number < message.FirstAssigned {
		return Addr(c.about.Service)
	}
	return Addr(c.about.Who())
}

// finish notes that nothing more comes and goes; what has come is still read.
func (c *Conn) finish(reason error) {
	c.mu.Lock()
	if c.gone == nil {
		c.gone = reason
	}
	c.mu.Unlock()
	// Who waits to write must look again.
	if reason != nil {
		c.writeUntil.end()
	}
	c.wake()
}

// packet implements end.
func (c *Conn) packet(p *wire.Packet) { c.carrier().take(p) }

// frame implements end.
func (c *Conn) frame(f *wire.Frame) {
	switch f.Type {
	case message.TypeClosed:
		c.carrier().closed(c.cutOff(message.RefusalIn(f)))
	case message.TypeConnected:
		if c.dialled { // and given up a moment ago, or it would have been waited for
			c.router.late(f)
		}
	case message.TypeConnInspect:
		_ = c.router.ch.Reply(f, inspected(c.number, message.ConnDial))
	case message.TypeTraceRoute:
		c.traced(f)
	}
}

// lost implements end.
func (c *Conn) lost(err error) {
	c.finish(err)
	c.carrier().cut(err)
}
