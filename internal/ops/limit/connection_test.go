package limit_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"netkeep.internal/internal/ops/limit"
)

// served is a server that counts its connections.
type served struct {
	t       *testing.T
	address string
	config  *tls.Config
	book    *limit.Connections
	busy    sync.WaitGroup // requests for /slow that have arrived
	release chan struct{}  // lets them be answered

	mu    sync.Mutex
	noted *sync.Cond
	idle  map[string]int // how often the connection of an address became idle
}

func serve(t *testing.T, book *limit.Connections) *served {
	t.Helper()
	s := &served{t: t, book: book, release: make(chan struct{}), idle: map[string]int{}}
	s.noted = sync.NewCond(&s.mu)
	// Its certificate is as good as any.
	certified := httptest.NewUnstartedServer(nil)
	certified.EnableHTTP2 = true
	certified.StartTLS()
	s.config = &tls.Config{Certificates: certified.TLS.Certificates, NextProtos: []string{"h2", "http/1.1"}}
	certified.Close()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s.address = l.Addr().String()
	srv := &http.Server{ErrorLog: log.New(io.Discard, "", 0), ConnContext: book.Context, ConnState: s.changed, Handler: book.Handler(http.HandlerFunc(s.answer))}
	done := make(chan error, 1)
	go func() { done <- srv.Serve(tls.NewListener(book.Listener(l), s.config)) }()
	t.Cleanup(func() {
		_ = srv.Close()
		if err := <-done; !errors.Is(err, http.ErrServerClosed) {
			t.Error(err)
		}
		// Those who serve them let go of them by themselves.
		timeout, tick := time.After(time.Minute), time.NewTicker(time.Millisecond)
		defer tick.Stop()
		for book.Open() > 0 {
			select {
			case <-tick.C:
			case <-timeout:
				t.Fatalf("%d are open after the end", book.Open())
			}
		}
	})
	return s
}

// changed tells the book, and then those who wait for that.
func (s *served) changed(conn net.Conn, state http.ConnState) {
	s.book.Changed(conn, state)
	if state == http.StateIdle {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.idle[conn.RemoteAddr().String()]++
		s.noted.Broadcast()
	}
}

// awaitIdle waits until a connection has become idle so often.
func (s *served) awaitIdle(conn net.Conn, often int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.idle[conn.LocalAddr().String()] < often {
		s.noted.Wait()
	}
}

// answer works on a request when its body is there.
func (s *served) answer(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodPost {
		s.busy.Done()
	}
	_, _ = io.Copy(io.Discard, r.Body)
	defer limit.Work(r.Context())()
	switch r.URL.Path {
	case "/slow":
		s.busy.Done()
		<-s.release
	case "/text":
		_, _ = io.WriteString(w, strings.Repeat("x", 100))
	}
}

// dial connects from an address and says nothing.
func (s *served) dial(from string) net.Conn {
	s.t.Helper()
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}
	conn, err := d.Dial("tcp", s.address)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// greet completes the handshake.
func (s *served) greet(conn net.Conn, protocol string) *tls.Conn {
	s.t.Helper()
	secured := tls.Client(conn, &tls.Config{InsecureSkipVerify: true, NextProtos: []string{protocol}})
	if err := secured.Handshake(); err != nil {
		s.t.Fatal(err)
	}
	return secured
}

// ask sends a request, and waits for the answer unless it is to be slow.
func (s *served) ask(conn *tls.Conn, path string) {
	s.t.Helper()
	s.mu.Lock()
	often := s.idle[conn.LocalAddr().String()]
	s.mu.Unlock()
	if path == "/slow" {
		s.busy.Add(1)
	}
	if _, err := io.WriteString(conn, "GET "+path+" HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
		s.t.Fatal(err)
	}
	if path == "/slow" {
		s.busy.Wait()
		return
	}
	s.answered(conn)
	s.awaitIdle(conn, often+1)
}

func (s *served) answered(conn *tls.Conn) {
	s.t.Helper()
	_ = conn.SetReadDeadline(time.Now().Add(time.Minute))
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil || resp.StatusCode != 200 {
		s.t.Fatalf("the answer is %v, %v", resp, err)
	}
}

// gone reports whether the server closed a connection; it waits for that if it
// should.
func (s *served) gone(conn net.Conn, should bool) bool {
	patience := 50 * time.Millisecond
	if should {
		patience = 5 * time.Second
	}
	_ = conn.SetReadDeadline(time.Now().Add(patience))
	_, err := conn.Read(make([]byte, 1))
	var timeout net.Error
	return !errors.As(err, &timeout) || !timeout.Timeout()
}

// expect checks which connections are gone.
func (s *served) expect(what string, conn net.Conn, gone bool) {
	s.t.Helper()
	if got := s.gone(conn, gone); got != gone {
		s.t.Errorf("%s: gone is %v, want %v", what, got, gone)
	}
}

// TestConnectionsGiveWay fills all places: first to go is what has shown
// nothing and is more than a quarter of all, then what waits, and never what is
// busy.
func TestConnectionsGiveWay(t *testing.T) {
	s := serve(t, &limit.Connections{Max: 4})
	const here, there = "127.0.0.2", "127.0.0.3"
	busy := s.greet(s.dial(here), "http/1.1")
	s.ask(busy, "/slow")
	waits := s.greet(s.dial(here), "http/1.1")
	s.ask(waits, "/")
	secured := s.greet(s.dial(here), "http/1.1")
	silent := s.dial(here)

	late := s.greet(s.dial(there), "http/1.1")
	s.ask(late, "/")
	s.expect("the oldest that has shown nothing", secured, true)
	s.expect("another that has shown nothing", silent, false)
	later := s.greet(s.dial(there), "http/1.1")
	s.ask(later, "/")
	s.expect("the one that waits, at the address that has most", waits, true)
	s.expect("the last that has shown nothing", silent, false)
	s.ask(s.greet(s.dial("127.0.0.4"), "http/1.1"), "/")
	s.expect("the oldest that waits", late, true)
	s.expect("a younger one", later, false)
	close(s.release)
	s.answered(busy)
}

// TestNewcomersFindRoom has several arrive together where all places are taken
// by connections that wait: none of them pushes another out before it could
// greet.
func TestNewcomersFindRoom(t *testing.T) {
	for name, address := range map[string]string{"from one address": "127.0.0.2", "from anywhere": "127.0.0.3"} {
		t.Run(name, func(t *testing.T) {
			s := serve(t, &limit.Connections{Max: 40, Share: 50})
			for i := range 40 {
				s.ask(s.greet(s.dial(fmt.Sprintf("127.0.0.%d", 2+i%2*100)), "http/1.1"), "/")
			}
			var fresh []net.Conn
			for range 5 {
				fresh = append(fresh, s.dial(address))
			}
			for _, conn := range fresh {
				s.ask(s.greet(conn, "http/1.1"), "/")
			}
		})
	}
}

// TestBusyConnectionsStay has nothing that could give way: it is the new one
// that has to go.
func TestBusyConnectionsStay(t *testing.T) {
	s := serve(t, &limit.Connections{Max: 2})
	var all []*tls.Conn
	for range 2 {
		conn := s.greet(s.dial("127.0.0.2"), "http/1.1")
		s.ask(conn, "/slow")
		all = append(all, conn)
	}
	s.expect("one too many", s.dial("127.0.0.3"), true)
	close(s.release)
	for _, conn := range all {
		s.answered(conn)
	}
	s.ask(s.greet(s.dial("127.0.0.3"), "http/1.1"), "/")
}

// TestShareOfAnAddress has one address open more connections than it may.
func TestShareOfAnAddress(t *testing.T) {
	s := serve(t, &limit.Connections{Max: 8, Share: 25})
	first, second := s.dial("127.0.0.2"), s.dial("127.0.0.2")
	elsewhere := s.dial("127.0.0.3")
	third := s.dial("127.0.0.2")
	s.expect("the first of three", first, true)
	s.expect("the second", second, false)
	s.expect("the third", third, false)
	s.expect("the one of another address", elsewhere, false)
}

// TestKeptConnections keeps one: it is never closed for another and its address
// may have others.
func TestKeptConnections(t *testing.T) {
	book := &limit.Connections{Max: 3, Share: 34}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	counted := book.Listener(l)
	accept := func() (client, server net.Conn) {
		t.Helper()
		client, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		server, err = counted.Accept()
		if err != nil {
			t.Fatal(err)
		}
		return client, server
	}
	router, served := accept()
	defer router.Close()
	book.Keep(tls.Server(served, &tls.Config{}))
	book.Keep(served) // twice is as good
	over := limit.Work(book.Context(t.Context(), served))
	over()
	var last net.Conn
	for range 5 {
		client, server := accept()
		defer client.Close()
		defer server.Close()
		last = server
	}
	if n := book.Open(); n != 2 {
		t.Errorf("%d are open, want the one that is kept and one more", n)
	}
	if _, err := served.Write([]byte("x")); err != nil {
		t.Errorf("the one that is kept is closed: %v", err)
	}
	_ = last.Close()
	_ = served.Close()
	_ = served.Close()
	if n := book.Open(); n != 0 {
		t.Errorf("%d are open at the end", n)
	}
	book.Keep(router) // not one of the book's: nothing happens
}

// TestBeginningsGiveWay has connections that have begun something: a header
// that has no end has shown nothing, and a body that has none is the last to
// go.
func TestBeginningsGiveWay(t *testing.T) {
	s := serve(t, &limit.Connections{Max: 3})
	const here, there = "127.0.0.2", "127.0.0.3"
	header := s.greet(s.dial(here), "http/1.1")
	if _, err := io.WriteString(header, "GET / HTTP/1.1\r\nHost:"); err != nil {
		t.Fatal(err)
	}
	body := s.greet(s.dial(here), "http/1.1")
	s.busy.Add(1)
	if _, err := io.WriteString(body, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{"); err != nil {
		t.Fatal(err)
	}
	s.busy.Wait()
	waits := s.greet(s.dial(here), "http/1.1")
	s.ask(waits, "/")
	next := func() {
		conn := s.greet(s.dial(there), "http/1.1")
		s.ask(conn, "/slow")
	}
	next()
	s.expect("the header without an end", header, true)
	s.expect("the one that waits", waits, false)
	next()
	s.expect("the one that waits", waits, true)
	s.expect("the body without an end", body, false)
	next()
	s.expect("the body without an end", body, true)
	close(s.release)
}

// TestUnreadAnswerStays has an answer that is made but not taken: its connection
// goes after one that only waits.
func TestUnreadAnswerStays(t *testing.T) {
	s := serve(t, &limit.Connections{Max: 2})
	tr := &http.Transport{
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, ForceAttemptHTTP2: true,
		HTTP2: &http.HTTP2Config{MaxReceiveBufferPerStream: 1},
	}
	defer tr.CloseIdleConnections()
	resp, err := (&http.Client{Transport: tr}).Get("https://" + s.address + "/text")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	waits := s.greet(s.dial("127.0.0.1"), "http/1.1")
	s.ask(waits, "/")
	s.ask(s.greet(s.dial("127.0.0.3"), "http/1.1"), "/")
	s.expect("the one that waits", waits, true)
	if text, err := io.ReadAll(resp.Body); err != nil || len(text) != 100 {
		t.Errorf("of the answer %d bytes come: %v", len(text), err)
	}
}

// TestHTTP2Greeting has HTTP/2 begin and ask for nothing: it has shown nothing.
func TestHTTP2Greeting(t *testing.T) {
	s := serve(t, &limit.Connections{Max: 3})
	waits := s.greet(s.dial("127.0.0.2"), "http/1.1")
	s.ask(waits, "/")
	greeting := s.greet(s.dial("127.0.0.2"), "h2")
	if _, err := io.WriteString(greeting, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00"); err != nil {
		t.Fatal(err)
	}
	if _, err := greeting.Read(make([]byte, 9)); err != nil {
		t.Fatal(err) // its settings say that it has begun
	}
	tr := &http.Transport{
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, ForceAttemptHTTP2: true,
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			return (&net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP("127.0.0.2")}}).DialContext(ctx, network, address)
		},
	}
	defer tr.CloseIdleConnections()
	ask := func() int {
		resp, err := (&http.Client{Transport: tr}).Get("https://" + s.address + "/")
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		return resp.ProtoMajor
	}
	if major := ask(); major != 2 {
		t.Fatalf("HTTP/%d is spoken", major)
	}
	s.dial("127.0.0.3")
	rest := make([]byte, 1<<10)
	_ = greeting.SetReadDeadline(time.Now().Add(time.Minute))
	for {
		if _, err := greeting.Read(rest); err != nil {
			if n, ok := errors.AsType[net.Error](err); ok && n.Timeout() {
				t.Error("a connection that asked for nothing keeps its place")
			}
			break
		}
	}
	s.expect("the one that waits", waits, false)
}
