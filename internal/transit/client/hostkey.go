package client

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"netkeep/internal/line/cipher"
	"netkeep/internal/tool/remote"
)

// hostKeys are the key that we host with, and those that others host with.
// Routers carry keys too, and one in somebody else's hands could put its own in
// their place: so both ends look them up with the controller, where no router is
// between.
type hostKeys struct {
	client *Client
	pair   *cipher.Pair           // our own
	told   atomic.Pointer[string] // token of the session in which the controller was told of it

	mu    sync.Mutex
	known map[string]*serviceKeys // by the service's id
}

// serviceKeys are those of who hosts a service.
type serviceKeys struct {
	Keys    []string `json:"keys"`
	Routers bool     `json:"routers"` // routers host it themselves: any key may be one

	made time.Time
}

func (k *serviceKeys) has(key []byte) bool {
	return k.Routers || slices.Contains(k.Keys, base64.StdEncoding.EncodeToString(key))
}

// errForged says that somebody on the way has changed a key.
var errForged = fmt.Errorf("%w: the key is not that of a host", ErrRefused)

// pin tells the controller with which key we host, once for each session.
func (h *hostKeys) pin(ctx context.Context) error {
	token := h.client.api.session.Load().Token
	if told := h.told.Load(); told != nil && *told == token {
		return nil
	}
	key := base64.StdEncoding.EncodeToString(h.pair.Public())
	err := h.client.api.call(ctx, http.MethodPut, "/current-api-session/host-key", map[string]string{"key": key}, nil)
	if err != nil && !missing(err) { // a controller of others does not ask
		return plainly(err)
	}
	// It may be another session by now; then it is told once more.
	h.told.Store(&token)
	return nil
}

// check returns an error if nobody hosts a service with a key.
func (h *hostKeys) check(ctx context.Context, s *Service, key []byte) error {
	h.mu.Lock()
	kept := h.known[s.ID]
	h.mu.Unlock()
	if kept != nil && kept.has(key) && h.client.opt.Now().Sub(kept.made) < sessionAge {
		return nil
	}
	now := &serviceKeys{}
	err := h.client.api.call(ctx, http.MethodGet, "/services/"+s.ID+"/host-keys", nil, now)
	if missing(err) {
		// Either there is no such question, or no such service.
		if err = h.client.api.call(ctx, http.MethodGet, "/services/"+s.ID, nil, nil); err == nil {
			now.Routers = true
		}
	}
	if err != nil {
		return plainly(err)
	}
	now.made = h.client.opt.Now()
	h.mu.Lock()
	h.known[s.ID] = now
	h.mu.Unlock()
	if !now.has(key) {
		return errForged
	}
	return nil
}

// missing reports whether the controller knows nothing of what it is asked.
func missing(err error) bool {
	e, ok := errors.AsType[*remote.Error](err)
	return ok && e.Status == http.StatusNotFound
}
