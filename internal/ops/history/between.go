package history

import (
	"context"
	"strings"

	"netkeep.internal/internal/data/state"
	"netkeep.internal/internal/lang/fault"
	"netkeep.internal/internal/model"
)

// Span is what happened from one moment to another.
type Span struct {
	Before, After *Past
	// Changed are the records that entries tell of, those that were changed last
	// first.
	Changed []Changed
}

// Changed is a record that was changed, with the last entry of it.
type Changed struct {
	state.Ref
	Last  *model.AuditEntry
	Times int // how many entries there are of it
}

// maxChanged is of how many records a span may tell.
const maxChanged = 100_000

// Refs are the records that entries tell of.
func (s *Span) Refs() []state.Ref {
	refs := make([]state.Ref, len(s.Changed))
	for i, c := range s.Changed {
		refs[i] = c.Ref
	}
	return refs
}

// Between is what happened from one moment to another, which is not before it. The
// earlier snapshot is made of the later one, so that records that did not change have
// the same ordinals in both.
func (h *History) Between(ctx context.Context, from, to string) (*Span, error) {
	first, err := h.Number(ctx, "from", from)
	if err != nil {
		return nil, inTime(ctx, err)
	}
	last, err := h.Number(ctx, "to", to)
	switch {
	case err != nil:
		return nil, inTime(ctx, err)
	case first > last:
		return nil, fault.Invalid("to", "must not be before from", to)
	}
	span := new(Span)
	if span.After, err = h.snapshot(ctx, "to", last); err != nil {
		return nil, err
	}
	if span.Before, err = h.made(ctx, "from", span.After, first); err != nil {
		return nil, err
	}
	return span, span.read(ctx, h, first, last)
}

// read collects which records entries tell of.
func (s *Span) read(ctx context.Context, h *History, first, last int64) error {
	if first == last {
		return nil
	}
	at := map[state.Ref]int{}
	for entry, err := range h.Log.Back(ctx, last, first+1) {
		if err != nil {
			return inTime(ctx, err)
		}
		d := h.Log.State.Kinds().Named(entry.TargetKind)
		if d == nil || !d.Noted || !IsChange(entry) {
			continue
		}
		ref := state.Ref{Def: d, ID: strings.Clone(entry.TargetID)}
		if i, known := at[ref]; known {
			s.Changed[i].Times++
			continue
		}
		if len(s.Changed) == maxChanged {
			return fault.Invalid("from", "is too far from to: more than 100000 records changed in between", nil)
		}
		at[ref] = len(s.Changed)
		entry.Before, entry.After = nil, nil // what became of it in all is in the snapshots
		s.Changed = append(s.Changed, Changed{Ref: ref, Last: entry, Times: 1})
	}
	return nil
}

// IsChange reports whether an entry tells of a change of a record.
func IsChange(e *model.AuditEntry) bool {
	return e.Event == model.AuditCreated || e.Event == model.AuditUpdated || e.Event == model.AuditDeleted
}
