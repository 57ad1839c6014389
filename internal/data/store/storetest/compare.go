package storetest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"netkeep.internal/internal/data/store"
)

// Compare does the same random things to a store and to Memory and tests that
// they answer alike. fresh is as for Run.
func Compare(t *testing.T, fresh func(t *testing.T) Opener) {
	rapid.Check(t, func(rt *rapid.T) {
		p := newPair(t, rt, fresh(t))
		defer p.close()
		rt.Repeat(map[string]func(*rapid.T){
			"Commit":  p.commit,
			"Put":     p.put,
			"Get":     p.get,
			"Load":    p.load,
			"Range":   p.entries,
			"Compact": p.compact,
			"Reopen":  p.reopen,
			"":        func(*rapid.T) {},
		})
		p.load(rt)
		p.entries(rt)
		p.live(rt)
		if rapid.IntRange(0, 3).Draw(rt, "again") == 0 {
			p.history(rt)
		}
	})
}

// pair is a store and its model. Their revisions differ, so they are known by
// their place in revs.
type pair struct {
	t     *testing.T
	ctx   context.Context
	stop  context.CancelFunc
	o     Opener
	store store.Store
	model *Memory
	revs  []revs
	cut   int // place of the last compacted revision

	fed   chan store.Batch // from a follower since the beginning
	seen  []store.Batch    // what was fed so far
	ended chan error
}

type revs struct{ store, model store.Rev }

func newPair(t *testing.T, rt *rapid.T, o Opener) *pair {
	p := &pair{t: t, o: o, store: o.Open(t), seen: []store.Batch{}}
	p.model = NewMemoryWithin(p.store.Limits())
	p.ctx, p.stop = context.WithTimeout(t.Context(), patience)
	var err error
	base := revs{}
	if base.store, err = here(p.ctx, p.store); err == nil {
		base.model, err = here(p.ctx, p.model)
	}
	if err != nil {
		rt.Fatal(err)
	}
	p.revs = []revs{base}
	p.fed, p.ended = make(chan store.Batch, 1000), make(chan error, 1)
	follower := o.Open(t)
	go func() {
		err := follower.Follow(p.ctx, base.store, func(b store.Batch) error {
			p.fed <- b
			return nil
		})
		p.ended <- errors.Join(err, follower.Close())
	}()
	return p
}

func here(ctx context.Context, s store.Store) (store.Rev, error) {
	mark, err := s.Load(ctx, func(store.Record) error { return nil })
	return mark.Rev, err
}

func (p *pair) close() {
	p.stop()
	<-p.ended
	p.store.Close()
}

// pick draws a revision that both know, 0, or one to come.
func (p *pair) pick(rt *rapid.T) revs {
	switch i := rapid.IntRange(-2, len(p.revs)-1).Draw(rt, "revision"); i {
	case -2:
		return revs{}
	case -1:
		return revs{p.revs[len(p.revs)-1].store + 1000, p.revs[len(p.revs)-1].model + 1000}
	default:
		return p.revs[i]
	}
}

// place returns where a revision is in revs; those before are all at 0.
func (p *pair) place(of func(revs) store.Rev, rev store.Rev) int {
	return slices.IndexFunc(p.revs, func(r revs) bool { return of(r) == rev })
}

func ofStore(r revs) store.Rev { return r.store }
func ofModel(r revs) store.Rev { return r.model }

// ops draws a batch for each of the two.
func (p *pair) ops(rt *rapid.T, guarded bool) (forStore, forModel []store.Op) {
	keys := rapid.SliceOfDistinct(rapid.SampledFrom([]string{"a/1", "a/2", "b/1", "c", "+l/1", "+l/2", "+m/1"}), rapid.ID[string]).Draw(rt, "keys")
	if rapid.IntRange(0, 9).Draw(rt, "invalid") == 0 {
		keys = append(keys, rapid.SampledFrom([]string{"a/1", ""}).Draw(rt, "key"))
	}
	for _, key := range keys {
		op := store.Op{Key: key}
		if rapid.IntRange(0, 3).Draw(rt, "delete") > 0 {
			op.Value = rapid.SliceOfN(rapid.Byte(), 0, 40).Draw(rt, "value")
		}
		guard := revs{store.Any, store.Any}
		if guarded {
			guard = p.guard(rt, op.Key)
		}
		forStore = append(forStore, expecting(guard.store, op))
		forModel = append(forModel, expecting(guard.model, op))
	}
	return forStore, forModel
}

// guard draws what a write expects: often what is so.
func (p *pair) guard(rt *rapid.T, key string) revs {
	switch rapid.IntRange(0, 4).Draw(rt, "guard") {
	case 0:
		return revs{store.Any, store.Any}
	case 1:
		return p.pick(rt)
	}
	rec, ok, err := p.model.Get(p.ctx, key)
	if err != nil || !ok {
		return revs{}
	}
	return p.revs[p.place(ofModel, rec.Rev)]
}

// wrote compares the answers to a write and remembers its revision.
func (p *pair) wrote(rt *rapid.T, at store.Written, err error, modelAt store.Written, modelErr error) {
	rt.Helper()
	same(rt, err, modelErr)
	if err != nil {
		return
	}
	last := p.revs[len(p.revs)-1]
	if at.Rev <= last.store || len(p.revs) > 1 && (at.After != last.store || modelAt.After != last.model) {
		rt.Fatalf("wrote revision %d after %d, want after %d; the model says %d after %d, want after %d",
			at.Rev, at.After, last.store, modelAt.Rev, modelAt.After, last.model)
	}
	p.revs = append(p.revs, revs{at.Rev, modelAt.Rev})
}

// same fails unless both errors are the same word of the contract, or none.
func same(rt *rapid.T, err, modelErr error) {
	rt.Helper()
	for _, word := range []error{
		store.ErrConflict, store.ErrCompacted, store.ErrTooLarge, store.ErrInvalid, store.ErrGap, store.ErrClosed,
	} {
		if errors.Is(err, word) && errors.Is(modelErr, word) {
			return
		}
	}
	if err != nil || modelErr != nil {
		rt.Fatalf("store says %v, model says %v", err, modelErr)
	}
}

func (p *pair) commit(rt *rapid.T) {
	ops, modelOps := p.ops(rt, rapid.Bool().Draw(rt, "guarded"))
	mark, err := p.model.Load(p.ctx, func(store.Record) error { return nil })
	if err != nil {
		rt.Fatal(err)
	}
	prev := revs{}
	if mark.Head != 0 {
		prev = p.revs[p.place(ofModel, mark.Head)]
	}
	if rapid.IntRange(0, 4).Draw(rt, "stale") == 0 {
		prev = p.pick(rt)
	}
	head := p.head(rt, len(ops))
	head.End = rapid.String().Draw(rt, "end")
	rev, err := p.store.Commit(p.ctx, prev.store, head, ops)
	modelRev, modelErr := p.model.Commit(p.ctx, prev.model, head, modelOps)
	p.wrote(rt, rev, err, modelRev, modelErr)
}

func (p *pair) put(rt *rapid.T) {
	ops, modelOps := p.ops(rt, true)
	head := p.head(rt, len(ops))
	rev, err := p.store.Put(p.ctx, head, ops)
	modelRev, modelErr := p.model.Put(p.ctx, head, modelOps)
	p.wrote(rt, rev, err, modelRev, modelErr)
}

// head draws who writes ops.
func (p *pair) head(rt *rapid.T, ops int) store.Head {
	head := store.Head{Time: time.Unix(int64(len(p.revs)), 0).UTC()}
	for left := ops; left > 0; {
		w := store.Write{Ops: rapid.IntRange(1, left).Draw(rt, "share"), Author: store.Author{
			Kind: "identity", Name: rapid.String().Draw(rt, "name"), Request: fmt.Sprint(left),
		}}
		head.Writes = append(head.Writes, w)
		left -= w.Ops
	}
	return head
}

func (p *pair) get(rt *rapid.T) {
	key := rapid.SampledFrom([]string{"a/1", "a/2", "b/1", "c", "d", "+l/1"}).Draw(rt, "key")
	got, ok, err := p.store.Get(p.ctx, key)
	want, wantOK, wantErr := p.model.Get(p.ctx, key)
	same(rt, err, wantErr)
	if ok != wantOK {
		rt.Fatalf("Get(%q) = %v, model says %v", key, ok, wantOK)
	}
	if ok {
		p.equal(rt, []store.Record{got}, []store.Record{want})
	}
}

func (p *pair) load(rt *rapid.T) {
	read := func(s store.Store) (records []store.Record, mark store.Mark) {
		mark, err := s.Load(p.ctx, func(r store.Record) error {
			records = append(records, r)
			return nil
		})
		if err != nil {
			rt.Fatal(err)
		}
		return records, mark
	}
	got, mark := read(p.store)
	want, wantMark := read(p.model)
	p.equal(rt, got, want)
	if mark.Rev < p.revs[len(p.revs)-1].store || !mark.Time.Equal(wantMark.Time) || mark.End != wantMark.End ||
		p.place(ofStore, mark.Head) != p.place(ofModel, wantMark.Head) {
		rt.Fatalf("Load returned %+v, model %+v", mark, wantMark)
	}
}

func (p *pair) entries(rt *rapid.T) {
	bound := rapid.SampledFrom([]string{"+", "+l/", "+l/1", "+l/2", "+l0", "+m/", "+m/1", "+n"})
	from, to := bound.Draw(rt, "from"), bound.Draw(rt, "to")
	most, newest := rapid.IntRange(1, 4).Draw(rt, "most"), rapid.Bool().Draw(rt, "newest")
	from, to = min(from, to), max(from, to)
	got, more, err := p.store.Range(p.ctx, from, to, most, newest)
	want, wantMore, wantErr := p.model.Range(p.ctx, from, to, most, newest)
	same(rt, err, wantErr)
	if p.equal(rt, got, want); more != wantMore {
		rt.Fatalf("more is %t, model says %t", more, wantMore)
	}
}

// equal compares records, with the model's revisions translated.
func (p *pair) equal(rt *rapid.T, got, want []store.Record) {
	rt.Helper()
	want = slices.Clone(want)
	for i, r := range want {
		want[i].Rev = p.revs[p.place(ofModel, r.Rev)].store
	}
	diff(rt, "records", got, want)
}

func (p *pair) compact(rt *rapid.T) {
	// Once in a while; else there is no history to compare.
	if rapid.IntRange(0, 3).Draw(rt, "really") > 0 {
		rt.Skip("not now")
	}
	p.catchUp(rt) // or the follower might lose what it has not seen
	rev := p.pick(rt)
	same(rt, p.store.Compact(p.ctx, rev.store), p.model.Compact(p.ctx, rev.model))
	p.cut = max(p.cut, p.place(ofStore, rev.store))
}

func (p *pair) reopen(rt *rapid.T) {
	if err := p.store.Close(); err != nil {
		rt.Fatal(err)
	}
	p.store = p.o.Open(p.t)
	p.model.Close()
	p.model = p.model.Another()
}

// expected returns the model's batches after a place in revs, with revisions
// translated.
func (p *pair) expected(rt *rapid.T, place int) []store.Batch {
	batches, _, err := p.model.log.after(p.revs[place].model)
	if err != nil {
		rt.Fatal(err)
	}
	for i, b := range batches {
		batches[i].Rev = p.revs[p.place(ofModel, b.Rev)].store
		if prev := b.Head.Prev; prev != 0 {
			batches[i].Head.Prev = p.revs[p.place(ofModel, prev)].store
		}
	}
	return batches
}

// live compares what the follower has seen since the beginning.
func (p *pair) live(rt *rapid.T) {
	p.catchUp(rt)
	diff(rt, "followed batches", p.seen[p.cut:], p.expected(rt, p.cut))
}

// catchUp waits until the follower has seen all that was written.
func (p *pair) catchUp(rt *rapid.T) {
	for len(p.seen) < len(p.revs)-1 {
		select {
		case b := <-p.fed:
			p.seen = append(p.seen, b)
		case err := <-p.ended:
			p.ended <- err
			rt.Fatalf("the follower ended after %d batches: %v", len(p.seen), err)
		}
	}
}

// history follows from some revision on.
func (p *pair) history(rt *rapid.T) {
	place := rapid.IntRange(0, len(p.revs)-1).Draw(rt, "from")
	last := p.revs[len(p.revs)-1].store
	if place < p.cut {
		err := p.store.Follow(p.ctx, p.revs[place].store, func(store.Batch) error { return errEnough })
		if !errors.Is(err, store.ErrCompacted) {
			rt.Fatalf("Follow(%d) after compacting %d: %v", p.revs[place].store, p.revs[p.cut].store, err)
		}
		return
	}
	got := []store.Batch{}
	if p.revs[place].store < last {
		got = follow(p.t, p.store, p.revs[place].store, last)
	}
	diff(rt, fmt.Sprintf("batches after %d", p.revs[place].store), got, p.expected(rt, place))
}
