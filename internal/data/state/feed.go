package state

import (
	"context"
	"errors"
	"time"

	"netkeep.internal/internal/data/store"
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
	if b.Rev <= cur.Rev { // written here
		s.arrived(b.Rev)
		return nil
	}
	if err := s.heedBatch(b); err != nil {
		return err
	}
	ev, seen, err := s.fold.Next(cur, b)
	if err != nil {
		s.opt.Logger.Warn("the feed is not continuous", "rev", b.Rev, "have", cur.head, "prev", b.Head.Prev)
		return err
	}
	s.heedKeys(seen)
	s.arrived(b.Rev)
	s.publish(ev)
	return nil
}

// heedKeys keeps in mind which keys of a batch this version cannot read.
func (s *State) heedKeys(seen Keys) {
	for _, key := range seen.Unknown {
		s.report(key)
	}
	for key, err := range seen.Read {
		if err != nil {
			s.opt.Logger.Error("a stored record cannot be read", "key", key, "error", err)
		}
		s.unreadable.set(key, err != nil)
	}
}
