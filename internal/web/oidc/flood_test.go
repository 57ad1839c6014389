package oidc

import (
	"runtime"
	"testing"

	"netkeep.internal/internal/model"
)

// TestFlood begins logins that nobody goes on with: each costs nothing once it is
// answered, and whoever comes meanwhile logs in.
func TestFlood(t *testing.T) {
	w := newWorld(t)
	flood := func(n int) {
		for range n {
			w.begin()
		}
	}
	used := func() uint64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.GC() // what the first one has found free
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	flood(100) // what is made once
	before := used()
	const many = 5000
	flood(many)
	if after := used(); after > before+many*20 {
		t.Errorf("%d logins that were begun take %d bytes", many, after-before)
	}
	w.enter()
	n := 0
	for range model.APISessions.All(w.State.Snapshot()) {
		n++
	}
	if n != 1 {
		t.Errorf("there are %d sessions, and one has logged in", n)
	}
}
