// Package history is the network as it was: snapshots of the past, made of the
// present by undoing what the entries of the audit log say, and what differs between
// two moments. It owns how an entry is undone, which moments can be asked for, and how
// many snapshots of the past there may be. It imports lang, model, data/state and
// ops/audit, and nothing that decides or serves: who may use what in the past is for
// the same code to say as in the present, given such a snapshot.
package history

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"netkeep.internal/internal/data/state"
	"netkeep.internal/internal/lang/fault"
	"netkeep.internal/internal/lang/kind"
	"netkeep.internal/internal/ops/audit"
)

const (
	// builders is how many snapshots are made at a time; others wait.
	builders = 2
	// mostKept is how many snapshots are kept for who asks for the next page, and
	// keptTime for how long after somebody asked last.
	mostKept = 8
	keptTime = 2 * time.Minute
	// maxDiffering is how many records one snapshot may hold beside those that it
	// shares with the present, and maxHeld how many all that are kept may.
	maxDiffering, maxHeld = 200_000, 400_000
	// inPart is how many entries are undone at a time, and partBytes about how
	// large they may be.
	inPart, partBytes = 5_000, 16 << 20
	// aHead is how far a clock may be ahead of ours.
	aHead = time.Minute
)

// History makes snapshots of the past.
type History struct {
	Log *audit.Log
	Now func() time.Time

	places chan struct{} // taken by those who make a snapshot
	most   int           // maxDiffering

	mu   sync.Mutex
	kept []*Past // those that were asked for longest ago first
	due  bool    // whether somebody will look which of them to forget
}

// New returns the history of a state that has an audit log.
func New(log *audit.Log, now func() time.Time) *History {
	return &History{Log: log, Now: now, places: make(chan struct{}, builders), most: maxDiffering}
}

// Past is the network as it was after an entry.
type Past struct {
	*state.Snapshot
	Number int64 // of the entry

	differing int // records that the present does not have
	used      time.Time
}

// passing reports whether records of a kind come and go with use, so that nothing is
// known of those of the past.
func passing(d *kind.Def) bool { return !d.Noted }

// Number returns the number of the last entry that was there at a moment, which is a
// time or the number of an entry: then it is the moment after all that was written
// together with it. field is what the caller calls the moment.
func (h *History) Number(ctx context.Context, field, moment string) (int64, error) {
	first, last := h.Log.Window()
	at, err := time.Parse(time.RFC3339, moment)
	if number, no := strconv.ParseInt(moment, 10, 64); err != nil {
		if no != nil {
			return 0, fault.Invalid(field, "must be a time as in 2026-01-31T08:00:00Z, or the number of an audit entry", moment)
		}
		return h.after(ctx, field, number)
	}
	if at.After(h.Now().Add(aHead)) {
		return 0, fault.Invalid(field, "must not be in the future", moment)
	}
	if at.Equal(at.Truncate(time.Millisecond)) { // as answers show times, of which it may be one
		at = at.Add(time.Millisecond - 1)
	}
	number, err := h.Log.Until(ctx, at)
	if err == nil && number < first && last >= first {
		return 0, h.tooEarly(ctx, field, moment, first)
	}
	return number, err
}

// after is the moment after an entry. That before the first entry is one too.
func (h *History) after(ctx context.Context, field string, number int64) (int64, error) {
	first, last := h.Log.Window()
	switch {
	case number == first-1:
		return number, nil
	case number < first:
		return 0, h.tooEarly(ctx, field, number, first)
	case number > last:
		return 0, fault.Invalid(field, fmt.Sprintf("must be the number of an audit entry, of which %d is the last", last), number)
	}
	entry, err := h.Log.Entry(ctx, number)
	if err != nil {
		return 0, err
	}
	return h.Log.Until(ctx, entry.CreatedAt.Time())
}

// tooEarly refuses a moment of which nothing is kept.
func (h *History) tooEarly(ctx context.Context, field string, value any, first int64) error {
	since := ""
	if entry, err := h.Log.Entry(ctx, first); err == nil {
		since = ", of " + entry.CreatedAt.Time().Format(time.RFC3339)
	}
	return fault.Invalid(field, fmt.Sprintf("is before the first audit entry that is kept, which is %d%s", first, since), value)
}

// At is the network at a moment.
func (h *History) At(ctx context.Context, field, moment string) (*Past, error) {
	number, err := h.Number(ctx, field, moment)
	if err != nil {
		return nil, inTime(ctx, err)
	}
	return h.snapshot(ctx, field, number)
}

// errLong says that somebody has to ask again.
var errLong = fault.New(fault.CodeTimeout, "there are more changes since then than can be undone in the time of one request; what was done is kept for a while, so ask again")

// snapshot is the network after an entry.
func (h *History) snapshot(ctx context.Context, field string, number int64) (*Past, error) {
	if p := h.find(number); p != nil && p.Number == number {
		return p, nil
	}
	return h.made(ctx, field, nil, number)
}

// made makes the snapshot after an entry: of a later one, or if that is nil, of
// whatever is nearest.
func (h *History) made(ctx context.Context, field string, from *Past, number int64) (*Past, error) {
	select {
	case h.places <- struct{}{}:
		defer func() { <-h.places }()
	case <-ctx.Done():
		return nil, errLong
	}
	own := from == nil
	if own {
		from = h.nearest(number)
	}
	past, err := h.back(ctx, from, number)
	if own && past != from {
		h.keep(past)
	}
	if far, ok := errors.AsType[*tooFar](err); ok {
		return nil, fault.Invalid(field, fmt.Sprintf("is too far back: more than %d records differ since then; it goes back to audit entry %d, of %s",
			h.most, far.number, far.at.UTC().Format(time.RFC3339)), number)
	}
	if err != nil {
		return nil, inTime(ctx, err)
	}
	return past, nil
}

// inTime says of a failure whether it is for want of time.
func inTime(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return errLong
	}
	return err
}

// nearest is what to go back from: what is kept, or the present.
func (h *History) nearest(number int64) *Past {
	if p := h.find(number); p != nil {
		return p
	}
	now := h.Log.State.Snapshot()
	return &Past{Snapshot: now.Without(passing), Number: audit.Head(now).Last}
}

// find returns the earliest that is kept of those that are not before an entry.
func (h *History) find(number int64) *Past {
	h.mu.Lock()
	defer h.mu.Unlock()
	var found *Past
	for _, p := range h.kept {
		if p.Number >= number && (found == nil || p.Number < found.Number) {
			found = p
		}
	}
	if found != nil {
		h.use(found)
	}
	return found
}

// use notes that somebody asked.
func (h *History) use(p *Past) {
	for i, other := range h.kept {
		if other == p {
			h.kept = append(append(h.kept[:i:i], h.kept[i+1:]...), p)
			break
		}
	}
	p.used = h.Now()
}

// keep keeps a snapshot for who asks for it next, and forgets others if there are too
// many.
func (h *History) keep(p *Past) {
	h.mu.Lock()
	defer h.mu.Unlock()
	p.used = h.Now()
	h.kept = append(h.kept, p)
	held := 0
	for i := len(h.kept) - 1; i >= 0; i-- {
		if held += h.kept[i].differing; held > maxHeld || len(h.kept)-i > mostKept {
			h.kept = append([]*Past(nil), h.kept[i+1:]...)
			break
		}
	}
	h.remind()
}

// remind has what nobody asks for forgotten later.
func (h *History) remind() {
	if !h.due && len(h.kept) > 0 {
		h.due = true
		time.AfterFunc(keptTime, h.forget)
	}
}

// forget forgets what nobody has asked for in a while. Each holds records that are
// gone in the present.
func (h *History) forget() {
	h.mu.Lock()
	defer h.mu.Unlock()
	var left []*Past
	for _, p := range h.kept {
		if h.Now().Sub(p.used) < keptTime {
			left = append(left, p)
		}
	}
	h.kept, h.due = left, false
	h.remind()
}
