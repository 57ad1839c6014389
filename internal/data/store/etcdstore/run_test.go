package etcdstore

import (
	"fmt"
	"testing"

	"netkeep.internal/internal/data/store"
)

// Entries that are deleted one after the other are one request with two guards, as far
// as it is said that no key is between them; a part of a large batch has each apart.
func TestRunIsOneRequest(t *testing.T) {
	s := newStore(t.Context(), nil, "", store.Limits{Ops: 1000, Bytes: 1 << 20}, nil)
	ops := []store.Op{{Key: "k/1", Value: []byte("v"), Prev: store.Any}}
	for i := range 100 {
		ops = append(ops, store.Op{Key: fmt.Sprintf("%slog/%03d", store.EntryMark, i), Prev: store.Any, Next: i%50 != 0})
	}
	guarded := store.Op{Key: store.EntryMark + "log/100", Prev: 7, Next: true}
	for _, c := range []struct {
		name             string
		ops              []store.Op
		requests, guards int
	}{
		{"two runs and a record", ops, 3, 4},
		{"a run and one that has a guard of its own", append(ops[1:51:51], guarded), 2, 3},
		{"records", []store.Op{{Key: "k/1", Prev: store.Any}, {Key: "k/2", Prev: store.Any, Next: true}}, 2, 2},
		{"parts", apart(ops), 101, 100},
	} {
		if requests, guards := len(s.changes(nil, c.ops)), len(s.guard(c.ops)); requests != c.requests || guards != c.guards {
			t.Errorf("%s: %d requests and %d guards, want %d and %d", c.name, requests, guards, c.requests, c.guards)
		}
	}
}
