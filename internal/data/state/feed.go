package state

import (
	"context"
	"errors"
	"iter"
	"time"

	"netkeep/internal/data/store"
)

const (
	// feedFailures is how often the feed may break off without a batch
	// before everything is loaded again.
	feedFailures = 3
	maxPause     = 5 * time.Second
	reloadPause  = time.Second
	// feedLasts is how long a feed must hold to count as whole again.
	feedLasts = time.Second
)

// delivery is what the feed hands to the owner: a batch, or the wish to load
// everything again, answered with the revision reached.
type delivery struct {
	batch  store.Batch
	loaded chan<- store.Rev
}

var errBroken = errors.New("state: the feed skipped something")

// follow hands every batch of the store to the owner until ctx ends. Where
// history is gone it asks for a load and goes on from there.
func (s *State) follow(ctx context.Context, rev store.Rev) {
	for failures := 0; ; {
		// A quiet feed shows by nothing that it works but by lasting.
		lasts := time.AfterFunc(feedLasts, s.brokenOff.end)
		err := s.store.Follow(ctx, rev, func(b store.Batch) error {
			failures, rev = 0, b.Rev
			s.brokenOff.end()
			return s.hand(ctx, delivery{batch: b})
		})
		lasts.Stop()
		if ctx.Err() != nil || errors.Is(err, store.ErrClosed) {
			return
		}
		failures++
		s.brokenOff.begin(time.Now())
		s.opt.Logger.Warn("following the store was interrupted", "rev", rev, "error", err)
		select {
		case <-time.After(min(maxPause, 10*time.Millisecond<<min(failures, 16))):
		case <-ctx.Done():
			return
		}
		if errors.Is(err, store.ErrCompacted) || errors.Is(err, store.ErrGap) || failures >= feedFailures {
			if rev, err = s.askToLoad(ctx); err != nil {
				return
			}
		}
	}
}

// hand gives something to the owner. It fails only when ctx ends.
func (s *State) hand(ctx context.Context, d delivery) error {
	select {
	case s.feed <- d:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// askToLoad waits until the owner has loaded everything and returns where to
// follow from. It fails only when ctx ends.
func (s *State) askToLoad(ctx context.Context) (store.Rev, error) {
	loaded := make(chan store.Rev, 1)
	if err := s.hand(ctx, delivery{loaded: loaded}); err != nil {
		return 0, err
	}
	select {
	case rev := <-loaded:
		return rev, nil
	case <-ctx.Done():
		return 0, ctx.Err()
	}
}

// deliver applies one delivery. Memory that a batch does not follow from is
// replaced by a fresh load, never patched.
func (s *State) deliver(ctx context.Context, d delivery) {
	if d.loaded != nil {
		s.loaded = append(s.loaded, d.loaded)
		_ = s.reload(ctx)
	} else if s.apply(d.batch) != nil {
		_ = s.reload(ctx)
	}
}

// reload loads everything again, now or, if that fails, later.
func (s *State) reload(ctx context.Context) error {
	err := s.load(ctx)
	if err != nil && ctx.Err() == nil {
		s.opt.Logger.Error("loading the store again failed", "error", err)
		s.retry = time.After(reloadPause)
		s.unloaded.begin(time.Now())
	}
	return err
}

// apply adds a batch from the feed to memory, unless it is there already.
func (s *State) apply(b store.Batch) error {
	if b.Rev <= s.fed {
		return nil
	}
	cur := s.Snapshot()
	switch {
	case b.Rev <= cur.Rev: // written here
		s.arrived(b.Rev)
		return nil
	case b.Commit && (b.Head.Prev != cur.head || b.Head.Ops != len(b.Ops)):
		s.opt.Logger.Warn("the feed is not continuous", "rev", b.Rev, "have", cur.head, "prev", b.Head.Prev)
		return errBroken
	}
	if err := s.heedBatch(b); err != nil {
		return err
	}
	w := newDraft(cur)
	ev := Event{Time: b.Head.Time}
	for by, ops := range shares(b) {
		var changes []change
		for _, op := range ops {
			if c, ok := s.changeOf(w, op, b.Rev); ok {
				w.set(c)
				changes = append(changes, c)
			}
		}
		ev.add(by, changes)
	}
	w.Rev = b.Rev
	if b.Commit {
		w.head, w.Time = b.Rev, b.Head.Time
	}
	s.arrived(b.Rev)
	s.publish(w.Snapshot, ev)
	return nil
}

// shares yields the ops of a batch by author. Whose author it does not name
// are nobody's.
func shares(b store.Batch) iter.Seq2[Author, []store.Op] {
	return func(yield func(Author, []store.Op) bool) {
		rest := b.Ops
		for _, w := range b.Head.Writes {
			n := min(max(w.Ops, 0), len(rest))
			if !yield(w.Author, rest[:n]) {
				return
			}
			rest = rest[n:]
		}
		yield(Author{}, rest)
	}
}

// changeOf is what an op of the log does to the record as the draft has it. A
// record that cannot be read is as good as none.
func (s *State) changeOf(w draft, op store.Op, rev store.Rev) (change, bool) {
	d, id, ok := s.split(op.Key)
	if !ok {
		return change{}, false
	}
	c := change{def: d, id: id, old: w.Snapshot.table(d).get(id)}
	if op.Value != nil {
		c.row = s.read(d, id, store.Record{Key: op.Key, Value: op.Value, Rev: rev})
	}
	s.unreadable.set(op.Key, c.row == nil && op.Value != nil)
	return c, true
}
