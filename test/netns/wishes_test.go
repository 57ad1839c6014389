//go:build linux

package netns

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// wishes is services whose configs say more than where they are: what the program
// wants goes along to hosts, who choose the server by it, or are chosen.
const wishes = `
configs:
  - {name: any at, configTypeId: intercept.v1, data: {protocols: [tcp, udp], addresses: ["*.lab.corp", 10.99.0.0/24, "fd99::/64", NETWORK2.2], portRanges: [{low: 7777, high: 9002}]}}
  - {name: any, configTypeId: host.v1, data: {forwardProtocol: true, allowedProtocols: [tcp, udp], forwardAddress: true, allowedAddresses: ["*.lab.corp", 10.99.0.0/24, "fd99::/64", NETWORK2.2], forwardPort: true, allowedPortRanges: [{low: 7777, high: 9001}]}}
  - {name: seen at, configTypeId: intercept.v1, data: {protocols: [tcp], addresses: [seen.corp], portRanges: [{low: 9004, high: 9004}], sourceIp: "$src_ip:$src_port"}}
  - {name: seen, configTypeId: host.v1, data: {protocol: tcp, address: 127.0.0.1, port: 9004, allowedSourceAddresses: [100.64.0.0/10]}}
  - {name: hidden at, configTypeId: intercept.v1, data: {protocols: [tcp], addresses: [hidden.corp], portRanges: [{low: 9004, high: 9004}], sourceIp: 192.0.2.99}}
  - {name: by at, configTypeId: intercept.v1, data: {protocols: [tcp], addresses: ["*.by.corp"], portRanges: [{low: 9001, high: 9001}], dialOptions: {identity: $dst_hostname}}}
  - {name: by, configTypeId: host.v1, data: {protocol: tcp, address: here.corp, port: 9001, listenOptions: {identity: $tunneler_id.name.by.corp}}}
  - {name: slow at, configTypeId: intercept.v1, data: {protocols: [tcp], addresses: [slow.corp], portRanges: [{low: 9100, high: 9100}], dialOptions: {connectTimeoutSeconds: 1}}}
  - {name: busy at, configTypeId: intercept.v1, data: {protocols: [tcp], addresses: [busy.corp], portRanges: [{low: 9100, high: 9100}]}}
  - {name: back, configTypeId: host.v1, data: {protocol: tcp, address: 127.0.0.1, port: 9100}}
services:
  - {name: any, roleAttributes: [office], configs: [any at, any]}
  - {name: seen, roleAttributes: [office], configs: [seen at, seen]}
  - {name: hidden, roleAttributes: [office], configs: [hidden at, seen]}
  - {name: by, roleAttributes: [office, both], configs: [by at, by]}
  - {name: slow, roleAttributes: [twin], configs: [slow at, back]}
  - {name: busy, roleAttributes: [twin], configs: [busy at, back]}
service-policies:
  - {name: laptops dial, type: Dial, semantic: AnyOf, identityRoles: ["#laptop"], serviceRoles: ["#office", "#twin"]}
  - {name: servers host, type: Bind, semantic: AnyOf, identityRoles: ["#server"], serviceRoles: ["#office"]}
  - {name: twins host, type: Bind, semantic: AnyOf, identityRoles: ["#twin"], serviceRoles: ["#both", "#twin"]}
`

// TestWishes has a laptop use services whose configs forward what programs want, say
// who they are seen as, choose a host and bound the time, one whose host stands still
// while hundreds wait, and a device that others take away.
func TestWishes(t *testing.T) {
	w := newWorld(t)
	file := filepath.Join(w.dir, "wishes.yaml")
	if err := os.WriteFile(file, []byte(strings.ReplaceAll(wishes, "NETWORK", w.net)), 0o600); err != nil {
		t.Fatal(err)
	}
	w.netkeep("apply", file, "--yes")
	twin := w.machine("twin", w.net+"3.", "nameserver 127.0.0.1\n")
	w.server.must("sh", "-c", "echo "+w.net+"2.2 here.corp >> /etc/hosts; echo 10.99.0.8 x.lab.corp >> /etc/hosts")
	twin.must("sh", "-c", "echo "+w.net+"3.2 here.corp >> /etc/hosts")
	w.server.must("ip", "-6", "route", "add", "local", "fd99::/64", "dev", "lo")
	w.server.must("ip", "address", "add", "100.64.0.1/32", "dev", "lo")
	w.server.starts("ready", "serve")
	twin.starts("ready", "serve")
	w.start(w.server, "an identity is in use", w.binary, "tunnel", "host", "--identity", w.enrolled("server"))
	host := w.start(twin, "an identity is in use", w.binary, "tunnel", "host", "--identity", w.enrolled("twin"))
	before := w.laptop.looks()
	d := &device{world: w, identity: w.enrolled("laptop")}
	d.tunnel = w.start(w.laptop, "an identity is in use", w.binary, "tunnel", "run", "--intercept", "--identity", d.identity, "--drain", "0s")
	for _, to := range []string{"server.by.corp:9001", "twin.by.corp:9001"} {
		w.eventually(to+" is there", func() bool { _, err := w.laptop.does("line", to); return err == nil })
	}
	for _, step := range []struct {
		name string
		do   func(*testing.T, *device, *process)
	}{
		{"forwarded", forwarded}, {"stands still", standsStill}, {"mended", mended}, {"taken away", takenAway},
	} {
		t.Run(step.name, func(t *testing.T) { step.do(t, d, host) })
	}
	if after := w.laptop.looks(); after != before {
		t.Errorf("the laptop was\n%s\nand is\n%s", before, after)
	}
}

// forwarded reaches servers that hosts choose by what programs want, and those that
// programs choose hosts for.
func forwarded(t *testing.T, d *device, _ *process) {
	for _, c := range []struct{ what, to, want string }{
		{"line", "10.99.0.5:9001", "at 10.99.0.5:9001\n"},
		{"line", "x.lab.corp:9001", "at 10.99.0.8:9001\n"},
		{"line", "[fd99::5]:9001", "at [fd99::5]:9001\n"},
		{"datagram", d.net + "2.2:7777", "back\n"},
		{"seen", "seen.corp:9004", "as it is\n"},
		{"line", "server.by.corp:9001", "at " + d.net + "2.2:9001\n"},
		{"line", "twin.by.corp:9001", "at " + d.net + "3.2:9001\n"},
	} {
		if got, err := d.laptop.does(c.what, c.to); err != nil || got != c.want {
			t.Errorf("%s %s: %v, %q", c.what, c.to, err, got)
		}
	}
	// What a host does not allow is refused with its reason.
	for to, why := range map[string]string{
		"10.99.0.5:9002":      "the port 9002 is not in allowedPortRanges",
		"hidden.corp:9004":    `source_addr \"192.0.2.99\" is not in allowedSourceAddresses`,
		"nobody.by.corp:9001": `nobody hosts the service by as \"nobody.by.corp\" at present`,
	} {
		if got, err := d.laptop.does("line", to); err == nil || strings.Contains(got, "timeout") {
			t.Errorf("%s: %v, %q", to, err, got)
		}
		d.eventually("it is said why "+to+" is refused", func() bool { return strings.Contains(d.tunnel.text(), why) })
	}
	d.problems(t)
}

// problems asks the tunneler why a service is not reached, which is so until it is.
func (d *device) problems(t *testing.T) {
	const why = "nobody hosts the service by"
	if got := d.laptop.must(d.binary, "tunnel", "status"); !strings.Contains(got, why) {
		t.Errorf("the status does not say why a service is not reached:\n%s", got)
	}
	problem := func() string {
		var all []struct {
			Intercepted []struct{ Service, Error string }
		}
		text := d.laptop.must(d.binary, "tunnel", "status", "--json")
		if err := json.Unmarshal([]byte(text), &all); err != nil {
			t.Fatalf("%v: %s", err, text)
		}
		for _, r := range all {
			for _, s := range r.Intercepted {
				if s.Service == "by" {
					return s.Error
				}
			}
		}
		t.Fatalf("the service is not in %s", text)
		return ""
	}
	if got := problem(); !strings.Contains(got, why) {
		t.Errorf("the problem is %q", got)
	}
	if _, err := d.laptop.does("line", "server.by.corp:9001"); err != nil {
		t.Error(err)
	}
	if got := problem(); got != "" {
		t.Errorf("it is reached, and the problem is %q", got)
	}
}

// standsStill has a host not answer: a dial ends when its time is over, one more than
// may wait waits outside, others are served, and all are when the host goes on.
func standsStill(t *testing.T, d *device, host *process) {
	if err := host.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = host.cmd.Process.Signal(syscall.SIGCONT) }()
	if got, err := d.laptop.does("line", "slow.corp:9100"); err == nil || strings.Contains(got, "timeout") {
		t.Errorf("a dial that takes too long: %v, %q", err, got)
	}
	d.tunnel.says("the service slow was not connected in time")
	waiting := d.laptop.starts("begun", "many", "busy.corp:9100", "300")
	d.tunnel.says("a connection has to wait: too many wait for the service already")
	if got, err := d.laptop.does("line", "server.by.corp:9001"); err != nil {
		t.Errorf("another service beside one that stands still: %v, %q", err, got)
	}
	if err := host.cmd.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	waiting.says("all")
}

// mended has somebody set the device down and remove its rules: it is said, and
// services are there again.
func mended(t *testing.T, d *device, _ *process) {
	for _, c := range []struct{ do, says string }{
		{"ip link set nk0 down", "somebody had set the device nk0 down: it is up again"},
		{"for f in -4 -6; do while ip $f rule delete priority 5290 2>/dev/null; do :; done; done", "rules that lead to the device nk0: they are there again"},
	} {
		d.laptop.must("sh", "-c", c.do)
		d.tunnel.says(c.says)
		for _, to := range []string{"10.99.0.5:9001", "[fd99::5]:9001", "server.by.corp:9001"} {
			if got, err := d.laptop.does("line", to); err != nil {
				t.Errorf("after %s: %s: %v, %q", c.do, to, err, got)
			}
		}
	}
}

// takenAway has somebody remove the device: the tunneler says so and ends, and leaves
// the machine as it was. Who may make no device is told what to do.
func takenAway(t *testing.T, d *device, _ *process) {
	d.laptop.must("ip", "link", "delete", "nk0")
	d.tunnel.ends()
	const want = "somebody has taken the device nk0 away: find out who, and start the tunneler again"
	if code := d.tunnel.cmd.ProcessState.ExitCode(); code != 1 || !strings.Contains(d.tunnel.text(), want) {
		t.Errorf("it ends with %d and does not say %s", code, want)
	}
	refused := func(says, without string) {
		t.Helper()
		out, err := d.laptop.run("setpriv", "--bounding-set="+without, "--inh-caps="+without, d.binary, "tunnel", "run", "--intercept", "--identity", d.identity)
		if err == nil || !strings.Contains(out, says) || strings.Count(out, "\n") != 1 {
			t.Errorf("without %s: %v, %s", without, err, out)
		}
	}
	refused("this user may make no network device: run it as root, or with CAP_NET_ADMIN", "-net_admin")
	const closed = "/run/closed"
	d.laptop.must("sh", "-c", "touch "+closed+" && chmod 0 "+closed+" && mount --bind "+closed+" /dev/net/tun")
	refused("this user may not open /dev/net/tun: have it be of mode 0666", "-dac_override,-dac_read_search")
	d.laptop.must("sh", "-c", "umount /dev/net/tun && rm "+closed)
	d.taken(t)
}

// taken starts a tunneler where something else has what it wants: it says which flag
// helps, and leaves nothing.
func (d *device) taken(t *testing.T) {
	d.laptop.must("ip", "link", "add", "nk7", "type", "veth", "peer", "name", "nk8")
	d.laptop.must("ip", "address", "add", "10.44.0.1/16", "dev", "nk7")
	d.laptop.must("ip", "link", "set", "nk7", "up")
	with := d.laptop.looks()
	for says, args := range map[string][]string{
		"there is a device nk7 already: choose another name with --device":                                  {"--device", "nk7"},
		"the range 10.44.3.0/24 is in use on this machine: 10.44.0.0/16 leads to nk7; choose another range": {"--range", "10.44.3.0/24"},
		"the range must be a block of IPv4 addresses":                                                       {"--range", "fd00::/64"},
	} {
		out, err := d.laptop.run(d.binary, append([]string{"tunnel", "run", "--intercept", "--identity", d.identity}, args...)...)
		if err == nil || !strings.Contains(out, says) || strings.Count(out, "\n") != 1 {
			t.Errorf("%v: %v, %s", args, err, out)
		}
	}
	if after := d.laptop.looks(); after != with {
		t.Errorf("the laptop was\n%s\nand is\n%s", with, after)
	}
	d.laptop.must("ip", "link", "delete", "nk7")
}
