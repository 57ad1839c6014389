package servertest

import (
	"sync"

	"netkeep/internal/fabric/edge"
	"netkeep/internal/model"
)

// Routers is the connections of routers that a test says there are. The zero
// value has none.
type Routers struct {
	mu      sync.Mutex
	on      map[string]edge.Router
	carried map[string]bool
}

var _ edge.Routers = (*Routers)(nil)

// Connect has a router connect.
func (r *Routers) Connect(id string, router edge.Router) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.on == nil {
		r.on = map[string]edge.Router{}
	}
	r.on[id] = router
}

// Carry has a router name an identity as connected to it.
func (r *Routers) Carry(identityID string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.carried == nil {
		r.carried = map[string]bool{}
	}
	r.carried[identityID] = true
}

// Connected returns what Connect was told.
func (r *Routers) Connected(id string) (edge.Router, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	router, ok := r.on[id]
	return router, ok
}

// Carries reports whether Carry was called.
func (r *Routers) Carries(identityID string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.carried[identityID]
}

// Distance says that there are no links: a router reaches only itself.
func (r *Routers) Distance(from, to string) (int64, bool) {
	_, connected := r.Connected(from)
	return 0, connected && from == to
}

// DynamicCost says that no circuit has failed.
func (r *Routers) DynamicCost(*model.Terminator) int { return 0 }

// Drop ends a connection, with whichever certificate it was made.
func (r *Routers) Drop(id, _ string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.on, id)
}
