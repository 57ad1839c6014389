package command_test

import (
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// line is a connection to a controller that can be cut after so many bytes.
type line struct {
	t  *testing.T
	to string

	mu    sync.Mutex
	sent  int64 // by the client, over all connections
	cutAt int64 // after so many; 0 for never
	whole bool  // whether what the client sends after that still arrives
	cut   bool
}

// listen accepts connections until the test ends.
func (l *line) listen() (address string) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		l.t.Fatal(err)
	}
	var all sync.WaitGroup
	l.t.Cleanup(func() {
		_ = listener.Close()
		all.Wait()
	})
	all.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			all.Go(func() { l.carry(conn) })
		}
	})
	return listener.Addr().String()
}

// carry takes bytes both ways until the line is cut.
func (l *line) carry(client net.Conn) {
	defer client.Close()
	server, err := net.Dial("tcp", l.to)
	if err != nil {
		return
	}
	defer server.Close()
	back := make(chan struct{})
	ear := &muted{Conn: client}
	go func() {
		defer close(back)
		_, _ = io.Copy(ear, server)
		_ = client.Close()
	}()
	buf := make([]byte, 16<<10)
	for {
		n, err := client.Read(buf)
		if err != nil {
			break
		}
		forward, now, whole := l.count(n)
		if now && whole {
			// The request arrives, and its answer does not.
			ear.deaf.Store(true)
			if _, err := server.Write(buf[:n]); err == nil {
				l.drain(client, server, buf)
			}
			break
		}
		if now {
			_, _ = server.Write(buf[:forward])
			break
		}
		if _, err := server.Write(buf[:n]); err != nil {
			break
		}
	}
	_ = client.Close()
	_ = server.Close()
	<-back
}

// muted is a client that hears nothing from some moment on.
type muted struct {
	net.Conn
	deaf atomic.Bool
}

func (m *muted) Write(p []byte) (int, error) {
	if m.deaf.Load() {
		return len(p), nil
	}
	return m.Conn.Write(p)
}

// drain passes on what a client still sends, and holds the answer back.
func (l *line) drain(client, server net.Conn, buf []byte) {
	for {
		_ = client.SetReadDeadline(time.Now().Add(2 * time.Second))
		n, err := client.Read(buf)
		if err != nil {
			return
		}
		if _, err := server.Write(buf[:n]); err != nil {
			return
		}
	}
}

// count notes what the client sent, and says whether the line is cut now.
func (l *line) count(n int) (forward int, now, whole bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.sent += int64(n)
	if l.cutAt == 0 || l.cut || l.sent < l.cutAt {
		return n, false, false
	}
	l.cut = true
	return n / 2, true, l.whole
}

// total is what clients have sent.
func (l *line) total() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.sent
}

// arm has the line cut after so many more bytes.
func (l *line) arm(whole bool, after int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cut, l.whole, l.cutAt = false, whole, l.sent+after
}

func (l *line) wasCut() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.cut
}

// TestLostConnection applies files over a line that breaks: in the middle of
// the request, and after it. Either way it is said what became of the changes.
func TestLostConnection(t *testing.T) {
	dir := t.TempDir()
	c, err := start(t, dir)
	if err != nil {
		t.Fatal(err)
	}
	defer c.stop()
	l := &line{t: t, to: c.address}
	address := l.listen()
	netkeep := func(args ...string) (string, error) {
		cmd := exec.CommandContext(t.Context(), filepath.Join(bin, "netkeep"), args...)
		cmd.Dir, cmd.Env = dir, []string{"HOME=" + dir, "NETKEEP_PASSWORD=" + password}
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	if out, err := netkeep("login", address, "--fingerprint", c.fingerprint); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	var files strings.Builder
	files.WriteString("services:\n")
	const many = 100 // whose list the client sends without waiting for the server
	for i := range many {
		fmt.Fprintf(&files, "  - {name: service-%d, roleAttributes: [some, of, them]}\n", i)
	}
	if err := os.WriteFile(filepath.Join(dir, "services.yaml"), []byte(files.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	before := l.total()
	if out, err := netkeep("plan", "services.yaml"); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	toPlan := l.total() - before
	for _, test := range []struct {
		whole bool
		says  string
		made  int
	}{{false, "none of the 100 changes was made; do the same again", 0}, {true, "All 100 changes were made.", many}} {
		l.arm(test.whole, toPlan+3<<10)
		out, err := netkeep("apply", "services.yaml", "--yes")
		if !l.wasCut() {
			t.Fatalf("the line was not cut: %v\n%s", err, out)
		}
		if (err == nil) != test.whole || !strings.Contains(out, test.says) {
			t.Errorf("with whole %t: %v\n%s", test.whole, err, out)
		}
		names, err := netkeep("list", "services", "-o", "name")
		if made := strings.Count(names, "service-"); err != nil || made != test.made {
			t.Errorf("with whole %t there are %d services, want %d: %v", test.whole, made, test.made, err)
		}
	}
}
