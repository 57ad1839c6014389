package circuit

import "sync"

// What circuits are found by.
const (
	bySession = iota
	byHost
	byRouter
	byLink
	kinds
)

// keys are what a circuit is found under.
func (c *Circuit) keys(kind int) []string {
	switch kind {
	case bySession:
		return []string{c.SessionID}
	case byHost:
		return []string{c.HostSessionID}
	case byRouter:
		return c.Path
	}
	return c.Links
}

// table is the circuits that there are.
type table struct {
	mu    sync.RWMutex
	byID  map[string]*Circuit
	index [kinds]map[string]map[string]struct{} // ids
}

func newTable() *table {
	t := &table{byID: map[string]*Circuit{}}
	for kind := range t.index {
		t.index[kind] = map[string]map[string]struct{}{}
	}
	return t
}

// add takes note of a circuit; it reports false if there is one with its id.
func (t *table) add(c *Circuit) bool { return t.replace(nil, c) }

// replace puts a circuit in the place of another, if that is still there.
func (t *table) replace(old, c *Circuit) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.byID[c.ID] != old {
		return false
	}
	if old != nil {
		t.unlist(old)
	}
	t.byID[c.ID] = c
	for kind := range t.index {
		for _, key := range c.keys(kind) {
			if t.index[kind][key] == nil {
				t.index[kind][key] = map[string]struct{}{}
			}
			t.index[kind][key][c.ID] = struct{}{}
		}
	}
	return true
}

// drop forgets a circuit, if it is still there as it was.
func (t *table) drop(c *Circuit) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.byID[c.ID] != c {
		return false
	}
	delete(t.byID, c.ID)
	t.unlist(c)
	return true
}

// remove forgets a circuit and returns it, nil if there is none.
func (t *table) remove(id string) *Circuit {
	t.mu.Lock()
	defer t.mu.Unlock()
	c := t.byID[id]
	if c == nil {
		return nil
	}
	delete(t.byID, id)
	t.unlist(c)
	return c
}

func (t *table) unlist(c *Circuit) {
	for kind := range t.index {
		for _, key := range c.keys(kind) {
			if delete(t.index[kind][key], c.ID); len(t.index[kind][key]) == 0 {
				delete(t.index[kind], key)
			}
		}
	}
}

func (t *table) get(id string) (*Circuit, bool) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	c, ok := t.byID[id]
	return c, ok
}

// ids returns the circuits that an index has under a key.
func (t *table) ids(kind int, key string) []string {
	t.mu.RLock()
	defer t.mu.RUnlock()
	ids := make([]string, 0, len(t.index[kind][key]))
	for id := range t.index[kind][key] {
		ids = append(ids, id)
	}
	return ids
}

// all returns the circuits, in no order.
func (t *table) all() []*Circuit {
	t.mu.RLock()
	defer t.mu.RUnlock()
	all := make([]*Circuit, 0, len(t.byID))
	for _, c := range t.byID {
		all = append(all, c)
	}
	return all
}

// sessions returns the sessions that circuits are dialled and hosted with.
func (t *table) sessions() []string {
	t.mu.RLock()
	defer t.mu.RUnlock()
	var ids []string
	for _, kind := range []int{bySession, byHost} {
		for id := range t.index[kind] {
			if id != "" {
				ids = append(ids, id)
			}
		}
	}
	return ids
}

func (t *table) len() int {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return len(t.byID)
}
