package intercept

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func rule(t testing.TB, service string, protocols, addresses, ports string) *Rule {
	t.Helper()
	r := &Rule{Service: service, Protocols: strings.Fields(protocols)}
	for _, text := range strings.Fields(addresses) {
		a, err := ReadAddress(text)
		if err != nil {
			t.Fatal(err)
		}
		r.Addresses = append(r.Addresses, a)
	}
	for _, text := range strings.Fields(ports) {
		var p Ports
		if n, _ := fmt.Sscanf(text, "%d-%d", &p.Low, &p.High); n == 1 {
			p.High = p.Low
		}
		r.Ports = append(r.Ports, p)
	}
	return r
}

func service(r *Rule) string {
	if r == nil {
		return ""
	}
	return r.Service
}

func TestWhoHasWhat(t *testing.T) {
	table := New([]*Rule{
		rule(t, "everything", "tcp", "10.0.0.0/8 *.corp.example", "1-65535"),
		rule(t, "office", "tcp udp", "10.1.0.0/16 *.office.corp.example", "1-1000"),
		rule(t, "payroll", "tcp", "10.1.2.3 Payroll.Corp.Example.", "443"),
		rule(t, "web", "tcp", "payroll.corp.example", "400-500"),
		rule(t, "a-web", "tcp", "payroll.corp.example", "400-500"),
		rule(t, "six", "udp", "fd00::/8 fd00::1", "53"),
	})
	for _, c := range []struct{ protocol, to, want string }{
		{"tcp", "10.1.2.3:443", "payroll"},
		{"tcp", "10.1.2.3:80", "office"},
		{"tcp", "10.1.2.3:8080", "everything"},
		{"tcp", "[::ffff:10.1.2.3]:443", "payroll"},
		{"tcp", "10.2.0.0:1", "everything"},
		{"tcp", "10.2.0.0:0", ""},
		{"tcp", "11.0.0.0:1", ""},
		{"udp", "10.2.0.0:1", ""},
		{"udp", "10.1.0.0:1", "office"},
		{"udp", "[fd00::1]:53", "six"},
		{"udp", "[fd12::1]:53", "six"},
		{"udp", "[fe80::1%eth0]:53", ""},
		{"icmp", "10.1.2.3:443", ""},
	} {
		if got := service(table.ByAddr(c.protocol, netip.MustParseAddrPort(c.to))); got != c.want {
			t.Errorf("%s %s is for %q, want %q", c.protocol, c.to, got, c.want)
		}
	}
	for _, c := range []struct {
		name string
		port uint16
		want string
	}{
		{"payroll.corp.example", 443, "payroll"},
		{"PAYROLL.corp.example.", 443, "payroll"},
		{"payroll.corp.example", 444, "a-web"},
		{"payroll.corp.example", 80, "everything"},
		{"x.payroll.corp.example", 443, "everything"},
		{"a.office.corp.example", 443, "office"},
		{"a.office.corp.example", 4430, "everything"},
		{"office.corp.example", 443, "everything"},
		{"corp.example", 443, ""},
		{"xcorp.example", 443, ""},
		{"we ird.corp.example", 443, ""},
		{"a..corp.example", 443, ""},
		{".corp.example", 443, ""},
		{"", 443, ""},
	} {
		if got := service(table.ByName("tcp", c.name, c.port)); got != c.want {
			t.Errorf("%s:%d is for %q, want %q", c.name, c.port, got, c.want)
		}
		if got := table.Covers(c.name); got != (c.want != "") {
			t.Errorf("Covers(%q) is %v", c.name, got)
		}
	}
	if got, want := fmt.Sprint(table.Names()), "[*.corp.example *.office.corp.example payroll.corp.example]"; got != want {
		t.Errorf("names are %s, want %s", got, want)
	}
	var lost []string
	overlaps := table.Overlaps()
	for _, o := range overlaps {
		lost = append(lost, fmt.Sprintf("%s>%s %s %s", o.Winner.Service, o.Loser.Service, o.At, o.Ports))
	}
	for _, want := range []string{
		"office>everything 10.1.0.0/16 1-1000", "payroll>office 10.1.2.3 443", "payroll>everything 10.1.2.3 443",
		"office>everything *.office.corp.example 1-1000", "a-web>web payroll.corp.example 400-442",
		"payroll>a-web payroll.corp.example 443", "payroll>web payroll.corp.example 443", "payroll>everything payroll.corp.example 443",
	} {
		if !slices.Contains(lost, want) {
			t.Errorf("%q is not reported, but %q", want, lost)
		}
	}
	for _, c := range []struct{ winner, loser, want string }{
		{"office", "everything", "both office (10.1.0.0/16) and everything (10.0.0.0/8) intercept tcp port 1-1000: it leads to office, since its address is the more specific; if that is not meant, give everything another address or port"},
		{"payroll", "a-web", "both payroll (payroll.corp.example) and a-web (payroll.corp.example) intercept tcp port 443: it leads to payroll, since it has fewer ports; if that is not meant, give a-web another address or port"},
		{"a-web", "web", "both a-web (payroll.corp.example) and web (payroll.corp.example) intercept tcp port 400-442: it leads to a-web, since its name comes first; if that is not meant, give web another address or port"},
	} {
		i := slices.IndexFunc(overlaps, func(o Overlap) bool { return o.Winner.Service == c.winner && o.Loser.Service == c.loser })
		if got := overlaps[i].String(); got != c.want {
			t.Errorf("it says\n%s\nwant\n%s", got, c.want)
		}
	}
}

// naive is what the order of rules says, word for word.
func naive(rules []*Rule, protocol string, port uint16, holds func(Address) (specific int, ok bool)) *Rule {
	type candidate struct {
		rule                   *Rule
		specific, width, order int
	}
	var all []candidate
	for order, r := range rules {
		if !slices.Contains(r.Protocols, protocol) {
			continue
		}
		for _, a := range r.Addresses {
			for _, p := range r.Ports {
				if specific, ok := holds(a); ok && p.Low <= port && port <= p.High {
					all = append(all, candidate{r, specific, int(p.High - p.Low), order})
				}
			}
		}
	}
	if len(all) == 0 {
		return nil
	}
	return slices.MinFunc(all, func(a, b candidate) int {
		switch {
		case a.specific != b.specific:
			return b.specific - a.specific
		case a.width != b.width:
			return a.width - b.width
		case a.rule.Service != b.rule.Service:
			return strings.Compare(a.rule.Service, b.rule.Service)
		}
		return a.order - b.order
	}).rule
}

func holdsAddr(ip netip.Addr) func(Address) (int, bool) {
	return func(a Address) (int, bool) {
		block, ok := a.Prefix()
		return block.Bits(), ok && block.Contains(ip)
	}
}

func holdsName(name string) func(Address) (int, bool) {
	return func(a Address) (int, bool) {
		text := a.String()
		if domain, wild := strings.CutPrefix(text, "*"); wild {
			return len(domain), strings.HasSuffix(name, domain) && len(name) > len(domain)
		}
		return 1000, text == name
	}
}

var (
	somePorts = rapid.Custom(func(t *rapid.T) Ports {
		low := rapid.Uint16Range(0, 12).Draw(t, "low")
		if rapid.IntRange(0, 9).Draw(t, "end") == 0 {
			return Ports{low, 65535}
		}
		return Ports{low, low + rapid.Uint16Range(0, 6).Draw(t, "more")}
	})
	someAddress = rapid.Custom(func(t *rapid.T) Address {
		text := rapid.SampledFrom([]string{
			"a.b.c", "b.c", "c", "*.c", "*.b.c", "*.a.b.c", "x.a.b.c",
			"10.0.0.0/8", "10.0.0.0/9", "10.0.0.0/31", "10.0.0.0", "10.0.0.1", "0.0.0.0/0", "fd00::/8", "fd00::1", "::/0",
		}).Draw(t, "address")
		a, err := ReadAddress(text)
		if err != nil {
			t.Fatal(err)
		}
		return a
	})
	someRule = rapid.Custom(func(t *rapid.T) *Rule {
		return &Rule{
			Service:   rapid.SampledFrom([]string{"one", "two", "three", "four"}).Draw(t, "service"),
			Protocols: rapid.SampledFrom([][]string{{TCP}, {UDP}, {TCP, UDP}}).Draw(t, "protocols"),
			Addresses: rapid.SliceOfN(someAddress, 1, 4).Draw(t, "addresses"),
			Ports:     rapid.SliceOfN(somePorts, 1, 3).Draw(t, "ports"),
		}
	})
)

// TestModel compares the table with what the rules say, for every port that
// matters, and what is reported with who has what.
func TestModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rules := rapid.SliceOfN(someRule, 0, 8).Draw(t, "rules")
		table := New(rules)
		overlaps := table.Overlaps()
		for _, protocol := range []string{TCP, UDP} {
			for _, port := range []uint16{0, 1, 3, 5, 8, 12, 18, 19, 65534, 65535} {
				for _, name := range []string{"a.b.c", "b.c", "c", "d.c", "x.a.b.c", "y.x.a.b.c", "d"} {
					if got, want := table.ByName(protocol, name, port), naive(rules, protocol, port, holdsName(name)); got != want {
						t.Fatalf("%s %s:%d is for %v, want %v", protocol, name, port, got, want)
					}
				}
				for _, text := range []string{"10.0.0.0", "10.0.0.1", "10.1.1.1", "10.200.0.0", "11.0.0.0", "fd00::1", "fd00::2", "fe00::"} {
					ip := netip.MustParseAddr(text)
					if got, want := table.ByAddr(protocol, netip.AddrPortFrom(ip, port)), naive(rules, protocol, port, holdsAddr(ip)); got != want {
						t.Fatalf("%s %s %d is for %v, want %v", protocol, text, port, got, want)
					}
				}
			}
		}
		lost := map[*Rule]bool{}
		for _, o := range overlaps {
			if o.Winner == o.Loser || o.Ports.Low > o.Ports.High {
				t.Fatalf("%v is no overlap", o)
			}
			if block, ok := o.At.Prefix(); ok {
				for _, port := range []uint16{o.Ports.Low, o.Ports.High} {
					if at := table.find(o.At).winner(o.Protocol, port); at != o.Winner {
						t.Fatalf("%v: %v %d is for %v", o, block, port, at)
					}
				}
			}
			lost[o.Loser] = true
		}
		for _, r := range rules {
			if !lost[r] && !whole(table, r) {
				t.Fatalf("%v lost something, and that is not reported", r)
			}
		}
	})
}

// whole reports whether a rule has all that it wants of its own addresses.
func whole(table *Table, r *Rule) bool {
	for _, a := range r.Addresses {
		for _, protocol := range r.Protocols {
			for _, p := range r.Ports {
				for port := int(p.Low); port <= int(p.High) && port < 100; port++ {
					if table.find(a).winner(protocol, uint16(port)) != r {
						return false
					}
				}
			}
		}
	}
	return true
}

// many are the rules of a large network: 1,000 services with 10 addresses each.
func many(t testing.TB) []*Rule {
	var rules []*Rule
	for i := range 1000 {
		var at []string
		for j := range 4 {
			at = append(at, fmt.Sprintf("host-%d.service-%d.corp.example", j, i))
		}
		at = append(at, fmt.Sprintf("*.area-%d.corp.example", i), fmt.Sprintf("fd00:%x::/32", i))
		for j := range 3 {
			at = append(at, fmt.Sprintf("10.%d.%d.%d", i/250, i%250, j))
		}
		at = append(at, fmt.Sprintf("172.%d.%d.0/%d", 16+i/250, i%250, 10+i%20))
		rules = append(rules, rule(t, fmt.Sprint("service-", i), "tcp udp", strings.Join(at, " "), "80 443 8000-8999"))
	}
	return rules
}

func TestManyOnOneAddress(t *testing.T) {
	var rules []*Rule
	for i := range 5000 {
		rules = append(rules, rule(t, fmt.Sprint(i), "tcp", "10.0.0.1 10.0.0.0/8", fmt.Sprintf("%d-65535", i)))
	}
	table := New(rules)
	overlaps := table.Overlaps()
	if got := service(table.ByAddr(TCP, netip.MustParseAddrPort("10.0.0.1:9999"))); got != "4999" {
		t.Errorf("it is for %s", got)
	}
	if len(overlaps) != MaxOverlaps {
		t.Errorf("%d overlaps are reported", len(overlaps))
	}
}

func BenchmarkNew(b *testing.B) {
	rules := many(b)
	for b.Loop() {
		New(rules)
	}
}

func BenchmarkOverlaps(b *testing.B) {
	table := New(many(b))
	for b.Loop() {
		table.Overlaps()
	}
}

func BenchmarkByAddr(b *testing.B) {
	table := New(many(b))
	for _, text := range []string{"10.3.200.2:8500", "192.168.1.1:80", "[fd00:3ff::1]:443", "[fe80::1]:443"} {
		to := netip.MustParseAddrPort(text)
		b.Run(text, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				table.ByAddr(TCP, to)
			}
		})
	}
}

func BenchmarkByName(b *testing.B) {
	table := New(many(b))
	for _, name := range []string{"host-3.service-999.corp.example", "a.b.c.d.e.area-999.corp.example", "www.example.com"} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				table.ByName(TCP, name, 8500)
			}
		})
	}
}
