package network

import (
	"testing"
	"time"
)

// generations are the releases of the public SDK, each with the flow of data held
// by its router and by itself.
var generations = []client{
	{"1.1.0", func() string { return programs.peer }, nil},
	{"1.1.0-flow", func() string { return programs.peer }, []string{"-flow"}},
	{"1.5.0", func() string { return programs.newer }, nil},
	{"1.5.0-flow", func() string { return programs.newer }, []string{"-flow"}},
}

// TestGenerations has old and newer SDKs dial and host at a public router, and then
// takes away what lets them: both ends of each connection are told, and none falls
// silent.
func TestGenerations(t *testing.T) {
	n := newNetwork(t)
	n.ziti("edge", "login", "--yes", "https://"+n.address, "-u", "admin", "-p", password)
	n.addRouter("router")
	host, dialer := n.addIdentity("host"), n.addIdentity("dialer")
	n.everyone()
	n.allow("Bind", "host")
	policy := n.allow("Dial", "dialer")
	hosting, services := make([]*process, len(generations)), make([]string, len(generations))
	for i, g := range generations {
		services[i] = n.create("services", M{"name": g.name, "encryptionRequired": true})
		hosting[i] = start(t, n.dir, nil, g.program(), g.args("host", host, g.name)...)
	}
	for i, g := range generations {
		hosting[i].says(t, "hosting "+g.name, 0)
	}
	dialers := n.list(`identities?filter=name="dialer"`)
	for _, loss := range []struct {
		what       string
		take, back func()
	}{
		{"policy", func() { n.call("DELETE", "service-policies/"+policy, nil) }, func() { policy = n.allow("Dial", "dialer") }},
		{"role",
			func() { n.call("PATCH", "identities/"+dialers[0]["id"].(string), M{"roleAttributes": []string{}}) },
			func() {
				n.call("PATCH", "identities/"+dialers[0]["id"].(string), M{"roleAttributes": []string{"dialer"}})
			}},
		{"session", func() {
			for _, s := range n.list(`sessions?filter=type="Dial"`) {
				n.call("DELETE", "sessions/"+s["id"].(string), nil)
			}
		}, func() {}},
		{"service", func() {
			for _, id := range services {
				n.call("DELETE", "services/"+id, nil)
			}
		}, func() {}},
	} {
		t.Run(loss.what, func(t *testing.T) {
			// Routers that drop a circuit say so after half a minute.
			cutOff(t, hosting, func(i int) *process {
				g := generations[i]
				return start(t, n.dir, nil, g.program(), g.args("hold", dialer, g.name)...)
			}, loss.take, 20*time.Second)
			loss.back()
		})
	}
}

// cutOff takes away what lets clients hold connections, one to each of some hosts: both ends
// are told in time.
func cutOff(t *testing.T, hosting []*process, hold func(i int) *process, take func(), within time.Duration) {
	t.Helper()
	var holds []*process
	var from []int
	for i, h := range hosting {
		from = append(from, h.next())
		holds = append(holds, hold(i))
	}
	for _, h := range holds {
		h.says(t, "word 10", 0)
	}
	take()
	gone := time.Now()
	for i, h := range holds {
		h.says(t, "failed", 0)
		hosting[i].says(t, "ended", from[i])
		if took := time.Since(gone); took > within {
			t.Errorf("the ends of connection %d of %d are told after %v", i+1, len(holds), took)
		}
	}
}
