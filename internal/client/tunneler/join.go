package tunneler

import (
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// halfCloser is a connection that can be closed for writing alone.
type halfCloser interface{ CloseWrite() error }

// join carries bytes between two connections, both ways. When one side says
// that nothing follows, the other is told so and may still answer. When one takes
// no more, what it has said is carried all the same: a server may answer before it
// has read everything, and be gone. It returns when both are done, or ctx ends.
func join(ctx context.Context, a, b net.Conn) {
	j := &joint{a: side{Conn: a}, b: side{Conn: b}}
	defer j.end()
	defer context.AfterFunc(ctx, j.end)()
	var both sync.WaitGroup
	both.Go(func() { j.carry(&j.a, &j.b) })
	both.Go(func() { j.carry(&j.b, &j.a) })
	both.Wait()
	for _, s := range []*side{&j.a, &j.b} {
		if s.late != nil {
			s.late.Stop()
		}
	}
}

const (
	// lastWords is how long one may still speak that takes no more.
	lastWords = 30 * time.Second
	// linger is how long one is listened to that everything was said to, and that
	// speaks to nobody: what it was told may be lost where it is cut off.
	linger = 2 * time.Second
)

// joint is two connections that are joined.
type joint struct {
	a, b side
	deaf atomic.Bool // one of them takes no more
}

// side is one of them.
type side struct {
	net.Conn
	told atomic.Bool // that nothing follows
	late *time.Timer // ends both; of who carries to it
}

// end ends both.
func (j *joint) end() {
	j.a.end()
	j.b.end()
}

// end closes a connection. One that was not told that nothing follows is reset: a part
// shall not be taken for everything.
func (s *side) end() {
	if c, ok := s.Conn.(interface{ SetLinger(seconds int) error }); ok && !s.told.Load() {
		_ = c.SetLinger(0)
	}
	_ = s.Close()
}

// carry carries what one says to the other, until nothing follows.
func (j *joint) carry(to, from *side) {
	untaken, err := pour(to, from)
	half, can := to.Conn.(halfCloser)
	switch {
	case err == nil && can && half.CloseWrite() == nil:
		if to.told.Store(true); j.deaf.Load() {
			to.late = time.AfterFunc(linger, j.end)
		}
	case can && (err == nil || untaken):
		wait := lastWords
		if j.deaf.Store(true); from.told.Load() {
			wait = linger
		}
		to.late = time.AfterFunc(wait, j.end)
		_, _ = io.Copy(io.Discard, from.Conn)
	default:
		j.end() // something is missing
	}
}

// A connection begins with room for firstRoom on the way, and has more as it
// needs it, up to what one message of the network takes: most say little.
const (
	firstRoom = 4 << 10
	mostRoom  = 64 << 10
)

// pour carries bytes until there are no more. If that fails, it says whether it was
// because they were not taken.
func pour(to io.Writer, from io.Reader) (untaken bool, err error) {
	room := make([]byte, firstRoom)
	for {
		n, err := from.Read(room)
		if n > 0 {
			if _, err := to.Write(room[:n]); err != nil {
				return true, err
			}
		}
		if err == io.EOF {
			return false, nil
		}
		if err != nil {
			return false, err
		}
		if n == len(room) && n < mostRoom {
			room = make([]byte, 2*n)
		}
	}
}

// maxDatagram is more than any datagram has.
const maxDatagram = 64 << 10

// joinDatagrams carries datagrams between two connections, each as one message,
// until neither has any for a while.
func joinDatagrams(ctx context.Context, a, b io.ReadWriteCloser, idle time.Duration) {
	end := func() {
		_ = a.Close()
		_ = b.Close()
	}
	defer end()
	defer context.AfterFunc(ctx, end)()
	quiet := time.AfterFunc(idle, end)
	defer quiet.Stop()
	var both sync.WaitGroup
	carry := func(to, from io.ReadWriteCloser) {
		defer end()
		buf := make([]byte, maxDatagram)
		for {
			n, err := from.Read(buf)
			if err == nil {
				quiet.Reset(idle)
				_, err = to.Write(buf[:n])
			}
			if err != nil && !undelivered(err) {
				return
			}
		}
	}
	both.Go(func() { carry(a, b) })
	both.Go(func() { carry(b, a) })
	both.Wait()
}

// undelivered reports whether a datagram did not arrive because nobody listens
// at present, or it is too long: the next may.
func undelivered(err error) bool {
	return errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, syscall.EMSGSIZE)
}
