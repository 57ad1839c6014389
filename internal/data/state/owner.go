package state

import (
	"context"
	"errors"
	"time"

	"netkeep.internal/internal/data/store"
	"netkeep.internal/internal/lang/fault"
	"netkeep.internal/internal/lang/kind"
)

const (
	maxGroup = 64 // writes that share one commit
	// maxRetries is how often a write is re-run after losing to another controller.
	// Where several are busy the one with the leader is always a little faster.
	maxRetries = 64

	feedWait = 5 * time.Second // for the feed to show who won
)

// own is the one goroutine that changes memory. It commits waiting writes and
// applies what other controllers wrote.
func (s *State) own(ctx context.Context) {
	defer close(s.stopped)
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case req := <-s.queues[kind.Model]:
			s.write(ctx, kind.Model, s.gather(kind.Model, req))
			s.writeWaiting(ctx, kind.Session)
		case req := <-s.queues[kind.Session]:
			s.write(ctx, kind.Session, s.gather(kind.Session, req))
			s.writeWaiting(ctx, kind.Model)
		case d := <-s.feed:
			s.deliver(ctx, d)
		case <-s.retry:
			_ = s.reload(ctx)
		}
	}
}

// writeWaiting writes what waits in a lane, if something does: whoever fills the
// other lane would else be next as often as chance has it.
func (s *State) writeWaiting(ctx context.Context, lane kind.Lane) {
	select {
	case req := <-s.queues[lane]:
		s.write(ctx, lane, s.gather(lane, req))
	default:
	}
}

// gather takes the writes that are waiting, up to a group.
func (s *State) gather(lane kind.Lane, first *request) []*request {
	reqs := []*request{first}
	for len(reqs) < maxGroup {
		select {
		case req := <-s.queues[lane]:
			reqs = append(reqs, req)
		default:
			return reqs
		}
	}
	return reqs
}

// write commits the requests and answers each of them.
func (s *State) write(ctx context.Context, lane kind.Lane, reqs []*request) {
	lost, most := 0, maxGroup
	for len(reqs) > 0 {
		if ctx.Err() != nil {
			refuse(reqs, errStopping)
			return
		}
		if s.unusable != nil {
			refuse(reqs, s.unusable)
			return
		}
		g, rest := s.prepare(lane, reqs, most)
		err := s.commit(ctx, lane, g)
		switch {
		case errors.Is(err, store.ErrConflict) && lost < maxRetries:
			behind := s.catchUp(ctx, lane, g)
			if behind == nil {
				lost++
				reqs = append(g.requests(), rest...) // again, on fresh data
				continue
			}
			err = errors.Join(err, behind)
		case errors.Is(err, store.ErrTooLarge) && len(g.answers) > 1:
			most = 1 // the store takes less than it says: find out who is too large
			reqs = append(g.requests(), rest...)
			continue
		}
		g.answer(outcome(err))
		reqs, lost = rest, 0
	}
}

func refuse(reqs []*request, err error) {
	for _, req := range reqs {
		req.done <- err
	}
}

// outcome is what writers are told of a commit.
func outcome(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, store.ErrTooLarge):
		return errTooLarge
	case errors.Is(err, store.ErrFailed):
		return &fault.Error{Code: fault.CodeUnavailable, Reason: "the store of this controller has stopped, for want of disk space most likely; nothing can be changed until there is space and the controller was started again", Cause: err}
	case errors.Is(err, store.ErrConflict), errors.Is(err, store.ErrClosed), errors.Is(err, store.ErrInvalid):
		return &fault.Error{Code: fault.CodeUnavailable, Reason: "the write could not be stored; try again", Cause: err}
	}
	return &fault.Error{Code: fault.CodeUnavailable, Reason: "it is not known whether the write was stored; look before trying again", Cause: err}
}

// catchUp applies the feed until memory has moved past what the group was
// prepared on.
func (s *State) catchUp(ctx context.Context, lane kind.Lane, g *group) error {
	patience := time.NewTimer(feedWait)
	defer patience.Stop()
	for !s.outdated(lane, g) {
		select {
		case d := <-s.feed:
			s.deliver(ctx, d)
		case <-patience.C:
			// The store has what the feed does not show.
			return s.load(ctx)
		case <-ctx.Done():
			return errStopping
		}
	}
	for range len(s.feed) { // or the next attempt would lose to what is waiting
		s.deliver(ctx, <-s.feed)
	}
	return nil
}

// reach applies the feed until memory has all that the log has before a write
// of our own, which is most often so already.
func (s *State) reach(ctx context.Context, at store.Written) error {
	if at.After <= s.Snapshot().Rev {
		return nil
	}
	patience := time.NewTimer(feedWait)
	defer patience.Stop()
	for s.Snapshot().Rev < at.After {
		select {
		case d := <-s.feed:
			if d.loaded == nil && d.batch.Rev >= at.Rev {
				return s.reload(ctx) // the feed skipped something
			}
			s.deliver(ctx, d)
		case <-patience.C:
			return s.reload(ctx)
		case <-ctx.Done():
			return errStopping
		}
	}
	return nil
}

// outdated reports whether what the group is guarded by has changed.
func (s *State) outdated(lane kind.Lane, g *group) bool {
	now := s.Snapshot()
	if g.commits(lane) && now.head != g.base.head {
		return true
	}
	for c := range g.effective() {
		if guarded(lane, c) && now.table(c.def).rev(c.id) != c.prev {
			return true
		}
	}
	return false
}
