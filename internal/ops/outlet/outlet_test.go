package outlet_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	collected "go.opentelemetry.io/proto/otlp/collector/logs/v1"
	"google.golang.org/protobuf/proto"

	"netkeep.internal/internal/data/state"
	"netkeep.internal/internal/data/store/storetest"
	"netkeep.internal/internal/model"
	"netkeep.internal/internal/ops/audit"
	"netkeep.internal/internal/ops/egress"
	"netkeep.internal/internal/ops/outlet"
	"netkeep.internal/test/certtest"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func open(t *testing.T) *state.State {
	t.Helper()
	s, err := state.Open(context.Background(), storetest.NewMemory(), model.All, state.Options{Journal: audit.Journal{}, Frozen: true})
	must(t, err)
	t.Cleanup(s.Close)
	return s
}

// write makes changes of a service, one entry each.
func write(t *testing.T, s *state.State, changes int) {
	t.Helper()
	for range changes {
		must(t, s.Update(t.Context(), state.Program("tester"), func(tx *state.Tx) error {
			return model.Services.Upsert(tx, "web", func(v *model.Service) {
				v.Name, v.TerminatorStrategy, v.MaxIdleTimeMillis = "web", "random", v.MaxIdleTimeMillis+1
			})
		}))
	}
}

// follow has an outlet send until the test ends, or what it returns is called.
func follow(t *testing.T, s *state.State, to outlet.Outlet, at outlet.Position) (f *outlet.Follower, stop func()) {
	f = &outlet.Follower{Name: "test", Log: &audit.Log{State: s}, Outlet: to, At: at, Again: time.Millisecond, Now: time.Now, Logger: slog.New(slog.DiscardHandler)}
	return f, run(t, f)
}

func run(t *testing.T, f *outlet.Follower) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	ran := make(chan struct{})
	go func() { f.Run(ctx); close(ran) }()
	stop = sync.OnceFunc(func() { cancel(); <-ran })
	t.Cleanup(stop)
	return stop
}

func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !is(); {
		if time.Now().After(deadline) {
			t.Fatalf("%s: it did not happen", what)
		}
		<-time.After(time.Millisecond)
	}
}

// got is what came in, by number.
type got struct {
	mu      sync.Mutex
	times   map[int64]int
	last    int64
	missing []string
	order   bool // whether each new one followed the last
}

func (g *got) take(t *testing.T, line []byte) {
	var e struct {
		Number int64  `json:"number"`
		Event  string `json:"event"`
		Target string `json:"targetName"`
		Actor  string `json:"actorName"`
	}
	if err := json.Unmarshal(line, &e); err != nil {
		t.Errorf("%q: %v", line, err)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.times == nil {
		g.times, g.order = map[int64]int{}, true
	}
	if e.Event == outlet.Missing {
		g.missing = append(g.missing, e.Target)
	} else if e.Number > g.last+1 || e.Actor != "tester" {
		g.order = false
	}
	g.times[e.Number]++
	g.last = max(g.last, e.Number)
}

func (g *got) all(n int64) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.last >= n
}

func (g *got) whole(t *testing.T, n int64) {
	t.Helper()
	g.mu.Lock()
	defer g.mu.Unlock()
	if int64(len(g.times)) != n || !g.order || g.last != n {
		t.Errorf("%d of %d came, up to %d, in their order: %v", len(g.times), n, g.last, g.order)
	}
}

// TestFile adds entries to a file, goes on after a restart and after the file was moved,
// and begins a line of its own behind one that was cut short.
func TestFile(t *testing.T) {
	s := open(t)
	dir := t.TempDir()
	path := filepath.Join(dir, "audit.jsonl")
	at := outlet.Here(filepath.Join(dir, "at"))
	read := func(skip int) *got {
		g := &got{}
		text, _ := os.ReadFile(path)
		text = text[:bytes.LastIndexByte(text, '\n')+1] // the last line may be on its way
		for i, line := range bytes.Split(text, []byte("\n")) {
			if len(line) > 0 && i != skip {
				g.take(t, line)
			}
		}
		return g
	}
	write(t, s, 700)
	f, stop := follow(t, s, &outlet.File{Path: path}, at)
	eventually(t, "all is in the file", func() bool { return read(-1).all(700) })
	write(t, s, 1)
	eventually(t, "so is what follows", func() bool { return read(-1).all(701) && f.Figures().Behind == 0 })
	stop()
	read(-1).whole(t, 701)
	if n, err := at.Load(t.Context()); err != nil || n != 701 {
		t.Errorf("it is at %d, %v", n, err)
	}
	file, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	must(t, err)
	_, err = file.WriteString(`{"number":702,"act`)
	must(t, err)
	must(t, file.Close())
	write(t, s, 9)
	_, stop = follow(t, s, &outlet.File{Path: path}, at)
	eventually(t, "it goes on", func() bool { return read(701).all(710) })
	read(701).whole(t, 710)
	must(t, os.Rename(path, path+".1"))
	write(t, s, 1)
	eventually(t, "there is a new file", func() bool { return read(-1).all(711) })
	stop()
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
}

// TestWeb posts to somebody who refuses, asks to wait, takes too little, breaks off in
// the middle and comes back: every entry comes, in its order.
func TestWeb(t *testing.T) {
	s := open(t)
	var g got
	requests := 0
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil || r.Header.Get("Authorization") != "Bearer let-me-in" || r.Header.Get("Content-Type") != "application/x-ndjson" {
			t.Errorf("%v: %v", r.Header, err)
		}
		requests++
		switch {
		case requests == 1:
			w.WriteHeader(http.StatusInternalServerError)
		case requests == 2:
			w.Header().Set("Retry-After", "0")
			w.WriteHeader(http.StatusTooManyRequests)
		case requests == 3:
			panic(http.ErrAbortHandler)
		case requests == 4:
			http.Redirect(w, r, "/elsewhere", http.StatusTemporaryRedirect)
		case bytes.Count(body, []byte("\n")) > 100:
			w.WriteHeader(http.StatusRequestEntityTooLarge)
		default:
			for _, line := range bytes.Split(bytes.TrimSpace(body), []byte("\n")) {
				g.take(t, line)
			}
		}
	}))
	defer srv.Close()
	write(t, s, 1200)
	at := outlet.Shared{State: s, ID: "audit-http-1"}
	to := &outlet.Web{URL: srv.URL, Token: "let-me-in", Client: egress.New(egress.Options{})}
	f, stop := follow(t, s, to, at)
	eventually(t, "all came", func() bool { return g.all(1200) && f.Figures().Behind == 0 })
	stop()
	g.whole(t, 1200)
	if n, err := at.Load(t.Context()); err != nil || n != 1200 {
		t.Errorf("it is at %d, %v", n, err)
	}
	if is := f.Figures(); is.Behind != 0 || is.Failing != 0 || is.Missed != 0 {
		t.Errorf("it is %+v", is)
	}
	write(t, s, 5)
	f, stop = follow(t, s, to, at)
	eventually(t, "it goes on", func() bool { return g.all(1205) && f.Figures().Behind == 0 })
	stop()
	g.whole(t, 1205)
	for n, times := range g.times {
		if times > 1 {
			t.Fatalf("entry %d came %d times, after an orderly stop", n, times)
		}
	}
}

// TestGone has entries leave the store before they can be sent: those that are archived
// go out from there, and of the others an entry tells.
func TestGone(t *testing.T) {
	s := open(t)
	write(t, s, 2600)
	var archived []audit.Line
	for l, err := range (&audit.Log{State: s}).Read(t.Context(), 301, 2600) {
		must(t, err)
		archived = append(archived, l)
	}
	k := &audit.Keeper{Log: &audit.Log{State: s}, Age: time.Hour, Entries: 1000, Now: time.Now}
	must(t, k.Keep(t.Context()))
	var g got
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		lines := bufio.NewScanner(r.Body)
		for lines.Scan() {
			g.take(t, lines.Bytes())
		}
		if lines.Err() != nil {
			w.WriteHeader(http.StatusBadRequest)
		}
	}))
	defer srv.Close()
	f := &outlet.Follower{
		Name: "test", Log: k.Log, Outlet: &outlet.Web{URL: srv.URL, Client: egress.New(egress.Options{})}, At: outlet.Here(filepath.Join(t.TempDir(), "at")),
		Archive: func(from, to int64) iter.Seq2[audit.Line, error] {
			return func(yield func(audit.Line, error) bool) {
				for _, l := range archived {
					if from <= l.Number && l.Number <= to && !yield(l, nil) {
						return
					}
				}
			}
		},
		Again: time.Millisecond, Now: time.Now, Logger: slog.New(slog.DiscardHandler),
	}
	stop := run(t, f)
	eventually(t, "all came", func() bool { return g.all(2600) })
	stop()
	if len(g.missing) != 1 || g.missing[0] != "entries 000000000001 to 000000000300" || len(g.times) != 2301 || f.Figures().Missed != 300 {
		t.Errorf("%q are missing, and %d came: %+v", g.missing, len(g.times), f.Figures())
	}
}

// TestSilent has somebody who takes connections and never answers: it is told that
// nothing goes out, and a stop does not wait.
func TestSilent(t *testing.T) {
	s := open(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer l.Close()
	write(t, s, 3)
	f, stop := follow(t, s, &outlet.Web{URL: "http://" + l.Addr().String(), Client: egress.New(egress.Options{Timeout: 50 * time.Millisecond})}, outlet.Shared{State: s, ID: "x"})
	eventually(t, "it fails", func() bool { is := f.Figures(); return is.Failing > 0 && is.Behind == 3 })
	write(t, s, 100) // nobody waits for it
	stop()
}

// collector takes syslog over TLS.
type collector struct {
	got
	net.Listener
	mu    sync.Mutex
	conns []net.Conn
	deaf  bool // whether connections are ended without a look at what they bring
}

func (c *collector) serve(t *testing.T) {
	for {
		conn, err := c.Accept()
		if err != nil {
			return
		}
		c.mu.Lock()
		c.conns = append(c.conns, conn)
		deaf := c.deaf
		c.mu.Unlock()
		go func() {
			defer conn.Close()
			if deaf {
				_ = conn.(*tls.Conn).Handshake()
				_, _ = conn.Read(make([]byte, 10))
				return
			}
			for r := bufio.NewReader(conn); ; {
				length, err := r.ReadString(' ')
				if err != nil {
					return
				}
				n, err := strconv.Atoi(strings.TrimSuffix(length, " "))
				if err != nil {
					t.Errorf("a frame has the length %q", length)
					return
				}
				text := make([]byte, n)
				if _, err := io.ReadFull(r, text); err != nil {
					return
				}
				head, message, _ := bytes.Cut(text, []byte(" - {"))
				words := strings.Fields(string(head))
				if len(words) != 6 || words[0] != "<110>1" || words[3] != "netkeep" || words[5] != "created" && words[5] != "updated" {
					t.Errorf("the header is %q", head)
				}
				if _, err := time.Parse(time.RFC3339Nano, words[1]); err != nil {
					t.Errorf("the time is %q", words[1])
				}
				c.take(t, append([]byte{'{'}, message...))
			}
		}()
	}
}

func (c *collector) hang(deaf bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.deaf = deaf
	for _, conn := range c.conns {
		_ = conn.Close()
	}
	c.conns = nil
}

func pair(p certtest.Pair) tls.Certificate {
	return tls.Certificate{Certificate: [][]byte{p.Raw}, PrivateKey: p.Key}
}

// TestSyslog sends to a collector that ends connections, with what it was sent unread:
// every entry comes, some twice. It is shown a certificate, and another collector than
// the one that is trusted gets nothing.
func TestSyslog(t *testing.T) {
	s := open(t)
	ca := certtest.New(t, nil, func(c *x509.Certificate) { c.IsCA, c.KeyUsage = true, x509.KeyUsageCertSign })
	server := certtest.New(t, &ca, func(c *x509.Certificate) { c.IPAddresses = []net.IP{net.IPv4(127, 0, 0, 1)} })
	own := certtest.New(t, &ca)
	trust := x509.NewCertPool()
	trust.AddCert(ca.Certificate)
	l, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: []tls.Certificate{pair(server)}, ClientCAs: trust, ClientAuth: tls.RequireAndVerifyClientCert})
	must(t, err)
	defer l.Close()
	c := &collector{Listener: l}
	go c.serve(t)
	client := egress.New(egress.Options{Trust: trust, Certificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { cert := pair(own); return &cert, nil }})
	write(t, s, 100)
	f, stop := follow(t, s, &outlet.Syslog{Address: l.Addr().String(), Client: client, Now: time.Now}, outlet.Shared{State: s, ID: "x"})
	eventually(t, "all came", func() bool { return c.all(100) })
	c.hang(true)
	write(t, s, 50) // which nobody reads
	eventually(t, "it fails", func() bool { return f.Figures().Failing > 0 })
	c.hang(false)
	eventually(t, "they come", func() bool { return c.all(150) })
	c.hang(false) // and while nothing happens
	write(t, s, 1)
	eventually(t, "it goes on", func() bool { return c.all(151) })
	stop()
	c.whole(t, 151)

	other := egress.New(egress.Options{})
	f, stop = follow(t, s, &outlet.Syslog{Address: l.Addr().String(), Client: other, Now: time.Now}, outlet.Shared{State: s, ID: "y"})
	eventually(t, "it trusts nobody", func() bool { return f.Figures().Failing > 0 })
	stop()
}

// TestOTLP sends logs to a collector of OpenTelemetry.
func TestOTLP(t *testing.T) {
	s := open(t)
	var g got
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		var sent collected.ExportLogsServiceRequest
		if err != nil || r.URL.Path != "/v1/logs" || proto.Unmarshal(body, &sent) != nil {
			t.Errorf("%s cannot be read: %v", r.URL, err)
		}
		for _, rec := range sent.ResourceLogs[0].ScopeLogs[0].LogRecords {
			attributes := map[string]string{}
			for _, a := range rec.Attributes {
				attributes[a.Key] = fmt.Sprint(a.Value.GetStringValue(), a.Value.GetIntValue())
			}
			if rec.TimeUnixNano == 0 || !strings.HasPrefix(rec.EventName, "netkeep.audit.") || attributes["netkeep.audit.targetId"] != "web0" || attributes["netkeep.audit.number"] == "" {
				t.Errorf("%s has %v", rec.EventName, attributes)
			}
			g.take(t, []byte(rec.Body.GetStringValue()))
		}
	}))
	defer srv.Close()
	write(t, s, 20)
	_, stop := follow(t, s, &outlet.OTLP{URL: srv.URL + "/v1/logs", Network: "net", Client: egress.New(egress.Options{}), Log: slog.New(slog.DiscardHandler)}, outlet.Shared{State: s, ID: "x"})
	eventually(t, "all came", func() bool { return g.all(20) })
	stop()
	g.whole(t, 20)
}
