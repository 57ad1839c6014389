package integrity

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"netkeep.internal/internal/data/state"
	"netkeep.internal/internal/lang/fault"
	"netkeep.internal/internal/lang/kind"
)

// maxPasses bounds how often a fixing run looks at everything again: what one
// repair changes may show the next flaw, or let a repair pass that failed.
const maxPasses = 16

// judge runs every rule on every record. A fixing run repairs and looks again
// until it gets no further.
func (r *run) judge(ctx context.Context) error {
	for pass := range maxPasses {
		flawed, err := r.flawed(ctx)
		if err == nil && pass == 0 {
			flawed, err = r.outlast(ctx, flawed)
		}
		if err != nil {
			return err
		}
		progress := false
		var stay []flawedRecord
		for _, ref := range flawed {
			f, err := r.treat(ctx, ref)
			if err != nil {
				return err
			}
			progress = progress || f.fixed
			if !f.fixed && len(f.flaws) > 0 {
				stay = append(stay, f)
			}
		}
		if !progress {
			for _, f := range stay {
				r.report(f)
			}
			return nil
		}
	}
	return fmt.Errorf("there is more to repair after %d passes; run it again", maxPasses)
}

// flawedRecord is a record that breaks rules, and what came of it.
type flawedRecord struct {
	state.Ref
	flaws []kind.Flaw
	fixed bool
	note  string
}

// flawed returns the records that break a rule.
func (r *run) flawed(ctx context.Context) (refs []state.Ref, err error) {
	snap, set := r.State.Snapshot(), r.State.Kinds()
	for _, d := range set.Defs {
		for rec := range snap.All(d) {
			if len(set.Flaws(snap, d, rec)) > 0 {
				refs = append(refs, state.Ref{Def: d, ID: rec.Base().ID})
			}
			if err := r.pace.step(ctx); err != nil {
				return nil, err
			}
		}
	}
	return refs, nil
}

// outlast returns the records that still break a rule when those had their
// time that pass by themselves: sessions of what is gone, which the sweeper
// removes.
func (r *run) outlast(ctx context.Context, refs []state.Ref) ([]state.Ref, error) {
	passes := func(ref state.Ref) bool { return ref.Def.Lane == kind.Session }
	for waited := time.Duration(0); waited < r.Lag && slices.ContainsFunc(refs, passes); waited += settlePause {
		if err := pause(ctx, settlePause); err != nil {
			return nil, err
		}
		snap := r.State.Snapshot()
		refs = slices.DeleteFunc(refs, func(ref state.Ref) bool {
			return passes(ref) && len(r.flawsOf(snap, ref)) == 0
		})
	}
	return refs, nil
}

// flawsOf returns the rules that a record breaks; none if it is gone.
func (r *run) flawsOf(reader kind.Reader, ref state.Ref) []kind.Flaw {
	rec, ok := reader.Lookup(ref.Def, ref.ID)
	if !ok {
		return nil
	}
	return r.State.Kinds().Flaws(reader, ref.Def, rec)
}

// treat looks at a flawed record again. A fixing run repairs it and reports
// that; what cannot be repaired, by this pass at least, is left to the caller
// to report.
func (r *run) treat(ctx context.Context, ref state.Ref) (flawedRecord, error) {
	snap := r.State.Snapshot()
	f := flawedRecord{Ref: ref, flaws: r.flawsOf(snap, ref)} // none if mended with another
	if !r.fix || len(f.flaws) == 0 {
		return f, nil
	}
	done, err := r.repair(ctx, snap, ref, f.flaws)
	if err != nil {
		f.note = "it stays so: " + err.Error()
		return f, ctx.Err()
	}
	f.fixed, f.note = true, done
	r.report(f)
	return f, nil
}

// report adds a record to the findings.
func (r *run) report(f flawedRecord) {
	var texts []string
	for _, flaw := range f.flaws {
		texts = append(texts, flaw.String())
	}
	if f.note != "" {
		texts = append(texts, f.note)
	}
	r.found(f.fixed, "%s/%s: %s", f.Def.Name, f.ID, strings.Join(texts, "; "))
}

// errDecide says that only the owner of the network can tell what is right.
var errDecide = fault.New(fault.CodeInvalid, "somebody must decide what it should be")

// repair makes the flaws of one record go away and says how. The record is
// judged again in the write itself: it may have changed meanwhile.
func (r *run) repair(ctx context.Context, snap *state.Snapshot, ref state.Ref, flaws []kind.Flaw) (done string, err error) {
	switch {
	case slices.ContainsFunc(flaws, removable):
		return r.remove(ctx, snap, ref)
	case slices.ContainsFunc(flaws, func(f kind.Flaw) bool { return f.Remedy() == kind.Decide }):
		return "", errDecide
	}
	err = r.write(ref.Def)(ctx, r.by, func(tx *state.Tx) error {
		var did []string
		flaws := r.flawsOf(tx, ref)
		if len(flaws) == 0 {
			return nil
		}
		err := tx.Edit(ref.Def, ref.ID, func(rec kind.Record) error {
			for _, f := range flaws {
				if f.Remedy() != kind.Mend {
					return errDecide
				}
				did = append(did, f.Mend(tx, rec))
			}
			return nil
		})
		done = strings.Join(did, "; ")
		return err
	})
	return done, err
}

// remove deletes a record that cannot be without what is missing, and keeps
// what it was.
func (r *run) remove(ctx context.Context, snap *state.Snapshot, ref state.Ref) (done string, err error) {
	rec, ok := snap.Lookup(ref.Def, ref.ID)
	if !ok {
		return "deleted", nil
	}
	value, err := r.State.Encode(ref.Def, rec)
	if err != nil {
		return "", err
	}
	file, err := r.quarantine(ref.Def.Name+"/"+ref.ID, snap.RevOf(ref.Def, ref.ID), value)
	if err != nil {
		return "", err
	}
	err = r.write(ref.Def)(ctx, r.by, func(tx *state.Tx) error {
		if !slices.ContainsFunc(r.flawsOf(tx, ref), removable) {
			return fault.New(fault.CodeUnavailable, "it was written meanwhile; run it again")
		}
		return tx.Delete(ref.Def, ref.ID)
	})
	if fault.Is(err, fault.CodeTooLarge) {
		err = r.State.Delete(ctx, r.by, ref.Def, ref.ID) // in several steps
	}
	if err != nil {
		return "", err
	}
	return "deleted, and kept in " + file, nil
}

func removable(f kind.Flaw) bool { return f.Remedy() == kind.Remove }

// write is the way to write records of a kind.
func (r *run) write(d *kind.Def) func(context.Context, state.Author, func(*state.Tx) error) error {
	if d.Lane == kind.Session {
		return r.State.UpdateSessions
	}
	return r.State.Update
}
