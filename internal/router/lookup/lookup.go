// Package lookup is where a router finds what packets are for: maps that are read for
// every packet and change a little now and then. It knows nothing of what is in them.
package lookup

import (
	"hash/maphash"
	"iter"
	"maps"
	"sync/atomic"
)

// parts is in how many parts a map is: a change makes one of them anew.
const parts = 256

// Map is a map of which readers need no lock and wait for nobody. Who changes it has to
// see to it that nobody else does meanwhile. The zero Map is not ready.
type Map[V any] struct {
	seed  maphash.Seed
	parts [parts]atomic.Pointer[map[string]V]
}

// New returns a map with nothing in it.
func New[V any]() *Map[V] { return &Map[V]{seed: maphash.MakeSeed()} }

// Get returns what is there under a key.
func (m *Map[V]) Get(key string) (V, bool) {
	return found(&m.parts[maphash.String(m.seed, key)%parts], key)
}

// GetBytes is Get for a key that is part of a packet.
func (m *Map[V]) GetBytes(key []byte) (v V, ok bool) {
	if part := m.parts[maphash.Bytes(m.seed, key)%parts].Load(); part != nil {
		v, ok = (*part)[string(key)]
	}
	return v, ok
}

func found[V any](part *atomic.Pointer[map[string]V], key string) (v V, ok bool) {
	if in := part.Load(); in != nil {
		v, ok = (*in)[key]
	}
	return v, ok
}

// Set puts something under a key.
func (m *Map[V]) Set(key string, v V) {
	m.change(key, func(part map[string]V) { part[key] = v })
}

// Delete takes out what is under a key.
func (m *Map[V]) Delete(key string) {
	if _, ok := m.Get(key); ok {
		m.change(key, func(part map[string]V) { delete(part, key) })
	}
}

func (m *Map[V]) change(key string, do func(part map[string]V)) {
	at := &m.parts[maphash.String(m.seed, key)%parts]
	part := map[string]V{}
	if in := at.Load(); in != nil {
		part = maps.Clone(*in)
	}
	if do(part); len(part) == 0 {
		at.Store(nil)
		return
	}
	at.Store(&part)
}

// All are those of now, or of a moment ago.
func (m *Map[V]) All() iter.Seq2[string, V] {
	return func(yield func(string, V) bool) {
		for i := range m.parts {
			in := m.parts[i].Load()
			if in == nil {
				continue
			}
			for key, v := range *in {
				if !yield(key, v) {
					return
				}
			}
		}
	}
}

// Len is how many there are.
func (m *Map[V]) Len() (n int) {
	for i := range m.parts {
		if in := m.parts[i].Load(); in != nil {
			n += len(*in)
		}
	}
	return n
}
