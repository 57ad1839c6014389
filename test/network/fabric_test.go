package network

import (
	"strings"
	"testing"
)

// TestFabric looks at a network with the public commands for that.
func TestFabric(t *testing.T) {
	t.Parallel()
	n := newNetwork(t)
	n.ziti("edge", "login", "--yes", "https://"+n.address, "-u", "admin", "-p", password)
	r := n.addRouter("router")
	host, dialer := n.addIdentity("host"), n.addIdentity("dialer")
	n.everyone()
	n.create("services", M{"name": "echo", "encryptionRequired": true})
	n.allow("Bind", "host")
	n.allow("Dial", "dialer")
	start(t, n.dir, nil, programs.peer, "host", host, "echo").says(t, "hosting echo", 0)
	hold := start(t, n.dir, nil, programs.peer, "hold", dialer, "echo")
	_, from := hold.says(t, "word 10", 0)

	shows := func(want []string, args ...string) {
		t.Helper()
		said := n.ziti(append([]string{"fabric"}, args...)...)
		for _, text := range want {
			if !strings.Contains(said, text) {
				t.Errorf("ziti fabric %s does not say %s:\n%s", strings.Join(args, " "), text, said)
			}
		}
	}
	shows([]string{r.id, "router", "true", "on linux", "tls:127.0.0.1"}, "list", "routers")
	shows([]string{r.id}, "list", "routers", `name = "router" and connected = true`)
	shows([]string{"echo", "smartrouting"}, "list", "services")
	shows([]string{"echo", "router", "edge"}, "list", "terminators")
	shows([]string{"results: none"}, "list", "links")
	shows([]string{"echo", "r/router"}, "list", "circuits")
	shows([]string{r.id + ".links", "links:"}, "inspect", "links", r.id)
	shows([]string{"connected-routers", "router"}, "inspect", "connected-routers")

	first := func(what string) string {
		t.Helper()
		lines := strings.Split(n.ziti("fabric", "list", what, "--csv"), "\n")
		id, _, _ := strings.Cut(lines[1], ",")
		return id
	}
	shows([]string{"OK"}, "delete", "circuit", first("circuits"))
	hold.says(t, "failed", from)
	shows([]string{"results: none"}, "list", "circuits")
	shows([]string{"OK"}, "delete", "terminator", first("terminators"))
}
