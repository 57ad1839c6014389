// Package sink is where audit entries are sent in tests: an HTTP endpoint that keeps in
// mind which it was sent and in which order, and can keep a sender waiting. It knows
// entries by their numbers, and imports nothing of ours.
package sink

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
)

// Book is entries that came, by number.
type Book struct {
	mu     sync.Mutex
	came   map[int64]bool
	last   int64
	broken string // why they are not in order; empty while they are
}

// Take adds lines of JSON. Each has an entry that follows the last one, or came before.
// It returns how many cannot be read.
func (b *Book) Take(lines []byte) (torn int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.came == nil {
		b.came = map[int64]bool{}
	}
	for line := range bytes.Lines(lines) {
		var e struct {
			Number int64  `json:"number"`
			Event  string `json:"event"`
		}
		if json.Unmarshal(line, &e) != nil {
			torn++
			continue
		}
		if b.broken == "" && (e.Number < 1 || e.Number > b.last+1 || e.Event == "missing") {
			b.broken = fmt.Sprintf("after %d comes %d, %s", b.last, e.Number, e.Event)
		}
		b.came[e.Number] = true
		b.last = max(b.last, e.Number)
	}
	return torn
}

// Last is the number of the latest entry that came.
func (b *Book) Last() int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.last
}

// Flaw is what is wrong with what came: an entry is missing, or came before one that it
// follows. It is empty if nothing is.
func (b *Book) Flaw() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.broken == "" && int64(len(b.came)) != b.last {
		return fmt.Sprintf("%d came, up to %d", len(b.came), b.last)
	}
	return b.broken
}

// Sink is an endpoint that entries are sent to.
type Sink struct {
	Book
	URL string

	mu   sync.Mutex
	hold *Hold
}

// Hold is a sender that is kept waiting.
type Hold struct {
	// Came has the bearer's token of who waits.
	Came chan string

	take bool
	over chan struct{}
	once sync.Once
}

// New starts a sink, which ends with the test.
func New(t testing.TB) *Sink {
	s := &Sink{}
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return // who sent it is gone
		}
		s.mu.Lock()
		h := s.hold
		s.hold = nil
		s.mu.Unlock()
		if h == nil || h.take {
			if torn := s.Take(body); torn > 0 {
				t.Errorf("%d entries cannot be read: %s", torn, body)
			}
		}
		if h != nil {
			h.Came <- strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
			<-h.over
			if !h.take {
				w.WriteHeader(http.StatusServiceUnavailable)
			}
		}
	}))
	t.Cleanup(func() {
		s.mu.Lock()
		h := s.hold
		s.mu.Unlock()
		if h != nil {
			h.End()
		}
		srv.CloseClientConnections()
		srv.Close()
	})
	s.URL = srv.URL
	return s
}

// Hold keeps the next sender waiting until End. take says whether what it sends counts.
func (s *Sink) Hold(t testing.TB, take bool) *Hold {
	h := &Hold{Came: make(chan string, 1), take: take, over: make(chan struct{})}
	t.Cleanup(h.End)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hold = h
	return h
}

// End lets the sender go.
func (h *Hold) End() { h.once.Do(func() { close(h.over) }) }
