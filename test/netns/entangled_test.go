//go:build linux

package netns

import (
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// entangled is a service that wants every port of every address and name that the
// network itself has, and the laptop's own network with who answers for names there.
const entangled = `
configs:
  - {name: all at, configTypeId: intercept.v1, data: {protocols: [tcp, udp], addresses: ["*.example", 192.0.2.0/24, NETWORK1.0/24], portRanges: [{low: 1, high: 65535}]}}
  - {name: line, configTypeId: host.v1, data: {protocol: tcp, address: 127.0.0.1, port: 9002}}
services:
  - {name: all, roleAttributes: [all], configs: [all at, line]}
service-policies:
  - {name: laptops dial, type: Dial, semantic: AnyOf, identityRoles: ["#laptop"], serviceRoles: ["#all"]}
  - {name: servers host, type: Bind, semantic: AnyOf, identityRoles: ["#server"], serviceRoles: ["#all"]}
`

// TestEntangled has a laptop intercept the name, the address and the ports of its own
// controller and router, and its own network, where packets are dropped that come back
// another way than they would go: what the tunneler itself says arrives, what others
// say to the laptop is answered, and what was connected before goes on.
func TestEntangled(t *testing.T) {
	w := newWorldAt(t, "hub.example")
	file := filepath.Join(w.dir, "entangled.yaml")
	if err := os.WriteFile(file, []byte(strings.ReplaceAll(entangled, "NETWORK", w.net)), 0o600); err != nil {
		t.Fatal(err)
	}
	w.netkeep("apply", file, "--yes")
	w.server.starts("ready", "serve")
	w.start(w.server, "an identity is in use", w.binary, "tunnel", "host", "--identity", w.enrolled("server"))
	w.laptop.must("sh", "-c", "for f in /proc/sys/net/ipv4/conf/*/rp_filter; do echo 1 > $f; done")
	w.laptop.starts("ready", "serve")
	w.echo(outsideAddress + ":9100")
	before := w.laptop.looks()
	earlier := w.laptop.starts("connected", "carry", outsideAddress+":9100")
	earlier.carries()
	tunnel := w.start(w.laptop, "an identity is in use", w.binary, "tunnel", "run", "--intercept", "--identity", w.enrolled("laptop"), "--drain", "0s")
	intercepted := func() bool {
		got, _ := w.laptop.does("line", "hub.example:1280")
		return got == "at 127.0.0.1:9002\n"
	}
	w.eventually("the controller's name is the service's", intercepted)
	for _, to := range []string{outsideAddress + ":1280", outsideAddress + ":3022", w.net + "1.1:9003"} {
		if got, err := w.laptop.does("line", to); err != nil || got != "at 127.0.0.1:9002\n" {
			t.Errorf("%s: %v, %q", to, err, got)
		}
	}

	// Everything that the tunneler had connected has to be connected again.
	_ = w.controller.cmd.Process.Kill()
	w.controller.ends()
	w.control()
	w.eventually("the service is there again", intercepted)

	earlier.carries()
	for _, from := range []string{outsideAddress, w.net + "1.1"} {
		if got, err := said(from, w.net+"1.2:9001"); err != nil || got != "at "+w.net+"1.2:9001\n" {
			t.Errorf("from %s the laptop is not reached: %v, %q", from, err, got)
		}
	}
	if err := tunnel.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	tunnel.ends()
	if after := w.laptop.looks(); after != before {
		t.Errorf("the laptop was\n%s\nand is\n%s", before, after)
	}
}

// echo says everything back, between the machines.
func (w *world) echo(at string) {
	w.t.Helper()
	l, err := net.Listen("tcp", at)
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				_, _ = io.Copy(conn, conn)
			}()
		}
	}()
}

// said is what a server says to somebody between the machines who comes from an address.
func said(from, to string) (string, error) {
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}, Timeout: soon}
	conn, err := d.Dial("tcp", to)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(soon))
	text, err := io.ReadAll(conn)
	return string(text), err
}
