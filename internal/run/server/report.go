package server

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"sync"
	"time"

	"netkeep.internal/internal/data/store"
	"netkeep.internal/internal/fabric/roster"
	"netkeep.internal/internal/ops/build"
)

const (
	// reportEvery is how often a controller tells the others how it is, and
	// reportLife how long what it has told counts.
	reportEvery = 5 * time.Second
	reportLife  = 3 * reportEvery
	// reportAgain is how long to wait before the store is asked again.
	reportAgain = time.Second
	// reportPrefix is what the names of claims of reports begin with.
	reportPrefix = "report/"
)

// report is what a controller tells the others of itself.
type report struct {
	Version string `json:"version"`
	Behind  int64  `json:"behind"` // revisions that the store has and its memory lacks
	Size    int64  `json:"size"`   // of its store; 0 if that is not its own
	Routers int    `json:"routers"`
	// Time is that of its clock.
	Time time.Time `json:"time"`
	// Archived is up to which entry it has archived the audit log; nil if it does not.
	Archived *int64 `json:"archived,omitempty"`
}

// heardOf is what was last heard of another controller.
type heardOf struct {
	report
	at    time.Time
	there bool
	aheads
}

// maxSkew is how far the clocks of two controllers may be apart. What is told is a
// few seconds old.
const maxSkew = time.Minute

// skew is how far the clock of another is ahead of this one's, if that is too far.
func (h heardOf) skew() time.Duration {
	if ahead := h.Time.Sub(h.at); h.there && ahead.Abs() > maxSkew {
		return ahead
	}
	return 0
}

// reports is what the controllers tell of themselves, by id.
type reports struct {
	mu    sync.Mutex
	all   map[string]heardOf
	whole bool // whether all that are there have been heard of
}

func (r *reports) of(id string) (heardOf, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	h, ok := r.all[id]
	return h, ok
}

// skew is how far the clock of another controller is from this one's, if too far.
func (r *reports) skew() (most time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, h := range r.all {
		if s := h.skew(); s.Abs() > most.Abs() {
			most = s
		}
	}
	return most
}

// archived is up to which entry all have archived the audit log who are there, and who
// is the last; everything if nobody does.
func (r *reports) archived() (to int64, who string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.whole {
		return 0, ""
	}
	to = math.MaxInt64
	for id, h := range r.all {
		if h.there && h.Archived != nil && *h.Archived < to {
			to, who = *h.Archived, id
		}
	}
	return to, who
}

// take notes what was told. Of who is gone it stays known when that was.
func (r *reports) take(claims []store.Claim, whole bool, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.all == nil {
		r.all = map[string]heardOf{}
	}
	if whole {
		r.whole = true
		for id, h := range r.all {
			h.there = false
			r.all[id] = h
		}
	}
	for _, c := range claims {
		id := strings.TrimPrefix(c.Name, reportPrefix)
		h := heardOf{at: now, there: true}
		if c.Value == nil || json.Unmarshal(c.Value, &h.report) != nil {
			h = r.all[id]
			h.there = false
		} else {
			h.aheads = r.all[id].aheads.and(ahead{h.Time.Sub(now), now})
		}
		r.all[id] = h
	}
}

// report tells the others how this controller is, and hears it of them, until ctx
// ends.
func (s *Server) report(ctx context.Context) {
	if s.roster.Alone() {
		return
	}
	claims := s.claims()
	s.jobs.Go(func() {
		for ctx.Err() == nil {
			_ = claims.FollowClaims(ctx, reportPrefix, func(some []store.Claim, whole bool) error {
				s.reports.take(some, whole, time.Now())
				if s.reports.confirm(s.roster.ID()) {
					s.clock.Believe()
				}
				return nil
			})
			waitFor(ctx, reportAgain)
		}
	})
	for ctx.Err() == nil {
		lease, err := claims.Lease(ctx, reportLife)
		for err == nil && ctx.Err() == nil {
			var text []byte
			if text, err = json.Marshal(s.howItIs()); err == nil {
				err = lease.Note(ctx, store.Claim{Name: reportPrefix + s.roster.ID(), Value: text})
			}
			if err == nil {
				waitFor(ctx, reportEvery)
			}
		}
		if lease != nil {
			_ = lease.Close() // or it runs out
		}
		waitFor(ctx, reportAgain)
	}
}

func waitFor(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}

// howItIs is the report of this controller.
func (s *Server) howItIs() report {
	out := report{Version: build.Version, Routers: len(s.fabric.All()), Time: time.Now()}
	out.Size, _ = s.storeSize()
	if s.archive != nil {
		n, _ := s.archive.Last()
		out.Archived = &n
	}
	if last := s.last.Load(); last != nil {
		out.Behind = max(0, int64(last.rev-s.state.Snapshot().Rev))
	}
	return out
}

// controllersFail says that others of the network are not there.
func (s *Server) controllersFail() string {
	all, online := s.controllers()
	if online < all {
		return fmt.Sprintf("of the %d controllers of the network %d are there; netkeep cluster members says which", all, online)
	}
	if skew := s.reports.skew(); skew != 0 {
		return fmt.Sprintf("the clocks of this controller and another are %s apart: set them right", skew.Abs().Round(time.Second))
	}
	if s.votes.Load() == 2 {
		return "two controllers keep the store, and without either nothing can be changed: add a third with netkeep cluster invite"
	}
	return ""
}

// controllers is how many there are, and how many of them are there.
func (s *Server) controllers() (all, online int) {
	list, _ := roster.List(s.state.Snapshot())
	for _, c := range list {
		if s.roster.Online(c.ID) {
			online++
		}
	}
	return len(list), online
}

// countVotes is how many controllers decide on what is stored, if they do.
func (s *Server) countVotes() (int64, bool) {
	n := s.votes.Load()
	return n, n > 0
}
