package rest

import (
	"context"
	"net"
	"net/http"
	"time"
)

// taken is the connection of a stream that is ours alone. The server of HTTP/1.1 keeps
// buffers, a request and a large stack for each, which is more than everything else
// that a client costs who waits for an event.
type taken struct {
	net.Conn
	header http.Header // that nobody sends any more
}

func (t *taken) Header() http.Header { return t.header }

// WriteHeader does nothing: it is sent.
func (t *taken) WriteHeader(int) {}

// Flush does nothing: nothing waits.
func (t *taken) Flush() {}

// takeOver sends the stream over the connection that its request came by, and nothing
// else from then on. It reports whether it does: over HTTP/2 others share the
// connection.
func (s *stream) takeOver() bool {
	c := s.call
	if c.request.ProtoMajor != 1 || c.request.Method == http.MethodHead {
		return false
	}
	conn, _, err := http.NewResponseController(c.w).Hijack()
	if err != nil {
		return false
	}
	_ = conn.SetDeadline(time.Time{}) // the server's own are on requests
	c.api.answered(c, time.Since(c.start))
	ctx, cancel := context.WithCancel(context.Background())
	s.book.mu.Lock()
	s.cut = func() { _ = conn.Close() }
	s.book.mu.Unlock()
	head := appendHead(c.w.Header())
	s.call = c.apart(ctx, &taken{conn, http.Header{}})
	go s.runAlone(head, conn, cancel)
	return true
}

// runAlone is run where no server looks after the connection.
func (s *stream) runAlone(head []byte, conn net.Conn, cancel context.CancelFunc) {
	defer s.leave()
	over := make(chan struct{})
	go func() {
		defer close(over)
		// Whatever comes from the client, it is not for a stream.
		_, _ = conn.Read(make([]byte, 1))
		cancel()
	}()
	defer func() {
		cancel()
		_ = conn.Close()
		<-over
	}()
	defer func() {
		if p := recover(); p != nil {
			s.call.Log().Error("a stream panicked", "panic", p)
		}
	}()
	if s.write(head) == "" {
		s.run()
	}
}

// appendHead is how an answer begins that ends with its connection.
func appendHead(h http.Header) []byte {
	h.Set("Connection", "close")
	h.Set("Date", time.Now().UTC().Format(http.TimeFormat))
	var text writer
	text = append(text, "HTTP/1.1 200 OK\r\n"...)
	_ = h.Write(&text)
	return append(text, "\r\n"...)
}

// writer is bytes that grow.
type writer []byte

func (w *writer) Write(p []byte) (int, error) {
	*w = append(*w, p...)
	return len(p), nil
}

// apart is the call without what the server has of it: what it takes to find out again
// who calls, and to send.
func (c *Call) apart(ctx context.Context, w http.ResponseWriter) *Call {
	r := c.request
	header := http.Header{}
	for _, name := range []string{sessionHeader, otherSessionHeader, "Authorization", "Authentication"} {
		if values := r.Header.Values(name); len(values) > 0 {
			header[http.CanonicalHeaderKey(name)] = values
		}
	}
	request := (&http.Request{Method: r.Method, ProtoMajor: r.ProtoMajor, Header: header, RemoteAddr: r.RemoteAddr, TLS: r.TLS}).WithContext(ctx)
	return &Call{
		State: c.State, Caller: c.Caller, ID: c.ID, api: c.api,
		w: w, request: request, whole: request, op: c.op, path: c.path, values: c.values, status: c.status, start: c.start, told: true,
	}
}
