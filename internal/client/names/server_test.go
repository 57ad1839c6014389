package names

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/miekg/dns"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// ours is what a table of these tests would cover.
func ours(name string) bool {
	return name == "payroll.corp" || strings.HasSuffix(name, ".wild.example") && !strings.ContainsAny(name, `\ `) || strings.HasSuffix(name, "long.example")
}

func server(t testing.TB, change func(*Options)) *Server {
	t.Helper()
	p, clock := pool(t, "100.64.0.0/10", nil)
	opt := Options{Pool: p, Covers: ours, Log: slog.New(slog.DiscardHandler), Now: clock.now}
	if change != nil {
		change(&opt)
	}
	return NewServer(opt)
}

// ask answers a question.
func ask(t testing.TB, s *Server, change func(*dns.Msg), name string, typ uint16) *dns.Msg {
	t.Helper()
	q := new(dns.Msg)
	q.SetQuestion(dns.Fqdn(name), typ)
	if change != nil {
		change(q)
	}
	query, err := q.Pack()
	if err != nil {
		t.Fatal(err)
	}
	v := s.judge(query)
	r := new(dns.Msg)
	if err := r.Unpack(v.reply); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	if r.Id != q.Id || !r.Response {
		t.Fatalf("%s: the answer is %v", name, r)
	}
	if len(v.reply) > 2*len(query)+80 && typ != dns.TypePTR || len(v.reply) > dns.MinMsgSize {
		t.Errorf("%s: %d bytes are answered to %d", name, len(v.reply), len(query))
	}
	return r
}

func TestAnswers(t *testing.T) {
	s := server(t, nil)
	has := get(t, s.opt.Pool, "payroll.corp")
	back, err := dns.ReverseAddr(has.String())
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name string
		typ  uint16
		code int
		want string
	}{
		{"payroll.corp", dns.TypeA, dns.RcodeSuccess, has.String()},
		{"PayRoll.Corp", dns.TypeA, dns.RcodeSuccess, has.String()},
		{"payroll.corp", dns.TypeANY, dns.RcodeSuccess, has.String()},
		{"payroll.corp", dns.TypeAAAA, dns.RcodeSuccess, ""},
		{"payroll.corp", dns.TypeHTTPS, dns.RcodeSuccess, ""},
		{"payroll.corp", dns.TypeMX, dns.RcodeSuccess, ""},
		{"payroll.corp", dns.TypeAXFR, dns.RcodeRefused, ""},
		{"www.payroll.corp", dns.TypeA, dns.RcodeNameError, ""},
		{"corp", dns.TypeA, dns.RcodeNameError, ""},
		{"wild.example", dns.TypeA, dns.RcodeNameError, ""},
		{`we\032ird.wild.example`, dns.TypeA, dns.RcodeNameError, ""},
		{".", dns.TypeNS, dns.RcodeNameError, ""},
		{back, dns.TypePTR, dns.RcodeSuccess, "payroll.corp."},
		{back, dns.TypeA, dns.RcodeSuccess, ""},
		{"9.9.99.100.in-addr.arpa", dns.TypePTR, dns.RcodeNameError, ""},
		{"8.8.8.8.in-addr.arpa", dns.TypePTR, dns.RcodeNameError, ""},
	} {
		r := ask(t, s, nil, c.name, c.typ)
		got := ""
		if len(r.Answer) > 0 {
			got = dns.Field(r.Answer[0], 1)
			if r.Answer[0].Header().Ttl > 60 {
				t.Errorf("%s counts for %d s", c.name, r.Answer[0].Header().Ttl)
			}
		} else if r.Rcode != dns.RcodeRefused && (len(r.Ns) != 1 || r.Ns[0].Header().Ttl > 1) {
			t.Errorf("%s: how long that counts is not said: %v", c.name, r.Ns)
		}
		if r.Rcode != c.code || got != c.want {
			t.Errorf("%s %s is %s %q, want %s %q", c.name, dns.TypeToString[c.typ], dns.RcodeToString[r.Rcode], got, dns.RcodeToString[c.code], c.want)
		}
		if r.Question[0].Name != dns.Fqdn(c.name) && !strings.Contains(c.name, `\`) {
			t.Errorf("%s was asked, and %s is repeated", c.name, r.Question[0].Name)
		}
	}
	one, other := ask(t, s, nil, "a.wild.example", dns.TypeA), ask(t, s, nil, "b.wild.example", dns.TypeA)
	if a, b := dns.Field(one.Answer[0], 1), dns.Field(other.Answer[0], 1); a == b {
		t.Errorf("two names are both %s", a)
	}
}

func TestOddQuestions(t *testing.T) {
	s := server(t, nil)
	edns := func(change func(*dns.OPT)) func(*dns.Msg) {
		return func(q *dns.Msg) {
			q.SetEdns0(4096, true)
			change(q.IsEdns0())
		}
	}
	for name, c := range map[string]struct {
		change func(*dns.Msg)
		code   int
	}{
		"notify":        {func(q *dns.Msg) { q.Opcode = dns.OpcodeNotify }, dns.RcodeNotImplemented},
		"update":        {func(q *dns.Msg) { q.Opcode = dns.OpcodeUpdate }, dns.RcodeNotImplemented},
		"chaos":         {func(q *dns.Msg) { q.Question[0].Qclass = dns.ClassCHAOS }, dns.RcodeRefused},
		"two questions": {func(q *dns.Msg) { q.Question = append(q.Question, q.Question[0]) }, dns.RcodeFormatError},
		"no question":   {func(q *dns.Msg) { q.Question = nil }, dns.RcodeFormatError},
		"later EDNS":    {edns(func(o *dns.OPT) { o.SetVersion(1) }), dns.RcodeBadVers},
		"two OPTs":      {func(q *dns.Msg) { q.SetEdns0(4096, false).SetEdns0(4096, false) }, dns.RcodeFormatError},
		"EDNS":          {edns(func(o *dns.OPT) {}), dns.RcodeSuccess},
	} {
		r := ask(t, s, c.change, "payroll.corp", dns.TypeA)
		code := r.Rcode
		if opt := r.IsEdns0(); opt != nil && opt.UDPSize() != maxReply {
			t.Errorf("%s: %d bytes are offered", name, opt.UDPSize())
		}
		if code != c.code {
			t.Errorf("%s is %s, want %s", name, dns.RcodeToString[code], dns.RcodeToString[c.code])
		}
		if asked := name == "EDNS" || name == "later EDNS"; asked != (r.IsEdns0() != nil) {
			t.Errorf("%s: EDNS is answered: %v", name, !asked)
		}
	}
	for _, query := range [][]byte{nil, []byte("short"), append([]byte{0, 1, 0x80}, make([]byte, 30)...)} {
		if v := s.judge(query); v.reply != nil || v.pass != "" {
			t.Errorf("%x is answered", query)
		}
	}
}

// TestLongAnswer holds that no answer is longer than what anybody takes.
func TestLongAnswer(t *testing.T) {
	s := server(t, nil)
	name := strings.Repeat(strings.Repeat("a", 59)+".", 4) + "long.example" // 252 characters
	back, err := dns.ReverseAddr(get(t, s.opt.Pool, name).String())
	if err != nil {
		t.Fatal(err)
	}
	edns := func(q *dns.Msg) { q.SetEdns0(4096, true) }
	if r := ask(t, s, edns, name, dns.TypeA); len(r.Answer) != 1 {
		t.Errorf("it is %v", r)
	}
	if r := ask(t, s, edns, name, dns.TypeAAAA); len(r.Ns) != 1 {
		t.Errorf("it is %v", r)
	}
	if r := ask(t, s, edns, back, dns.TypePTR); len(r.Answer) != 1 {
		t.Errorf("it is %v", r)
	}
}

// run serves on loopback until the test ends.
func run(t *testing.T, s *Server) (address string) {
	t.Helper()
	packets, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address = packets.LocalAddr().String()
	streams, err := net.Listen("tcp", address)
	if err != nil { // somebody has the number, which for UDP was free
		_ = packets.Close()
		return run(t, s)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Serve(ctx, packets, streams) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return address
}

func exchange(t *testing.T, network, address, name string, typ uint16) *dns.Msg {
	t.Helper()
	q := new(dns.Msg)
	q.SetQuestion(dns.Fqdn(name), typ)
	r, _, err := (&dns.Client{Net: network, Timeout: time.Minute}).Exchange(q, address)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestServe(t *testing.T) {
	s := server(t, nil)
	address := run(t, s)
	has := get(t, s.opt.Pool, "payroll.corp").String()
	for _, network := range []string{"udp", "tcp"} {
		if r := exchange(t, network, address, "payroll.corp", dns.TypeA); len(r.Answer) != 1 || dns.Field(r.Answer[0], 1) != has {
			t.Errorf("over %s it is %v", network, r)
		}
		if r := exchange(t, network, address, "example.com", dns.TypeA); r.Rcode != dns.RcodeNameError {
			t.Errorf("over %s it is %v", network, r)
		}
	}
	// What no question is ends a connection, and no other.
	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := conn.Write([]byte{0xff, 0xff, 1, 2, 3}); err != nil {
		t.Fatal(err)
	}
	if rest, _ := io.ReadAll(conn); len(rest) > 0 {
		t.Errorf("%x is answered", rest)
	}
	exchange(t, "tcp", address, "payroll.corp", dns.TypeA)
}

// TestManyStreams holds that connections that say nothing keep nobody from
// asking over UDP, and that there are no more than there may be.
func TestManyStreams(t *testing.T) {
	s := server(t, nil)
	address := run(t, s)
	ended := make(chan struct{}, maxStreams+10)
	for range maxStreams + 10 {
		conn, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		go func() {
			_, _ = io.ReadAll(conn)
			ended <- struct{}{}
		}()
	}
	for range 10 {
		<-ended
	}
	if r := exchange(t, "udp", address, "payroll.corp", dns.TypeA); len(r.Answer) != 1 {
		t.Errorf("it is %v", r)
	}
}

// other is a DNS server of somebody else, which answers each name as it is told.
func other(t *testing.T, codes map[string]int) (at netip.AddrPort, asked func() []string) {
	t.Helper()
	packets, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	streams, err := net.Listen("tcp", packets.LocalAddr().String())
	if err != nil {
		_ = packets.Close()
		return other(t, codes)
	}
	var mu sync.Mutex
	var all []string
	handler := dns.HandlerFunc(func(w dns.ResponseWriter, q *dns.Msg) {
		mu.Lock()
		all = append(all, w.LocalAddr().Network()+" "+q.Question[0].Name)
		mu.Unlock()
		r := new(dns.Msg)
		r.SetRcode(q, codes[q.Question[0].Name])
		if r.Rcode == dns.RcodeSuccess {
			r.Answer = []dns.RR{&dns.A{Hdr: header(q.Question[0].Name, dns.TypeA, 77), A: net.IPv4(192, 0, 2, 1)}}
		}
		_ = w.WriteMsg(r)
	})
	var done sync.WaitGroup
	t.Cleanup(done.Wait)
	for _, srv := range []*dns.Server{{PacketConn: packets, Handler: handler}, {Listener: streams, Handler: handler}} {
		started := make(chan struct{})
		srv.NotifyStartedFunc = func() { close(started) }
		done.Go(func() { _ = srv.ActivateAndServe() })
		<-started
		t.Cleanup(func() { _ = srv.Shutdown() })
	}
	return netip.MustParseAddrPort(packets.LocalAddr().String()), func() []string {
		mu.Lock()
		defer mu.Unlock()
		return append([]string(nil), all...)
	}
}

func TestPassedOn(t *testing.T) {
	broken, askedBroken := other(t, map[string]int{"example.com.": dns.RcodeServerFailure, "gone.example.": dns.RcodeNameError})
	good, askedGood := other(t, map[string]int{})
	servers := []netip.AddrPort{broken, good}
	s := server(t, func(o *Options) { o.Servers = func(string) []netip.AddrPort { return servers } })
	address := run(t, s)
	for _, network := range []string{"udp", "tcp"} {
		r := exchange(t, network, address, "example.com", dns.TypeA)
		if len(r.Answer) != 1 || dns.Field(r.Answer[0], 1) != "192.0.2.1" || r.Answer[0].Header().Ttl != 77 {
			t.Errorf("over %s it is %v", network, r)
		}
		if r := exchange(t, network, address, "gone.example", dns.TypeA); r.Rcode != dns.RcodeNameError {
			t.Errorf("over %s it is %v", network, r)
		}
		if r := exchange(t, network, address, "payroll.corp", dns.TypeAAAA); r.Rcode != dns.RcodeSuccess || len(r.Answer) != 0 {
			t.Errorf("over %s it is %v", network, r)
		}
		exchange(t, network, address, "4.3.64.100.in-addr.arpa", dns.TypePTR)
	}
	want := "[udp example.com. udp gone.example. tcp example.com. tcp gone.example.]"
	if got := fmt.Sprint(askedBroken()); got != want {
		t.Errorf("the first was asked %s, want %s", got, want)
	}
	if got, want := fmt.Sprint(askedGood()), "[udp example.com. tcp example.com.]"; got != want {
		t.Errorf("the second was asked %s, want %s", got, want)
	}
}

// TestOutside holds that the machine's own name behind a service's is found where it
// was before: by who would be asked otherwise, and by who is usually asked as long as
// nobody else is known.
func TestOutside(t *testing.T) {
	before, askedBefore := other(t, map[string]int{})
	usual, askedUsual := other(t, map[string]int{})
	var servers []netip.AddrPort
	s := server(t, func(o *Options) { o.Servers = func(string) []netip.AddrPort { return servers } })
	look := func() {
		t.Helper()
		resolver := net.Resolver{PreferGo: true, Dial: func(ctx context.Context, network, _ string) (net.Conn, error) {
			return s.Outside(ctx, network, usual.String())
		}}
		ips, err := resolver.LookupNetIP(t.Context(), "ip4", "payroll.corp.")
		if err != nil || fmt.Sprint(ips) != "[192.0.2.1]" {
			t.Errorf("it is at %v: %v", ips, err)
		}
	}
	look()
	servers = []netip.AddrPort{before}
	look()
	if got, want := fmt.Sprint(askedUsual(), askedBefore()), "[udp payroll.corp.] [udp payroll.corp.]"; got != want {
		t.Errorf("asked were %s, want %s", got, want)
	}
	servers = nil
	if got := s.outside([]byte("no question"), usual); got[3]&0xf != dns.RcodeFormatError {
		t.Errorf("what is no question gets %x", got)
	}
	own := netip.AddrPortFrom(s.opt.Pool.Prefix().Addr().Next(), 53)
	q := new(dns.Msg).SetQuestion("payroll.corp.", dns.TypeA)
	packed, err := q.Pack()
	if err != nil {
		t.Fatal(err)
	}
	if got := s.outside(packed, own); got[3]&0xf != dns.RcodeServerFailure {
		t.Errorf("with nobody but us to ask it is %x", got)
	}
}

// TestNobodyAnswers passes a question to where nobody listens.
func TestNobodyAnswers(t *testing.T) {
	s := server(t, func(o *Options) {
		o.Servers = func(string) []netip.AddrPort { return []netip.AddrPort{netip.MustParseAddrPort("127.0.0.1:1")} }
		o.Dial = func(context.Context, string, string) (net.Conn, error) { return nil, io.ErrUnexpectedEOF }
	})
	if r := exchange(t, "udp", run(t, s), "example.com", dns.TypeA); r.Rcode != dns.RcodeServerFailure {
		t.Errorf("it is %v", r)
	}
}

// TestSlowToTell holds that names of ours are answered while nobody knows yet who
// is to be asked for another.
func TestSlowToTell(t *testing.T) {
	asked, known := make(chan struct{}), make(chan struct{})
	s := server(t, func(o *Options) {
		o.Servers = func(string) []netip.AddrPort {
			close(asked)
			<-known
			return nil
		}
	})
	address := run(t, s)
	var slow sync.WaitGroup
	slow.Go(func() {
		if r := exchange(t, "udp", address, "example.com", dns.TypeA); r.Rcode != dns.RcodeNameError {
			t.Errorf("it is %v", r)
		}
	})
	<-asked
	for _, network := range []string{"udp", "tcp"} {
		if r := exchange(t, network, address, "payroll.corp", dns.TypeA); len(r.Answer) != 1 {
			t.Errorf("over %s it is %v", network, r)
		}
	}
	close(known)
	slow.Wait()
}

// TestOnlyForThisMachine holds that nothing is passed on for others.
func TestOnlyForThisMachine(t *testing.T) {
	s := server(t, func(o *Options) {
		o.Servers = func(string) []netip.AddrPort { return []netip.AddrPort{netip.MustParseAddrPort("127.0.0.1:53")} }
	})
	if s.mayPass(verdict{}, &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)}) {
		t.Error("what is ours is passed on")
	}
	for text, want := range map[string]bool{"127.0.0.1:5": true, "100.64.0.1:5": true, "203.0.113.7:5": false, "[2001:db8::1]:5": false, "[::1]:5": true} {
		if got := s.mayPass(verdict{pass: "example.com"}, net.UDPAddrFromAddrPort(netip.MustParseAddrPort(text))); got != want {
			t.Errorf("for %s it is %v", text, got)
		}
	}
}

// TestForgedAnswers holds that what is no answer to a question is not taken for
// one.
func TestForgedAnswers(t *testing.T) {
	q := new(dns.Msg)
	q.SetQuestion("Example.com.", dns.TypeA)
	query, err := q.Pack()
	if err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(*dns.Msg){
		"another id":       func(r *dns.Msg) { r.Id++ },
		"a question":       func(r *dns.Msg) { r.Response = false },
		"another name":     func(r *dns.Msg) { r.Question[0].Name = "example.org." },
		"another type":     func(r *dns.Msg) { r.Question[0].Qtype = dns.TypeMX },
		"no question":      func(r *dns.Msg) { r.Question = nil },
		"small letters":    func(r *dns.Msg) { r.Question[0].Name = "example.com." },
		"as it should be":  func(*dns.Msg) {},
		"refused, briefly": func(r *dns.Msg) { r.Question, r.Rcode = nil, dns.RcodeRefused },
	} {
		r := new(dns.Msg)
		r.SetReply(q)
		change(r)
		reply, err := r.Pack()
		if err != nil {
			t.Fatal(err)
		}
		if got, want := answers(reply, query), name == "small letters" || name == "as it should be" || name == "refused, briefly"; got != want {
			t.Errorf("%s is an answer: %v", name, got)
		}
	}
}

// FuzzJudge holds that nothing that comes over UDP breaks the server, or is
// answered at length.
func FuzzJudge(f *testing.F) {
	for _, name := range []string{"payroll.corp.", "a.wild.example.", "example.com.", "2.0.64.100.in-addr.arpa."} {
		for _, typ := range []uint16{dns.TypeA, dns.TypeAAAA, dns.TypePTR, dns.TypeANY} {
			q := new(dns.Msg)
			q.SetQuestion(name, typ)
			query, err := q.SetEdns0(4096, true).Pack()
			if err != nil {
				f.Fatal(err)
			}
			f.Add(query)
		}
	}
	s := server(f, nil)
	f.Fuzz(func(t *testing.T, query []byte) {
		v := s.judge(query)
		if len(v.reply) > dns.MinMsgSize {
			t.Errorf("%d bytes are answered to %d", len(v.reply), len(query))
		}
		if v.reply != nil && (!bytes.Equal(v.reply[:2], query[:2]) || v.reply[2]&0x80 == 0) {
			t.Errorf("%x is no answer", v.reply)
		}
		if len(v.reply) > headerSize && binary.BigEndian.Uint16(v.reply[4:]) > 1 {
			t.Errorf("%x repeats more than one question", v.reply)
		}
		answers(query, query[:min(len(query), headerSize)])
	})
}

func BenchmarkJudge(b *testing.B) {
	s := server(b, nil)
	for _, name := range []string{"payroll.corp.", "a.wild.example.", "example.com."} {
		b.Run(name, func(b *testing.B) {
			q := new(dns.Msg)
			q.SetQuestion(name, dns.TypeA)
			query, err := q.SetEdns0(1232, false).Pack()
			if err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			for b.Loop() {
				s.judge(query)
			}
		})
	}
}
