package tunneler

import (
	"bytes"
	"context"
	"errors"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"
)

func reads(t *testing.T, texts ...string) allowed {
	t.Helper()
	list := allowed{}
	for _, text := range texts {
		a, err := ReadAllow(text)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, a)
	}
	return list
}

// TestJudge lists which addresses a host may reach.
func TestJudge(t *testing.T) {
	list := reads(t, "10.0.0.0/8:443", "192.0.2.7:8000-8999/tcp", "[fd00::/8]:*", "[::1]:53/udp", "[::ffff:172.16.0.0/108]:22", "127.0.0.1:80", "wiki.example:22")
	for _, test := range []struct {
		protocol, at string
		want         bool
	}{
		{"tcp", "10.1.2.3:443", true},
		{"udp", "10.1.2.3:443", true},
		{"tcp", "10.1.2.3:444", false},
		{"tcp", "11.1.2.3:443", false},
		{"tcp", "[::ffff:10.1.2.3]:443", true},
		{"tcp", "192.0.2.7:8000", true},
		{"tcp", "192.0.2.7:8999", true},
		{"tcp", "192.0.2.7:9000", false},
		{"udp", "192.0.2.7:8000", false},
		{"tcp", "192.0.2.8:8000", false},
		{"tcp", "[fd12::1]:1", true},
		{"tcp", "[fd12::1%eth0]:65535", true},
		{"tcp", "[fe80::1]:1", false},
		{"udp", "[::1]:53", true},
		{"udp", "[::]:53", true}, // which is ::1
		{"tcp", "[::1]:53", false},
		{"tcp", "172.17.1.1:22", true},
		{"tcp", "172.32.1.1:22", false},
		{"tcp", "0.0.0.0:80", true}, // which is 127.0.0.1
		{"tcp", "0.0.0.0:443", false},
	} {
		if err := list.judge(test.protocol, netip.MustParseAddrPort(test.at)); (err == nil) != test.want {
			t.Errorf("%s %s: %v", test.protocol, test.at, err)
		}
	}
	for _, open := range []string{"0.0.0.0", "[::]"} { // nobody who names them may reach the machine itself
		wide := reads(t, "10.0.0.0/8:*", "[fd00::/8]:*", open+":80")
		if err := wide.judge("tcp", netip.MustParseAddrPort(open+":80")); err == nil {
			t.Errorf("%s is allowed by itself", open)
		}
	}
}

// TestReadAllow lists what is no target.
func TestReadAllow(t *testing.T) {
	for text, want := range map[string]string{
		"":                       "no ports",
		"10.0.0.1":               "no ports",
		"[fd00::1]":              "no ports",
		"fd00::1:80":             "brackets",
		"fd00::/8:80":            "brackets",
		"[10.0.0.1]:80":          "brackets",
		"[fd00::1:80":            "brackets",
		"10.0.0.1:0":             `ports "0"`,
		"10.0.0.1:":              `ports ""`,
		"10.0.0.1:90-80":         `ports "90-80"`,
		"10.0.0.1:1-65536":       `ports "1-65536"`,
		"10.0.0.1:http":          `ports "http"`,
		"10.0.0.1:80/sctp":       `ports "80/sctp"`,
		"10.0.0.1:80/tcp/udp":    `ports "80/tcp"`,
		"10.0.0.0/33:80":         `host "10.0.0.0/33"`,
		"127.1:80":               `host "127.1"`,
		"0x7f.1:80":              `host "0x7f.1"`,
		"*.*.example:80":         `host "*.*.example"`,
		"a.*.example:80":         `host "a.*.example"`,
		"*example:80":            `host "*example"`,
		"*.:80":                  `host "*."`,
		":80":                    `host ""`,
		"[fe80::1%eth0]:80":      `host "fe80::1%eth0"`,
		"http://wiki.example:80": `brackets`,
		"a b:80":                 `host "a b"`,
	} {
		if _, err := ReadAllow(text); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "HOST:PORTS") {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}

// FuzzReadAllow reads anything: what is understood allows no more than it says.
func FuzzReadAllow(f *testing.F) {
	for _, text := range []string{"10.0.0.0/8:443", "*.example.com:8000-8999/tcp", "[fd00::/8]:*", "*:53/udp", "a:1-2", "[::ffff:10.0.0.0/104]:5"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		a, err := ReadAllow(text)
		if err != nil {
			return
		}
		if a.low == 0 || a.low > a.high || (a.name == "") != a.block.IsValid() {
			t.Fatalf("%q is %+v", text, a)
		}
		if a.name != "" && a.name != "*" && (strings.Contains(a.name[1:], "*") || !isName(strings.TrimPrefix(a.name, "*."))) {
			t.Fatalf("%q has the name %q", text, a.name)
		}
		if a.name == "" && allowed.judge(allowed{a}, "tcp", netip.AddrPortFrom(a.block.Addr(), a.low)) != nil && a.protocol != "udp" && !a.block.Addr().IsUnspecified() {
			t.Fatalf("%q does not allow its own address", text)
		}
	})
}

// TestNames dials names: one that is listed is wherever it is, and any other
// counts by the address that is connected to.
func TestNames(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, port, _ := net.SplitHostPort(l.Addr().String())
	for _, test := range []struct {
		allow, host string
		want        bool
	}{
		{"localhost:" + port, "localhost", true},
		{"*.localhost:" + port, "localhost", true},
		{"LOCALHOST.:" + port + "/tcp", "localhost", true},
		{"localhost:" + port + "/udp", "localhost", false},
		{"localhost:1", "localhost", false},
		{"otherhost:" + port, "localhost", false},
		{"localhost:" + port, "127.0.0.1", false}, // an address is no name
		{"127.0.0.0/8:" + port, "localhost", true},
		{"127.0.0.0/8:" + port, "127.0.0.1", true},
		{"127.0.0.0/8:" + port, "0.0.0.0", true},
		{"10.0.0.0/8:" + port, "localhost", false},
		{"10.0.0.0/8:" + port, "127.0.0.1", false},
		{"10.0.0.0/8:" + port, "0.0.0.0", false},
		{"10.0.0.0/8:" + port, "", false}, // which is the machine itself
		{"127.0.0.0/8:" + port, "", true},
		{"*:" + port, "localhost", true},
		{"*:" + port, "127.0.0.1", true},
	} {
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		conn, err := reads(t, test.allow).dial(ctx, &net.Dialer{}, "tcp", net.JoinHostPort(test.host, port))
		cancel()
		if err == nil {
			_ = conn.Close()
		}
		if (err == nil) != test.want || !test.want && !errors.Is(err, errNotAllowed) {
			t.Errorf("%s with --allow %s: %v", test.host, test.allow, err)
		}
	}
}

// TestRebound dials a name that means something else each time that somebody
// asks: what is connected to is what was judged.
func TestRebound(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, port, _ := net.SplitHostPort(l.Addr().String())
	address := net.JoinHostPort("rebound.example.", port)
	d := &net.Dialer{Timeout: 30 * time.Second, Resolver: turning(t, [4]byte{127, 0, 0, 2}, [4]byte{127, 0, 0, 1})}
	var refused, reached int
	for range 6 {
		conn, err := reads(t, "127.0.0.2:"+port).dial(t.Context(), d, "tcp", address)
		switch {
		case err == nil:
			t.Fatalf("it is connected to %s", conn.RemoteAddr())
		case errors.Is(err, errNotAllowed):
			refused++
		default:
			reached++ // where nobody listens
		}
	}
	if refused != 3 || reached != 3 {
		t.Errorf("%d dials were refused and %d led to what is allowed, want 3 of each", refused, reached)
	}
}

// turning is a resolver for which every name has one address after the other.
func turning(t *testing.T, addresses ...[4]byte) *net.Resolver {
	t.Helper()
	server, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Close() })
	go func() {
		for asked, buf := 0, make([]byte, 512); ; {
			n, from, err := server.ReadFrom(buf)
			if err != nil {
				return
			}
			end := 12 + bytes.IndexByte(buf[12:n], 0) + 5 // of the question: name, type, class
			answer := append([]byte{buf[0], buf[1], 0x81, 0x80, 0, 1, 0, 0, 0, 0, 0, 0}, buf[12:end]...)
			if buf[end-3] == 1 { // for an address of IPv4
				ip := addresses[asked%len(addresses)]
				asked++
				answer[7] = 1
				answer = append(answer, 0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 0, 0, 4, ip[0], ip[1], ip[2], ip[3])
			}
			_, _ = server.WriteTo(answer, from)
		}
	}()
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "udp", server.LocalAddr().String())
	}}
}
