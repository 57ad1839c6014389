// Package router tests routers of our own on a machine: as they are enrolled,
// run, stopped and looked after, against a real controller.
package router

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"netkeep.internal/internal/run/cli"
	"netkeep.internal/test/servertest"
)

// M is a JSON object.
type M = servertest.M

const (
	management = "/edge/management/v1/"
	// soon is how long anything may take that happens at once.
	soon = time.Minute
)

// output is what a program says, while it runs.
type output struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// netkeep runs the program until ctx ends, at a time, and returns its exit code
// and all that it said.
func netkeep(ctx context.Context, now func() time.Time, out *output, args ...string) int {
	return cli.Main(ctx, cli.Env{
		Program: "netkeep", Args: args, Environ: []string{"HOME=/nonexistent"}, Stdin: strings.NewReader(""), Stdout: out, Stderr: out, Now: now,
	})
}

// says runs the program, which must end with a code and have said some words in
// one line of its own.
func says(t *testing.T, code int, words string, args ...string) {
	t.Helper()
	saysAt(t, time.Now, code, words, args...)
}

func saysAt(t *testing.T, now func() time.Time, code int, words string, args ...string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), soon)
	defer cancel()
	out := new(output)
	got := netkeep(ctx, now, out, args...)
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if last := lines[len(lines)-1]; got != code || !strings.Contains(out.String(), words) || code != 0 && (len(lines) > 1 || !strings.HasPrefix(last, "netkeep: ")) {
		t.Errorf("netkeep %q ended with %d and said %q; want %d and %q", args, got, out, code, words)
	}
}

// place is a router's directory.
type place struct {
	id, dir string
	server  *servertest.Server
}

// invite creates an edge router and returns its token in a file.
func invite(t *testing.T, s *servertest.Server) (id, file string) {
	t.Helper()
	admin := s.Admin(t)
	id = admin.Post(management+"edge-routers", M{"name": servertest.Unique("router")}).Want(201).ID()
	jwt := admin.Get(management + "edge-routers/" + id).Want(200).Data()["enrollmentJwt"].(string)
	file = filepath.Join(t.TempDir(), "router.jwt")
	if err := os.WriteFile(file, []byte(jwt), 0o600); err != nil {
		t.Fatal(err)
	}
	return id, file
}

// enroll sets up a router with the command.
func enroll(t *testing.T, s *servertest.Server) *place {
	t.Helper()
	p := &place{server: s, dir: filepath.Join(t.TempDir(), "router")}
	var token string
	p.id, token = invite(t, s)
	says(t, 0, "netkeep router run", "router", "enroll", token, "--data", p.dir, "--listen", "127.0.0.1:0", "--advertise", "localhost", "--metrics-listen", "127.0.0.1:0")
	return p
}

// run runs the router with the command until the test ends or stop is called,
// which returns the exit code.
func (p *place) run(t *testing.T) (out *output, stop func() int) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	out = new(output)
	ended := make(chan int, 1)
	go func() { ended <- netkeep(ctx, time.Now, out, "router", "run", "--data", p.dir) }()
	stop = sync.OnceValue(func() int {
		cancel()
		select {
		case code := <-ended:
			return code
		case <-time.After(soon):
			t.Error("the router does not stop")
			return -1
		}
	})
	t.Cleanup(func() {
		if code := stop(); code != 0 && !t.Failed() {
			t.Errorf("the router ended with %d: %s", code, out)
		}
	})
	return out, stop
}

// online waits until the controller says whether the router is there.
func (p *place) online(t *testing.T, want bool) M {
	t.Helper()
	var got M
	servertest.Eventually(t, soon, "the router is online or not", func() bool {
		got = p.server.Admin(t).Get(management + "edge-routers/" + p.id).Want(200).Data()
		return got["isOnline"] == want && (!want || got["syncStatus"] == "SYNC_DONE")
	})
	return got
}

// logged waits for a line of the log and returns a value in it.
func logged(t *testing.T, out *output, line, key string) (value string) {
	t.Helper()
	servertest.Eventually(t, soon, "the log says "+line, func() bool {
		for text := range strings.Lines(out.String()) {
			if !strings.Contains(text, `"msg":"`+line+`"`) {
				continue
			}
			_, rest, _ := strings.Cut(text, `"`+key+`":"`)
			value, _, _ = strings.Cut(rest, `"`)
			return true
		}
		return false
	})
	return value
}

// get asks monitoring.
func get(t *testing.T, url string) (int, string) {
	t.Helper()
	client := &http.Client{Timeout: soon}
	defer client.CloseIdleConnections()
	res, err := client.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, string(body)
}
