package state

import "sync"

// unreadable is the keys of what is stored of known kinds and cannot be read.
// The owner keeps it; anybody may look.
type unreadable struct {
	mu   sync.Mutex
	keys map[string]bool
	one  string // of them
}

// set says of a key whether it cannot be read.
func (u *unreadable) set(key string, bad bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	switch {
	case !bad:
		delete(u.keys, key)
	case u.keys == nil:
		u.keys = map[string]bool{key: true}
	default:
		u.keys[key] = true
	}
}

// reset replaces all keys.
func (u *unreadable) reset(keys []string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.keys = make(map[string]bool, len(keys))
	for _, key := range keys {
		u.keys[key] = true
	}
}

// Unreadable is how many records of known kinds are stored that this version
// cannot read, and which is one of them: the same one for as long as it is
// among them.
func (s *State) Unreadable() (n int, one string) {
	u := &s.unreadable
	u.mu.Lock()
	defer u.mu.Unlock()
	if !u.keys[u.one] {
		u.one = ""
		for u.one = range u.keys {
			break
		}
	}
	return len(u.keys), u.one
}
