package program_test

import (
	"encoding/json"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"netkeep.internal/test/machine"
)

// standing is what a tunneler reports, as far as the test looks at it.
type standing struct {
	PID        int
	Identities []struct {
		Name, Controller string
		Connected        bool
		Services         int
		Routers          []struct {
			Name      string
			Connected bool
		}
	}
	Hosted []struct {
		Service, Identity, Target string
		Routers                   int
		Checks                    []struct{ Known, Well bool }
		Total, Sent, Received     int64
	}
	Ports []struct {
		Service, Address, Protocol, Identity string
		Open, Total, Sent, Received          int64
	}
	Connections struct{ Open, Total int64 }
	Errors      []struct{ At, Text string }
}

// statusOf asks the tunnelers that have their sockets in a directory.
func statusOf(t *testing.T, runs string, args ...string) (all []standing, text string, code int) {
	t.Helper()
	asked := launch(t, settings{args: append([]string{"tunnel", "status"}, args...), env: []string{"XDG_RUNTIME_DIR=" + runs}})
	code = asked.wait()
	text = asked.stdout.String()
	if code != 0 {
		return nil, asked.stderr.String(), code
	}
	if len(args) > 0 && args[0] == "--json" {
		if err := json.Unmarshal([]byte(text), &all); err != nil {
			t.Fatalf("%v: %s", err, text)
		}
	}
	return all, text, code
}

// runtimeDir is a directory for sockets, whose path is short enough.
func runtimeDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "nk")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

// TestTunnelStatus asks a tunneler how it stands: while nothing may be used yet, when
// a service has come that it is told of though it hardly ever asks, and after it was
// killed and another was started.
func TestTunnelStatus(t *testing.T) {
	dir, runs := t.TempDir(), runtimeDir(t)
	data := filepath.Join(dir, "data")
	p := controller(t, data, "--router", "127.0.0.1:0")
	c := p.client(data)
	c.online(t, p, 1)
	_, file := c.addTunneler(t, dir, "tunneler")

	if _, said, code := statusOf(t, runs, "tunneler"); code != 1 || !strings.Contains(said, "no tunneler runs here") {
		t.Errorf("nothing runs: %d, %s", code, said)
	}
	port := machine.Port(t)
	start := func() *process {
		return launch(t, settings{
			args: []string{"tunnel", "run", "--identity", file, "--poll", "1h", "--drain", "0s", "echo:" + port},
			env:  []string{"XDG_RUNTIME_DIR=" + runs},
		})
	}
	tunnel := start()
	tunnel.logs("a port is open, and nobody who is logged in here may dial its service")
	all, _, _ := statusOf(t, runs, "--json", "tunneler")
	if len(all) != 1 || all[0].PID != tunnel.cmd.Process.Pid || len(all[0].Identities) != 1 || !all[0].Identities[0].Connected || all[0].Identities[0].Controller == "" {
		t.Fatalf("it tells %+v", all)
	}
	if r := all[0]; len(r.Ports) != 1 || r.Ports[0].Identity != "" || len(r.Hosted) != 0 || !strings.Contains(errorsOf(r), "echo") {
		t.Errorf("before there is a service it tells %+v", r)
	}

	c.addEcho(t)
	for _, typ := range []string{"Dial", "Bind"} {
		c.must(t, 201, "POST", "service-policies", M{"name": typ, "type": typ, "semantic": "AnyOf", "identityRoles": []string{"#all"}, "serviceRoles": []string{"#all"}})
	}
	conn := dialEcho(t, port)
	defer conn.Close()
	all, _, _ = statusOf(t, runs, "--json", "tunneler")
	lookAt(t, all[0], port)
	if _, said, _ := statusOf(t, runs, "tunneler"); !strings.Contains(said, "127.0.0.1:"+port+"/tcp") || !strings.Contains(said, "not checked") || !strings.Contains(said, "local-router") {
		t.Errorf("it shows\n%s", said)
	}
	if _, said, code := statusOf(t, runs, "someone"); code != 1 || !strings.Contains(said, "someone") {
		t.Errorf("somebody else's: %d, %s", code, said)
	}

	if err := tunnel.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	tunnel.wait()
	if _, said, code := statusOf(t, runs, "tunneler"); code != 1 || !strings.Contains(said, "no tunneler runs here") {
		t.Errorf("after it was killed: %d, %s", code, said)
	}
	tunnel = start()
	tunnel.logs("a port leads to a service")
	if left, _ := filepath.Glob(filepath.Join(runs, "netkeep", "*")); len(left) != 1 || filepath.Base(left[0]) != strconv.Itoa(tunnel.cmd.Process.Pid)+".sock" {
		t.Errorf("there are %v", left)
	}
	tunnel.signal(os.Interrupt)
	tunnel.wait()
	if left, _ := os.ReadDir(filepath.Join(runs, "netkeep")); len(left) != 0 {
		t.Errorf("a tunneler that has stopped leaves %v", left)
	}
	p.stop()
}

// lookAt looks at a report of a tunneler with one connection to itself.
func lookAt(t *testing.T, r standing, port string) {
	t.Helper()
	if len(r.Hosted) != 1 || len(r.Ports) != 1 || len(r.Identities) != 1 {
		t.Fatalf("it tells %+v", r)
	}
	host, proxy, who := r.Hosted[0], r.Ports[0], r.Identities[0]
	if host.Service != "echo" || host.Identity != "tunneler" || !strings.HasPrefix(host.Target, "tcp 127.0.0.1:") || host.Routers != 1 || host.Total < 1 || host.Received < 1 || host.Sent < 1 {
		t.Errorf("it hosts %+v", host)
	}
	if proxy.Address != net.JoinHostPort("127.0.0.1", port) || proxy.Protocol != "tcp" || proxy.Identity != "tunneler" || proxy.Open < 1 || proxy.Sent < 1 || proxy.Received < 1 {
		t.Errorf("its port is %+v", proxy)
	}
	if who.Name != "tunneler" || who.Services != 1 || len(who.Routers) != 1 || !who.Routers[0].Connected {
		t.Errorf("it acts for %+v", who)
	}
	if r.Connections.Open < 2 || r.Connections.Total < r.Connections.Open {
		t.Errorf("connections: %+v", r.Connections)
	}
}

func errorsOf(r standing) (text string) {
	for _, e := range r.Errors {
		text += e.Text + "\n"
	}
	return text
}

// TestTunnelSocket names the socket: what can not be one is said before anything else.
func TestTunnelSocket(t *testing.T) {
	dir := runtimeDir(t)
	identity, file, open := filepath.Join(dir, "i.json"), filepath.Join(dir, "file"), filepath.Join(dir, "s")
	for _, path := range []string{identity, file} {
		if err := os.WriteFile(path, []byte("{}"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	l, err := net.Listen("unix", open)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for path, want := range map[string]string{file: "there is a file of that name", open: "somebody answers there already"} {
		run := launch(t, settings{args: []string{"tunnel", "host", "--identity", identity, "--socket", path}})
		if code := run.wait(); code != 1 || !strings.Contains(run.stderr.String(), want) {
			t.Errorf("%s: %d, %s", path, code, run.stderr.String())
		}
	}
	ask := launch(t, settings{args: []string{"tunnel", "status", "--socket", filepath.Join(dir, "none")}})
	if code := ask.wait(); code != 1 || !strings.Contains(ask.stderr.String(), "nobody answers there") {
		t.Errorf("%d, %s", code, ask.stderr.String())
	}
}
