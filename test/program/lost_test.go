package program_test

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"netkeep.internal/test/machine"
)

// TestLostWithTheController kills a controller with the router in it that a
// connection from another router leads to. The connection ends, whether the
// controller comes back or not, and nothing of it stays in the list.
func TestLostWithTheController(t *testing.T) {
	t.Parallel() // it waits more than it works
	dir := t.TempDir()
	data := filepath.Join(dir, "data")
	at := "127.0.0.1:" + machine.Port(t)
	p := controller(t, data, "--router", "127.0.0.1:0", "--listen", at)
	c := p.client(data)
	c.online(t, p, 1)
	var local string
	for local = range c.list(t, "edge-routers") {
	}
	branch := c.must(t, 201, "POST", "edge-routers", M{"name": "branch"}).id()
	token := c.must(t, 200, "GET", "edge-routers/"+branch, nil).body["data"].(M)["enrollmentJwt"].(string)
	home := filepath.Join(dir, "branch")
	if enrolled := launch(t, settings{args: []string{"router", "enroll", token, "--data", home, "--listen", "127.0.0.1:0", "--metrics-listen", "off"}}); enrolled.wait() != 0 {
		t.Fatalf("the router cannot enroll: %s", enrolled.stderr.String())
	}
	r := launch(t, settings{args: []string{"router", "run", "--data", home}})
	c.online(t, r, 2)
	c.addEcho(t)
	for policy := range c.list(t, "edge-router-policies") {
		c.must(t, 200, "DELETE", "edge-router-policies/"+policy, nil)
	}
	files := map[string]string{}
	for name, what := range map[string]struct{ typ, router string }{"host": {"Bind", local}, "laptop": {"Dial", branch}} {
		id, file := c.addTunneler(t, dir, name)
		files[name] = file
		c.must(t, 201, "POST", "service-policies", M{"name": name, "type": what.typ, "semantic": "AnyOf", "identityRoles": []string{"@" + id}, "serviceRoles": []string{"#all"}})
		c.must(t, 201, "POST", "edge-router-policies", M{"name": name, "semantic": "AnyOf", "identityRoles": []string{"@" + id}, "edgeRouterRoles": []string{"@" + what.router}})
	}
	host := launch(t, settings{args: []string{"tunnel", "host", "--identity", files["host"]}})
	port := machine.Port(t)
	tunnel := launch(t, settings{args: []string{"tunnel", "run", "--identity", files["laptop"], "echo:" + port}})
	down, back := dialEcho(t, port), dialEcho(t, port)
	defer down.Close()
	defer back.Close()

	p.signal(syscall.SIGKILL)
	p.wait()
	began := time.Now()
	over(t, down, tunnel)
	t.Logf("without a controller it ended after %v", time.Since(began))
	over(t, back, tunnel)
	p = controller(t, data, "--router", "127.0.0.1:0", "--listen", at)
	c = p.client(data)
	c.online(t, p, 2)
	deadline := time.Now().Add(waitTime)
	for len(c.list(t, "/fabric/v1/circuits")) > 0 {
		if time.Now().After(deadline) {
			t.Fatalf("still listed: %v", c.list(t, "/fabric/v1/circuits"))
		}
		<-time.After(100 * time.Millisecond)
	}
	for _, one := range []*process{tunnel, host, r, p} {
		one.stop()
	}
}

// over fails the test unless a connection ends by itself.
func over(t *testing.T, conn net.Conn, p *process) {
	t.Helper()
	_ = conn.SetDeadline(time.Now().Add(3 * waitTime))
	if _, err := conn.Read(make([]byte, 1)); errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatalf("the connection hangs: %s", tail(p.stderr.String(), 2000))
	}
}
