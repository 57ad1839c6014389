// Package journal keeps what a process prints, or a part of one logs, for tests
// that look for something in it. It imports nothing of ours.
package journal

import (
	"bytes"
	"strings"
	"sync"
)

// Journal is what was written so far. Its zero value is empty.
type Journal struct {
	mu   sync.Mutex
	text bytes.Buffer
}

// Write adds to it.
func (j *Journal) Write(p []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.Write(p)
}

// String is all of it.
func (j *Journal) String() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.String()
}

// Lines are those of it.
func (j *Journal) Lines() []string {
	text := strings.TrimSuffix(j.String(), "\n")
	if text == "" {
		return nil
	}
	return strings.Split(text, "\n")
}

// Len is how many lines there are.
func (j *Journal) Len() int {
	j.mu.Lock()
	defer j.mu.Unlock()
	return bytes.Count(j.text.Bytes(), []byte("\n"))
}

// Count is how often something is in it.
func (j *Journal) Count(words string) int {
	j.mu.Lock()
	defer j.mu.Unlock()
	return bytes.Count(j.text.Bytes(), []byte(words))
}

// Has reports whether something is in it.
func (j *Journal) Has(words string) bool { return j.Count(words) > 0 }
