package program_test

import (
	"encoding/csv"
	"fmt"
	"os"
	"path/filepath"
	"slices"
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
	again := []string{"router", "enroll", "gone.jwt", "--data", home, "--advertise", "127.0.0.1", "--once"}
	if code := launch(t, settings{args: again}).wait(); code != 0 {
		t.Errorf("a router that has enrolled once does so again: %d", code)
	}
	launch(t, settings{args: again[:len(again)-1]}).fails("gone.jwt")
	for _, signal := range []os.Signal{syscall.SIGTERM, os.Interrupt} {
		r := launch(t, settings{args: []string{"router", "run", "--data", home}})
		c.online(t, r, 2)
		listed(t, p, data)
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

// listed tests that the list of edge routers says of one that is online since
// when it is, at which controller, and what it runs.
func listed(t *testing.T, p *process, data string) {
	t.Helper()
	env := []string{"HOME=" + t.TempDir(), "NETKEEP_PASSWORD=" + password}
	for _, args := range [][]string{
		{"login", p.ready(), "--username", "admin", "--ca", filepath.Join(data, "pki", "root.crt")},
		{"list", "edge-routers", "--filter", `name = "beside"`, "-o", "csv"},
	} {
		cmd := launch(t, settings{args: args, env: env})
		if code := cmd.wait(); code != 0 {
			t.Fatalf("%v ended with %d: %s", args, code, cmd.stderr.String())
		}
		if args[0] != "list" {
			continue
		}
		rows, err := csv.NewReader(strings.NewReader(cmd.stdout.String())).ReadAll()
		if err != nil || len(rows) != 2 || !slices.Equal(rows[0][:5], []string{"name", "online", "since", "controller", "version"}) {
			t.Fatalf("it is listed as %q: %v", rows, err)
		}
		row := rows[1]
		since, err := time.Parse(time.RFC3339, row[2])
		if err != nil || time.Since(since) < -time.Second || time.Since(since) > time.Hour || !strings.HasPrefix(row[3], "netkeep-") || row[4] == "" {
			t.Errorf("it is listed as %q: %v", row, err)
		}
	}
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
