package api

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"go.uber.org/goleak"

	"netkeep.internal/internal/ops/limit"
	"netkeep.internal/internal/web/rest"
)

// others bounds answers that are no streams: handshakes too, on a machine that is busy.
const others = time.Second

// streaming serves an API with one stream, over HTTP/1.1 or HTTP/2, with room for one
// request at a time. ended tells why streams ended.
func streaming(t *testing.T, two bool, streams *rest.Streams, stream func() rest.Stream) (srv *httptest.Server, token string, ended chan string) {
	t.Helper()
	before := goleak.IgnoreCurrent()
	t.Cleanup(func() { goleak.VerifyNone(t, before) })
	a, token := gated(t)
	ended = make(chan string, 10)
	streams.Slots.Max = 16
	streams.Began = func(string) func(string) { return func(reason string) { ended <- reason } }
	a.Streams, a.Requests = streams, &limit.Slots{Max: 1}
	rest.Handle(a, rest.Op{Method: http.MethodGet, Path: "/stream", Name: "s", Tag: "x", Doc: "S.", Auth: rest.Partial},
		func(*rest.Call, rest.None) (rest.Stream, error) { return stream(), nil })
	srv = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { a.Serve(w, r, r.URL.Path) }))
	srv.EnableHTTP2 = two
	srv.Config.ReadTimeout, srv.Config.WriteTimeout = others, others
	srv.StartTLS()
	t.Cleanup(srv.Close)
	return srv, token, ended
}

// ask sends a request with a token.
func ask(t *testing.T, ctx context.Context, srv *httptest.Server, path, token string) *http.Response {
	t.Helper()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, srv.URL+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("net-session", token)
	resp, err := srv.Client().Do(req)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { resp.Body.Close() })
	if resp.StatusCode != http.StatusOK {
		t.Fatalf("%s: status %d", path, resp.StatusCode)
	}
	return resp
}

// want fails the test unless a stream ends for a reason.
func want(t *testing.T, ended chan string, reason string) {
	t.Helper()
	select {
	case got := <-ended:
		if got != reason {
			t.Errorf("the stream ended as %s, want %s", got, reason)
		}
	case <-time.After(time.Minute):
		t.Errorf("the stream does not end")
	}
}

// quiet has nothing to say.
func quiet() rest.Stream {
	return rest.Stream{Take: func(dst []byte) ([]byte, error) { return dst, nil }}
}

// TestStreamLastsAndHoldsNothing has a stream outlast what bounds other requests,
// while others are served, and end when the client likes.
func TestStreamLastsAndHoldsNothing(t *testing.T) {
	for _, two := range []bool{false, true} {
		t.Run(fmt.Sprintf("HTTP/2 %v", two), func(t *testing.T) {
			srv, token, ended := streaming(t, two, &rest.Streams{Pulse: 20 * time.Millisecond, Patience: time.Minute}, quiet)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			lines := bufio.NewScanner(ask(t, ctx, srv, "/stream", token).Body)
			for begun := time.Now(); time.Since(begun) < others*3/2; {
				if !lines.Scan() || lines.Text() != ":" || !lines.Scan() || lines.Text() != "" {
					t.Fatalf("no sign of life: %q, %v", lines.Text(), lines.Err())
				}
				ask(t, t.Context(), srv, "/", token).Body.Close()
			}
			cancel()
			want(t, ended, rest.EndLeft)
		})
	}
}

// TestStreamCutsOffWhoDoesNotRead has somebody ask for more than lies between the two,
// and read nothing of it.
func TestStreamCutsOffWhoDoesNotRead(t *testing.T) {
	flood := func() rest.Stream {
		more := make(chan struct{})
		close(more)
		text := append(bytes.Repeat([]byte("x"), 1<<20), '"')
		return rest.Stream{Wake: more, Take: func(dst []byte) ([]byte, error) {
			return rest.AppendEvent(dst, "flood", "", func(dst []byte) []byte { return append(append(dst, '"'), text...) }), nil
		}}
	}
	streams := func() *rest.Streams { return &rest.Streams{Pulse: time.Minute, Patience: 100 * time.Millisecond} }
	t.Run("HTTP/1.1", func(t *testing.T) {
		srv, token, ended := streaming(t, false, streams(), flood)
		conn, err := tls.Dial("tcp", srv.Listener.Addr().String(), &tls.Config{RootCAs: srv.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs, ServerName: "example.com"})
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		if _, err := fmt.Fprintf(conn, "GET /stream HTTP/1.1\r\nHost: example.com\r\nnet-session: %s\r\n\r\n", token); err != nil {
			t.Fatal(err)
		}
		want(t, ended, rest.EndSlow)
	})
	t.Run("HTTP/2", func(t *testing.T) {
		srv, token, ended := streaming(t, true, streams(), flood)
		ask(t, t.Context(), srv, "/stream", token)
		want(t, ended, rest.EndSlow)
	})
}

// TestStreamEnds ends streams that have nothing more to say, and all at once.
func TestStreamEnds(t *testing.T) {
	streams := &rest.Streams{Pulse: time.Minute, Patience: time.Minute}
	srv, token, ended := streaming(t, true, streams, quiet)
	body := ask(t, t.Context(), srv, "/stream", token).Body
	streams.LookAll() // which finds nothing wrong
	streams.Close()
	want(t, ended, rest.EndServer)
	if text, err := io.ReadAll(body); err != nil || !bytes.Contains(text, []byte(`event: end`+"\n"+`data: {"code":"UNAVAILABLE"`)) {
		t.Errorf("the end says %q, %v", text, err)
	}
}
