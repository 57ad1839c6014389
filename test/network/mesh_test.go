package network

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
)

// mesh is five routers: a way of three links from the first to the fourth, and
// a shorter one over the fifth that costs more.
type mesh struct {
	*network
	routers      map[string]*router
	host, dialer string
}

func newMesh(t *testing.T) *mesh {
	t.Helper()
	m := &mesh{network: newNetwork(t), routers: map[string]*router{}}
	m.ziti("edge", "login", "--yes", "https://"+m.address, "-u", "admin", "-p", password)
	for name, links := range map[string][]string{
		"r1": {"l12", "l15"}, "r2": {"l12", "l23"}, "r3": {"l23", "l34"}, "r4": {"l34", "l54"}, "r5": {"l15", "l54"},
	} {
		m.routers[name] = m.addRouter(name, links...)
	}
	m.call("PATCH", "edge-routers/"+m.routers["r5"].id, M{"cost": 60000})
	m.host, m.dialer = m.addIdentity("host"), m.addIdentity("dialer")
	m.create("service-edge-router-policies", M{"name": "all", "semantic": "AnyOf", "serviceRoles": []string{"#all"}, "edgeRouterRoles": []string{"#all"}})
	for identity, at := range map[string]string{"host": "r4", "dialer": "r1"} {
		m.create("edge-router-policies", M{
			"name": identity, "semantic": "AnyOf", "identityRoles": []string{"#" + identity}, "edgeRouterRoles": []string{"@" + m.routers[at].id},
		})
	}
	m.create("services", M{"name": "echo", "encryptionRequired": true})
	m.allow("Bind", "host")
	m.allow("Dial", "dialer")
	m.eventually("all links are there, and measured", func() bool {
		links := m.fabric("links")
		for _, l := range links {
			if l["cost"].(float64) > 10_000 {
				return false
			}
		}
		return len(links) == 5
	})
	return m
}

// fabric lists what there is at a path of the Fabric API.
func (m *mesh) fabric(path string) []M {
	m.t.Helper()
	return m.list("/fabric/v1/" + path)
}

// paths are the routers on the way of each circuit, by name.
func (m *mesh) paths() []string {
	m.t.Helper()
	var all []string
	for _, c := range m.fabric("circuits") {
		var names []string
		for _, node := range c["path"].(M)["nodes"].([]any) {
			names = append(names, node.(M)["name"].(string))
		}
		all = append(all, strings.Join(names, " "))
	}
	return all
}

// move gives a router other addresses, for when it comes back.
func (r *router) move() {
	r.n.t.Helper()
	path := filepath.Join(r.n.dir, r.name+".yml")
	text, err := os.ReadFile(path)
	if err != nil {
		r.n.t.Fatal(err)
	}
	lines := strings.Split(string(text), "\n")
	for i, line := range lines {
		if strings.Contains(line, "ctrl:") {
			continue
		}
		if old := addresses.FindString(line); old != "" {
			lines[i] = strings.ReplaceAll(line, old, free(r.n.t))
		}
	}
	r.n.write(r.name+".yml", strings.Join(lines, "\n"))
}

var addresses = regexp.MustCompile(`127\.0\.0\.1:\d+`)

// TestMesh sends traffic over several routers, and takes one after the other
// away.
func TestMesh(t *testing.T) {
	t.Parallel()
	m := newMesh(t)
	hosting := start(t, m.dir, nil, programs.peer, "host", m.host, "echo")
	hosting.says(t, "hosting echo", 0)
	hold := start(t, m.dir, nil, programs.peer, "hold", m.dialer, "echo")
	_, from := hold.says(t, "word 10", 0)
	if got := m.paths(); len(got) != 1 || got[0] != "r1 r2 r3 r4" {
		t.Fatalf("the way is %q", got)
	}

	// A transfer goes on while the router in the middle dies.
	transfer := start(t, m.dir, nil, programs.peer, "dial", m.dialer, "echo", "67108864")
	transfer.says(t, "1/8 is back", 0)
	m.routers["r3"].kill(syscall.SIGKILL)
	line, _ := transfer.says(t, "ok ", 0)
	t.Logf("64 MiB while the router in the middle is killed: %s", line)
	_, from = hold.says(t, "word", from)
	m.eventually("the way is the other one, and the transfer's circuit is gone", func() bool {
		got := m.paths()
		return len(got) == 1 && got[0] == "r1 r5 r4"
	})
	m.routers["r3"].start()

	// Every router on the way is killed and comes back; the connection stays.
	for _, name := range []string{"r5", "r2", "r3", "r5"} {
		m.eventually("all links are there", func() bool { return len(m.fabric("links")) == 5 })
		m.routers[name].kill(syscall.SIGKILL)
		_, from = hold.says(t, "word", from)
		_, from = hold.says(t, "word", from)
		m.routers[name].move()
		m.routers[name].start("--extend")
		_, from = hold.says(t, "word", from)
		t.Logf("%s was killed and came back elsewhere, with new certificates; the way is %q", name, m.paths())
	}

	// A controller that restarts finds the path again, and can still change it.
	m.control.kill(syscall.SIGKILL)
	m.startController()
	m.login()
	m.eventually("a part of the circuit is known again, and there is another way", func() bool { return len(m.paths()) == 1 && len(m.fabric("links")) == 5 })
	_, from = hold.says(t, "word", from)
	middle := "r2"
	if strings.Contains(m.paths()[0], "r5") {
		middle = "r5"
	}
	m.routers[middle].kill(syscall.SIGKILL)
	_, from = hold.says(t, "word", from)
	_, from = hold.says(t, "word", from)
	m.eventually("the way is another", func() bool {
		got := m.paths()
		return len(got) == 1 && strings.HasPrefix(got[0], "r1 ") && !strings.Contains(got[0], middle)
	})
	hold.says(t, "word", from)
}
