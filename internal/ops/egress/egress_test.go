package egress

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
)

// A world is a small internet: names with addresses, and servers of which each
// listens on loopback and is reached through one of those addresses. A name may
// change its addresses with each lookup; the last ones stay.
type world struct {
	mu      sync.Mutex
	names   map[string][][]netip.Addr
	servers map[string]string // address and port to listener
	lookups []string
	dialled []string
}

var errNoHost = errors.New("no such host")

func newWorld() *world {
	return &world{names: map[string][][]netip.Addr{}, servers: map[string]string{}}
}

func addresses(texts ...string) []netip.Addr {
	var addrs []netip.Addr
	for _, a := range texts {
		addrs = append(addrs, netip.MustParseAddr(a))
	}
	return addrs
}

// serve starts a server and gives it an address and a name.
func (w *world) serve(t testing.TB, name, addr string, h http.HandlerFunc) {
	srv := httptest.NewServer(h)
	t.Cleanup(srv.Close)
	w.names[name] = append(w.names[name], addresses(addr))
	w.servers[net.JoinHostPort(addr, "80")] = srv.Listener.Addr().String()
}

func (w *world) resolve(_ context.Context, _, host string) ([]netip.Addr, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.lookups = append(w.lookups, host)
	answers := w.names[host]
	if len(answers) == 0 {
		return nil, errNoHost
	}
	if len(answers) > 1 {
		w.names[host] = answers[1:]
	}
	return answers[0], nil
}

func (w *world) dial(ctx context.Context, network, address string) (net.Conn, error) {
	w.mu.Lock()
	w.dialled = append(w.dialled, address)
	listener, ok := w.servers[address]
	w.mu.Unlock()
	if !ok {
		return nil, &net.OpError{Op: "dial", Net: network, Err: errors.New("connection refused")}
	}
	return new(net.Dialer).DialContext(ctx, network, listener)
}

func (w *world) client(o Options) *Client {
	o.Resolver, o.DialContext = w.resolve, w.dial
	return New(o)
}

func answer(text string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, text) }
}

func redirect(to string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		http.SetCookie(w, &http.Cookie{Name: "track", Value: "me"})
		w.Header().Set("Location", to)
		w.WriteHeader(http.StatusFound)
	}
}

func TestGet(t *testing.T) {
	t.Setenv("HTTP_PROXY", "http://203.0.113.99:3128")
	w := newWorld()
	var seen *http.Request
	w.serve(t, "idp.example", "203.0.113.1", func(w http.ResponseWriter, r *http.Request) {
		seen = r.Clone(context.Background())
		w.Header().Set("Cache-Control", "max-age=60")
		io.WriteString(w, "keys")
	})
	body, header, err := w.client(Options{Strict: true}).Get(t.Context(), "http://idp.example/jwks?tenant=a%20b")
	if err != nil || string(body) != "keys" || header.Get("Cache-Control") != "max-age=60" {
		t.Fatalf("got %q, %v, %v", body, header, err)
	}
	if seen.Host != "idp.example" || seen.RequestURI != "/jwks?tenant=a%20b" || seen.Method != http.MethodGet {
		t.Errorf("asked %s for %s %s", seen.Host, seen.Method, seen.RequestURI)
	}
	if got := seen.Header.Get("Accept-Encoding"); got != "identity" {
		t.Errorf("asked for content encoding %q", got)
	}
	if want := []string{"203.0.113.1:80"}; !slices.Equal(w.dialled, want) {
		t.Errorf("connected to %v, want %v", w.dialled, want)
	}
}

func TestSystemResolverAndDialer(t *testing.T) {
	srv := httptest.NewServer(answer("hello"))
	defer srv.Close()
	if body, _, err := New(Options{}).Get(t.Context(), srv.URL); err != nil || string(body) != "hello" {
		t.Errorf("got %q, %v", body, err)
	}
	if _, _, err := New(Options{Strict: true}).Get(t.Context(), srv.URL); !errors.Is(err, ErrAddress) {
		t.Errorf("strict client reached loopback: %v", err)
	}
}

func TestURLs(t *testing.T) {
	for _, u := range []string{
		"", "/jwks", "idp.example/jwks", "ftp://idp.example/", "file:///etc/passwd", "gopher://idp.example/", "unix:///run/x",
		"http://", "http:///jwks", "http://:80/", "https://:443", "http:idp.example", "http://user@idp.example/",
		"http://user:secret@idp.example/", "http://idp.example:http/", "http://idp .example/", "http://idp.example/\n", "http://[::1/",
	} {
		w := newWorld()
		_, _, err := w.client(Options{}).Get(t.Context(), u)
		if !errors.Is(err, ErrURL) || len(w.lookups) > 0 {
			t.Errorf("%q: %v after lookups of %v", u, err, w.lookups)
		}
	}
}

func TestAddressesAreJudgedAfterResolution(t *testing.T) {
	for name, tt := range map[string]struct {
		addrs []string
		ok    bool
	}{
		"public":                   {[]string{"203.0.113.1"}, true},
		"private":                  {[]string{"10.0.0.1"}, true},
		"mapped private":           {[]string{"::ffff:10.0.0.1"}, true},
		"metadata":                 {[]string{"169.254.169.254"}, false},
		"mapped metadata":          {[]string{"::ffff:169.254.169.254"}, false},
		"translated metadata":      {[]string{"64:ff9b::a9fe:a9fe"}, false},
		"link-local with zone":     {[]string{"fe80::1%eth0"}, false},
		"metadata among good ones": {[]string{"203.0.113.1", "fd00:ec2::254", "10.0.0.1"}, false},
		"none":                     {nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld()
			w.serve(t, "", "203.0.113.1", answer("ok"))
			w.serve(t, "", "10.0.0.1", answer("ok"))
			w.names["idp.example"] = [][]netip.Addr{addresses(tt.addrs...)}
			_, _, err := w.client(Options{}).Get(t.Context(), "http://idp.example/?token=hush")
			if ok := err == nil; ok != tt.ok {
				t.Fatalf("error %v", err)
			}
			if !tt.ok && (!errors.Is(err, ErrAddress) || !strings.Contains(err.Error(), "idp.example") || len(w.dialled) > 0) {
				t.Errorf("error %v after dials to %v", err, w.dialled)
			}
		})
	}
}

func TestLiteralAddresses(t *testing.T) {
	for _, host := range []string{
		"169.254.169.254", "[fe80::1%25eth0]", "[::ffff:169.254.169.254]", "[::ffff:a9fe:a9fe]", "[64:ff9b::a9fe:a9fe]",
		"[2002:a9fe:a9fe::]", "0.0.0.0", "[::]", "255.255.255.255", "100.100.100.200", "[fd00:ec2::254]", "[ff02::1]",
	} {
		w := newWorld()
		_, _, err := w.client(Options{}).Get(t.Context(), "http://"+host+":80/latest/meta-data")
		if !errors.Is(err, ErrAddress) || len(w.dialled) > 0 || len(w.lookups) > 0 {
			t.Errorf("%s: %v after dials to %v and lookups of %v", host, err, w.dialled, w.lookups)
		}
	}
}

// A name that points elsewhere with each lookup gains nothing: one lookup is
// judged, and its address is the one that is dialled.
func TestRebinding(t *testing.T) {
	w := newWorld()
	w.serve(t, "rebind.example", "203.0.113.1", answer("outside"))
	w.serve(t, "rebind.example", "127.0.0.1", answer("inside"))
	body, _, err := w.client(Options{Strict: true}).Get(t.Context(), "http://rebind.example/")
	if err != nil || string(body) != "outside" {
		t.Fatalf("got %q, %v", body, err)
	}
	if len(w.lookups) != 1 || !slices.Equal(w.dialled, []string{"203.0.113.1:80"}) {
		t.Errorf("looked up %v, connected to %v", w.lookups, w.dialled)
	}
}

func TestRebindingBetweenRedirects(t *testing.T) {
	w := newWorld()
	w.serve(t, "rebind.example", "203.0.113.1", redirect("/again"))
	w.serve(t, "rebind.example", "127.0.0.1", answer("inside"))
	body, _, err := w.client(Options{}).Get(t.Context(), "http://rebind.example/")
	if !errors.Is(err, ErrAddress) || !slices.Equal(w.dialled, []string{"203.0.113.1:80"}) {
		t.Errorf("got %q, %v; connected to %v", body, err, w.dialled)
	}
}

func TestDeadAddressDoesNotHideTheNext(t *testing.T) {
	w := newWorld()
	w.serve(t, "", "203.0.113.2", answer("alive"))
	w.names["idp.example"] = [][]netip.Addr{addresses("203.0.113.1", "203.0.113.2")}
	body, _, err := w.client(Options{}).Get(t.Context(), "http://idp.example/")
	if err != nil || string(body) != "alive" {
		t.Errorf("got %q, %v", body, err)
	}
	w.names["idp.example"] = [][]netip.Addr{addresses("203.0.113.1")}
	if _, _, err = w.client(Options{}).Get(t.Context(), "http://idp.example/"); err == nil {
		t.Error("got an answer from an address where nobody listens")
	}
}

func TestRedirects(t *testing.T) {
	for name, tt := range map[string]struct {
		strict bool
		from   string // address of the first server
		to     string
		want   error
	}{
		"public to public":           {false, "203.0.113.1", "http://public.example/", nil},
		"private to public":          {false, "10.0.0.1", "http://public.example/", nil},
		"private to private":         {false, "10.0.0.1", "http://private.example/", nil},
		"relative":                   {false, "203.0.113.1", "//public.example/x", nil},
		"public to private":          {false, "203.0.113.1", "http://private.example/", ErrAddress},
		"public to loopback":         {false, "203.0.113.1", "http://127.0.0.1/", ErrAddress},
		"public to mapped loopback":  {false, "203.0.113.1", "http://[::ffff:127.0.0.1]/", ErrAddress},
		"public by way of public":    {false, "203.0.113.1", "http://onward.example/", ErrAddress},
		"private by way of public":   {false, "10.0.0.1", "http://onward.example/", ErrAddress},
		"private to metadata":        {false, "10.0.0.1", "http://169.254.169.254/", ErrAddress},
		"strict, public to private":  {true, "203.0.113.1", "http://private.example/", ErrAddress},
		"strict, public to public":   {true, "203.0.113.1", "http://public.example/", nil},
		"another scheme":             {false, "203.0.113.1", "file:///etc/passwd", ErrRedirect},
		"with credentials":           {false, "203.0.113.1", "http://a:b@public.example/", ErrRedirect},
		"nowhere":                    {false, "203.0.113.1", "", ErrRedirect},
		"malformed":                  {false, "203.0.113.1", "http://[::1/?token=hush", ErrRedirect},
		"unknown host":               {false, "203.0.113.1", "http://nobody.example/?token=hush", errNoHost},
		"public to translated inner": {false, "203.0.113.1", "http://[64:ff9b::10.0.0.2]/", ErrAddress},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld()
			w.serve(t, "start.example", tt.from, redirect(tt.to))
			w.serve(t, "public.example", "203.0.113.2", func(w http.ResponseWriter, r *http.Request) {
				fmt.Fprint(w, "end", r.Header.Get("Cookie"), r.Header.Get("Referer"))
			})
			w.serve(t, "private.example", "10.0.0.2", answer("end"))
			w.serve(t, "onward.example", "203.0.113.3", redirect("http://private.example/"))
			body, _, err := w.client(Options{Strict: tt.strict}).Get(t.Context(), "http://start.example/?token=hush")
			if tt.want == nil && (err != nil || string(body) != "end") {
				t.Errorf("got %q, %v", body, err)
			}
			if tt.want != nil && (!errors.Is(err, tt.want) || strings.Contains(err.Error(), "hush")) {
				t.Errorf("got %q, %v, want %v", body, err, tt.want)
			}
		})
	}
}

func TestRedirectCount(t *testing.T) {
	for hops, want := range map[int]error{maxRedirects: nil, maxRedirects + 1: ErrRedirect} {
		w := newWorld()
		for i := range hops {
			w.serve(t, fmt.Sprintf("hop%d.example", i), fmt.Sprintf("203.0.113.%d", i), redirect(fmt.Sprintf("http://hop%d.example/", i+1)))
		}
		w.serve(t, fmt.Sprintf("hop%d.example", hops), "203.0.113.100", answer("end"))
		if body, _, err := w.client(Options{}).Get(t.Context(), "http://hop0.example/"); !errors.Is(err, want) {
			t.Errorf("%d redirects: got %q, %v", hops, body, err)
		}
	}
}

func TestOnly200Succeeds(t *testing.T) {
	for _, status := range []int{201, 202, 204, 206, 300, 304, 305, 400, 401, 404, 429, 500, 503} {
		w := newWorld()
		w.serve(t, "idp.example", "203.0.113.1", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Location", "http://idp.example/")
			w.WriteHeader(status)
		})
		_, _, err := w.client(Options{}).Get(t.Context(), "http://idp.example/")
		if !errors.Is(err, ErrStatus) || !strings.Contains(err.Error(), fmt.Sprint(status)) {
			t.Errorf("%d: %v", status, err)
		}
	}
}

func TestSizeCap(t *testing.T) {
	for name, tt := range map[string]struct {
		size    int
		chunked bool
		want    error
	}{
		"empty":              {0, false, nil},
		"at the cap":         {1000, false, nil},
		"over the cap":       {1001, false, ErrTooLarge},
		"at the cap, chunks": {1000, true, nil},
		"over, chunks":       {1001, true, ErrTooLarge},
		"far over, chunks":   {1 << 20, true, ErrTooLarge},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld()
			w.serve(t, "idp.example", "203.0.113.1", func(w http.ResponseWriter, _ *http.Request) {
				if tt.chunked {
					w.(http.Flusher).Flush()
				} else {
					w.Header().Set("Content-Length", fmt.Sprint(tt.size))
				}
				w.Write(make([]byte, tt.size))
			})
			body, _, err := w.client(Options{MaxBytes: 1000}).Get(t.Context(), "http://idp.example/")
			if !errors.Is(err, tt.want) || err == nil && len(body) != tt.size || err != nil && body != nil {
				t.Errorf("got %d bytes, %v", len(body), err)
			}
		})
	}
}

func TestDefaultSizeCap(t *testing.T) {
	for size, want := range map[int]error{1 << 20: nil, 1<<20 + 1: ErrTooLarge} {
		w := newWorld()
		w.serve(t, "idp.example", "203.0.113.1", answer(strings.Repeat("x", size)))
		if body, _, err := w.client(Options{}).Get(t.Context(), "http://idp.example/"); !errors.Is(err, want) {
			t.Errorf("got %d bytes of %d, %v", len(body), size, err)
		}
	}
}

func TestEndlessBody(t *testing.T) {
	w := newWorld()
	ended := make(chan struct{})
	w.serve(t, "idp.example", "203.0.113.1", func(w http.ResponseWriter, _ *http.Request) {
		defer close(ended)
		for {
			if _, err := w.Write(make([]byte, 4096)); err != nil {
				return
			}
		}
	})
	if _, _, err := w.client(Options{}).Get(t.Context(), "http://idp.example/"); !errors.Is(err, ErrTooLarge) {
		t.Fatalf("got %v", err)
	}
	<-ended // the connection is closed, or this would wait for ever
}

func TestGzipBomb(t *testing.T) {
	var bomb bytes.Buffer
	z := gzip.NewWriter(&bomb)
	z.Write(make([]byte, 2*defaultMaxBytes))
	z.Close()
	for _, encoding := range []string{"gzip", "GZIP", "br", "gzip, gzip"} {
		w := newWorld()
		w.serve(t, "idp.example", "203.0.113.1", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Encoding", encoding)
			w.Write(bomb.Bytes())
		})
		if body, _, err := w.client(Options{}).Get(t.Context(), "http://idp.example/"); !errors.Is(err, ErrEncoding) {
			t.Errorf("%s: got %d bytes, %v", encoding, len(body), err)
		}
	}
}

func TestTLS(t *testing.T) {
	serve := func(t *testing.T, max uint16) (*world, *x509.Certificate) {
		srv := httptest.NewUnstartedServer(answer("secure"))
		srv.TLS = &tls.Config{MinVersion: tls.VersionTLS10, MaxVersion: max}
		srv.Config.ErrorLog = log.New(io.Discard, "", 0)
		srv.StartTLS()
		t.Cleanup(srv.Close)
		w := newWorld()
		w.servers["203.0.113.1:443"] = srv.Listener.Addr().String()
		w.servers["203.0.113.1:80"] = srv.Listener.Addr().String()
		for _, name := range []string{"example.com", "idp.test"} {
			w.names[name] = [][]netip.Addr{addresses("203.0.113.1")}
		}
		return w, srv.Certificate()
	}
	for name, tt := range map[string]struct {
		url   string
		max   uint16
		trust bool
		ok    bool
	}{
		"TLS 1.3":      {"https://example.com/", tls.VersionTLS13, true, true},
		"TLS 1.2":      {"https://example.com/", tls.VersionTLS12, true, true},
		"TLS 1.1":      {"https://example.com/", tls.VersionTLS11, true, false},
		"unknown root": {"https://example.com/", tls.VersionTLS13, false, false},
		"wrong name":   {"https://idp.test/", tls.VersionTLS13, true, false},
		"HTTP to TLS":  {"http://example.com/", tls.VersionTLS13, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			w, cert := serve(t, tt.max)
			o := Options{}
			if tt.trust {
				o.Roots = []*x509.Certificate{cert}
			}
			body, _, err := w.client(o).Get(t.Context(), tt.url)
			if ok := err == nil && string(body) == "secure"; ok != tt.ok {
				t.Errorf("got %q, %v", body, err)
			}
		})
	}
}

func TestRedirectFromTLSToPlain(t *testing.T) {
	srv := httptest.NewTLSServer(redirect("http://example.com/"))
	defer srv.Close()
	w := newWorld()
	w.serve(t, "example.com", "203.0.113.1", answer("plain"))
	w.servers["203.0.113.1:443"] = srv.Listener.Addr().String()
	body, _, err := w.client(Options{Roots: []*x509.Certificate{srv.Certificate()}}).Get(t.Context(), "https://example.com/")
	if !errors.Is(err, ErrRedirect) {
		t.Errorf("got %q, %v", body, err)
	}
}

// TestBrokenAnswers checks that what is not a whole HTTP answer fails, and that
// no error repeats what the peer wrote.
func TestBrokenAnswers(t *testing.T) {
	for name, tt := range map[string]struct {
		text string
		want error
	}{
		"nothing":        {"", io.ErrUnexpectedEOF},
		"cut body":       {"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhush", io.ErrUnexpectedEOF},
		"cut chunks":     {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n9\r\nhush", io.ErrUnexpectedEOF},
		"bad chunks":     {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nhush\r\n", ErrResponse},
		"cut header":     {"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n", io.ErrUnexpectedEOF},
		"cut line":       {"HTTP/1.1 200 OK\r\nhush", ErrResponse},
		"other protocol": {"SSH-2.0-hush\r\n\r\n", ErrResponse},
		"bad status":     {"HTTP/1.1 hush hush\r\n\r\n", ErrResponse},
		"bad header":     {"HTTP/1.1 200 OK\r\nhush\r\n\r\n", ErrResponse},
		"huge header":    {"HTTP/1.1 200 OK\r\nX: " + strings.Repeat("hush", maxHeaderBytes) + "\r\n\r\n", ErrResponse},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld()
			w.serve(t, "idp.example", "203.0.113.1", func(w http.ResponseWriter, _ *http.Request) {
				conn, _, err := http.NewResponseController(w).Hijack()
				if err != nil {
					t.Error(err)
					return
				}
				defer conn.Close()
				io.WriteString(conn, tt.text)
			})
			body, _, err := w.client(Options{}).Get(t.Context(), "http://idp.example/")
			if !errors.Is(err, tt.want) || body != nil || strings.Contains(err.Error(), "hush") {
				t.Errorf("got %q, %v, want %v", body, err, tt.want)
			}
		})
	}
}

// FuzzParse checks that an accepted URL is one that may be fetched, and that
// an error about another never tells its query.
func FuzzParse(f *testing.F) {
	for _, u := range []string{
		"http://idp.example/jwks", "https://[::1]:8443/", "ftp://x/", "http://a:b@c/", "http://[fe80::1%25eth0]/", "//x", "http://%41/", "http:x",
	} {
		f.Add(u)
	}
	f.Fuzz(func(t *testing.T, base string) {
		const query = "?secretqueryvalue"
		u, err := parse(base + query)
		if err != nil {
			if !errors.Is(err, ErrURL) || strings.Contains(err.Error(), "secretqueryvalue") && !strings.Contains(base, "secretqueryvalue") {
				t.Fatalf("%q: %v", base, err)
			}
			return
		}
		if u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" || u.User != nil {
			t.Fatalf("accepted %q", u)
		}
	})
}
