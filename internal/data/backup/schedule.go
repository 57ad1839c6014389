package backup

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"time"

	"netkeep.internal/internal/lang/fault"
)

// again is when a scheduled snapshot is tried once more that failed.
const again = 5 * time.Minute

// Schedule writes a snapshot at every interval until ctx ends, and of these
// keeps the last so many; those that somebody asked for are never deleted, nor
// those that are not known to be of this network. The first is due an interval
// after the last that there is, and at once if there is none. One that fails is
// tried again.
func (s *Snapshots) Schedule(ctx context.Context, every time.Duration, keep int) {
	s.Recognise(ctx)
	for wait := s.due(every); ; {
		select {
		case <-ctx.Done():
			return
		case <-time.After(wait):
		}
		_, err := s.take(ctx, true)
		switch {
		case ctx.Err() != nil:
			return
		case fault.Is(err, fault.CodeRateLimited):
			// Somebody else's comes first, or it was a moment too early: names
			// know no more than seconds.
			wait = waitOf(err)
			continue
		case err != nil:
			s.failed(s.Now())
			wait = min(every, again)
			s.Log.Warn("a scheduled snapshot failed; it is tried again", "in", wait.String())
			continue
		}
		s.failed(time.Time{})
		s.Recognise(ctx)
		s.forget(keep)
		wait = s.due(every)
	}
}

// waitOf is when to try again what came too early.
func waitOf(err error) time.Duration {
	if e, ok := errors.AsType[*fault.Error](err); ok {
		return e.Wait
	}
	return least
}

// due is how long there is to wait for the next scheduled snapshot.
func (s *Snapshots) due(every time.Duration) time.Duration {
	last := s.lastScheduled()
	if last.IsZero() {
		return 0
	}
	// A clock that was set back must not put it off for longer.
	return min(every, max(0, every-s.Now().Sub(last)))
}

// lastScheduled is when the last scheduled snapshot was begun: of those that
// there are, or by this process. Somebody may have taken that one away, or left
// the directory without the right to list it.
func (s *Snapshots) lastScheduled() time.Time {
	s.mu.Lock()
	last := s.scheduled
	s.mu.Unlock()
	files, err := s.List()
	if err != nil {
		s.Log.Warn("the directory of snapshots cannot be listed: old ones stay until it can", "error", err)
	}
	for _, f := range files {
		if ours, _ := s.belongs(f); ours && f.Scheduled {
			if f.Time.After(last) {
				last = f.Time
			}
			break
		}
	}
	return last
}

// failed notes when a scheduled snapshot failed; the zero time says that the
// last did not.
func (s *Snapshots) failed(at time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.failedAt = at
}

// Failing says that the last scheduled snapshot failed, in words that anybody
// may read; nothing if it did not.
func (s *Snapshots) Failing() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.failedAt.IsZero() {
		return ""
	}
	return "the last scheduled snapshot failed at " + s.failedAt.UTC().Format(time.RFC3339) + "; the log says why"
}

// forget deletes all scheduled snapshots of this network but the last so many.
func (s *Snapshots) forget(keep int) {
	files, err := s.List()
	if err != nil {
		return // due says so
	}
	for _, f := range files {
		if ours, _ := s.belongs(f); !ours || !f.Scheduled {
			continue
		}
		if keep--; keep >= 0 {
			continue
		}
		if err := os.Remove(filepath.Join(s.Dir, f.Name)); err != nil {
			s.Log.Warn("an old snapshot could not be deleted", "error", err)
			continue
		}
		s.Log.Info("deleted an old snapshot", "file", f.Name)
	}
}
