package tunneler

import (
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// half is one end of a pipe that can be closed for writing alone.
type half struct {
	net.Conn
	shut chan struct{}
}

func (h half) CloseWrite() error { close(h.shut); return nil }

// TestDatagramsIdle ends a connection for datagrams when it is not used, and not
// before.
func TestDatagramsIdle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, ours := net.Pipe()
		b, theirs := net.Pipe()
		done := make(chan time.Duration, 1)
		began := time.Now()
		go func() {
			joinDatagrams(t.Context(), ours, theirs, time.Minute)
			done <- time.Since(began)
		}()
		for range 5 {
			time.Sleep(50 * time.Second)
			for from, to := range map[net.Conn]net.Conn{a: b, b: a} {
				go func() { _, _ = io.WriteString(from, "datagram") }()
				buf := make([]byte, 100)
				if n, err := to.Read(buf); string(buf[:n]) != "datagram" || err != nil {
					t.Fatalf("read %q, %v", buf[:n], err)
				}
			}
		}
		if took := <-done; took != 250*time.Second+time.Minute {
			t.Errorf("it ended after %v", took)
		}
		if _, err := a.Read(make([]byte, 1)); err != io.EOF {
			t.Errorf("who sends is told %v", err)
		}
	})
}

// TestJoinEnds tells an end from a failure: only the first is passed on as one.
func TestJoinEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, ours := net.Pipe()
		b, theirs := net.Pipe()
		over := make(chan struct{})
		shut := make(chan struct{})
		go func() {
			join(t.Context(), broken{ours, errors.New("lost")}, half{theirs, shut})
			close(over)
		}()
		go func() { _, _ = io.WriteString(a, "half of it") }()
		got, err := io.ReadAll(b)
		if string(got) != "half of it" || err != nil {
			t.Errorf("read %q, %v", got, err)
		}
		<-over
		select {
		case <-shut:
			t.Error("what was lost is passed on as the end")
		default:
		}
	})
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		_, ours := net.Pipe()
		_, theirs := net.Pipe()
		time.AfterFunc(time.Hour, cancel)
		join(ctx, ours, theirs) // returns
	})
}

// broken fails after its first message, as a connection does whose router is
// lost.
type broken struct {
	net.Conn
	err error
}

func (b broken) Read(p []byte) (int, error) {
	n, _ := b.Conn.Read(p)
	if strings.HasPrefix(string(p[:n]), "half") {
		return n, b.err
	}
	return n, io.EOF
}
