package tunneler

import (
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

// deaf is a connection that takes nothing, and says what it has to say a second later.
type deaf struct {
	net.Conn
	asked chan struct{}
	once  sync.Once
}

func (d *deaf) Write([]byte) (int, error) {
	d.once.Do(func() { close(d.asked) })
	return 0, syscall.EPIPE
}

func (d *deaf) Read(p []byte) (int, error) {
	<-d.asked
	time.Sleep(time.Second)
	return d.Conn.Read(p)
}

func (*deaf) CloseWrite() error { return syscall.ENOTCONN }

// TestEarlyAnswer has a server answer that does not read what it is sent: its answer
// arrives, and its end, and who goes on to send is let go.
func TestEarlyAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, local := net.Pipe()
		remote, server := net.Pipe()
		over, told := make(chan time.Time, 1), make(chan struct{})
		began := time.Now()
		go func() {
			join(t.Context(), half{local, told}, &deaf{Conn: remote, asked: make(chan struct{})})
			over <- time.Now()
		}()
		var upload sync.WaitGroup
		upload.Go(func() { // it looks for no answer
			for {
				if _, err := client.Write(make([]byte, 100)); err != nil {
					return
				}
				time.Sleep(10 * time.Millisecond)
			}
		})
		go func() {
			_, _ = io.WriteString(server, "too large")
			_ = server.Close()
		}()
		if got, err := io.ReadAll(client); string(got) != "too large" || err != nil {
			t.Errorf("the answer is %q, %v", got, err)
		}
		<-told
		if took := (<-over).Sub(began); took != 2*time.Second+linger {
			t.Errorf("who goes on is let go after %v", took)
		}
		upload.Wait()
	})
}

// TestLastWords waits for one that takes no more and says nothing, and not for ever.
func TestLastWords(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, local := net.Pipe()
		remote, _ := net.Pipe()
		go func() { _, _ = io.WriteString(client, "hello") }()
		began, told := time.Now(), make(chan struct{})
		join(t.Context(), half{local, told}, &deaf{Conn: remote, asked: make(chan struct{})})
		if took := time.Since(began); took != lastWords {
			t.Errorf("it took %v", took)
		}
		select {
		case <-told:
			t.Error("nothing is passed on as an end")
		default:
		}
	})
}

// pair is the two ends of a connection over the loopback.
func pair(t *testing.T) (one, other net.Conn) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if one, err = net.Dial("tcp", l.Addr().String()); err != nil {
		t.Fatal(err)
	}
	if other, err = l.Accept(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = one.Close(), other.Close() })
	return one, other
}

// TestCutIsSeen has a program see that what it reads was cut off, by a router that is
// lost or a tunneler that stops: it would take a part of a file for all of it.
func TestCutIsSeen(t *testing.T) {
	for what, cut := range map[string]func(stop context.CancelFunc, remote net.Conn) net.Conn{
		"lost":    func(_ context.CancelFunc, remote net.Conn) net.Conn { return broken{remote, errors.New("lost")} },
		"stopped": func(stop context.CancelFunc, remote net.Conn) net.Conn { return &stopping{remote, stop} },
	} {
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		client, local := pair(t)
		remote, far := pair(t)
		go join(ctx, local, cut(stop, remote))
		if _, err := io.WriteString(far, "half of it"); err != nil {
			t.Fatal(err)
		}
		if got, err := io.ReadAll(client); !errors.Is(err, syscall.ECONNRESET) {
			t.Errorf("%s: read %q, %v", what, got, err)
		}
	}
}

// stopping has everything stop when something was read.
type stopping struct {
	net.Conn
	stop func()
}

func (s *stopping) Read(p []byte) (int, error) {
	n, err := s.Conn.Read(p)
	if err == nil {
		s.stop()
	}
	return n, err
}
