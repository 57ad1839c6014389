//go:build linux

package netns

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// resolvConf is the laptop's own, with what only its owner can have meant.
const resolvConf = "# mine, and it stays\nsearch  lan.example\nnameserver %s\noptions timeout:2\n\n"

// network is services of every kind of address, all hosted by the server but one.
const network = `
configs:
  - {name: payroll at, configTypeId: intercept.v1, data: {protocols: [tcp], addresses: [payroll.corp], portRanges: [{low: 80, high: 80}]}}
  - {name: wild at, configTypeId: intercept.v1, data: {protocols: [tcp], addresses: ["*.wild.corp"], portRanges: [{low: 80, high: 80}]}}
  - {name: lab at, configTypeId: intercept.v1, data: {protocols: [tcp], addresses: [10.99.0.0/24], portRanges: [{low: 9000, high: 9002}]}}
  - {name: echo at, configTypeId: intercept.v1, data: {protocols: [udp], addresses: [echo.corp], portRanges: [{low: 7777, high: 7777}]}}
  - {name: kept at, configTypeId: intercept.v1, data: {protocols: [tcp], addresses: [kept.corp], portRanges: [{low: 9100, high: 9100}]}}
  - {name: gone at, configTypeId: intercept.v1, data: {protocols: [tcp], addresses: [gone.corp], portRanges: [{low: 9100, high: 9100}]}}
  - {name: own at, configTypeId: intercept.v1, data: {protocols: [tcp], addresses: [own.example], portRanges: [{low: 9003, high: 9003}]}}
  - {name: own, configTypeId: host.v1, data: {protocol: tcp, address: own.example, port: 9003}}
  - {name: pages, configTypeId: host.v1, data: {protocol: tcp, address: 127.0.0.1, port: 8080}}
  - {name: lab, configTypeId: host.v1, data: {protocol: tcp, forwardAddress: true, allowedAddresses: [10.99.0.0/24], forwardPort: true, allowedPortRanges: [{low: 9000, high: 9003}]}}
  - {name: datagrams, configTypeId: host.v1, data: {protocol: udp, address: 127.0.0.1, port: 7777}}
  - {name: back, configTypeId: host.v1, data: {protocol: tcp, address: 127.0.0.1, port: 9100}}
services:
  - {name: payroll, roleAttributes: [office], configs: [payroll at, pages]}
  - {name: wild, roleAttributes: [office], configs: [wild at, pages]}
  - {name: lab, roleAttributes: [office], configs: [lab at, lab]}
  - {name: echo, roleAttributes: [office], configs: [echo at, datagrams]}
  - {name: kept, roleAttributes: [office], configs: [kept at, back]}
  - {name: gone, roleAttributes: [extra], configs: [gone at, back]}
  - {name: own, roleAttributes: [own], configs: [own at, own]}
service-policies:
  - {name: laptops dial own, type: Dial, semantic: AnyOf, identityRoles: ["#laptop"], serviceRoles: ["#own"]}
  - {name: laptops host own, type: Bind, semantic: AnyOf, identityRoles: ["#laptop"], serviceRoles: ["#own"]}
  - {name: laptops dial office, type: Dial, semantic: AnyOf, identityRoles: ["#laptop"], serviceRoles: ["#office"]}
  - {name: laptops dial extra, type: Dial, semantic: AnyOf, identityRoles: ["#laptop"], serviceRoles: ["#extra"]}
  - {name: servers host, type: Bind, semantic: AnyOf, identityRoles: ["#server"], serviceRoles: ["#office", "#extra"]}
`

// device is a laptop with a tunneler, in a network that works.
type device struct {
	*world
	identity string
	tunnel   *process
	before   string // how the laptop was without
}

// starts starts the tunneler, and waits until pages can be read by name.
func (d *device) starts(more ...string) {
	d.t.Helper()
	args := append([]string{"tunnel", "run", "--intercept", "--identity", d.identity, "--drain", "0s"}, more...)
	d.tunnel = d.start(d.laptop, "an identity is in use", d.binary, args...)
	d.eventually("payroll.corp is there", func() bool {
		page, _ := d.laptop.does("get", "http://payroll.corp/")
		return page == "page of payroll.corp\n"
	})
}

// TestDevice has a laptop whose programs know nothing of the network use everything
// in it by name and address, loses a policy while something is carried, kills the
// tunneler and starts it again, and is as before when it has stopped.
func TestDevice(t *testing.T) {
	w := newWorld(t)
	file := filepath.Join(w.dir, "network.yaml")
	if err := os.WriteFile(file, []byte(network), 0o600); err != nil {
		t.Fatal(err)
	}
	w.netkeep("apply", file, "--yes")
	w.server.starts("ready", "serve")
	w.start(w.server, "an identity is in use", w.binary, "tunnel", "host", "--identity", w.enrolled("server"))
	d := &device{world: w, identity: w.enrolled("laptop")}
	d.before = w.laptop.looks()
	if _, err := w.laptop.does("get", "http://payroll.corp/"); err == nil {
		t.Fatal("payroll.corp is there without a tunneler")
	}
	d.starts()
	for _, step := range []struct {
		name string
		do   func(*testing.T, *device)
	}{
		{"addresses", addresses}, {"names", names}, {"tools", tools}, {"status", status}, {"a policy goes", policyGoes}, {"killed", killed}, {"stopped twice", stoppedTwice},
	} {
		t.Run(step.name, func(t *testing.T) { step.do(t, d) })
	}
	d.stops()
	d.asBefore(t)
}

// stops stops the tunneler.
func (d *device) stops() {
	d.t.Helper()
	if err := d.tunnel.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		d.t.Fatal(err)
	}
	d.tunnel.ends()
}

// asBefore sees that nothing is left on the laptop.
func (d *device) asBefore(t *testing.T) {
	t.Helper()
	if after := d.laptop.looks(); after != d.before {
		t.Errorf("the laptop was\n%s\nand is\n%s", d.before, after)
	}
}

// addresses uses services by each kind of address.
func addresses(t *testing.T, d *device) {
	for _, c := range []struct{ what, to, want string }{
		{"get", "http://PAYROLL.corp/x", "page of payroll.corp\n"},
		{"get", "http://a.wild.corp/", "page of a.wild.corp\n"},
		{"get", "http://deep.b.wild.corp/", "page of deep.b.wild.corp\n"},
		{"line", "10.99.0.5:9001", "at 10.99.0.5:9001\n"},
		{"line", "10.99.0.5:9002", "at 10.99.0.5:9002\n"},
		{"datagram", "echo.corp:7777", "back\n"},
	} {
		if got, err := d.laptop.does(c.what, c.to); err != nil || !strings.EqualFold(got, c.want) {
			t.Errorf("%s %s: %v, %q", c.what, c.to, err, got)
		}
	}
	// A port of the same address that no service has is where it was before.
	if got, err := d.laptop.does("line", "10.99.0.5:9003"); err != nil || got != "on the way\n" {
		t.Errorf("what is not ours: %v, %q", err, got)
	}
	// What the laptop hosts under the name that it is intercepted under is where that
	// name leads without a tunneler.
	d.eventually("own.example is there", func() bool {
		got, _ := d.laptop.does("line", "own.example:9003")
		return got == "on the way\n"
	})
	// Ports of names that no service has are refused, and so is what no server is behind.
	for _, to := range []string{"payroll.corp:81", "gone.corp:9099", "10.99.0.5:9000"} {
		if got, err := d.laptop.does("line", to); err == nil || strings.Contains(got, "timeout") {
			t.Errorf("%s: %v, %q", to, err, got)
		}
	}
}

// names asks for names: those of services, over UDP and TCP, and those of others, which
// are as without a tunneler.
func names(t *testing.T, d *device) {
	over := map[string]string{}
	for _, protocol := range []string{"udp", "tcp"} {
		got, err := d.laptop.does("resolve", "payroll.corp", protocol)
		if err != nil || !strings.HasPrefix(got, "100.") {
			t.Errorf("over %s: %v, %s", protocol, err, got)
		}
		over[protocol] = got
	}
	if over["udp"] != over["tcp"] {
		t.Errorf("a name has two addresses: %v", over)
	}
	if got, err := d.laptop.does("resolve", "outside.example", "udp"); err != nil || got != "192.0.2.7\n" {
		t.Errorf("a name of others: %v, %s", err, got)
	}
	for _, name := range []string{"nowhere.example", "corp", "wild.corp", "payroll.corp.example"} {
		if got, err := d.laptop.does("resolve", name, "udp"); err == nil || !strings.Contains(got, "no such host") {
			t.Errorf("%s: %v, %s", name, err, got)
		}
	}
}

// tools uses what people have, where it is installed.
func tools(t *testing.T, d *device) {
	for name, c := range map[string]struct {
		args []string
		want string
	}{
		"curl": {[]string{"-sS", "--max-time", "10", "http://payroll.corp/"}, "page of payroll.corp"},
		"dig":  {[]string{"+short", "+time=5", "payroll.corp", "A"}, "100."},
	} {
		if _, err := exec.LookPath(name); err != nil {
			t.Logf("%s is not installed: it was not tried", name)
			continue
		}
		if got, err := d.laptop.run(name, c.args...); err != nil || !strings.Contains(got, c.want) {
			t.Errorf("%s: %v, %s", name, err, got)
		}
	}
}

// status asks the tunneler how it stands.
func status(t *testing.T, d *device) {
	var all []struct {
		Intercepted []struct {
			Service   string
			Addresses []string
			Total     int64
		}
	}
	text := d.laptop.must(d.binary, "tunnel", "status", "--json")
	if err := json.Unmarshal([]byte(text), &all); err != nil || len(all) != 1 {
		t.Fatalf("%v: %s", err, text)
	}
	for _, s := range all[0].Intercepted {
		if s.Service == "payroll" && slices.Contains(s.Addresses, "payroll.corp") && s.Total > 0 {
			return
		}
	}
	t.Errorf("nothing of payroll is in %s", text)
}

// policyGoes takes a policy away while connections carry something: the one that it
// allowed ends, the other goes on, and its name is gone, until the policy is there
// again.
func policyGoes(t *testing.T, d *device) {
	kept, gone := d.laptop.starts("connected", "carry", "kept.corp:9100"), d.laptop.starts("connected", "carry", "gone.corp:9100")
	kept.carries()
	gone.carries()
	began := time.Now()
	d.netkeep("delete", "service-policy", "laptops dial extra", "--yes")
	gone.says("ended")
	t.Logf("a connection ended %s after its policy was told to go", time.Since(began).Round(time.Millisecond))
	kept.carries()
	d.eventually("gone.corp is gone", func() bool { _, err := d.laptop.does("resolve", "gone.corp", "udp"); return err != nil })
	d.netkeep("create", "service-policy", "laptops dial extra", "--type", "Dial", "--identity-roles", "#laptop", "--service-roles", "#extra")
	began = time.Now()
	d.eventually("gone.corp is back", func() bool { _, err := d.laptop.does("resolve", "gone.corp", "udp"); return err == nil })
	t.Logf("a name was there %s after its policy", time.Since(began).Round(time.Millisecond))
	kept.carries()
	d.laptop.starts("connected", "carry", "gone.corp:9100").carries()
	kept.carries()
}

// killed kills the tunneler, which can clean nothing up, and starts it again; and has it
// end as it does after a panic.
func killed(t *testing.T, d *device) {
	for _, how := range []syscall.Signal{syscall.SIGKILL, syscall.SIGQUIT} {
		if err := d.tunnel.cmd.Process.Signal(how); err != nil {
			t.Fatal(err)
		}
		d.tunnel.ends()
		if links := d.laptop.must("ip", "-o", "link"); strings.Contains(links, "nk0") {
			t.Errorf("after %v the device is still there:\n%s", how, links)
		}
		d.starts()
	}
}

// stoppedTwice stops a tunneler that waits for a connection to end, and then does not
// wait: everything is as before, and the program sees that it was cut off.
func stoppedTwice(t *testing.T, d *device) {
	d.stops()
	d.starts("--drain", "1h")
	carried := d.laptop.starts("connected", "carry", "kept.corp:9100")
	carried.carries()
	for _, what := range []string{"nothing new is taken", "stopped"} {
		if err := d.tunnel.cmd.Process.Signal(syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
		d.tunnel.says(what)
	}
	d.tunnel.ends()
	d.asBefore(t)
	carried.says("ended")
	d.starts()
}
