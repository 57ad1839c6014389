package outlet

import (
	"context"
	"errors"
	"net/http"

	"netkeep.internal/internal/ops/egress"
)

// Web has entries posted to a URL, one a line.
type Web struct {
	URL    string
	Token  string // sent as a bearer's; empty for none
	Client *egress.Client
}

// Send is for Outlet.
func (w *Web) Send(ctx context.Context, entries []Entry) error {
	return inParts(entries, func(some []Entry) error {
		_, err := w.Client.Post(ctx, w.URL, header("application/x-ndjson", w.Token), lines(some))
		return err
	})
}

// inParts has entries sent in parts that the other end takes: what is too large for it
// is halved, down to an entry that is so alone. Who says when to come again means
// something else.
func inParts(entries []Entry, send func([]Entry) error) error {
	err := send(entries)
	status, ok := errors.AsType[*egress.StatusError](err)
	switch {
	case !ok || status.Status != http.StatusRequestEntityTooLarge || status.After > 0:
		return err
	case len(entries) == 1:
		return &refusal{entries[0], err}
	}
	half := len(entries) / 2
	if err := inParts(entries[:half], send); err != nil {
		return err
	}
	return inParts(entries[half:], send)
}

// Close is for Outlet.
func (*Web) Close() {}

func header(form, token string) http.Header {
	h := http.Header{"Content-Type": {form}}
	if token != "" {
		h.Set("Authorization", "Bearer "+token)
	}
	return h
}
