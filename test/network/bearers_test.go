package network

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// comers are clients by how they log in: that of 1.5.0 takes OpenID Connect where it is
// offered, and that of 1.1.0 where its file says so.
var comers = []struct {
	client
	bears bool
}{
	{client{"1.5.0", func() string { return programs.newer }, nil}, true},
	{client{"1.5.0-flow", func() string { return programs.newer }, []string{"-flow"}}, true},
	{client{"1.1.0", func() string { return programs.peer }, nil}, true},
	{client{"1.1.0-before", func() string { return programs.peer }, nil}, false},
}

// bearing has the SDK 1.1.0 log in by OpenID Connect with an identity.
func (n *network) bearing(identity string) string {
	n.t.Helper()
	text, err := os.ReadFile(identity)
	if err != nil {
		n.t.Fatal(err)
	}
	said := M{}
	if err := json.Unmarshal(text, &said); err != nil {
		n.t.Fatal(err)
	}
	said["enableHa"] = true
	var changed bytes.Buffer
	if err := json.NewEncoder(&changed).Encode(said); err != nil {
		n.t.Fatal(err)
	}
	return n.write("bearing-"+filepath.Base(identity), changed.String())
}

// count is how many lines it has said that hold some texts.
func (p *process) count(texts ...string) (n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, line := range p.lines {
		missing := func(text string) bool { return !strings.Contains(line, text) }
		if !slices.ContainsFunc(texts, missing) {
			n++
		}
	}
	return n
}

// TestBearers has clients that log in by OpenID Connect dial and host at a public router
// of 1.6, beside others that do not, and then takes away what lets them.
func TestBearers(t *testing.T) {
	t.Parallel()
	n := newNetwork(t, bearing)
	n.ziti("edge", "login", "--yes", "https://"+n.address, "-u", "admin", "-p", password)
	n.addRouter("router")
	host, dialer := n.addIdentity("host"), n.addIdentity("dialer")
	files := map[bool][2]string{false: {host, dialer}, true: {n.bearing(host), n.bearing(dialer)}}
	n.everyone()
	n.allow("Bind", "host")
	policy := n.allow("Dial", "dialer")
	hosting := make([]*process, len(comers))
	for _, bears := range []bool{true, false} {
		for i, c := range comers {
			if c.bears == bears {
				n.create("services", M{"name": c.name, "encryptionRequired": true})
				hosting[i] = start(t, n.dir, nil, c.program(), c.args("host", files[bears][0], c.name)...)
				hosting[i].says(t, "hosting "+c.name, 0)
			}
		}
		if logins := n.control.count("operation=authenticate", "name=host"); bears != (logins == 0) {
			t.Errorf("%d have logged in the other way", logins)
		}
	}
	for _, c := range comers {
		out, err := exec.Command(c.program(), c.args("dial", files[c.bears][1], c.name, "3000000", "4")...).CombinedOutput()
		if err != nil || !strings.Contains(string(out), "ok connections=4") {
			t.Errorf("%s: %v\n%s", c.name, err, out)
		}
	}
	dialers := n.list(`identities?filter=name="dialer"`)[0]["id"].(string)
	for _, loss := range []struct {
		what       string
		take, back func()
		within     time.Duration
	}{
		{"policy", func() { n.call("DELETE", "service-policies/"+policy, nil) }, func() { policy = n.allow("Dial", "dialer") }, 20 * time.Second},
		{"session", func() {
			for _, s := range n.list(`sessions?limit=500&filter=type="Dial"`) {
				n.call("DELETE", "sessions/"+s["id"].(string), nil)
			}
		}, func() {}, 20 * time.Second},
		{"login", func() {
			for _, s := range n.list(`api-sessions?limit=500&filter=identity="` + dialers + `"`) {
				n.call("DELETE", "api-sessions/"+s["id"].(string), nil)
			}
		}, func() {}, 10 * time.Second},
	} {
		t.Run(loss.what, func(t *testing.T) {
			cutOff(t, hosting, func(i int) *process {
				c := comers[i]
				return start(t, n.dir, nil, c.program(), c.args("hold", files[c.bears][1], c.name)...)
			}, loss.take, loss.within)
			loss.back()
		})
	}
	t.Run("device", func(t *testing.T) {
		// Routers of 1.6 take no reports: the SDK looks every ten seconds, and tells the
		// controller.
		must := programs.switchboard
		check := n.create("posture-checks", M{"name": "runs", "typeId": "PROCESS", "roleAttributes": []string{"runs"}, "process": M{"osType": "Linux", "path": must}})
		n.call("PATCH", "service-policies/"+policy, M{"postureCheckRoles": []string{"@" + check}})
		c, file := comers[0], files[true][1]
		leads := start(t, n.dir, nil, c.program(), c.args("lead", file, c.name)...)
		line, _ := leads.says(t, "leading from", 0)
		dial := func() (conn net.Conn, said string) {
			conn, err := net.Dial("tcp", strings.TrimPrefix(line, "leading from "))
			if err == nil {
				_, err = fmt.Fprintln(conn, c.name)
			}
			if err == nil {
				said, err = bufio.NewReader(conn).ReadString('\n')
			}
			if err != nil {
				t.Fatal(err)
			}
			return conn, said
		}
		if _, said := dial(); !strings.Contains(said, "does not pass the posture checks") {
			t.Errorf("a dial without the program that must run: %s", said)
		}
		runs := start(t, n.dir, nil, must)
		var conn net.Conn
		n.eventually("a dial with the program", func() bool {
			var said string
			conn, said = dial()
			return said == "+\n"
		})
		from := hosting[0].next()
		runs.kill(syscall.SIGKILL)
		_ = conn.SetReadDeadline(time.Now().Add(soon))
		if _, err := conn.Read(make([]byte, 1)); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("the connection goes on without the program: %v", err)
		}
		hosting[0].says(t, "ended", from)
	})
}

// TestOffered has a public router of 1.6 be started under a controller that makes the offer
// to clients while all routers take them, and a client take the offer then.
func TestOffered(t *testing.T) {
	t.Parallel()
	n := newNetwork(t, "--oidc-enabled=auto")
	offered := func() bool {
		_, made := n.call("GET", "/edge/client/v1/version", nil)["apiVersions"].(M)["edge-oidc"]
		return made
	}
	n.ziti("edge", "login", "--yes", "https://"+n.address, "-u", "admin", "-p", password)
	if offered() {
		t.Error("the offer is made without any router")
	}
	r := n.addRouter("router")
	n.eventually("the offer is made", offered)
	r.kill(syscall.SIGKILL)
	r.start()
	if !offered() {
		t.Error("the offer is not made any more as the router was started again")
	}
	host := n.addIdentity("host")
	n.everyone()
	n.allow("Bind", "host")
	n.create("services", M{"name": "echo", "encryptionRequired": true})
	hosting := start(t, n.dir, nil, programs.newer, "host", host, "echo")
	hosting.says(t, "hosting echo", 0)
	if logins := n.control.count("operation=authenticate", "name=host"); logins > 0 {
		t.Errorf("it has logged in the other way, %d times", logins)
	}
}
