package channel

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"sync"
	"syscall"
)

// Bulk is a socket below the TLS of a channel that carries much. What is written to it
// while it is held goes out together: TLS writes each of its records by itself, which
// are 16 KiB. Who reads from it is told before it waits for more. An idle one has no
// memory for either.
type Bulk struct {
	net.Conn
	raw syscall.RawConn // nil if the system cannot be asked without waiting: then it is as any socket

	// Of who reads.
	pause    func() // what to do before waiting; nil if nothing
	since    int    // bytes read since
	into     []byte
	got      int
	failed   error
	readOnce func(fd uintptr) bool

	// Of who writes.
	mu        sync.Mutex
	held      bool
	full      bool    // the system took no more since
	kept      *[]byte // what out is a part of; nil if nothing waits
	out       []byte
	writeOnce func(fd uintptr) bool
}

// NewBulk makes a socket one that carries much.
func NewBulk(conn net.Conn) *Bulk {
	b := &Bulk{Conn: conn, raw: rawOf(conn)}
	b.readOnce, b.writeOnce = b.tryRead, b.tryWrite
	return b
}

// rawOf finds the system's socket below one, nil if it cannot be used without waiting.
func rawOf(conn net.Conn) syscall.RawConn {
	for {
		switch over := conn.(type) {
		case syscall.Conn:
			raw, err := over.SyscallConn()
			if err != nil || !triesOnce {
				return nil
			}
			return raw
		case interface{ NetConn() net.Conn }:
			conn = over.NetConn()
		default:
			return nil
		}
	}
}

// bulkOf finds the Bulk that a connection goes over, nil if it goes over none that is
// more than a socket.
func bulkOf(conn net.Conn) *Bulk {
	for {
		switch over := conn.(type) {
		case *Bulk:
			if over.raw == nil {
				return nil
			}
			return over
		case interface{ NetConn() net.Conn }:
			conn = over.NetConn()
		default:
			return nil
		}
	}
}

// DialTLS is the Dial of a tls.Dialer over a Bulk. The config has the server's name.
func DialTLS(ctx context.Context, d *net.Dialer, config *tls.Config, address string) (*tls.Conn, error) {
	plain, err := d.DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	conn := tls.Client(NewBulk(plain), config)
	if err := conn.HandshakeContext(ctx); err != nil {
		_ = plain.Close()
		return nil, err
	}
	return conn, nil
}

// NetConn is the socket below.
func (b *Bulk) NetConn() net.Conn { return b.Conn }

// atOnce is how much of what waits is handed to the system early: it sends no more in
// one piece, and memory that was just written is quick to read.
const atOnce = 64 << 10

// maxBehind is how much may wait with what TLS says by itself: a peer that asks for
// that, again and again, and reads nothing, gets no memory by it.
const maxBehind = 1 << 20

var errBehind = errors.New("channel: the peer reads nothing")

// most is how much is read before what follows from it is done, even if there is more
// to be read.
const most = 128 << 10

// Read implements net.Conn.
func (b *Bulk) Read(p []byte) (int, error) {
	if b.raw == nil || len(p) == 0 {
		return b.Conn.Read(p)
	}
	if b.since >= most {
		b.rest()
	}
	b.into = p
	err := b.raw.Read(b.readOnce)
	b.into = nil
	if err == nil {
		err = b.failed
	}
	if err != nil {
		return 0, err
	}
	b.since += b.got
	return b.got, nil
}

// rest does what is to be done before waiting.
func (b *Bulk) rest() {
	b.since = 0
	if b.pause != nil {
		b.pause()
	}
}

// tryRead reports false if there is nothing to be read yet.
func (b *Bulk) tryRead(fd uintptr) bool {
	var again bool
	if b.got, again, b.failed = readOnce(fd, b.into); again {
		b.rest()
	}
	return !again
}

// Write implements net.Conn.
func (b *Bulk) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	// What TLS says by itself goes behind what waits, for which somebody else waits:
	// who closes the connection must not.
	switch {
	case b.held:
	case b.kept == nil:
		return b.Conn.Write(p)
	case len(b.out) > maxBehind:
		return 0, errBehind
	}
	if b.kept == nil {
		b.kept = buffers.Get().(*[]byte)
		b.out = (*b.kept)[:0]
	}
	b.out = append(b.out, p...)
	*b.kept = b.out
	if b.held && len(b.out) >= atOnce && !b.full {
		b.try()
	}
	return len(p), nil
}

// hold has what is written wait.
func (b *Bulk) hold() {
	b.mu.Lock()
	b.held, b.full = true, false
	b.mu.Unlock()
}

// release sends what has waited, as much of it as the system takes at once, and
// reports whether that was all.
func (b *Bulk) release() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.held = false
	b.try()
	return b.kept == nil
}

// try writes what the system takes. What is wrong is seen by who waits for the rest.
func (b *Bulk) try() {
	if b.kept == nil {
		return
	}
	_ = b.raw.Write(b.writeOnce)
	b.full = len(b.out) > 0
	b.empty()
}

// tryWrite writes what the system takes.
func (b *Bulk) tryWrite(fd uintptr) bool {
	b.out = b.out[writeOnce(fd, b.out):]
	return true
}

// flush sends what waits, however long that takes. One at a time does.
func (b *Bulk) flush() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	for b.kept != nil {
		out := b.out
		b.mu.Unlock()
		n, err := b.Conn.Write(out)
		b.mu.Lock()
		b.out = b.out[n:]
		if err != nil {
			return err
		}
		b.empty()
	}
	return nil
}

// empty gives memory back if nothing waits.
func (b *Bulk) empty() {
	if b.kept != nil && len(b.out) == 0 {
		keep(b.kept)
		b.kept, b.out = nil, nil
	}
}

// record is how much one record of TLS takes.
const record = 16 << 10

// stage is where the next record is put together.
type stage struct {
	to   io.Writer
	room [record]byte
	used int
}

var stages = sync.Pool{New: func() any { return new(stage) }}

// Write implements io.Writer: what fills records goes as it is.
func (s *stage) Write(p []byte) (int, error) {
	for left := p; len(left) > 0; {
		if whole := len(left) - len(left)%record; s.used == 0 && whole > 0 {
			if _, err := s.to.Write(left[:whole]); err != nil {
				return 0, err
			}
			left = left[whole:]
			continue
		}
		n := copy(s.room[s.used:], left)
		s.used, left = s.used+n, left[n:]
		if s.used == record {
			if err := s.flush(); err != nil {
				return 0, err
			}
		}
	}
	return len(p), nil
}

func (s *stage) flush() error {
	if s.used == 0 {
		return nil
	}
	_, err := s.to.Write(s.room[:s.used])
	s.used = 0
	return err
}

// inRecords writes frames so that all records but the last are full, and lets go of
// them.
func inRecords(conn io.Writer, items []item) (err error) {
	s := stages.Get().(*stage)
	s.to = conn
	for _, i := range items {
		switch {
		case err != nil:
		case i.packet != nil:
			err = i.packet.Put(s)
		default:
			_, err = s.Write(i.bytes)
		}
		if i.packet != nil {
			i.packet.Release()
		}
	}
	clear(items) // what they hold may go
	if err == nil {
		err = s.flush()
	}
	s.to, s.used = nil, 0
	stages.Put(s)
	return err
}
