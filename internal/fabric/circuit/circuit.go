// Package circuit is the connections that routers carry from those who dial to
// those who host: it decides whether one may be, tells routers to make it, and
// ends it when what it rests on is gone. It keeps circuits in memory only:
// routers go on with them when a controller restarts, and tell it of them when
// they come back. It must not import rest or api.
package circuit

import (
	"crypto/rand"
	"strings"
	"sync"
	"time"
)

// Circuit is a connection from the router where somebody dials to the one
// where the service is hosted.
type Circuit struct {
	ID        string
	SessionID string // that it was dialled with
	// HostSessionID is the session that it is hosted with; empty if a router
	// itself is the host.
	HostSessionID string
	TerminatorID  string // empty for one that is older than this controller
	ServiceID     string
	IdentityID    string   // who dialled
	HostID        string   // who hosts
	Path          []string // routers, in order
	Made          time.Time

	at [kinds]int // its place in each index
}

// involves reports whether a router is on the path.
func (c *Circuit) involves(routerID string) bool {
	for _, id := range c.Path {
		if id == routerID {
			return true
		}
	}
	return false
}

// What circuits are found by.
const (
	bySession = iota
	byHost
	byRouter // where it begins
	kinds
)

func (c *Circuit) key(kind int) string {
	switch kind {
	case bySession:
		return c.SessionID
	case byHost:
		return c.HostSessionID
	}
	return c.Path[0]
}

// table is the circuits that there are.
type table struct {
	mu    sync.RWMutex
	byID  map[string]*Circuit
	index [kinds]map[string][]*Circuit
}

func newTable() *table {
	t := &table{byID: map[string]*Circuit{}}
	for kind := range t.index {
		t.index[kind] = map[string][]*Circuit{}
	}
	return t
}

// add takes note of a circuit; it reports false if there is one with its id.
func (t *table) add(c *Circuit) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.byID[c.ID] != nil {
		return false
	}
	t.byID[c.ID] = c
	for kind := range t.index {
		key := c.key(kind)
		c.at[kind] = len(t.index[kind][key])
		t.index[kind][key] = append(t.index[kind][key], c)
	}
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
	for kind := range t.index {
		t.unlist(kind, c)
	}
	return c
}

// unlist puts the last of a list in the place of the one that goes.
func (t *table) unlist(kind int, c *Circuit) {
	key := c.key(kind)
	list := t.index[kind][key]
	last := list[len(list)-1]
	list[c.at[kind]], last.at[kind] = last, c.at[kind]
	list[len(list)-1] = nil
	if list = list[:len(list)-1]; len(list) == 0 {
		delete(t.index[kind], key)
	} else {
		t.index[kind][key] = list
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
	list := t.index[kind][key]
	ids := make([]string, len(list))
	for i, c := range list {
		ids[i] = c.ID
	}
	return ids
}

// keys returns the sessions that circuits are dialled and hosted with.
func (t *table) keys() []string {
	t.mu.RLock()
	defer t.mu.RUnlock()
	var keys []string
	for _, kind := range []int{bySession, byHost} {
		for key := range t.index[kind] {
			if key != "" {
				keys = append(keys, key)
			}
		}
	}
	return keys
}

func (t *table) len() int {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return len(t.byID)
}

const (
	alphabet = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz-_"
	idLength = 22
)

// newID returns a random text that no other has: 132 bits.
func newID() string {
	b := make([]byte, idLength)
	_, _ = rand.Read(b) // never fails
	for i := range b {
		b[i] = alphabet[b[i]&63]
	}
	return string(b)
}

// A circuit's id names the sessions that it is dialled and hosted with, so that
// a controller that has just started knows whose the circuits are that routers
// tell it of.
func circuitID(dial, host string) string { return newID()[:12] + "." + dial + "." + host }

// sessionsOf are the sessions in a circuit's id.
func sessionsOf(circuitID string) (dial, host string, ok bool) {
	parts := strings.Split(circuitID, ".")
	if len(parts) != 3 || parts[1] == "" {
		return "", "", false
	}
	return parts[1], parts[2], true
}
