package attack_test

import (
	"context"
	"net/http"
	"testing"
)

// deaf has a client take next to nothing of an answer unless it is read.
func deaf(tr *http.Transport) { tr.HTTP2 = &http.HTTP2Config{MaxReceiveBufferPerStream: 1 << 10} }

// TestSlowReaders has strangers ask for the largest answers that they may have,
// and not read them.
func TestSlowReaders(t *testing.T) {
	const addresses, streams = 4, 300
	clients := make([]*http.Client, addresses)
	for i := range clients {
		clients[i] = newHTTP(t, shared, newAddress(), deaf)
		clients[i].Timeout = 0
	}
	while(t, shared, func(ctx context.Context, ready func()) {
		persist(ctx, scaled(addresses*streams), ready, func(ctx context.Context, i int, placed func()) {
			req, err := http.NewRequestWithContext(ctx, http.MethodGet, shared.URL+"/edge/client/v1/specs/edge-client/spec", nil)
			if err != nil {
				panic(err)
			}
			resp, err := clients[i%addresses].Do(req)
			if err != nil || resp.StatusCode != http.StatusOK {
				return
			}
			placed()
			// Until the server has had enough, or the attack is over.
			buf := make([]byte, 1)
			_, _ = resp.Body.Read(buf)
			<-ctx.Done()
			_ = resp.Body.Close()
		})
	}, others(t, shared))
}
