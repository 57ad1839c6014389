package integrity

import (
	"bytes"
	"context"
	"iter"
	"slices"
	"time"

	"netkeep.internal/internal/data/state"
	"netkeep.internal/internal/data/store"
	"netkeep.internal/internal/lang/kind"
)

// compare reads everything that is stored and reports where memory differs
// and what cannot be read.
func (r *run) compare(ctx context.Context) error {
	suspects, err := r.suspects(ctx)
	if err != nil {
		return err
	}
	differing, err := r.settle(ctx, suspects)
	if err != nil {
		return err
	}
	astray, err := r.astray(ctx)
	if err != nil || len(differing)+len(astray) == 0 {
		return err
	}
	if r.fix {
		return r.reload(ctx, differing, astray)
	}
	for _, key := range differing {
		r.found(false, differsText, key)
	}
	for _, key := range astray {
		r.found(false, astrayText, key)
	}
	return nil
}

const (
	differsText = "%s differs between memory and the store"
	astrayText  = "%s is not where memory looks for it, or is also where it should not be"
)

// reload has memory loaded again because of some records that differ, or cannot
// be found.
func (r *run) reload(ctx context.Context, differing, astray []string) error {
	if err := r.State.Reload(ctx); err != nil {
		return err
	}
	differ, err := r.settle(ctx, differing)
	if err != nil {
		return err
	}
	stray, err := r.astray(ctx)
	if err != nil {
		return err
	}
	tell := func(text string, before, after []string) {
		for _, key := range before {
			if slices.Contains(after, key) {
				r.found(false, text+", even when memory is loaded again", key)
			} else {
				r.found(true, text+"; memory was loaded again", key)
			}
		}
	}
	tell(differsText, differing, differ)
	tell(astrayText, astray, stray)
	return nil
}

// astray returns the keys of records that memory does not find as it should,
// by a name or another value of theirs. Memory is whole at any moment: there is
// nothing to wait for.
func (r *run) astray(ctx context.Context) (keys []string, err error) {
	snap := r.State.Snapshot()
	for _, d := range r.State.Kinds().Defs {
		for id, right := range snap.Filing(d) {
			if key := d.Name + "/" + id; !right && !slices.Contains(keys, key) && len(keys) < MaxFindings {
				keys = append(keys, key)
			}
			if err := r.pace.step(ctx); err != nil {
				return nil, err
			}
		}
	}
	return keys, nil
}

// suspects reads the whole store and returns the keys of all that is not the
// same in memory. Both are in the order of keys, so one pass does it. Records
// are read by the page, as memory reads them from the log: what is known of all
// of them at once is not much.
func (r *run) suspects(ctx context.Context) (keys []string, err error) {
	c := comparison{run: r, snap: r.State.Snapshot(), left: map[*kind.Def]bool{}}
	for _, d := range r.State.Kinds().Defs {
		c.left[d] = true
	}
	var page []store.Record
	_, err = r.Store.Load(ctx, func(rec store.Record) error {
		if page = append(page, rec); len(page) == stride {
			c.add(page)
			page = page[:0]
		}
		return r.pace.step(ctx)
	})
	c.add(page)
	return c.end(), err
}

// comparison is a pass over the store beside memory.
type comparison struct {
	*run
	snap *state.Snapshot
	have *cursor
	left map[*kind.Def]bool // kinds that nothing was stored of so far
	keys []string           // what differs
}

// add goes on with a page of the store.
func (c *comparison) add(page []store.Record) {
	stored, seen := c.read(page)
	c.keys = append(c.keys, seen.Unknown...)
	for _, rec := range page {
		if bad, known := seen.Read[rec.Key]; known {
			d, id, _ := c.State.Fold().Split(rec.Key)
			mem, rev := c.reach(d, id)
			if bad != nil || mem == nil || rev != rec.Rev || !equal(c.State, d, mem, stored, rec.Value) {
				c.keys = append(c.keys, rec.Key)
			}
		}
	}
}

// reach goes to a record in memory. What it passes on the way is not stored.
func (c *comparison) reach(d *kind.Def, id string) (kind.Record, store.Rev) {
	if c.have == nil || c.have.def != d {
		c.keys = c.have.rest(c.keys)
		c.have, c.left[d] = newCursor(c.snap, d), false
	}
	mem, rev, passed := c.have.reach(id)
	for _, id := range passed {
		c.keys = append(c.keys, d.Name+"/"+id)
	}
	return mem, rev
}

// end returns all keys that differ.
func (c *comparison) end() []string {
	c.keys = c.have.rest(c.keys)
	for d, unseen := range c.left {
		if unseen {
			c.keys = newCursor(c.snap, d).rest(c.keys)
		}
	}
	return c.keys
}

// read is what memory would hold if it were to learn of these records now.
func (r *run) read(records []store.Record) (*state.Snapshot, state.Keys) {
	fold, batch := r.State.Fold(), store.Batch{Rev: 1}
	for _, rec := range records {
		batch.Ops = append(batch.Ops, store.Op{Key: rec.Key, Value: rec.Value})
	}
	step, seen, err := fold.Next(fold.Empty(), batch)
	if err != nil {
		panic("integrity: what is stored does not follow from nothing: " + err.Error())
	}
	return step.After, seen
}

// equal reports whether a record in memory is what was stored. A record that
// an older controller wrote in another form is the same if it means the same.
func equal(st *state.State, d *kind.Def, mem kind.Record, stored *state.Snapshot, value []byte) bool {
	want, err := st.Encode(d, mem)
	if err != nil {
		return false
	}
	if bytes.Equal(want, value) {
		return true
	}
	rec, ok := stored.Lookup(d, mem.Base().ID)
	if !ok {
		return false
	}
	got, err := st.Encode(d, rec)
	return err == nil && bytes.Equal(want, got)
}

// cursor walks over the records of one kind in memory.
type cursor struct {
	def  *kind.Def
	next func() (kind.Record, store.Rev, bool)
	stop func()
	rec  kind.Record // nil at the end
	rev  store.Rev
}

func newCursor(snap *state.Snapshot, d *kind.Def) *cursor {
	c := &cursor{def: d}
	c.next, c.stop = iter.Pull2(snap.Stored(d))
	c.advance()
	return c
}

func (c *cursor) advance() {
	var ok bool
	if c.rec, c.rev, ok = c.next(); !ok {
		c.rec = nil
	}
}

// reach goes to the record with an id and past it. It returns that record, nil
// if there is none, and the ids that it passed on the way.
func (c *cursor) reach(id string) (rec kind.Record, rev store.Rev, passed []string) {
	for c.rec != nil && c.rec.Base().ID < id {
		passed = append(passed, c.rec.Base().ID)
		c.advance()
	}
	if c.rec == nil || c.rec.Base().ID != id {
		return nil, 0, passed
	}
	rec, rev = c.rec, c.rev
	c.advance()
	return rec, rev, passed
}

// rest adds the keys of what is left and ends the walk.
func (c *cursor) rest(keys []string) []string {
	if c == nil {
		return keys
	}
	for ; c.rec != nil; c.advance() {
		keys = append(keys, c.def.Name+"/"+c.rec.Base().ID)
	}
	c.stop()
	return keys
}

// settlePause is how long to wait before suspects are looked at again.
const settlePause = 100 * time.Millisecond

// settle looks at suspects again, one by one, until memory has had the time to
// follow: most differ only because they were written during the scan. What is
// wrong whatever memory holds is reported, and repaired, on the way. It
// returns what still differs.
func (r *run) settle(ctx context.Context, suspects []string) ([]string, error) {
	for waited := time.Duration(0); ; waited += settlePause {
		var still []string
		for _, key := range suspects {
			v, err := r.look(ctx, key)
			if err != nil {
				return nil, err
			}
			if v == differs {
				still = append(still, key)
			}
			if err := r.pace.step(ctx); err != nil {
				return nil, err
			}
		}
		if len(still) == 0 || waited >= r.Lag {
			return still, nil
		}
		suspects = still
		if err := pause(ctx, settlePause); err != nil {
			return nil, err
		}
	}
}

// verdict is what look makes of a key.
type verdict uint8

const (
	same     verdict = iota // memory is what the store holds
	reported                // it was reported, once and for all
	differs                 // perhaps memory is only late
)

// look compares one record as it is stored now with memory as it is now.
func (r *run) look(ctx context.Context, key string) (verdict, error) {
	rec, stored, err := r.Store.Get(ctx, key)
	if err != nil {
		return 0, err
	}
	d, id, known := r.State.Fold().Split(key)
	if !known {
		if stored {
			r.found(false, "%s is of a kind that this version does not know; it stays as it is", key)
		}
		return reported, nil
	}
	snap := r.State.Snapshot()
	mem, held := snap.Lookup(d, id)
	if !stored {
		if held {
			return differs, nil
		}
		return same, nil
	}
	as, seen := r.read([]store.Record{rec})
	if reason := seen.Read[key]; reason != nil {
		return reported, r.unreadable(ctx, d, id, rec, reason)
	}
	if held && snap.RevOf(d, id) == rec.Rev && equal(r.State, d, mem, as, rec.Value) {
		return same, nil
	}
	return differs, nil
}

// unreadable reports a value that cannot be used. A fixing run takes it out of
// the store, when its bytes are safe elsewhere.
func (r *run) unreadable(ctx context.Context, d *kind.Def, id string, rec store.Record, reason error) error {
	if !r.fix {
		r.found(false, "%s cannot be read: %v", rec.Key, reason)
		return nil
	}
	file, err := r.quarantine(rec.Key, rec.Rev, rec.Value)
	if err != nil {
		return err
	}
	if err := r.State.Discard(ctx, r.by, d, id, rec.Rev); err != nil {
		r.found(false, "%s cannot be read: %v; removing it failed: %v", rec.Key, reason, err)
		return ctx.Err()
	}
	r.found(true, "%s cannot be read: %v; moved to %s", rec.Key, reason, file)
	return nil
}
