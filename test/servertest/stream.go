package servertest

import (
	"bufio"
	"context"
	"maps"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"

	"netkeep.internal/internal/web/api"
)

// Event is one of a stream.
type Event struct {
	ID, Name string
	Data     M
}

// Stream is an answer that goes on.
type Stream struct {
	Status int
	Header http.Header

	t      testing.TB
	what   string
	events chan Event // closed when it has ended
	cancel context.CancelFunc
	over   chan struct{}
}

// Stream asks for one. It ends with the test if nobody ends it before. An answer that
// is none is an error of the test.
func (c *Client) Stream(path string) *Stream {
	c.t.Helper()
	if !strings.HasPrefix(path, "/") {
		path = api.ManagementRoot + "/" + path
	}
	ctx, cancel := context.WithCancel(context.Background())
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, c.server.URL+path, nil)
	if err != nil {
		c.t.Fatal(err)
	}
	req.Header.Set("Accept", "text/event-stream")
	if c.Token != "" {
		req.Header.Set("net-session", c.Token)
	}
	maps.Copy(req.Header, c.Header)
	endless := *c.http
	endless.Timeout = 0
	resp, err := endless.Do(req)
	if err != nil {
		cancel()
		c.t.Fatal(err)
	}
	if resp.StatusCode != http.StatusOK || resp.Header.Get("Content-Type") != "text/event-stream" {
		cancel()
		resp.Body.Close()
		c.t.Fatalf("GET %s: status %d, %s", path, resp.StatusCode, resp.Header.Get("Content-Type"))
	}
	s := &Stream{
		Status: resp.StatusCode, Header: resp.Header,
		t: c.t, what: "GET " + path, events: make(chan Event), cancel: cancel, over: make(chan struct{}),
	}
	go func() {
		defer close(s.over)
		defer close(s.events)
		defer resp.Body.Close()
		s.read(ctx, bufio.NewScanner(resp.Body))
	}()
	c.t.Cleanup(s.Close)
	return s
}

func (s *Stream) read(ctx context.Context, lines *bufio.Scanner) {
	lines.Buffer(nil, 8<<20)
	var next Event
	for lines.Scan() {
		name, value, _ := strings.Cut(lines.Text(), ": ")
		switch name {
		case "id":
			next.ID = value
		case "event":
			next.Name = value
		case "data":
			if err := json.Unmarshal([]byte(value), &next.Data); err != nil {
				s.t.Errorf("%s: the data of %s is not JSON: %v\n%s", s.what, next.Name, err, value)
			}
		case "":
			if next.Name == "" {
				continue
			}
			select {
			case s.events <- next:
			case <-ctx.Done():
				return
			}
			next = Event{}
		}
	}
}

// Next is the next event; it ends the test if there is none.
func (s *Stream) Next() Event {
	s.t.Helper()
	select {
	case e, more := <-s.events:
		if !more {
			s.t.Fatalf("%s: the stream has ended", s.what)
		}
		return e
	case <-time.After(patience):
		s.t.Fatalf("%s: there is no event", s.what)
	}
	panic("unreachable")
}

// Ends waits for the end of the stream, which must say why by a code. Whatever comes
// before it is left out.
func (s *Stream) Ends(code string) {
	s.t.Helper()
	for {
		e := s.Next()
		if e.Name != "end" {
			continue
		}
		if e.Data["code"] != code {
			s.t.Errorf("%s: ended with %v, want %s", s.what, e.Data, code)
		}
		select {
		case more, open := <-s.events:
			if open {
				s.t.Errorf("%s: after the end comes %v", s.what, more)
			}
		case <-time.After(patience):
			s.t.Errorf("%s: the stream says that it has ended and goes on", s.what)
		}
		return
	}
}

// Close ends the stream.
func (s *Stream) Close() {
	s.cancel()
	<-s.over
}
