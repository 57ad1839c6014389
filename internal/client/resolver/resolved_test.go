package resolver

import (
	"context"
	"fmt"
	"log/slog"
	"net/netip"
	"strings"
	"testing"
)

const stub = "nameserver 127.0.0.53\noptions edns0 trust-ad\nsearch corp.example\n"

func (b *bus) open(t *testing.T, p *place) *Resolver {
	t.Helper()
	r, err := Open(context.Background(), Options{Link: 7, Server: server, Path: p.path, Bus: b.address, Log: slog.New(slog.DiscardHandler)})
	must(t, err)
	t.Cleanup(func() { must(t, r.Close()) })
	return r
}

func TestResolved(t *testing.T) {
	b, p := newBus(t), newPlace(t, stub)
	r := b.open(t, p)
	if r.String() != "systemd-resolved" || b.heard() != "" {
		t.Fatalf("it is %s", r)
	}
	must(t, r.Tell(context.Background(), nil))
	if got := b.heard(); got != "" {
		t.Errorf("it is told %s", got)
	}
	must(t, r.Tell(context.Background(), []string{"*.corp.example", "a.corp.example", "payroll.corp"}))
	want := `SetLinkDefaultRoute[7 false]
SetLinkDNSSEC[7 no]
SetLinkDNSOverTLS[7 no]
SetLinkLLMNR[7 no]
SetLinkMulticastDNS[7 no]
SetLinkDomains[7 [[corp.example true] [payroll.corp true]]]
SetLinkDNS[7 [[2 [100 64 0 2]]]]`
	if got := b.heard(); got != want {
		t.Errorf("it is told\n%s\nwant\n%s", got, want)
	}
	must(t, r.Look())
	must(t, r.Tell(context.Background(), []string{"*.corp.example", "b.corp.example", "payroll.corp"}))
	if got := b.heard(); got != "" {
		t.Errorf("it is told %s, which it knows", got)
	}
	must(t, r.Tell(context.Background(), nil))
	if got := b.heard(); got != "RevertLink[7]" {
		t.Errorf("it is told %s", got)
	}
	must(t, r.Tell(context.Background(), []string{"payroll.corp"}))
	b.heard()
	must(t, r.Close())
	if got := b.heard(); got != "RevertLink[7]" {
		t.Errorf("it is told %s", got)
	}
	if p.read() != stub {
		t.Errorf("resolv.conf is\n%s", p.read())
	}
}

// TestWhichWay holds that systemd-resolved is told only if programs ask it.
func TestWhichWay(t *testing.T) {
	absent := newBus(t)
	absent.absent = true
	for name, c := range map[string]struct {
		bus  *bus
		text string
	}{
		"not running":   {absent, stub},
		"no bus":        {&bus{address: "unix:path=" + t.TempDir() + "/none"}, stub},
		"asked by none": {newBus(t), usual},
		"empty":         {newBus(t), ""},
	} {
		p := newPlace(t, c.text)
		if r := c.bus.open(t, p); r.String() != p.path {
			t.Errorf("%s: it is %s", name, r)
		}
	}
}

// TestNoBus holds that a machine is told of whose programs ask systemd-resolved, and which
// cannot be asked by us: that names are not found has its reason there.
func TestNoBus(t *testing.T) {
	p := newPlace(t, stub)
	_, err := Open(context.Background(), Options{Link: 7, Server: server, Path: p.path, Bus: "unix:path=" + t.TempDir() + "/none", Log: slog.New(slog.NewTextHandler(&p.log, nil))})
	must(t, err)
	if got := p.log.String(); !strings.Contains(got, "look whether D-Bus runs") {
		t.Errorf("it says %q", got)
	}
}

// TestWithoutDot holds that it is said once which names are not found.
func TestWithoutDot(t *testing.T) {
	b, p := newBus(t), newPlace(t, stub)
	r, err := Open(context.Background(), Options{Link: 7, Server: server, Path: p.path, Bus: b.address, Log: slog.New(slog.NewTextHandler(&p.log, nil))})
	must(t, err)
	must(t, r.Tell(context.Background(), []string{"a.b", "payroll"}))
	must(t, r.Tell(context.Background(), []string{"payroll"}))
	must(t, r.Close())
	if got := p.log.String(); strings.Count(got, "ResolveUnicastSingleLabel") != 1 || !strings.Contains(got, "name=payroll") {
		t.Errorf("it says\n%s", got)
	}
}

func TestRefused(t *testing.T) {
	for name, want := range map[string]string{
		"org.freedesktop.DBus.Error.AccessDenied":                     "run the tunneler as root",
		"org.freedesktop.DBus.Error.InteractiveAuthorizationRequired": "run the tunneler as root",
		"org.freedesktop.DBus.Error.NoReply":                          "does not answer",
		"org.freedesktop.DBus.Error.ServiceUnknown":                   "no longer runs",
		"org.freedesktop.resolve1.NoSuchLink":                         "refuses",
	} {
		b := newBus(t)
		b.refuse = name
		r, err := Open(context.Background(), Options{Link: 7, Server: server, Path: newPlace(t, stub).path, Bus: b.address, Log: slog.New(slog.DiscardHandler)})
		must(t, err)
		if err := r.Tell(context.Background(), []string{"a.b"}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s is %v", name, err)
		}
		if err := r.Close(); (err == nil) != (name == "org.freedesktop.resolve1.NoSuchLink") {
			t.Errorf("%s at the end is %v", name, err)
		}
	}
	b := newBus(t)
	r := b.open(t, newPlace(t, stub))
	b.silent.Store(true)
	defer b.silent.Store(false)
	gone, cancel := context.WithCancel(context.Background())
	cancel()
	if err := r.Tell(gone, []string{"a.b"}); err == nil {
		t.Error("nobody answers, and there is no error")
	}
	if err := explain(context.DeadlineExceeded); !strings.Contains(err.Error(), "does not answer within") {
		t.Errorf("it is %v", err)
	}
}

// TestToldLater holds that what systemd-resolved could not be told, or be told to forget,
// it is told when it takes something again: a name that came meanwhile would not be found
// until another came.
func TestToldLater(t *testing.T) {
	b, p := newBus(t), newPlace(t, stub)
	r, err := Open(context.Background(), Options{Link: 7, Server: server, Path: p.path, Bus: b.address, Log: slog.New(slog.NewTextHandler(&p.log, nil))})
	must(t, err)
	refuse := func(why string) {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.refuse = why
	}
	for _, c := range []struct {
		names []string
		hears string
	}{
		{[]string{"payroll.corp"}, "SetLinkDomains[7 [[payroll.corp true]]]"},
		{nil, "RevertLink[7]"},
	} {
		refuse("org.freedesktop.DBus.Error.NoReply")
		for range 2 {
			if err := r.Tell(context.Background(), c.names); err == nil || !strings.Contains(err.Error(), "see systemctl status systemd-resolved") {
				t.Errorf("it is %v", err)
			}
			if err := r.Look(); err == nil {
				t.Error("nobody answers, and there is no error")
			}
		}
		refuse("")
		must(t, r.Look())
		if got := b.heard(); !strings.Contains(got, c.hears) {
			t.Errorf("it is told %q", got)
		}
		must(t, r.Look())
		if got := b.heard(); got != "" {
			t.Errorf("it is told %q, which it knows", got)
		}
	}
	must(t, r.Close())
	if got := p.log.String(); strings.Count(got, "systemd-resolved answers again") != 2 {
		t.Errorf("it says\n%s", got)
	}
}

// TestOtherServers holds that what is not ours is asked of whom it would be
// asked of without us.
func TestOtherServers(t *testing.T) {
	b := newBus(t)
	b.servers = []linkServer{
		{7, 2, []byte{100, 64, 0, 2}}, {0, 2, []byte{192, 0, 2, 1}}, {2, 2, []byte{192, 0, 2, 2}}, {2, 2, []byte{192, 0, 2, 2}},
		{3, 2, []byte{192, 0, 2, 3}}, {4, 10, netip.MustParseAddr("fe80::4").AsSlice()}, {5, 2, []byte{1}},
	}
	b.domains = []linkDomain{{7, "payroll.corp.example", true}, {3, "corp.example", true}, {4, "lan", false}}
	r := b.open(t, newPlace(t, stub))
	for name, want := range map[string]string{
		"x.payroll.corp.example": "[192.0.2.3:53]",
		"corp.example.":          "[192.0.2.3:53]",
		"printer.LAN":            "[[fe80::4%4]:53]",
		"example.com":            "[192.0.2.1:53 192.0.2.2:53 [fe80::4%4]:53]",
	} {
		if got := fmt.Sprint(r.Servers(name)); got != want {
			t.Errorf("%s is asked of %s, want %s", name, got, want)
		}
	}
}

func TestDomains(t *testing.T) {
	for _, c := range []struct{ names, want string }{
		{"", ""},
		{"payroll", "payroll"},
		{"*.corp.example corp.example a.corp.example b.example", "b.example corp.example"},
		{"a.b b.c xb.c x.b.c", "a.b b.c xb.c"},
	} {
		if got := strings.Join(domains(strings.Fields(c.names)), " "); got != c.want {
			t.Errorf("%s is %s, want %s", c.names, got, c.want)
		}
	}
	var many, far []string
	for i := range 10_000 {
		many = append(many, fmt.Sprintf("host-%d.area-%d.corp.example", i, i%100))
		far = append(far, fmt.Sprintf("corp-%d.example", i))
	}
	if got := domains(many); len(got) != 100 || got[0] != "area-0.corp.example" {
		t.Errorf("there are %d: %.3q", len(got), got)
	}
	if got := domains(append(many, "one.two")); len(got) != 101 {
		t.Errorf("there are %d: %.3q", len(got), got)
	}
	if got := domains(far); len(got) != 1 || got[0] != "." {
		t.Errorf("there are %d: %.3q", len(got), got)
	}
}
