package tunneler

import (
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"syscall"
	"time"
)

// halfCloser is a connection that can be closed for writing alone.
type halfCloser interface{ CloseWrite() error }

// join carries bytes between two connections, both ways. When one side says
// that nothing follows, the other is told so and may still answer. It returns
// when both are done, or ctx ends.
func join(ctx context.Context, a, b net.Conn) {
	end := func() {
		_ = a.Close()
		_ = b.Close()
	}
	defer end()
	defer context.AfterFunc(ctx, end)()
	var both sync.WaitGroup
	carry := func(to, from net.Conn) {
		err := pour(to, from)
		half, ok := to.(halfCloser)
		if err != nil || !ok || half.CloseWrite() != nil {
			end() // something is missing: nobody shall take it for the end
		}
	}
	both.Go(func() { carry(a, b) })
	both.Go(func() { carry(b, a) })
	both.Wait()
}

// A connection begins with room for firstRoom on the way, and has more as it
// needs it, up to what one message of the network takes: most say little.
const (
	firstRoom = 4 << 10
	mostRoom  = 64 << 10
)

// pour carries bytes until there are no more.
func pour(to io.Writer, from io.Reader) error {
	room := make([]byte, firstRoom)
	for {
		n, err := from.Read(room)
		if n > 0 {
			if _, err := to.Write(room[:n]); err != nil {
				return err
			}
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
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
