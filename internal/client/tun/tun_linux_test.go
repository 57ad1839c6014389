package tun

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// alone runs the test that calls it in a network namespace of its own, in
// another process, and reports whether this is that process.
func alone(t *testing.T) bool {
	t.Helper()
	const within = "NETKEEP_TEST_WITHIN"
	if os.Getenv(within) == t.Name() {
		lo, err := netlink.LinkByName("lo")
		if err == nil {
			err = netlink.LinkSetUp(lo)
		}
		if err != nil {
			t.Fatal(err)
		}
		return true
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v=true", "-test.timeout=5m")
	cmd.Env = append(os.Environ(), within+"="+t.Name())
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET}
	if os.Geteuid() != 0 {
		cmd.SysProcAttr.Cloneflags |= syscall.CLONE_NEWUSER
		cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}}
		cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}}
	}
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	file, err := os.OpenFile(deviceFile, os.O_RDWR, 0)
	if err == nil {
		_ = file.Close()
		err = cmd.Start()
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "!!! %s WAS NOT RUN: no network namespace or no device can be made here: %v\n", t.Name(), err)
		return false
	}
	if err := cmd.Wait(); err != nil {
		t.Fatalf("in a namespace of its own: %v\n%s", err, out.Bytes())
	}
	return false
}

// machine is what a machine's network looks like.
func machine(t *testing.T) string {
	t.Helper()
	var all bytes.Buffer
	links, err := netlink.LinkList()
	routes, err2 := netlink.RouteListFiltered(netlink.FAMILY_ALL, &netlink.Route{Table: unix.RT_TABLE_UNSPEC}, netlink.RT_FILTER_TABLE)
	rules, err3 := netlink.RuleList(netlink.FAMILY_ALL)
	if err := errors.Join(err, err2, err3); err != nil {
		t.Fatal(err)
	}
	for _, l := range links {
		fmt.Fprintln(&all, l.Attrs().Name)
	}
	for _, r := range routes {
		if r.Table != unix.RT_TABLE_LOCAL { // which the kernel fills in its own time
			fmt.Fprintln(&all, r)
		}
	}
	for _, r := range rules {
		fmt.Fprintln(&all, r, r.Table)
	}
	return all.String()
}

// echoes are the connections of a device whose other end says what it hears.
type echoes struct {
	mu   sync.Mutex
	came []string
	deny map[uint16]bool
}

func (e *echoes) options() Options {
	return Options{Name: "nktest", Range: netip.MustParsePrefix(DefaultRange), Connect: e.connect, Datagrams: e.datagrams}
}

func (e *echoes) note(protocol string, from, to netip.AddrPort) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.came = append(e.came, fmt.Sprintf("%s %s %s", protocol, from.Addr(), to))
	return !e.deny[to.Port()]
}

func (e *echoes) connect(w *Wish) {
	if !e.note("tcp", w.From, w.To) {
		w.Refuse()
		return
	}
	c, err := w.Accept()
	if err != nil {
		return
	}
	defer c.Close()
	_, _ = io.Copy(c, c)
	_ = c.(interface{ CloseWrite() error }).CloseWrite()
}

func (e *echoes) datagrams(f *Flow) bool {
	if !e.note("udp", f.From, f.To) {
		return false
	}
	c, err := f.Open()
	if err != nil {
		return false
	}
	go func() {
		defer c.Close()
		b := make([]byte, 64<<10)
		for {
			n, err := c.Read(b)
			if err != nil {
				return
			}
			if string(b[:n]) == "go away" {
				f.Refuse()
				return
			}
			_, _ = c.Write(b[:n])
		}
	}()
	return true
}

func (e *echoes) last() string {
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.came) == 0 {
		return ""
	}
	return e.came[len(e.came)-1]
}

func open(t *testing.T, opt Options) *Device {
	t.Helper()
	d, err := Open(opt)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Close() })
	return d
}

// echo sends something to an address and hears it.
func echo(t *testing.T, protocol, at string, size int) {
	t.Helper()
	c, err := net.Dial(protocol, at)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(30 * time.Second))
	data := bytes.Repeat([]byte("0123456789abcdef"), size/16)
	var heard []byte
	if protocol == "udp" {
		if _, err := c.Write(data); err != nil {
			t.Fatal(err)
		}
		heard = make([]byte, 64<<10)
		n, err := c.Read(heard)
		if err != nil {
			t.Fatal(err)
		}
		heard = heard[:n]
	} else {
		go func() {
			_, _ = c.Write(data)
			_ = c.(*net.TCPConn).CloseWrite()
		}()
		if heard, err = io.ReadAll(c); err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(heard, data) {
		t.Fatalf("%s %s: %d bytes came back of %d, or others", protocol, at, len(heard), len(data))
	}
}

// TestDevice shows that what programs send to the device's addresses comes to
// the stack with where it was to go, that nothing else does, and that the
// machine is as before when the device is closed.
func TestDevice(t *testing.T) {
	if !alone(t) {
		return
	}
	before := machine(t)
	e := &echoes{deny: map[uint16]bool{81: true}}
	d := open(t, e.options())
	echo(t, "tcp", "100.64.7.7:80", 16)
	if got := e.last(); got != "tcp 100.64.0.1 100.64.7.7:80" {
		t.Errorf("came as %q", got)
	}
	echo(t, "tcp", "100.127.255.1:8080", 32<<20)
	echo(t, "udp", "100.64.7.7:53", 512)
	echo(t, "udp", "100.64.7.7:53", 64000)
	for _, protocol := range []string{"tcp", "udp"} {
		if err := attempt(protocol, "100.64.7.7:81", nil); !errors.Is(err, syscall.ECONNREFUSED) {
			t.Errorf("%s that nobody takes: %v", protocol, err)
		}
	}
	if err := attempt("udp", "100.64.7.7:82", []byte("go away")); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("datagrams that are refused later: %v", err)
	}

	want := []Route{
		{netip.MustParsePrefix("192.0.2.0/24"), "tcp", 80, 81},
		{netip.MustParsePrefix("198.51.100.7/32"), "udp", 53, 53},
		{netip.MustParsePrefix("203.0.113.0/24"), "tcp", 1, 65535},
		{netip.MustParsePrefix("2001:db8::/32"), "tcp", 80, 81},
		{netip.MustParsePrefix("2001:db8::/32"), "udp", 82, 82},
	}
	if err := d.Route(want); err != nil {
		t.Fatal(err)
	}
	echo(t, "tcp", "192.0.2.9:80", 1<<20)
	echo(t, "udp", "198.51.100.7:53", 512)
	echo(t, "tcp", "203.0.113.1:4000", 16)
	echo(t, "tcp", "[2001:db8::5]:80", 1<<20)
	echo(t, "udp", "[2001:db8::5]:82", 512)
	if err := attempt("udp", "[2001:db8::5]:82", []byte("go away")); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("datagrams of IPv6 that are refused later: %v", err)
	}
	elsewhere := func(protocol, at string) {
		t.Helper()
		if err := attempt(protocol, at, nil); !errors.Is(err, syscall.ENETUNREACH) {
			t.Errorf("%s %s does not go where it would without us: %v", protocol, at, err)
		}
	}
	elsewhere("tcp", "192.0.2.9:82")
	elsewhere("udp", "192.0.2.9:80")
	elsewhere("tcp", "198.51.100.7:53")
	elsewhere("udp", "[2001:db8::5]:80")
	unseen := &net.Dialer{Control: Unseen}
	if c, err := unseen.Dial("tcp", "192.0.2.9:80"); !errors.Is(err, syscall.ENETUNREACH) {
		t.Errorf("what is not to be seen was: %v %v", c, err)
	}

	// What stays is not cut.
	kept, err := net.Dial("tcp", "203.0.113.1:4000")
	if err != nil {
		t.Fatal(err)
	}
	defer kept.Close()
	if err := d.Route(want[2:3]); err != nil {
		t.Fatal(err)
	}
	elsewhere("tcp", "192.0.2.9:80")
	if _, err := kept.Write([]byte("still")); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(kept, make([]byte, 5)); err != nil {
		t.Fatal(err)
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	if after := machine(t); after != before {
		t.Errorf("before:\n%s\nafter:\n%s", before, after)
	}
}

// attempt connects and, with datagrams, says something and listens.
func attempt(protocol, at string, say []byte) error {
	c, err := net.Dial(protocol, at)
	if err != nil {
		return err
	}
	defer c.Close()
	if protocol == "tcp" {
		return nil
	}
	if say == nil {
		say = []byte("x")
	}
	if _, err := c.Write(say); err != nil {
		return err
	}
	_ = c.SetReadDeadline(time.Now().Add(30 * time.Second))
	_, err = c.Read(make([]byte, 10))
	return err
}

// TestCut shows that a connection that is not ended by both is reset, and what
// was written before is read.
func TestCut(t *testing.T) {
	if !alone(t) {
		return
	}
	e := &echoes{}
	opt := e.options()
	opt.Connect = func(w *Wish) {
		c, err := w.Accept()
		if err != nil {
			return
		}
		_, _ = c.Write([]byte("a part"))
		_, _ = c.Read(make([]byte, 1)) // it has come
		_ = c.Close()
	}
	open(t, opt)
	c, err := net.Dial("tcp", "100.64.0.9:80")
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	b := make([]byte, 6)
	if _, err := io.ReadFull(c, b); err != nil {
		t.Fatal(err)
	}
	_, _ = c.Write([]byte("x"))
	_ = c.SetReadDeadline(time.Now().Add(30 * time.Second))
	if n, err := c.Read(b); !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("after the part came %d bytes and %v", n, err)
	}
}

// TestTakenAway shows that it is known when somebody else removes the device.
func TestTakenAway(t *testing.T) {
	if !alone(t) {
		return
	}
	d := open(t, (&echoes{}).options())
	if err := d.Route([]Route{{netip.MustParsePrefix("192.0.2.0/24"), "tcp", 80, 81}}); err != nil {
		t.Fatal(err)
	}
	link, err := netlink.LinkByIndex(d.Index())
	if err == nil {
		err = netlink.LinkDel(link)
	}
	if err != nil {
		t.Fatal(err)
	}
	<-d.Done()
	before := machine(t)
	if err := d.Close(); err != nil {
		t.Error(err)
	}
	if machine(t) == before {
		t.Error("the rule is still there")
	}
}

// TestServers shows that servers may listen at the stack's own address.
func TestServers(t *testing.T) {
	if !alone(t) {
		return
	}
	d := open(t, (&echoes{deny: map[uint16]bool{53: true}}).options())
	l, err := d.ListenTCP(53)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	p, err := d.ListenUDP(53)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	go func() {
		if c, err := l.Accept(); err == nil {
			_, _ = io.Copy(c, c)
			_ = c.Close()
		}
	}()
	go func() {
		b := make([]byte, 512)
		if n, from, err := p.ReadFrom(b); err == nil {
			_, _ = p.WriteTo(b[:n], from)
		}
	}()
	at := netip.AddrPortFrom(d.Server(), 53).String()
	echo(t, "tcp", at, 512)
	echo(t, "udp", at, 512)
}

// TestRefusals shows what is said about a device that cannot be, and that
// nothing is left behind by it.
func TestRefusals(t *testing.T) {
	if !alone(t) {
		return
	}
	lo, err := netlink.LinkByName("lo")
	if err != nil {
		t.Fatal(err)
	}
	if err := netlink.AddrAdd(lo, &netlink.Addr{IPNet: ipNet(netip.MustParsePrefix("10.9.0.1/24"))}); err != nil {
		t.Fatal(err)
	}
	before := machine(t)
	for name, c := range map[string]struct {
		change func(*Options)
		says   string
	}{
		"name taken":    {func(o *Options) { o.Name = "lo" }, "there is a device lo already: choose another name with --device, or stop what has it"},
		"long name":     {func(o *Options) { o.Name = "abcdefghijklmnop" }, `"abcdefghijklmnop" cannot be the name of a device: choose one with at most 15 characters, such as nk0`},
		"no name":       {func(o *Options) { o.Name = "" }, `"" cannot be the name of a device: choose one with at most 15 characters, such as nk0`},
		"odd name":      {func(o *Options) { o.Name = "a/b" }, `"a/b" cannot be the name of a device: choose one with at most 15 characters, such as nk0`},
		"range in use":  {func(o *Options) { o.Range = netip.MustParsePrefix("10.0.0.0/8") }, "the range 10.0.0.0/8 is in use on this machine: 10.9.0.0/24 leads to lo; choose another range with --range, such as 10.213.0.0/16"},
		"six":           {func(o *Options) { o.Range = netip.MustParsePrefix("fd00::/64") }, "the range must be a block of IPv4 addresses, such as 100.64.0.0/10"},
		"small range":   {func(o *Options) { o.Range = netip.MustParsePrefix("100.64.0.0/30") }, "the range 100.64.0.0/30 must have between /8 and /24: names get addresses of their own there"},
		"bits behind":   {func(o *Options) { o.Range = netip.MustParsePrefix("100.64.0.1/24") }, "the range 100.64.0.1/24 has bits behind its prefix: write 100.64.0.0/24"},
		"loopback":      {func(o *Options) { o.Range = netip.MustParsePrefix("127.0.0.0/8") }, "the range 127.0.0.0/8 means something else: choose another, such as 100.64.0.0/10"},
		"short packets": {func(o *Options) { o.MTU = 500 }, "an MTU of 500 cannot be: choose one from 1280 to 65520"},
	} {
		opt := (&echoes{}).options()
		c.change(&opt)
		d, err := Open(opt)
		if err == nil {
			_ = d.Close()
		}
		if err == nil || err.Error() != c.says {
			t.Errorf("%s: %v", name, err)
		}
	}
	if after := machine(t); after != before {
		t.Errorf("before:\n%s\nafter:\n%s", before, after)
	}
}

// TestLeftovers shows that rules which a killed process has left are taken away,
// and those of another that lives are not.
func TestLeftovers(t *testing.T) {
	if !alone(t) {
		return
	}
	before := machine(t)
	var routes []Route
	for i := range uint16(2 * MaxPorts) { // more than there are tables for
		routes = append(routes, Route{netip.MustParsePrefix("192.0.2.0/24"), "tcp", 1000 + i, 1000 + i})
	}
	e := &echoes{}
	other := e.options()
	other.Name, other.Range = "nkother", netip.MustParsePrefix("10.213.0.0/16")
	lives := open(t, other)
	if err := lives.Route(routes[:1]); err != nil {
		t.Fatal(err)
	}
	with := machine(t)
	killed := open(t, e.options())
	if err := killed.Route(routes); err != nil {
		t.Fatal(err)
	}
	echo(t, "tcp", "192.0.2.1:1000", 16)
	echo(t, "tcp", fmt.Sprintf("192.0.2.1:%d", 999+2*MaxPorts), 16)
	_ = killed.link.wire.Close() // as the kernel does it
	if machine(t) == with {
		t.Fatal("a killed process leaves nothing, and nothing is shown")
	}
	again := open(t, e.options())
	if err := again.Close(); err != nil {
		t.Fatal(err)
	}
	if after := machine(t); after != with {
		t.Errorf("before:\n%s\nafter:\n%s", with, after)
	}
	if err := lives.Close(); err != nil {
		t.Fatal(err)
	}
	if after := machine(t); after != before {
		t.Errorf("before:\n%s\nafter:\n%s", before, after)
	}
}

// TestFlood shows that programs that want more connections than anybody gives
// them cost little, and that others are served afterwards.
func TestFlood(t *testing.T) {
	if !alone(t) {
		return
	}
	e := &echoes{}
	opt := e.options()
	let := make(chan struct{})
	opt.Connect = func(w *Wish) {
		if w.To.Port() == 80 {
			e.connect(w)
			return
		}
		<-let
		w.Refuse()
	}
	d := open(t, opt)
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for d.stack.Stats().TCP.ForwardMaxInFlightDrop.Value() == 0 {
				if c, _ := net.DialTimeout("tcp", "100.64.0.9:81", time.Millisecond); c != nil {
					t.Error("somebody was connected whom nobody has accepted")
					return
				}
			}
		})
	}
	all.Wait()
	close(let)
	echo(t, "tcp", "100.64.0.9:80", 1<<20)
}
