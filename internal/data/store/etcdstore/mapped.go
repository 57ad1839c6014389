package etcdstore

import (
	"path/filepath"
	"sync"
)

// mapped is the database of a member as this process has it in its memory: all of it, page
// by page from the file. etcd asks for all of them when it starts, and forgetting history reads
// all of them again, after which few are looked at. Let go they stay with the system for as
// long as it has room, and count as nobody's.
type mapped struct {
	file string

	mu   sync.Mutex // held while pages are let go, which must be those of the file
	gone bool       // whether they may be something else's by now
}

// mappedIn is the database in a data directory. One that is not found is left alone.
func mappedIn(dir string) *mapped {
	file, err := filepath.Abs(filepath.Join(dir, "member", "snap", "db"))
	if err == nil {
		file, err = filepath.EvalSymlinks(file)
	}
	return &mapped{file: file, gone: err != nil}
}

// Relax lets pages go that nobody is looking at. Members of a cluster keep them: etcd may
// change one database for another there at any time, and the place in memory with it.
func (s *Store) Relax() {
	m := s.member
	if m == nil || m.alone == nil || !m.defrag.TryRLock() { // which is another change of that kind
		return
	}
	defer m.defrag.RUnlock()
	m.mapped.mu.Lock()
	defer m.mapped.mu.Unlock()
	if !m.mapped.gone {
		release(m.mapped.file)
	}
}

// end is for before the database is closed.
func (m *mapped) end() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.gone = true
}
