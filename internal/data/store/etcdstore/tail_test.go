package etcdstore

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"netkeep.internal/internal/data/store"
)

// TestWrittenAfter has several controllers write by turns, each once or often, with
// batches that are staged, others' keys and compactions in between: every write says
// which batch it follows, whether or not its controller was alone.
func TestWrittenAfter(t *testing.T) {
	m := startTest(t, testLogger(t), asIs)
	s := &site{t: t, member: m, prefix: fmt.Sprint("after", sites.Add(1))}
	other := &site{t: t, member: m, prefix: s.prefix + "other"}
	ctx, stranger, chance := t.Context(), other.controller(), rand.New(rand.NewPCG(1, 2))
	all := []*Store{s.controller(), s.controller(), s.controller()}
	var last, head store.Rev
	for n := range 400 {
		h := all[0]
		if n%100 > 30 { // not alone
			h = all[chance.IntN(len(all))]
		}
		ops := set(fmt.Sprint("k/", n), 10)
		if chance.IntN(10) == 0 {
			ops = append(ops, append(set(fmt.Sprint("k/more", n), 10), set(fmt.Sprint("k/most", n), 10)...)...)
		}
		if chance.IntN(10) == 0 {
			if _, err := stranger.Put(ctx, store.Head{}, set(fmt.Sprint("k/", n), 10)); err != nil {
				t.Fatal(err)
			}
		}
		if chance.IntN(20) == 0 {
			if err := h.Compact(ctx, last); err != nil {
				t.Fatal(err)
			}
		}
		commit := chance.IntN(2) == 0
		write := func() (store.Written, error) { return h.Put(ctx, requested(), ops) }
		if commit {
			write = func() (store.Written, error) { return h.Commit(ctx, head, requested(), ops) }
		}
		at, err := write()
		if err != nil || at.After != last || at.Rev <= last {
			t.Fatalf("write %d of %d ops says %+v and %v, want it after %d", n, len(ops), at, err, last)
		}
		if last = at.Rev; commit {
			head = last
		}
	}
}
