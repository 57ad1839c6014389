package path

import "sync"

// maxEntries is how many routers all trees together may hold: 12 bytes each, so
// 100 MB.
const maxEntries = 1 << 23

// shelf keeps the trees that were asked for, and forgets those that have not
// been for the longest time when there are too many.
type shelf struct {
	mu    sync.Mutex
	of    map[int32]*tree
	clock uint64
}

// get returns the tree of a router, which may be empty or out of date. size is
// how many routers a tree holds.
func (s *shelf) get(source int32, size int) *tree {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.clock++
	t := s.of[source]
	if t == nil {
		t = &tree{source: source}
		s.of[source] = t
	}
	t.used = s.clock
	for len(s.of) > 1 && len(s.of)*size > maxEntries {
		s.forget()
	}
	return t
}

// forget drops the tree that has not been asked for for the longest time.
func (s *shelf) forget() {
	var oldest *tree
	for _, t := range s.of {
		if oldest == nil || t.used < oldest.used {
			oldest = t
		}
	}
	delete(s.of, oldest.source)
}

// drop forgets the tree of a router that is gone.
func (s *shelf) drop(source int32) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.of, source)
}
