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

// Send is for Outlet. What is too large for the other end is sent in parts.
func (w *Web) Send(ctx context.Context, entries []Entry) error {
	_, err := w.Client.Post(ctx, w.URL, header("application/x-ndjson", w.Token), lines(entries))
	if status, ok := errors.AsType[*egress.StatusError](err); ok && status.Status == http.StatusRequestEntityTooLarge && len(entries) > 1 {
		half := len(entries) / 2
		if err := w.Send(ctx, entries[:half]); err != nil {
			return err
		}
		return w.Send(ctx, entries[half:])
	}
	return err
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
