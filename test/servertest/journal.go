package servertest

import (
	"bytes"
	"slices"
	"strings"
	"sync"
	"testing"
)

// shownLines is how much of the log a failed test shows.
const shownLines = 60

// journal keeps the lines that a controller logs.
type journal struct {
	mu       sync.Mutex
	lines    []string
	watching []testing.TB
}

// Write takes one line, as slog's handlers write them.
func (j *journal) Write(line []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.lines = append(j.lines, string(bytes.TrimRight(line, "\n")))
	return len(line), nil
}

// errors returns the lines of level error.
func (j *journal) errors() []string {
	j.mu.Lock()
	defer j.mu.Unlock()
	var bad []string
	for _, line := range j.lines {
		if strings.Contains(line, `"level":"ERROR"`) {
			bad = append(bad, line)
		}
	}
	return bad
}

// since returns the lines after the first n.
func (j *journal) since(n int) []string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return slices.Clone(j.lines[n:])
}

// watch reports whether t is new, and how many lines there are by now.
func (j *journal) watch(t testing.TB) (lines int, fresh bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if slices.Contains(j.watching, t) {
		return 0, false
	}
	j.watching = append(j.watching, t)
	return len(j.lines), true
}

// follow shows what the controller logs from now on if the test fails.
func (s *Server) follow(t testing.TB) {
	from, fresh := s.log.watch(t)
	if !fresh {
		return
	}
	t.Cleanup(func() {
		if t.Failed() {
			lines := s.log.since(from)
			t.Logf("the controller's log:\n%s", strings.Join(lines[max(0, len(lines)-shownLines):], "\n"))
		}
	})
}

// Log returns every line that the controller has logged.
func (s *Server) Log() []string {
	s.log.mu.Lock()
	defer s.log.mu.Unlock()
	return slices.Clone(s.log.lines)
}

// Logged reports whether a line of the log holds the text.
func (s *Server) Logged(text string) bool {
	return slices.ContainsFunc(s.Log(), func(line string) bool { return strings.Contains(line, text) })
}
