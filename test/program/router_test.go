package program_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// online waits until all edge routers are, or none of them.
func (c *client) online(t *testing.T, p *process, want int) {
	t.Helper()
	deadline := time.Now().Add(waitTime)
	for {
		n := 0
		for _, r := range c.list(t, "edge-routers") {
			if r["isOnline"] == true {
				n++
			}
		}
		if n == want {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d routers are online, not %d: %s", n, want, p.stderr.String())
		}
		select {
		case <-p.ended:
			t.Fatalf("the process ended: %s", p.stderr.String())
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// maxRouter is how much memory a router takes that has nothing to do. How much
// of the program itself lies in memory is left out: the kernel decides it, maps
// in what lies beside what is used, and takes it back when it likes.
const maxRouter = 16 << 20

// TestRouter runs a router beside the controller: it takes little memory, and
// ends at a signal.
func TestRouter(t *testing.T) {
	dir := t.TempDir()
	data := filepath.Join(dir, "data")
	p := controller(t, data, "--router", "127.0.0.1:0")
	c := p.client(data)
	c.online(t, p, 1)
	if text := p.stdout.String(); !strings.Contains(text, "A router for clients is at 127.0.0.1:") {
		t.Errorf("it says %s", text)
	}
	id := c.must(t, 201, "POST", "edge-routers", M{"name": "beside"}).id()
	token := c.must(t, 200, "GET", "edge-routers/"+id, nil).body["data"].(M)["enrollmentJwt"].(string)
	home := filepath.Join(dir, "router")
	enrolled := launch(t, settings{args: []string{"router", "enroll", token, "--data", home, "--listen", "127.0.0.1:0", "--metrics-listen", "off"}})
	if code := enrolled.wait(); code != 0 {
		t.Fatalf("enrolling ended with %d: %s", code, enrolled.stderr.String())
	}
	for _, signal := range []os.Signal{syscall.SIGTERM, os.Interrupt} {
		r := launch(t, settings{args: []string{"router", "run", "--data", home}})
		c.online(t, r, 2)
		if took := anonymous(t, r); took > maxRouter {
			t.Errorf("a router takes %d MiB, more than %d", took>>20, maxRouter>>20)
		}
		r.signal(signal)
		if code := r.wait(); code != 0 {
			t.Errorf("it ended with %d: %s", code, r.stderr.String())
		}
		c.online(t, p, 1)
	}
	p.stop()
}

// anonymous is the memory that a process has of its own.
func anonymous(t *testing.T, p *process) int64 {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	var kib int64
	_, rest, _ := strings.Cut(string(status), "RssAnon:")
	if _, err := fmt.Sscan(rest, &kib); err != nil {
		t.Fatal(err)
	}
	return kib << 10
}
