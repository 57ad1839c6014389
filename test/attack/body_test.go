package attack_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"netkeep.internal/test/servertest"
)

// again is how long an attacker who was answered waits at least before the next
// try, and ten times as long as that took: what is measured is what the attack
// does to others, not how busy attackers keep a machine that they share with
// them.
const again = time.Second

// persist attacks in n ways at once, each again and again until ctx ends. It is
// ready when each was in place once.
func persist(ctx context.Context, n int, ready func(), try func(ctx context.Context, i int, placed func())) {
	var all, first sync.WaitGroup
	first.Add(n)
	for i := range n {
		all.Go(func() {
			begun := sync.OnceFunc(first.Done)
			for ctx.Err() == nil {
				var took atomic.Int64
				start := time.Now()
				try(ctx, i, func() {
					took.Store(int64(time.Since(start)))
					begun()
				})
				begun()
				select {
				case <-ctx.Done():
				case <-time.After(max(again, 10*time.Duration(took.Load()))):
				}
			}
		})
	}
	first.Wait()
	ready()
	all.Wait()
}

// stalled is a body that ends after its first bytes without an end.
type stalled struct {
	start  io.Reader
	placed func()
	closed chan struct{}
	once   sync.Once
}

func (s *stalled) Read(p []byte) (int, error) {
	if n, err := s.start.Read(p); err == nil {
		return n, nil
	}
	s.placed()
	<-s.closed
	return 0, io.ErrClosedPipe
}

func (s *stalled) Close() error {
	s.once.Do(func() { close(s.closed) })
	return nil
}

// stall begins a request and never ends it.
func stall(ctx context.Context, s *servertest.Server, c *http.Client, path string, placed func()) {
	body := &stalled{start: strings.NewReader("{"), placed: placed, closed: make(chan struct{})}
	stop := context.AfterFunc(ctx, func() { _ = body.Close() })
	defer stop()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.URL+path, body)
	if err != nil {
		panic(err)
	}
	req.Header.Set("Content-Type", "application/json")
	if resp, err := c.Do(req); err == nil {
		_ = resp.Body.Close()
	}
}

// TestStalledStreams opens a hundred streams on each of ten connections, for
// requests whose bodies do not come.
func TestStalledStreams(t *testing.T) {
	address := newAddress()
	connections := make([]*http.Client, scaled(10))
	for i := range connections {
		connections[i] = newConnection(t, shared, address)
	}
	while(t, shared, func(ctx context.Context, ready func()) {
		persist(ctx, 100*len(connections), ready, func(ctx context.Context, i int, placed func()) {
			stall(ctx, shared, connections[i/100], byPassword, placed)
		})
	}, others(t, shared))
}

// hold sends a request of a stated length but not all of its body, and waits
// for whatever becomes of it.
func hold(ctx context.Context, address net.IP, r request, length int, placed func()) {
	begin(ctx, shared, address, fmt.Sprintf("%s %s HTTP/1.1\r\nHost: x\r\nnet-session: %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s",
		r.method, r.path, r.token, length, r.body), placed)
}

// begin sends the beginning of a request on a connection of its own, and waits
// for whatever becomes of it.
func begin(ctx context.Context, s *servertest.Server, address net.IP, start string, placed func()) {
	conn, err := dialTLS(ctx, s, address)
	if err != nil {
		return
	}
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	defer stop()
	defer conn.Close()
	if _, err := io.WriteString(conn, start); err != nil {
		return
	}
	placed()
	_, _ = bufio.NewReader(conn).ReadByte()
}

// short is a body that fills the room that it was given, which grows in steps,
// and then stops.
func short(step int) string { return strings.Repeat(" ", (4<<step-4)<<10-1) }

// TestStalledLogins takes all of the memory for bodies, with those of logins on
// a connection each. The first are as large as they may be, and the others fill
// what they leave over.
func TestStalledLogins(t *testing.T) {
	address := newAddress()
	while(t, shared, func(ctx context.Context, ready func()) {
		persist(ctx, scaled(300), ready, func(ctx context.Context, i int, placed func()) {
			step := 4
			if i >= 273 {
				step = 1 + i%4
			}
			hold(ctx, address, request{"POST", byPassword, "", short(step)}, 64<<10, placed)
		})
	}, others(t, shared))
}

// TestStalledSessions is an ordinary identity that does the same with the
// largest bodies that there may be.
func TestStalledSessions(t *testing.T) {
	user, address := shared.AddUser(t, false), newAddress()
	token := shared.Login(t, user.Username, user.Password).Token
	while(t, shared, func(ctx context.Context, ready func()) {
		persist(ctx, scaled(60), ready, func(ctx context.Context, i int, placed func()) {
			step := 8
			if i >= 16 {
				step = 1 + i%8
			}
			hold(ctx, address, request{"POST", "/edge/client/v1/sessions", token, short(step)}, 1<<20, placed)
		})
	}, others(t, shared))
}
