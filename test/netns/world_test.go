//go:build linux

package netns

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// waitTime bounds everything that is waited for. It is long because the machine may
// be busy.
const waitTime = 60 * time.Second

const password = "a password for tests"

// world is three machines. The controller and the router have an address on the one
// between the two others, which reach each other only through them.
type world struct {
	t      testing.TB
	binary string
	dir    string
	net    string // what all addresses begin with
	name   string // by which the controller and the router are known; their address if empty
	laptop *machine
	server *machine

	controller *process
}

func (w *world) hub() string {
	if w.name != "" {
		return outsideAddress
	}
	return w.net + "0.1"
}

// worlds is how many there were: what is left of one is in nobody's way.
var worlds int

// machine is one of them, which is a process that holds its namespaces.
type machine struct {
	w   *world
	pid int
}

// newWorld sets the machines up, with a controller and a router between two others.
func newWorld(t testing.TB) *world { return newWorldAt(t, "") }

// newWorldAt is newWorld, with a name that all three machines know those between by.
func newWorldAt(t testing.TB, name string) *world {
	t.Helper()
	worlds++
	w := &world{t: t, binary: os.Getenv(inside), dir: t.TempDir(), net: fmt.Sprintf("10.%d.", 70+worlds), name: name}
	w.must("ip", "link", "set", "lo", "up")
	w.must("ip", "address", "replace", w.hub()+"/32", "dev", "lo")
	w.outsideNames()
	w.onTheWay()
	w.laptop = w.machine("laptop", w.net+"1.", fmt.Sprintf(resolvConf, w.net+"1.1"))
	asks := "127.0.0.1"
	if name != "" {
		asks = w.net + "2.1"
		w.hosts(w.hub(), name)
	}
	w.server = w.machine("server", w.net+"2.", "nameserver "+asks+"\n")
	w.server.must("ip", "route", "add", "local", "10.99.0.0/24", "dev", "lo")
	w.control()
	w.netkeep("login", "--data", w.dir+"/data", "--username", "admin")
	return w
}

// control starts the controller, with a router.
func (w *world) control() {
	w.t.Helper()
	known := w.hub()
	if w.name != "" {
		known = w.name
	}
	w.controller = w.start(nil, "netkeep is ready at", w.binary, "run", "--data", w.dir+"/data", "--listen", w.hub()+":1280", "--advertise", known+":1280",
		"--router", w.hub()+":3022", "--router-advertise", known+":3022")
}

// hosts has a name be known between the machines.
func (w *world) hosts(address, name string) {
	w.t.Helper()
	file := filepath.Join(w.dir, "hosts")
	if err := os.WriteFile(file, []byte("127.0.0.1 localhost\n"+address+" "+name+"\n"), 0o644); err != nil {
		w.t.Fatal(err)
	}
	w.must("mount", "--bind", file, "/etc/hosts")
	w.t.Cleanup(func() { w.must("umount", "/etc/hosts") })
}

// machine makes one, with a wire to the one between.
func (w *world) machine(name, network, resolv string) *machine {
	w.t.Helper()
	p := w.launch(unshared(), []string{role + "=machine"}, "/proc/self/exe", resolv)
	p.says("ready")
	m := &machine{w: w, pid: p.cmd.Process.Pid}
	name += strconv.Itoa(worlds)
	w.must("ip", "link", "add", name, "type", "veth", "peer", "name", "eth0", "netns", strconv.Itoa(m.pid))
	w.must("ip", "address", "add", network+"1/24", "dev", name)
	w.must("ip", "link", "set", name, "up")
	m.must("ip", "link", "set", "lo", "up")
	m.must("ip", "address", "add", network+"2/24", "dev", "eth0")
	m.must("ip", "link", "set", "eth0", "up")
	m.must("ip", "route", "add", "default", "via", network+"1")
	return m
}

// process is a program that runs.
type process struct {
	t     testing.TB
	cmd   *exec.Cmd
	in    io.Writer
	lines chan string
	log   bytes.Buffer
	mu    sync.Mutex
	ended chan struct{}
	heard chan struct{} // closed when nothing more is said
}

// launch starts a program, which ends with the test at the latest.
func (w *world) launch(attr *syscall.SysProcAttr, env []string, name string, args ...string) *process {
	w.t.Helper()
	p := &process{t: w.t, cmd: exec.Command(name, args...), lines: make(chan string, 10_000), ended: make(chan struct{}), heard: make(chan struct{})}
	p.cmd.SysProcAttr = attr
	p.cmd.Dir = w.dir
	p.cmd.Env = append(slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "XDG_RUNTIME_DIR=") }),
		append([]string{"HOME=" + w.dir, "XDG_CONFIG_HOME=", "NETKEEP_METRICS_LISTEN=off", "NETKEEP_ADMIN_PASSWORD=" + password, "NETKEEP_PASSWORD=" + password}, env...)...)
	r, out, err := os.Pipe()
	if err != nil {
		w.t.Fatal(err)
	}
	p.cmd.Stdout, p.cmd.Stderr = out, out
	if p.in, err = p.cmd.StdinPipe(); err != nil {
		w.t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		w.t.Fatal(err)
	}
	_ = out.Close()
	go p.read(r)
	go func() {
		_ = p.cmd.Wait()
		close(p.ended)
	}()
	w.t.Cleanup(func() {
		_ = p.cmd.Process.Kill()
		<-p.ended
		if w.t.Failed() {
			w.t.Logf("%v:\n%s", p.cmd, p.text())
		}
	})
	return p
}

func (p *process) read(r io.ReadCloser) {
	defer r.Close()
	defer close(p.heard)
	defer close(p.lines)
	in := bufio.NewReader(r)
	for {
		line, err := in.ReadString('\n')
		p.mu.Lock()
		p.log.WriteString(line)
		p.mu.Unlock()
		select {
		case p.lines <- line:
		default: // nobody has looked for long
		}
		if err != nil {
			return
		}
	}
}

func (p *process) text() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.log.String()
}

// says waits until the program has said something, after what was waited for before.
func (p *process) says(what string) {
	p.t.Helper()
	timeout := time.After(waitTime)
	for {
		select {
		case line, more := <-p.lines:
			if strings.Contains(line, what) {
				return
			}
			if !more {
				p.t.Fatalf("%v ended and did not say %q:\n%s", p.cmd, what, p.text())
			}
		case <-timeout:
			p.t.Fatalf("%v does not say %q:\n%s", p.cmd, what, p.text())
		}
	}
}

// ends waits until the program is gone, and all that it said is there.
func (p *process) ends() {
	p.t.Helper()
	late := time.After(waitTime)
	for _, done := range []chan struct{}{p.ended, p.heard} {
		select {
		case <-done:
		case <-late:
			p.t.Fatalf("%v does not end:\n%s", p.cmd, p.text())
		}
	}
}

// start starts a program on a machine, or between them, and waits for what it says.
func (w *world) start(on *machine, says, name string, args ...string) *process {
	w.t.Helper()
	var env []string
	if on != nil {
		name, args = "nsenter", on.enter(name, args)
	}
	p := w.launch(nil, env, name, args...)
	p.says(says)
	return p
}

func (m *machine) enter(name string, args []string) []string {
	return append([]string{"-t", strconv.Itoa(m.pid), "-n", "-m", "--", name}, args...)
}

// run runs a program on a machine and returns what it says.
func (m *machine) run(name string, args ...string) (string, error) {
	cmd := exec.Command("nsenter", m.enter(name, args)...)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// must is run, of what has to work.
func (m *machine) must(name string, args ...string) string {
	m.w.t.Helper()
	out, err := m.run(name, args...)
	if err != nil {
		m.w.t.Fatalf("%s %v: %v\n%s", name, args, err, out)
	}
	return out
}

// does has a machine do something that tests can do.
func (m *machine) does(what string, args ...string) (string, error) {
	self, err := os.Executable()
	if err != nil {
		return "", err
	}
	return m.run("env", append([]string{role + "=" + what, self}, args...)...)
}

// starts is does, of something that goes on.
func (m *machine) starts(says, what string, args ...string) *process {
	m.w.t.Helper()
	self, err := os.Executable()
	if err != nil {
		m.w.t.Fatal(err)
	}
	return m.w.start(m, says, "env", append([]string{role + "=" + what, self}, args...)...)
}

func (w *world) must(name string, args ...string) string {
	w.t.Helper()
	out, err := exec.Command(name, args...).CombinedOutput()
	if err != nil {
		w.t.Fatalf("%s %v: %v\n%s", name, args, err, out)
	}
	return string(out)
}

// netkeep is the command line, beside the controller.
func (w *world) netkeep(args ...string) string {
	w.t.Helper()
	p := w.launch(nil, nil, w.binary, args...)
	p.ends()
	if code := p.cmd.ProcessState.ExitCode(); code != 0 {
		w.t.Fatalf("netkeep %v: %d\n%s", args, code, p.text())
	}
	return p.text()
}

// enrolled makes an identity and returns its file.
func (w *world) enrolled(name string) string {
	w.t.Helper()
	file := filepath.Join(w.dir, name+".json")
	w.netkeep("invite", name, "--roles", name, "--save", name+".jwt")
	w.netkeep("enroll", name+".jwt", "-o", file)
	return file
}

// eventually waits until something is so.
func (w *world) eventually(what string, so func() bool) {
	w.t.Helper()
	timeout, tick := time.After(waitTime), time.NewTicker(50*time.Millisecond)
	defer tick.Stop()
	for !so() {
		select {
		case <-tick.C:
		case <-timeout:
			w.t.Fatalf("%s: not so after %s", what, waitTime)
		}
	}
}

// looks is how a machine looks that nothing was done to: links, routes, rules, and
// where names are asked for.
func (m *machine) looks() string {
	m.w.t.Helper()
	var all strings.Builder
	for line := range strings.Lines(m.must("ip", "-o", "link")) {
		fmt.Fprintln(&all, "link", strings.Fields(line)[1])
	}
	for _, args := range [][]string{{"-4", "route", "show", "table", "all"}, {"-4", "rule"}, {"-6", "rule"}} {
		fmt.Fprintf(&all, "%s", m.must("ip", args...))
	}
	for line := range strings.Lines(m.must("ip", "-6", "route", "show", "table", "all")) {
		if !strings.Contains(line, "fe80::") && !strings.Contains(line, "ff00::") { // which come when a link is up, in their own time
			all.WriteString(line)
		}
	}
	fmt.Fprintf(&all, "/etc has %s", m.must("ls", "/etc"))
	fmt.Fprintf(&all, "resolv.conf %q", m.must("cat", "/etc/resolv.conf"))
	return all.String()
}

// outsideNames answers for names that are nobody's in the network, between the
// machines: three are at one address, and nothing else is anywhere.
func (w *world) outsideNames() {
	w.t.Helper()
	conn, err := net.ListenPacket("udp", "0.0.0.0:53")
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { _ = conn.Close() })
	go func() {
		buf := make([]byte, 4096)
		for {
			n, from, err := conn.ReadFrom(buf)
			if err != nil {
				return
			}
			if answer := answered(buf[:n]); answer != nil {
				_, _ = conn.WriteTo(answer, from)
			}
		}
	}()
}

// onTheWay listens between the machines, also at an address that the server has too,
// at a port that no service has there.
func (w *world) onTheWay() {
	w.t.Helper()
	w.must("ip", "address", "replace", "10.99.0.5/32", "dev", "lo")
	w.must("ip", "address", "replace", outsideAddress+"/32", "dev", "lo")
	l, err := net.Listen("tcp", ":9003")
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
			_, _ = io.WriteString(conn, "on the way\n")
			_ = conn.Close()
		}
	}()
}

// outsideAddress is where names are that are nobody's in the network.
const outsideAddress = "192.0.2.7"

// known are outside.example, own.example and hub.example as questions have them.
var known = []string{"\x07outside\x07example\x00", "\x03own\x07example\x00", "\x03hub\x07example\x00"}

// answered is the answer to a question of one name; nil if it is none.
func answered(q []byte) []byte {
	end := bytes.IndexByte(q[min(len(q), 12):], 0)
	if end < 0 || len(q) < 12+end+5 {
		return nil
	}
	question := q[12 : 12+end+5]
	ours := slices.Contains(known, strings.ToLower(string(question[:end+1])))
	typ := binary.BigEndian.Uint16(question[end+1:])
	a := append([]byte{}, q[:2]...)
	flags, count := uint16(0x8580), uint16(0)
	if !ours {
		flags |= 3 // no such name
	} else if typ == 1 {
		count = 1
	}
	for _, n := range []uint16{flags, 1, count, 0, 0} {
		a = binary.BigEndian.AppendUint16(a, n)
	}
	a = append(a, question...)
	if count == 1 {
		a = append(a, 0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 1, 0, 4, 192, 0, 2, 7)
	}
	return a
}
