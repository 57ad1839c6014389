package network

import (
	"fmt"
	"os/exec"
	"strings"
	"syscall"
	"testing"
)

// client is a program that hosts and dials: theirs or ours.
type client struct {
	name    string
	program func() string
	flags   []string
}

var clients = []client{
	{"theirs", func() string { return programs.peer }, nil},
	{"ours", func() string { return programs.party }, nil},
	{"ours, with routers that hold the flow", func() string { return programs.party }, []string{"-plain"}},
}

func (c client) args(more ...string) []string { return append(append([]string{}, c.flags...), more...) }

// TestOurClient has our clients and theirs host for each other, at routers of
// others: on one router and over a link between two.
func TestOurClient(t *testing.T) {
	t.Parallel()
	n := newNetwork(t)
	n.ziti("edge", "login", "--yes", "https://"+n.address, "-u", "admin", "-p", password)
	n.addRouter("first")
	second := n.addRouter("second")
	host, dialer := n.addIdentity("host"), n.addIdentity("dialer")
	n.everyone()
	n.create("services", M{"name": "sealed", "encryptionRequired": true})
	n.create("services", M{"name": "open", "encryptionRequired": false})
	n.allow("Bind", "host")
	n.allow("Dial", "dialer")
	for _, h := range clients {
		for _, service := range []string{"sealed", "open"} {
			hosting := start(t, n.dir, nil, h.program(), h.args("host", host, service)...)
			hosting.says(t, "hosting "+service, 0)
			for _, d := range clients {
				if h.name == "theirs" && d.name == "theirs" {
					continue // TestTraffic has that
				}
				t.Run(fmt.Sprintf("%s hosted by %s, dialled by %s", service, h.name, d.name), func(t *testing.T) {
					for _, size := range []string{"0", "1000", "3000000"} {
						out, err := exec.Command(d.program(), d.args("dial", dialer, service, size, "4")...).CombinedOutput()
						if err != nil || !strings.Contains(string(out), "ok connections=4") {
							t.Fatalf("%s bytes: %v\n%s", size, err, out)
						}
					}
				})
			}
			if line, _ := hosting.says(t, "accepted", 0); !strings.Contains(line, `caller="dialer"`) || !strings.Contains(line, `data="{\"say\":\"hello\"}"`) {
				t.Errorf("the host is told %s", line)
			}
			hosting.kill(syscall.SIGTERM)
		}
	}
	t.Run("a router that goes and comes back", func(t *testing.T) {
		ours := clients[1]
		hosting := start(t, n.dir, nil, ours.program(), ours.args("host", host, "sealed")...)
		_, from := hosting.says(t, "hosted\" service=sealed router=second", 0)
		second.kill(syscall.SIGKILL)
		_, from = hosting.says(t, "not hosted at a router any more", from)
		if line, err := exec.Command(ours.program(), ours.args("dial", dialer, "sealed", "1000")...).CombinedOutput(); err != nil {
			t.Errorf("with one of two routers: %v\n%s", err, line)
		}
		second.start()
		hosting.says(t, "hosted\" service=sealed router=second", from)
	})
	t.Run("errors", func(t *testing.T) {
		for _, test := range []struct{ identity, service, want string }{
			{dialer, "sealde", "is it sealed?"},
			{host, "open", "may not dial the service open: a service policy of type Dial is missing"},
			{dialer, "open", "nobody hosts the service"}, // which an older router gives no code for: its words are shown
		} {
			out, err := exec.Command(programs.party, "dial", test.identity, test.service, "1").CombinedOutput()
			if err == nil || !strings.Contains(string(out), test.want) {
				t.Errorf("a dial of %s says %s, want %q (%v)", test.service, out, test.want, err)
			}
		}
	})
}

// TestOurTunneler has our tunneler and theirs host for each other.
func TestOurTunneler(t *testing.T) {
	n := newNetwork(t)
	n.ziti("edge", "login", "--yes", "https://"+n.address, "-u", "admin", "-p", password)
	n.addRouter("router")
	n.everyone()
	n.create("service-policies", M{"name": "all", "type": "Dial", "semantic": "AnyOf", "identityRoles": []string{"#all"}, "serviceRoles": []string{"#all"}})
	ours, theirs, dialer := n.addIdentity("ours"), n.addIdentity("theirs"), n.addIdentity("dialer")
	n.hosted("at-ours", "#ours", page(t, "hosted by ours"))
	n.hosted("at-theirs", "#theirs", page(t, "hosted by theirs"))
	start(t, n.dir, nil, programs.netkeep, "tunnel", "host", "-i", ours)
	start(t, n.dir, nil, programs.ziti, "tunnel", "host", "--svcPollRate", "1", "-i", theirs)
	var at []string
	for _, program := range []string{programs.netkeep, programs.ziti} {
		first, second := free(t), free(t)
		start(t, n.dir, nil, program, "tunnel", "proxy", "-i", dialer, "at-ours:"+portOf(t, first), "at-theirs:"+portOf(t, second))
		at = append(at, first, second)
	}
	for i, address := range at {
		n.reads(address, []string{"hosted by ours", "hosted by theirs"}[i%2])
	}
}
