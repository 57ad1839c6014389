package attack_test

import (
	"context"
	"net/http"
	"testing"
)

// deaf has a client take next to nothing of an answer unless it is read.
func deaf(tr *http.Transport) { tr.HTTP2 = &http.HTTP2Config{MaxReceiveBufferPerStream: 1 << 10} }

// TestSlowReaders has strangers at a few addresses ask for the largest answers
// that they may have, and not read them.
func TestSlowReaders(t *testing.T) {
	var connections []*http.Client
	for range 4 {
		address := newAddress()
		for range scaled(3) {
			connections = append(connections, newConnection(t, shared, address, deaf))
		}
	}
	while(t, shared, func(ctx context.Context, ready func()) {
		persist(ctx, 100*len(connections), ready, func(ctx context.Context, i int, placed func()) {
			req, err := http.NewRequestWithContext(ctx, http.MethodGet, shared.URL+"/edge/client/v1/specs/edge-client/spec", nil)
			if err != nil {
				panic(err)
			}
			resp, err := connections[i/100].Do(req)
			if err != nil {
				return
			}
			placed()
			<-ctx.Done()
			_ = resp.Body.Close()
		})
	}, others(t, shared))
}
