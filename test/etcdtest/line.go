package etcdtest

import (
	"net"
	"sync"
	"testing"
)

// Line passes connections on to a server. While it is cut nothing gets through,
// in either direction, and nobody is told.
type Line struct {
	Address string // of its near end

	to       string
	listener net.Listener
	done     sync.WaitGroup

	mu    sync.Mutex
	whole chan struct{} // closed while the line is not cut
	ended bool
	conns []net.Conn
}

// NewLine lays a line to the server, until the end of the test.
func (s *Server) NewLine(t testing.TB) *Line {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	line := &Line{Address: l.Addr().String(), to: s.Address, listener: l, whole: make(chan struct{})}
	close(line.whole)
	line.done.Go(line.accept)
	t.Cleanup(line.end)
	return line
}

// Cut cuts the line.
func (l *Line) Cut() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.whole = make(chan struct{})
}

// Mend mends the line: what was under way gets through.
func (l *Line) Mend() {
	l.mu.Lock()
	defer l.mu.Unlock()
	close(l.whole)
}

func (l *Line) end() {
	l.mu.Lock()
	l.ended = true
	select {
	case <-l.whole:
	default:
		close(l.whole)
	}
	for _, c := range l.conns {
		c.Close()
	}
	l.mu.Unlock()
	l.listener.Close()
	l.done.Wait()
}

func (l *Line) accept() {
	for {
		near, err := l.listener.Accept()
		if err != nil {
			return
		}
		far, err := net.Dial("tcp", l.to)
		if err != nil {
			near.Close()
			continue
		}
		l.mu.Lock()
		l.conns = append(l.conns, near, far)
		if l.ended {
			near.Close()
			far.Close()
		}
		l.mu.Unlock()
		l.done.Go(func() { l.pass(near, far) })
		l.done.Go(func() { l.pass(far, near) })
	}
}

func (l *Line) pass(from, to net.Conn) {
	defer to.Close()
	buf := make([]byte, 32<<10)
	for {
		n, err := from.Read(buf)
		l.mu.Lock()
		whole := l.whole
		l.mu.Unlock()
		<-whole
		if n > 0 {
			if _, err := to.Write(buf[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}
