package program_test

import (
	"bytes"
	"crypto/tls"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"netkeep.internal/test/machine"
)

// The load that is put on a controller. CI runs a small one.
var (
	idle   = flag.Int("idle", 2000, "idle connections")
	slow   = flag.Int("slow", 300, "slow clients")
	bodies = flag.Int("bodies", 100, "parallel bodies of 100 MiB")
)

const (
	enoughMemory = 64 << 20               // that any load may cost
	prompt       = 100 * time.Millisecond // that an answer may take meanwhile
	probes       = 21
	// maxConnections is the usual limits.connections.
	maxConnections = 1200
)

// loaded is a controller under load.
type loaded struct {
	t       *testing.T
	process *process
	address string
	tls     *tls.Config
	before  int64 // resident memory
}

// TestOverload has clients that connect and do nothing, that send slowly, and
// that send far too much. Meanwhile others are answered promptly, and none of
// it costs much memory.
func TestOverload(t *testing.T) {
	data := t.TempDir()
	// It collects garbage eagerly: what is measured should be what it holds.
	p := launch(t, settings{
		args: []string{"run", "--data", data, "--listen", "127.0.0.1:0"},
		env:  []string{"NETKEEP_ADMIN_PASSWORD=" + password, "GOGC=20"},
	})
	l := &loaded{t: t, process: p, address: strings.TrimPrefix(p.ready(), "https://"), tls: trust(t, filepath.Join(data, "pki", "root.crt"))}
	l.settle()
	t.Run("idle", l.idle)
	t.Run("slow", l.slow)
	t.Run("large", l.large)
	p.stop()
}

// settle warms the controller up, so that its memory is what it needs anyway.
func (l *loaded) settle() {
	l.t.Helper()
	for range 200 {
		l.probe(l.t)
	}
	l.before = l.resident(l.t)
}

// resident is how much memory the controller has.
func (l *loaded) resident(t *testing.T) int64 {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", l.process.cmd.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	var kib int64
	_, rest, _ := bytes.Cut(status, []byte("RssAnon:"))
	if _, err := fmt.Sscan(string(rest), &kib); err != nil {
		t.Fatal(err)
	}
	return kib << 10
}

// probe is how long a stranger waits for an answer, connection and all.
func (l *loaded) probe(t *testing.T) time.Duration {
	t.Helper()
	start := time.Now()
	conn, err := l.dial()
	if err != nil {
		t.Fatalf("a stranger cannot connect: %v", err)
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, "GET /version HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	answer, err := io.ReadAll(conn)
	if err != nil || !bytes.HasPrefix(answer, []byte("HTTP/1.1 200 OK")) {
		t.Fatalf("a stranger gets %q: %v", answer, err)
	}
	return time.Since(start)
}

func (l *loaded) dial() (*tls.Conn, error) {
	conn, err := tls.DialWithDialer(&net.Dialer{Timeout: waitTime}, "tcp", l.address, l.tls)
	if err == nil {
		err = conn.SetDeadline(time.Now().Add(waitTime))
	}
	return conn, err
}

// judge looks at the controller while it is under load.
func (l *loaded) judge(t *testing.T) {
	t.Helper()
	var took []time.Duration
	watch := machine.Begin(t)
	for range probes {
		took = append(took, l.probe(t))
	}
	slices.Sort(took)
	_, most := watch.Took(prompt)
	more := l.resident(t) - l.before
	t.Logf("an answer takes %v, at most %v; %d KiB more", took[probes/2], took[probes-1], more>>10)
	if took[probes/2] > most {
		t.Errorf("an answer takes %v, want %v", took[probes/2], most)
	}
	if more > enoughMemory {
		t.Errorf("it costs %d MiB of memory, want %d at most", more>>20, enoughMemory>>20)
	}
}

// many does something n times, some of them in parallel.
func many(n, parallel int, do func(i int)) {
	var all sync.WaitGroup
	turns := make(chan struct{}, parallel)
	for i := range n {
		all.Go(func() {
			turns <- struct{}{}
			defer func() { <-turns }()
			do(i)
		})
	}
	all.Wait()
}

// keep holds connections open until the test has judged.
type keep struct {
	mu    sync.Mutex
	conns []net.Conn
}

func (k *keep) add(c net.Conn) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.conns = append(k.conns, c)
}

func (k *keep) close() {
	for _, c := range k.conns {
		_ = c.Close()
	}
}

// open is how many the controller has not closed.
func (k *keep) open() int {
	var open atomic.Int64
	soon := time.Now().Add(2 * time.Second)
	many(len(k.conns), len(k.conns), func(i int) {
		_ = k.conns[i].SetReadDeadline(soon)
		_, err := io.Copy(io.Discard, k.conns[i])
		if n, ok := errors.AsType[net.Error](err); ok && n.Timeout() {
			open.Add(1)
		}
	})
	return int(open.Load())
}

// idle connects, asks once and falls silent; every other does not even ask.
func (l *loaded) idle(t *testing.T) {
	var k keep
	defer k.close()
	many(*idle, 64, func(i int) {
		conn, err := l.dial()
		if err != nil {
			return // the next one's place was taken: that is the point
		}
		k.add(conn)
		if i%2 == 0 {
			_, _ = io.WriteString(conn, "GET /version HTTP/1.1\r\nHost: x\r\n\r\n")
			_, _ = conn.Read(make([]byte, 4096))
		}
	})
	if len(k.conns) < *idle/2 {
		t.Fatalf("only %d of %d connections came about", len(k.conns), *idle)
	}
	l.judge(t)
	if open := k.open(); open > maxConnections {
		t.Errorf("%d of %d connections are still open, want %d at most", open, len(k.conns), maxConnections)
	}
}

// slow sends half a header, or a header and a byte of its body.
func (l *loaded) slow(t *testing.T) {
	var k keep
	defer k.close()
	many(*slow, 64, func(i int) {
		conn, err := l.dial()
		if err != nil {
			return
		}
		k.add(conn)
		head := "POST /edge/client/v1/authenticate?method=password HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
		if i%2 == 0 {
			head += "Content-Length: 60000\r\n\r\n{"
		}
		_, _ = io.WriteString(conn, head)
	})
	l.judge(t)
}

// large sends bodies of 100 MiB, announced or not.
func (l *loaded) large(t *testing.T) {
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: l.tls.Clone(), ForceAttemptHTTP2: true}, Timeout: waitTime}
	defer client.CloseIdleConnections()
	zeros := func() io.Reader { return io.LimitReader(zero{}, 100<<20) }
	done := make(chan map[int]int)
	go func() {
		var mu sync.Mutex
		got := map[int]int{}
		many(*bodies, *bodies, func(i int) {
			req, err := http.NewRequest(http.MethodPost, "https://"+l.address+"/edge/client/v1/authenticate?method=password", zeros())
			if err != nil {
				return
			}
			req.Header.Set("Content-Type", "application/json")
			if i%2 == 0 {
				req.ContentLength = 100 << 20
			}
			status := 0
			if resp, err := client.Do(req); err == nil {
				status = resp.StatusCode
				_ = resp.Body.Close()
			}
			mu.Lock()
			defer mu.Unlock()
			got[status]++
		})
		done <- got
	}()
	l.judge(t)
	for status, n := range <-done {
		if status != 0 && status != http.StatusRequestEntityTooLarge && status != http.StatusServiceUnavailable {
			t.Errorf("%d bodies of 100 MiB are answered %d", n, status)
		}
	}
	l.judge(t)
}

type zero struct{}

func (zero) Read(p []byte) (int, error) { clear(p); return len(p), nil }
