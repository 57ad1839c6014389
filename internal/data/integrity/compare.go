package integrity

import (
	"bytes"
	"context"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"netkeep.internal/internal/data/format"
	"netkeep.internal/internal/data/invite"
	"netkeep.internal/internal/data/owner"
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
	suspects, err = r.settle(ctx, suspects)
	if err != nil || len(suspects) == 0 {
		return err
	}
	if r.fix {
		return r.reload(ctx, suspects)
	}
	for _, key := range suspects {
		r.found(false, "%s differs between memory and the store", key)
	}
	return nil
}

// reload has memory loaded again because of some records that differ.
func (r *run) reload(ctx context.Context, differing []string) error {
	if err := r.State.Reload(ctx); err != nil {
		return err
	}
	still, err := r.settle(ctx, differing)
	if err != nil {
		return err
	}
	for _, key := range differing {
		if slices.Contains(still, key) {
			r.found(false, "%s differs between memory and the store, even when memory is loaded again", key)
		} else {
			r.found(true, "%s differs between memory and the store; memory was loaded again", key)
		}
	}
	return nil
}

// suspects reads the whole store and returns the keys of all that is not the
// same in memory. Both are in the order of keys, so one pass does it.
func (r *run) suspects(ctx context.Context) (keys []string, err error) {
	snap := r.State.Snapshot()
	var have *cursor
	left := map[*kind.Def]bool{}
	for _, d := range r.State.Kinds().Defs {
		left[d] = true
	}
	_, err = r.Store.Load(ctx, func(rec store.Record) error {
		if rec.Key == format.Key || rec.Key == owner.Key || rec.Key == invite.Key { // of no kind
			return nil
		}
		d, id := r.split(rec.Key)
		if d == nil {
			keys = append(keys, rec.Key)
			return r.pace.step(ctx)
		}
		if have == nil || have.def != d {
			keys = have.rest(keys)
			have, left[d] = newCursor(snap, d), false
		}
		mem, rev, passed := have.reach(id)
		for _, id := range passed {
			keys = append(keys, d.Name+"/"+id)
		}
		if mem == nil || rev != rec.Rev || !equal(r.State, d, mem, rec.Value) {
			keys = append(keys, rec.Key)
		}
		return r.pace.step(ctx)
	})
	keys = have.rest(keys)
	for d, unseen := range left {
		if unseen {
			keys = newCursor(snap, d).rest(keys)
		}
	}
	return keys, err
}

// split tells what a key means; nil for a kind that is not known.
func (r *run) split(key string) (*kind.Def, string) {
	name, id, _ := strings.Cut(key, "/")
	if d := r.State.Kinds().Named(name); d != nil && d.Lane != kind.Volatile && id != "" {
		return d, id
	}
	return nil, ""
}

// equal reports whether a record in memory is what was stored. A record that
// an older controller wrote in another form is the same if it means the same.
func equal(st *state.State, d *kind.Def, mem kind.Record, value []byte) bool {
	want, err := st.Encode(d, mem)
	if err != nil {
		return false
	}
	if bytes.Equal(want, value) {
		return true
	}
	stored, err := st.Decode(d, mem.Base().ID, value)
	if err != nil {
		return false
	}
	got, err := st.Encode(d, stored)
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
	d, id := r.split(key)
	if d == nil {
		if stored {
			r.found(false, "%s is of a kind that this version does not know; it stays as it is", key)
		}
		return reported, nil
	}
	if stored {
		if reason := unreadable(r.State, d, id, rec.Value); reason != "" {
			return reported, r.unreadable(ctx, d, id, rec, reason)
		}
	}
	snap := r.State.Snapshot()
	mem, held := snap.Lookup(d, id)
	switch {
	case !stored && !held:
		return same, nil
	case stored && held && snap.RevOf(d, id) == rec.Rev && equal(r.State, d, mem, rec.Value):
		return same, nil
	}
	return differs, nil
}

// unreadable says why a stored value cannot be used; empty if it can.
func unreadable(st *state.State, d *kind.Def, id string, value []byte) string {
	rec, err := st.Decode(d, id, value)
	switch {
	case err != nil:
		return err.Error()
	case rec.Base().ID != id:
		return fmt.Sprintf("it holds the id %q", rec.Base().ID)
	}
	return ""
}

// unreadable reports a value that cannot be used. A fixing run takes it out of
// the store, when its bytes are safe elsewhere.
func (r *run) unreadable(ctx context.Context, d *kind.Def, id string, rec store.Record, reason string) error {
	if !r.fix {
		r.found(false, "%s cannot be read: %s", rec.Key, reason)
		return nil
	}
	file, err := r.quarantine(rec.Key, rec.Rev, rec.Value)
	if err != nil {
		return err
	}
	if err := r.State.Discard(ctx, r.by, d, id, rec.Rev); err != nil {
		r.found(false, "%s cannot be read: %s; removing it failed: %v", rec.Key, reason, err)
		return ctx.Err()
	}
	r.found(true, "%s cannot be read: %s; moved to %s", rec.Key, reason, file)
	return nil
}
