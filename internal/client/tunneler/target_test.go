package tunneler

import (
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// TestTarget lists what dialers are connected to.
func TestTarget(t *testing.T) {
	fixed := &endpoint{Protocol: "tcp", Address: "server", Port: 80}
	open := &endpoint{
		ForwardProtocol: true, AllowedProtocols: []string{"tcp", "udp"},
		ForwardAddress: true, AllowedAddresses: []string{"10.0.0.0/8", "192.168.1.7", "fd00::/16", "Wiki.Example.com", "*.apps.example", "::ffff:172.16.0.0/108"},
		ForwardPort: true, AllowedPortRanges: []portRange{{22, 22}, {8000, 8999}},
	}
	say := func(protocol, hostname, ip, port string) string {
		return fmt.Sprintf(`{"dst_protocol":%q,"dst_hostname":%q,"dst_ip":%q,"dst_port":%q,"src_ip":"1.2.3.4"}`, protocol, hostname, ip, port)
	}
	from := func(source string) string {
		return fmt.Sprintf(`{"dst_protocol":"tcp","dst_ip":"10.1.2.3","dst_port":"22","source_addr":%q}`, source)
	}
	open.AllowedSources = []string{"127.0.0.8/30", "10.9.0.1", "fd00::/16"}
	for _, test := range []struct {
		name string
		at   *endpoint
		data string
		want string // empty if it is refused
	}{
		{"from somewhere", open, from("127.0.0.9"), "tcp 10.1.2.3:22 from 127.0.0.9:0"},
		{"from a port", open, from("127.0.0.9:5000"), "tcp 10.1.2.3:22 from 127.0.0.9:5000"},
		{"from one address", open, from("::ffff:10.9.0.1"), "tcp 10.1.2.3:22 from 10.9.0.1:0"},
		{"from IPv6", open, from("[fd00::1]:5000"), "tcp 10.1.2.3:22 from [fd00::1]:5000"},
		{"from IPv6 without a port", open, from("fd00::1"), "tcp 10.1.2.3:22 from [fd00::1]:0"},
		{"from beside a block", open, from("127.0.0.12"), ""},
		{"from a port of the machine", open, from("127.0.0.9:1023"), ""},
		{"from a name", open, from("localhost"), ""},
		{"from a port that is none", open, from("127.0.0.9:70000"), ""},
		{"from where nothing is listed", fixed, from("127.0.0.9"), ""},

		{"nothing is said", fixed, "", "tcp server:80"},
		{"what is no object", fixed, "hello", "tcp server:80"},
		{"fixed, and something else is wished for", fixed, say("udp", "other", "1.1.1.1", "22"), "tcp server:80"},
		{"a resolver", fixed, `{"connType":"resolver"}`, ""},
		{"a protocol that is none", &endpoint{Protocol: "unix", Address: "x", Port: 1}, "", ""},

		{"an address in a block", open, say("tcp", "", "10.1.2.3", "22"), "tcp 10.1.2.3:22"},
		{"with udp", open, say("udp", "", "10.1.2.3", "22"), "udp 10.1.2.3:22"},
		{"the one address", open, say("tcp", "", "192.168.1.7", "8999"), "tcp 192.168.1.7:8999"},
		{"its neighbour", open, say("tcp", "", "192.168.1.8", "8999"), ""},
		{"the one address in a longer form", open, say("tcp", "", "::ffff:192.168.1.7", "22"), "tcp 192.168.1.7:22"},
		{"a block in a longer form", open, say("tcp", "", "172.16.200.1", "22"), "tcp 172.16.200.1:22"},
		{"beside that block", open, say("tcp", "", "172.33.0.1", "22"), ""},
		{"IPv6", open, say("tcp", "", "fd00::1", "22"), "tcp [fd00::1]:22"},
		{"IPv6 elsewhere", open, say("tcp", "", "fd01::1", "22"), ""},
		{"with a zone", open, say("tcp", "", "fd00::1%eth0", "22"), "tcp [fd00::1]:22"},
		{"a name", open, say("tcp", "wiki.example.com", "100.64.0.1", "22"), "tcp wiki.example.com:22"},
		{"a name that is not listed, with an address that is", open, say("tcp", "evil.example", "10.1.2.3", "22"), ""},
		{"below a domain", open, say("tcp", "a.b.apps.example", "", "22"), "tcp a.b.apps.example:22"},
		{"the domain itself", open, say("tcp", "APPS.example.", "", "22"), "tcp APPS.example.:22"},
		{"a name that ends like a domain", open, say("tcp", "evilapps.example", "", "22"), ""},
		{"an address as a name", open, say("tcp", "127.0.0.1", "", "22"), ""},
		{"a short address as a name", open, say("tcp", "127.1", "", "22"), ""},
		{"a number below a domain", open, say("tcp", "x.apps.example.0x7f", "", "22"), ""},
		{"a name with a port in it", open, say("tcp", "x:22.apps.example", "", "22"), ""},
		{"a name with a wildcard in it", open, say("tcp", "*.apps.example", "", "22"), ""},
		{"no address", open, say("tcp", "", "", "22"), ""},
		{"no protocol", open, say("", "", "10.1.2.3", "22"), ""},
		{"another protocol", open, say("tcp4", "", "10.1.2.3", "22"), ""},
		{"a port between", open, say("tcp", "", "10.1.2.3", "443"), ""},
		{"no port", open, say("tcp", "", "10.1.2.3", ""), ""},
		{"a port by name", open, say("tcp", "", "10.1.2.3", "ssh"), ""},
		{"a port that is too large", open, say("tcp", "", "10.1.2.3", "65558"), ""},
		{"more than anybody says", open, say("tcp", "", "10.1.2.3", "22") + strings.Repeat(" ", maxWish), ""},
	} {
		got, err := test.at.target(readWish([]byte(test.data)))
		text := got.protocol + " " + got.address
		if got.source.IsValid() {
			text += " from " + got.source.String()
		}
		if err == nil && text != test.want || err != nil && test.want != "" {
			t.Errorf("%s: %q, %v, want %q", test.name, text, err, test.want)
		}
	}
}

// TestOnlyWhatIsAllowed wishes for anything: what comes of it is listed.
func TestOnlyWhatIsAllowed(t *testing.T) {
	part := rapid.SampledFrom([]string{"10.0.0.1", "10.0.0.0/24", "10.1.0.0/16", "fd00::/8", "fd00::1", "a.example", "*.example", "example", "b.a.example", "10.0.0.1.example", "::ffff:10.0.0.1", "0.0.0.0/0", ""})
	number := rapid.SampledFrom([]string{"0", "1", "80", "81", "65535", "65536", "-1", "x", ""})
	rapid.Check(t, func(rt *rapid.T) {
		e := &endpoint{
			ForwardProtocol: true, AllowedProtocols: rapid.SliceOfN(rapid.SampledFrom([]string{"tcp", "udp"}), 1, 2).Draw(rt, "protocols"),
			ForwardAddress: true, AllowedAddresses: rapid.SliceOfN(part, 1, 4).Draw(rt, "addresses"),
			ForwardPort: true, AllowedPortRanges: []portRange{{rapid.IntRange(0, 100).Draw(rt, "low"), rapid.IntRange(0, 65535).Draw(rt, "high")}},
		}
		w := wish{
			Protocol: rapid.SampledFrom([]string{"tcp", "udp", "unix", ""}).Draw(rt, "protocol"),
			Hostname: part.Draw(rt, "hostname"), IP: part.Draw(rt, "ip"), Port: number.Draw(rt, "port"),
		}
		got, err := e.target(w)
		if err != nil {
			return
		}
		host, port, err := net.SplitHostPort(got.address)
		if err != nil {
			rt.Fatal(err)
		}
		n, err := strconv.Atoi(port)
		if err != nil || n < max(1, e.AllowedPortRanges[0].Low) || n > e.AllowedPortRanges[0].High {
			rt.Fatalf("port %s of %v", port, e.AllowedPortRanges)
		}
		if !slices.Contains(e.AllowedProtocols, got.protocol) {
			rt.Fatalf("protocol %s of %v", got.protocol, e.AllowedProtocols)
		}
		if !slices.ContainsFunc(e.AllowedAddresses, func(entry string) bool { return naively(entry, host) }) {
			rt.Fatalf("address %s of %v", host, e.AllowedAddresses)
		}
	})
}

// naively reports whether an entry stands for a host, said another way.
func naively(entry, host string) bool {
	ip, err := netip.ParseAddr(host)
	if err != nil {
		return host == entry || strings.HasPrefix(entry, "*.") && strings.HasSuffix("."+host, entry[1:])
	}
	if _, block, err := net.ParseCIDR(entry); err == nil {
		return block.Contains(ip.AsSlice())
	}
	one := net.ParseIP(entry)
	return one != nil && one.Equal(ip.AsSlice())
}

// FuzzWish reads anything that a dialer may say.
func FuzzWish(f *testing.F) {
	f.Add([]byte(`{"dst_protocol":"tcp","dst_ip":"10.0.0.1","dst_port":"22"}`))
	f.Add([]byte(`{"dst_hostname":"a.example","dst_port":"22"}`))
	e := &endpoint{Protocol: "tcp", ForwardAddress: true, AllowedAddresses: []string{"*.example", "10.0.0.0/8"}, Port: 1}
	f.Fuzz(func(t *testing.T, data []byte) {
		got, err := e.target(readWish(data))
		if err != nil {
			return
		}
		host, port, err := net.SplitHostPort(got.address)
		if err != nil || port != "1" {
			t.Fatalf("%q leads to %q", data, got.address)
		}
		ip, err := netip.ParseAddr(host)
		if name := plainName(host); err == nil && !netip.MustParsePrefix("10.0.0.0/8").Contains(ip) || err != nil && !strings.HasSuffix("."+name, ".example") {
			t.Fatalf("%q leads to %q", data, host)
		}
	})
}
