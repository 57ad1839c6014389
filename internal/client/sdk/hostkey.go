package sdk

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"netkeep.internal/internal/client/remote"
	"netkeep.internal/internal/wire/cipher"
)

// hostKeys are the key that we host with, and those that others host with.
// Routers carry keys too, and one in somebody else's hands could put its own in
// their place: so both ends ask the controller, where no router is between.
type hostKeys struct {
	client *Client
	pair   *cipher.Pair           // our own
	told   atomic.Pointer[string] // token of the session in which the controller was told of it

	mu    sync.Mutex
	known map[hostedWith]time.Time // since when
}

// hostedWith is a key with which a service is hosted.
type hostedWith struct{ service, key string }

// maxKeys is how many keys are kept in mind.
const maxKeys = 10_000

// errForged says that somebody on the way has changed a key.
var errForged = fmt.Errorf("%w: the key is not that of a host", ErrRefused)

// pin tells the controller with which key we host, once for each session.
func (h *hostKeys) pin(ctx context.Context) error {
	token := h.client.api.session.Load().Token
	if told := h.told.Load(); told != nil && *told == token {
		return nil
	}
	key := hex.EncodeToString(h.pair.Public())
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
	with := hostedWith{s.ID, hex.EncodeToString(key)}
	h.mu.Lock()
	since, known := h.known[with]
	h.mu.Unlock()
	if known && h.client.opt.Now().Sub(since) < sessionAge {
		return nil
	}
	var said struct {
		Hosted  bool `json:"hosted"`
		Routers bool `json:"routers"`
	}
	err := h.client.api.call(ctx, http.MethodGet, "/services/"+s.ID+"/host-keys/"+with.key, nil, &said)
	if missing(err) {
		// Either there is no such question, or no such service.
		err = h.client.api.call(ctx, http.MethodGet, "/services/"+s.ID, nil, nil)
		said.Routers = err == nil
	}
	switch {
	case err != nil:
		return plainly(err)
	case said.Hosted:
		h.keep(with)
		return nil
	case said.Routers: // then any key may be one
		return nil
	}
	return errForged
}

func (h *hostKeys) keep(with hostedWith) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.known) >= maxKeys {
		clear(h.known)
	}
	h.known[with] = h.client.opt.Now()
}

// missing reports whether the controller knows nothing of what it is asked.
func missing(err error) bool {
	e, ok := errors.AsType[*remote.Error](err)
	return ok && e.Status == http.StatusNotFound
}
