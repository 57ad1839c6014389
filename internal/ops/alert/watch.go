package alert

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"netkeep.internal/internal/data/state"
	"netkeep.internal/internal/lang/kind"
	"netkeep.internal/internal/model"
	"netkeep.internal/internal/ops/audit"
)

const (
	// rest is how long at least is from one time that a condition is told to begin until
	// the next: what comes and goes is told of once in that time.
	rest = 10 * time.Minute
	// maxSingly is how many subjects have entries of their own if a condition begins or
	// ends for several at once, and maxNamed how many the one for all of them names.
	maxSingly, maxNamed = 10, 5
)

// Condition is something that can be the matter.
type Condition struct {
	// Name is what records of it begin with.
	Name string
	// Begun and Over are what entries call it. Without Over nothing is told when it is
	// over.
	Begun, Over *audit.Event
	// Grace is how long it has to be so, or not to be so any more, before that is told.
	Grace time.Duration
	// Mine, if set, reports whether it is this controller, of several, that looks.
	Mine func() bool
	// Ours, if set, reports whether the record with an id below Name is of what this
	// controller looks at.
	Ours func(id string) bool
	// Look returns of what it is so at the moment.
	Look func(snap *state.Snapshot) []Subject
	// Named is what a subject is called that it is not so of any more; not ok if there is
	// no such subject, and nothing to tell. It is only for conditions with Over.
	Named func(snap *state.Snapshot, id string) (audit.Target, bool)
}

// Subject is of what a condition is so.
type Subject struct {
	ID     string // among those of the condition
	Target audit.Target
	Why    string
}

// Watch looks at conditions and has the audit log tell when they begin and end.
type Watch struct {
	State      *state.State
	Controller string
	Conditions []Condition
	Now        func() time.Time
	Log        *slog.Logger

	// since is from when on a condition is seen as it is and was not told: by the id of
	// its record.
	since map[string]time.Time
}

// Run looks until ctx ends.
func (w *Watch) Run(ctx context.Context, every time.Duration) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		if err := w.Look(ctx); err != nil && ctx.Err() == nil {
			w.Log.Warn("what is the matter could not be noted; it is tried again", "error", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// Look looks once at all conditions.
func (w *Watch) Look(ctx context.Context) error {
	seen := map[string]time.Time{}
	var failed error
	for i := range w.Conditions {
		if c := &w.Conditions[i]; c.Mine == nil || c.Mine() {
			if err := w.look(ctx, c, seen); err != nil {
				failed = err
			}
		}
	}
	w.since = seen
	return failed
}

// change is that a condition begins or is over.
type change struct {
	Subject
	record string // id of its record
	begins bool
}

func (w *Watch) look(ctx context.Context, c *Condition, seen map[string]time.Time) error {
	now, snap := w.Now(), w.State.Snapshot()
	prefix := c.Name + "/"
	told := map[string]*model.AlertState{}
	for rec := range model.AlertStates.All(snap) {
		if id, ok := strings.CutPrefix(rec.ID, prefix); ok && (c.Ours == nil || c.Ours(id)) {
			told[rec.ID] = rec
		}
	}
	// ripe reports whether it was seen for long enough, and notes since when it is.
	ripe := func(record string) bool {
		at, ok := w.since[record]
		if !ok {
			at = now
		}
		seen[record] = at
		return now.Sub(at) >= c.Grace
	}
	var changes []change
	for _, s := range c.Look(snap) {
		record := prefix + s.ID
		rec := told[record]
		delete(told, record)
		if rec != nil && rec.Raised {
			continue
		}
		if ripe(record) && (rec == nil || now.Sub(rec.Since) >= rest) {
			changes = append(changes, change{s, record, true})
		}
	}
	var old []string
	for record, rec := range told {
		switch {
		case rec.Raised && ripe(record):
			changes = append(changes, change{Subject{ID: strings.TrimPrefix(record, prefix)}, record, false})
		case !rec.Raised && now.Sub(rec.Since) >= rest:
			old = append(old, record)
		}
	}
	if len(changes)+len(old) == 0 {
		return nil
	}
	slices.SortFunc(changes, func(a, b change) int { return strings.Compare(a.record, b.record) })
	return w.State.UpdateSessions(ctx, by, func(tx *state.Tx) error {
		for _, record := range old {
			if rec, ok := model.AlertStates.Get(tx, record); ok && !rec.Raised {
				if err := model.AlertStates.Delete(tx, record); err != nil {
					return err
				}
			}
		}
		return w.write(tx, c, changes)
	})
}

// write makes changes that nobody else has made meanwhile, and tells of them: that
// something is over first, since most wait for that.
func (w *Watch) write(tx *state.Tx, c *Condition, changes []change) error {
	var over, begun []Subject
	for _, ch := range changes {
		rec, there := model.AlertStates.Get(tx, ch.record)
		if there && rec.Raised == ch.begins || !there && !ch.begins {
			continue
		}
		var err error
		switch {
		case ch.begins && there:
			err = model.AlertStates.Edit(tx, ch.record, func(s *model.AlertState) error { s.Raised, s.Since = true, tx.Now(); return nil })
		case ch.begins:
			err = model.AlertStates.Create(tx, &model.AlertState{Meta: kind.Meta{ID: ch.record}, Raised: true, Since: tx.Now()})
		default:
			err = model.AlertStates.Edit(tx, ch.record, func(s *model.AlertState) error { s.Raised = false; return nil })
		}
		if err != nil {
			return err
		}
		if ch.begins {
			begun = append(begun, ch.Subject)
		} else if c.Over != nil {
			if target, ok := c.Named(tx.Snapshot, ch.ID); ok {
				over = append(over, Subject{Target: target})
			}
		}
	}
	w.tell(tx, c.Over, over)
	w.tell(tx, c.Begun, begun)
	return nil
}

// tell has the log tell of subjects.
func (w *Watch) tell(tx *state.Tx, event *audit.Event, subjects []Subject) {
	if len(subjects) > maxSingly {
		subjects = []Subject{{Target: audit.Target{Kind: subjects[0].Target.Kind, Name: several(subjects)}}}
	}
	for _, s := range subjects {
		tx.Tell(audit.Entry(audit.Fact{Event: event, By: by, Target: s.Target, Reason: s.Why}, w.Controller, w.Now()))
	}
}

// several names the first of many.
func several(subjects []Subject) string {
	var names []string
	for _, s := range subjects[:maxNamed] {
		names = append(names, s.Target.Name)
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names, ", "), len(subjects)-maxNamed)
}
