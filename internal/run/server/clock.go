package server

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"netkeep.internal/internal/ops/clock"
)

const (
	// aheadKept is for how long it counts how far the clock of another was ahead, and
	// behindFor for how long it has to be behind to be believed.
	aheadKept = 3 * reportEvery
	behindFor = 2 * reportEvery
)

// ahead is how far the clock of another controller was ahead, as of what it told, and
// when that was heard.
type ahead struct {
	by time.Duration
	at time.Time
}

// aheads are what was heard lately.
type aheads []ahead

func (a aheads) and(next ahead) aheads {
	kept := slices.DeleteFunc(slices.Clone(a), func(old ahead) bool { return next.at.Sub(old.at).Abs() > aheadKept })
	return append(kept, next)
}

// by is how far the other clock is ahead. What is told takes its time to be heard,
// when a machine is busy or was asleep, which looks like a clock that is behind and
// never like one that is ahead: so the most counts, and being behind has to last.
func (a aheads) by() (by time.Duration, known bool) {
	if len(a) == 0 {
		return 0, false
	}
	by = slices.MaxFunc(a, func(x, y ahead) int { return cmp.Compare(x.by, y.by) }).by
	return by, by >= -clock.Apart || a[len(a)-1].at.Sub(a[0].at) >= behindFor
}

// fromStore is how far the clock of the store is ahead of this controller's: what
// most controllers say that are there, of two the later one, which is what the times
// of all that is stored follow. It is not known if nobody else is there.
func (r *reports) fromStore(self string) (by time.Duration, known bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := []time.Duration{0} // this controller
	for id, h := range r.all {
		if id == self || !h.there {
			continue
		}
		if by, ok := h.aheads.by(); ok {
			all = append(all, by)
		}
	}
	slices.Sort(all)
	return all[len(all)/2], len(all) > 1
}

// confirm reports whether others say that the clock of this machine is right.
func (r *reports) confirm(self string) bool {
	by, known := r.fromStore(self)
	return known && by.Abs() <= clock.Apart
}

// clockFails says that the clock of this machine is not that of the store. What ends at
// a moment goes by the later of the two; but whoever has a choice should rather ask
// another controller.
func (s *Server) clockFails() string {
	if by, known := s.reports.fromStore(s.ownName()); known {
		switch {
		case by > clock.Apart:
			return fmt.Sprintf("the clock of this machine is %s behind that of the other controllers: set it right", by.Round(time.Second))
		case by < -clock.Apart:
			return fmt.Sprintf("the clock of this machine is %s ahead of that of the other controllers: set it right", (-by).Round(time.Second))
		}
		return s.clock.Fails()
	}
	if reason := s.clock.Fails(); reason != "" {
		return reason
	}
	if by := s.state.Snapshot().Time.Sub(s.clock.Now()); by > clock.Apart {
		return fmt.Sprintf("the clock of this machine is %s behind what was last stored, and nothing begins or ends before it has caught up: set it right", by.Round(time.Second))
	}
	return ""
}

// ownName is the id of this controller, if it has one by now.
func (s *Server) ownName() string {
	if s.roster == nil {
		return ""
	}
	return s.roster.ID()
}
