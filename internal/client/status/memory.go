package status

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"sync"
)

const (
	// maxErrors is how many are remembered, and maxText how much of each.
	maxErrors = 50
	maxText   = 500
)

// Memory remembers what was last logged as wrong. What is worth to be said there
// is what somebody wants to see who asks how things stand.
type Memory struct {
	mu   sync.Mutex
	last []Error
}

// Errors are what is remembered, the latest last.
func (m *Memory) Errors() []Error {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.last)
}

func (m *Memory) add(e Error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.last) == maxErrors {
		m.last = slices.Delete(m.last, 0, 1)
	}
	m.last = append(m.last, e)
}

// Logger is one that remembers, and hands everything on.
func (m *Memory) Logger(log *slog.Logger) *slog.Logger {
	return slog.New(&handler{Handler: log.Handler(), memory: m})
}

// handler is one of a log that is listened to.
type handler struct {
	slog.Handler
	memory *Memory
	groups string // before the names of attributes
	with   string // said with every line
}

// Enabled has what is wrong come here though the log wants less.
func (h *handler) Enabled(ctx context.Context, level slog.Level) bool {
	return level >= slog.LevelWarn || h.Handler.Enabled(ctx, level)
}

// Handle remembers what is wrong.
func (h *handler) Handle(ctx context.Context, r slog.Record) error {
	if r.Level >= slog.LevelWarn {
		var text strings.Builder
		text.WriteString(r.Message)
		text.WriteString(h.with)
		r.Attrs(func(a slog.Attr) bool {
			write(&text, h.groups, a)
			return text.Len() < maxText
		})
		h.memory.add(Error{At: r.Time, Text: shorten(text.String())})
	}
	if !h.Handler.Enabled(ctx, r.Level) {
		return nil
	}
	return h.Handler.Handle(ctx, r)
}

// WithAttrs implements slog.Handler.
func (h *handler) WithAttrs(attrs []slog.Attr) slog.Handler {
	other := *h
	var text strings.Builder
	for _, a := range attrs {
		write(&text, h.groups, a)
	}
	other.Handler, other.with = h.Handler.WithAttrs(attrs), shorten(h.with+text.String())
	return &other
}

// WithGroup implements slog.Handler.
func (h *handler) WithGroup(name string) slog.Handler {
	other := *h
	other.Handler, other.groups = h.Handler.WithGroup(name), h.groups+name+"."
	return &other
}

func write(text *strings.Builder, groups string, a slog.Attr) {
	value := strings.ReplaceAll(a.Value.Resolve().String(), "\n", "; ") // of several errors in one
	if value != "" && value != "<nil>" {
		text.WriteString("; " + groups + a.Key + ": " + value)
	}
}

// shorten leaves as much of a text as is remembered, and no half of a letter.
func shorten(text string) string {
	return strings.ToValidUTF8(text[:min(len(text), maxText)], "")
}
