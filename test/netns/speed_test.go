//go:build linux

package netns

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

var (
	// peer is a tunneler of others that is measured beside ours, if it is there.
	peer   = flag.String("ziti", "", "OpenZiti's program, to be measured beside ours")
	before = flag.String("before", "", "another build of ours, to be measured beside this one")
	rounds = flag.Int("rounds", 1, "how often each is measured, in turns")
	load   = flag.Duration("load", 3*time.Second, "how long bytes are carried each time")
	dials  = flag.Int("dials", 300, "how many connections are made, one after the other")
)

// measured is services that every tunneler has at the same address.
const measured = `
configs:
  - {name: load at, configTypeId: intercept.v1, data: {protocols: [tcp], addresses: [10.98.0.1], portRanges: [{low: 5201, high: 5201}]}}
  - {name: pages at, configTypeId: intercept.v1, data: {protocols: [tcp], addresses: [10.98.0.1], portRanges: [{low: 8080, high: 8080}]}}
  - {name: load, configTypeId: host.v1, data: {protocol: tcp, address: 127.0.0.1, port: 5201}}
  - {name: pages, configTypeId: host.v1, data: {protocol: tcp, address: 127.0.0.1, port: 8080}}
services:
  - {name: load, roleAttributes: [measured], configs: [load at, load]}
  - {name: pages, roleAttributes: [measured], configs: [pages at, pages]}
service-policies:
  - {name: laptops dial, type: Dial, semantic: AnyOf, identityRoles: ["#laptop", "#before", "#ported", "#other"], serviceRoles: ["#measured"]}
  - {name: servers host, type: Bind, semantic: AnyOf, identityRoles: ["#server"], serviceRoles: ["#measured"]}
`

// contender is a laptop whose tunneler is measured.
type contender struct {
	name    string
	on      *machine
	tunnel  *process
	address string
	figures map[string][]float64
}

func (c *contender) note(what string, value float64) {
	c.figures[what] = append(c.figures[what], value)
}

// figures are what is shown, in this order.
var figures = []string{
	"1 connection, to the server, Mbit/s", "1 connection, from the server, Mbit/s",
	"50 connections, to the server, Mbit/s", "50 connections, from the server, Mbit/s",
	"CPU of the tunneler, to the server, s/GiB", "CPU of the tunneler, from the server, s/GiB",
	"new connection to first byte, p50, ms", "new connection to first byte, p99, ms",
	"memory idle, MB", "most memory, MB", "memory after, MB",
}

// BenchmarkSpeed carries bytes from a laptop to a server and back, through the device
// of our tunneler, through a local port of it, and through a tunneler of others if there
// is one: one controller, router and host for all of them, in turns.
func BenchmarkSpeed(b *testing.B) {
	w := newWorld(b)
	all := w.contenders()
	for range *rounds {
		for _, c := range all {
			c.measure(w)
		}
	}
	var table strings.Builder
	for _, c := range all {
		fmt.Fprintf(&table, "| %s ", c.name)
	}
	fmt.Printf("| middle of %d rounds %s|\n|---|%s\n", *rounds, table.String(), strings.Repeat("---|", len(all)))
	for _, what := range figures {
		fmt.Printf("| %s |", what)
		for _, c := range all {
			values := c.figures[what]
			if len(values) == 0 {
				fmt.Print(" none |")
				continue
			}
			slices.Sort(values)
			fmt.Printf(" %.4g (%.4g to %.4g) |", values[len(values)/2], values[0], values[len(values)-1])
		}
		fmt.Println()
	}
}

// contenders sets up what is measured, each on a laptop of its own.
func (w *world) contenders() []*contender {
	w.t.Helper()
	file := filepath.Join(w.dir, "measured.yaml")
	if err := os.WriteFile(file, []byte(measured), 0o600); err != nil {
		w.t.Fatal(err)
	}
	w.netkeep("apply", file, "--yes")
	w.server.starts("ready", "serve")
	w.start(w.server, "Server listening", "iperf3", "--server", "--forceflush")
	w.start(w.server, "an identity is in use", w.binary, "tunnel", "host", "--identity", w.enrolled("server"))
	const ours, port = "10.98.0.1", "127.0.0.1"
	all := []*contender{
		{name: "netkeep, device", on: w.laptop, address: ours, tunnel: w.start(w.laptop, "an identity is in use", w.binary, "tunnel", "run", "--intercept", "--identity", w.enrolled("laptop"))},
	}
	if *before != "" {
		on := w.machine("before", w.net+"5.", "")
		all = append(all, &contender{name: "netkeep before, device", on: on, address: ours, tunnel: w.start(on, "an identity is in use", *before, "tunnel", "run", "--intercept", "--identity", w.enrolled("before"))})
	}
	ported := w.machine("ported", w.net+"3.", "")
	all = append(all, &contender{name: "netkeep, local ports", on: ported, address: port, tunnel: w.start(ported, "an identity is in use", w.binary, "tunnel", "proxy", "load:5201", "pages:8080", "--identity", w.enrolled("ported"))})
	if *peer != "" {
		other := w.machine("other", w.net+"4.", "")
		all = append(all, &contender{name: "OpenZiti, tproxy", on: other, address: ours, tunnel: w.startPeer(other)})
	}
	for _, c := range all {
		c.figures = map[string][]float64{}
		w.eventually(c.name+" leads to the server", func() bool {
			page, _ := c.on.does("get", "http://"+c.address+":8080/")
			return strings.HasPrefix(page, "page of")
		})
	}
	return all
}

// startPeer starts the tunneler of others. It runs iptables by its name, which is a
// link through a directory that machines have of their own.
func (w *world) startPeer(on *machine) *process {
	w.t.Helper()
	tables := strings.TrimSpace(w.must("sh", "-c", "readlink -f $(command -v iptables)"))
	bin := filepath.Join(w.dir, "bin")
	w.must("mkdir", "-p", bin)
	w.must("ln", "-sf", tables, filepath.Join(bin, "iptables"))
	return w.start(on, "Adding rule iptables", "env", "PATH="+bin+":"+os.Getenv("PATH"), *peer, "tunnel", "tproxy", "--identity", w.enrolled("other"),
		"--resolver", "file:///etc/hosts", "--cli-agent=false")
}

// measure takes all figures of one once.
func (c *contender) measure(w *world) {
	w.t.Helper()
	if c.figures["memory idle, MB"] == nil {
		c.note("memory idle, MB", c.memory(w, "VmRSS:"))
	}
	c.forget(w)
	for j, way := range []string{"to", "from"} {
		before, bytes, failed := c.busy(w), 0.0, false
		for i, streams := range []string{"1", "50"} {
			rate, carried := c.carry(w, streams, way == "from")
			if carried > 0 {
				c.note(figures[2*i+j], rate)
			}
			bytes, failed = bytes+carried, failed || carried == 0
		}
		if !failed {
			c.note(fmt.Sprintf("CPU of the tunneler, %s the server, s/GiB", way), (c.busy(w)-before).Seconds()/(bytes/(1<<30)))
		}
	}
	c.note("most memory, MB", c.memory(w, "VmHWM:"))
	c.connect(w)
	c.note("memory after, MB", c.memory(w, "VmRSS:"))
}

// report is what iperf3 says of a run.
type report struct {
	End struct {
		Received struct {
			Bytes float64 `json:"bytes"`
			Rate  float64 `json:"bits_per_second"`
		} `json:"sum_received"`
	} `json:"end"`
	Error string `json:"error"`
}

func (c *contender) iperf(args []string) (r report, err error) {
	out, failed := c.on.run("iperf3", args...)
	if at := strings.IndexByte(out, '{'); at >= 0 {
		err = json.Unmarshal([]byte(out[at:]), &r)
	}
	if r.Error == "" && err == nil {
		err = failed
	}
	return r, err
}

// carry is how much iperf3 carries; nothing if its own connection, by which it learns
// that, comes to nothing beside the others.
func (c *contender) carry(w *world, streams string, back bool) (rate, bytes float64) {
	w.t.Helper()
	args := []string{"--client", c.address, "--parallel", streams, "--time", strconv.Itoa(int(load.Seconds())), "--json"}
	if back {
		args = append(args, "--reverse")
	}
	var report report
	var err error
	// Its server waits for what is on the way still when a run has ended here, and does
	// not listen for a moment after that.
	w.eventually("the server of iperf3 is done with the run before", func() bool {
		report, err = c.iperf(args)
		return !strings.Contains(report.Error, "busy running a test") && !strings.Contains(report.Error, "unable to connect to server")
	})
	if err != nil || report.End.Received.Bytes == 0 {
		fmt.Printf("%s: iperf3 %v failed: %v %s\n", c.name, args, err, report.Error)
		return 0, 0
	}
	return report.End.Received.Rate / 1e6, report.End.Received.Bytes
}

// connect has curl make connections one after the other: what counts is when the first
// byte of an answer is there, since some say that they are connected before they are.
func (c *contender) connect(w *world) {
	w.t.Helper()
	out := c.on.must("curl", "--silent", "--fail", "--header", "Connection: close", "--output", "/dev/null", "--write-out", "%{time_starttransfer} %{num_connects}\\n",
		fmt.Sprintf("http://%s:8080/[1-%d]", c.address, *dials))
	var took []float64
	for line := range strings.Lines(out) {
		var seconds float64
		var connects int
		if _, err := fmt.Sscan(line, &seconds, &connects); err != nil || connects != 1 {
			w.t.Fatalf("curl through %s: %q: %v", c.name, line, err)
		}
		took = append(took, seconds*1000)
	}
	slices.Sort(took)
	c.note("new connection to first byte, p50, ms", took[len(took)/2])
	c.note("new connection to first byte, p99, ms", took[len(took)*99/100])
}

// busy is how much processor time the tunneler has had.
func (c *contender) busy(w *world) time.Duration {
	w.t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", c.tunnel.cmd.Process.Pid))
	if err != nil {
		w.t.Fatal(err)
	}
	fields := strings.Fields(string(text)[strings.LastIndexByte(string(text), ')')+2:])
	const user, system, tick = 11, 12, 10 * time.Millisecond
	var sum time.Duration
	for _, at := range []int{user, system} {
		n, err := strconv.Atoi(fields[at])
		if err != nil {
			w.t.Fatal(err)
		}
		sum += time.Duration(n) * tick
	}
	return sum
}

// memory is how much the tunneler has, or has had at most since that was forgotten.
func (c *contender) memory(w *world, which string) float64 {
	w.t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", c.tunnel.cmd.Process.Pid))
	if err != nil {
		w.t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), which)
	var kilobytes float64
	if _, err := fmt.Sscan(rest, &kilobytes); err != nil {
		w.t.Fatal(err)
	}
	return kilobytes / 1000
}

// forget has the kernel count anew what the tunneler has at most.
func (c *contender) forget(w *world) {
	w.t.Helper()
	const most = "5"
	if err := os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", c.tunnel.cmd.Process.Pid), []byte(most), 0); err != nil {
		w.t.Fatal(err)
	}
}
