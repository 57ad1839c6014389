package servertest

import (
	"slices"
	"strings"
	"sync"
	"testing"

	"netkeep.internal/test/journal"
)

// shownLines is how much of the log a failed test shows.
const shownLines = 60

// watched is a journal that tests look at which share a controller.
type watched struct {
	journal.Journal

	mu       sync.Mutex
	watching []testing.TB
}

// errors returns the lines of level error.
func (w *watched) errors() []string {
	return slices.DeleteFunc(w.Lines(), func(line string) bool { return !strings.Contains(line, `"level":"ERROR"`) })
}

// watch reports whether t is new, and how many lines there are by now.
func (w *watched) watch(t testing.TB) (lines int, fresh bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if slices.Contains(w.watching, t) {
		return 0, false
	}
	w.watching = append(w.watching, t)
	return w.Len(), true
}

// follow shows what the controller logs from now on if the test fails.
func (s *Server) follow(t testing.TB) {
	from, fresh := s.log.watch(t)
	if !fresh {
		return
	}
	t.Cleanup(func() {
		if t.Failed() {
			lines := s.log.Lines()[from:]
			t.Logf("the controller's log:\n%s", strings.Join(lines[max(0, len(lines)-shownLines):], "\n"))
		}
	})
}

// Log returns every line that the controller has logged.
func (s *Server) Log() []string { return s.log.Lines() }

// Logged reports whether a line of the log holds the text.
func (s *Server) Logged(text string) bool { return s.log.Has(text) }
