package format

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"time"

	"github.com/go-json-experiment/json"

	"netkeep.internal/internal/data/store"
)

// Migration brings a store to the format of this version. Any number may run on
// one store at a time, and each may be interrupted at any time: one of them does
// the work, and another goes on where it stopped.
//
// A commit, guarded like any other, says first that records are being rewritten:
// older versions that run on the store stop at that, and none starts. Records are
// rewritten in as many batches as it takes, each guarded by what it replaces.
// When a look at all of them finds none that is left, another commit says so.
type Migration struct {
	Store store.Store
	Steps []Step
	// Before is called once, before a store that holds anything is changed.
	Before func(context.Context) error
	Now    func() time.Time
	Log    *slog.Logger
	// Rewrote is set by Run if records were rewritten, here or by another.
	Rewrote bool

	prepared  bool      // Before was called
	announced store.Rev // when Key was last written by this migration
}

const (
	// lookEvery is how often to look whether somebody else is done, and quiet
	// is how long nothing may happen before another takes over.
	lookEvery = 200 * time.Millisecond
	quiet     = 5 * time.Second
)

// Run returns when the store has the format that the last step makes.
func (m *Migration) Run(ctx context.Context) error {
	for {
		v, rev, err := m.look(ctx)
		if err != nil {
			return err
		}
		switch {
		case v.From == 0 && v.Format == current(m.Steps):
			return nil
		case v.From == 0:
			err = m.begin(ctx, v, rev)
		case rev != m.announced:
			m.Rewrote = true
			if err = m.standBack(ctx, rev); err == nil {
				continue
			}
		default:
			m.Rewrote = true
			err = m.finish(ctx, v)
		}
		// Somebody was first, or history is gone that a long look needed.
		if err != nil && !errors.Is(err, store.ErrConflict) && !errors.Is(err, store.ErrCompacted) {
			return fmt.Errorf("bring the store to format %d: %w", current(m.Steps), err)
		}
	}
}

// look reads which format the store has, and when that was written.
func (m *Migration) look(ctx context.Context) (version, store.Rev, error) {
	rec, _, err := m.Store.Get(ctx, Key)
	if err != nil {
		return version{}, 0, fmt.Errorf("read the store's format: %w", err)
	}
	v, err := parse(rec.Value)
	if err == nil {
		err = v.refuse(current(m.Steps))
	}
	return v, rec.Rev, err
}

// begin announces the next format, or if no record has to change for it, that
// the store has it. One that holds nothing has the last.
func (m *Migration) begin(ctx context.Context, v version, rev store.Rev) error {
	step := m.Steps[v.Format-1]
	next := version{Format: v.Format + 1, Release: step.Release}
	mark, err := m.pass(ctx, step, func(...store.Op) error {
		next.From = v.Format
		return nil
	})
	if err != nil {
		return err
	}
	if mark.Head == 0 && next.From == 0 {
		last := m.Steps[len(m.Steps)-1]
		return m.commit(ctx, mark, version{Format: current(m.Steps), Release: last.Release}, rev)
	}
	if !m.prepared {
		if err := m.Before(ctx); err != nil {
			return err
		}
		m.prepared = true
	}
	if next.From == 0 {
		return m.done(ctx, mark, next, rev)
	}
	m.Log.Info("rewriting the store", "format", next.Format, "from", next.From)
	return m.commit(ctx, mark, next, rev)
}

// finish rewrites what is left, or says that nothing is.
func (m *Migration) finish(ctx context.Context, v version) error {
	b := &batch{Migration: m, version: v}
	mark, err := m.pass(ctx, m.Steps[v.Format-2], func(ops ...store.Op) error { return b.add(ctx, ops...) })
	if err == nil {
		err = b.flush(ctx)
	}
	if err != nil || b.wrote {
		return err
	}
	v.From, v.Rewritten = 0, 0
	return m.done(ctx, mark, v, m.announced)
}

// done says that the store has a format.
func (m *Migration) done(ctx context.Context, mark store.Mark, v version, rev store.Rev) error {
	err := m.commit(ctx, mark, v, rev)
	if err == nil {
		m.Log.Info("the store has a new format", "format", v.Format)
	}
	return err
}

// pass reads everything and calls change for every record that a step changes,
// with all that is to be written for it.
func (m *Migration) pass(ctx context.Context, step Step, change func(...store.Op) error) (store.Mark, error) {
	return m.Store.Load(ctx, func(rec store.Record) error {
		if rec.Key == Key || step.Rewrite == nil {
			return nil
		}
		ops, err := step.ops(rec)
		if err != nil {
			// Whoever reads it next cannot either, and says so.
			m.Log.Warn("a stored record could not be rewritten", "key", rec.Key, "error", err)
			return nil
		}
		if len(ops) == 0 {
			return nil
		}
		return change(ops...)
	})
}

// ops is what a step makes of a record; none if it stays as it is.
func (s Step) ops(rec store.Record) ([]store.Op, error) {
	value, err := s.Rewrite(rec.Key, rec.Value)
	if err != nil || value != nil && bytes.Equal(value, rec.Value) {
		return nil, err
	}
	ops := []store.Op{{Key: rec.Key, Value: value, Prev: rec.Rev}}
	if s.Split == nil {
		return ops, nil
	}
	beside, err := s.Split(rec.Key, rec.Value)
	for _, key := range slices.Sorted(maps.Keys(beside)) {
		ops = append(ops, store.Op{Key: key, Value: beside[key], Prev: store.Any})
	}
	return ops, err
}

// commit writes what is said of the format, in place of what was said at rev
// and on top of all that was read.
func (m *Migration) commit(ctx context.Context, mark store.Mark, v version, rev store.Rev) error {
	op, err := v.op(rev)
	if err != nil {
		return err
	}
	head := m.head(1)
	if !head.Time.After(mark.Time) {
		head.Time = mark.Time.Add(time.Microsecond) // each commit has a time of its own
	}
	head.End = mark.End
	at, err := m.Store.Commit(ctx, mark.Head, head, []store.Op{op})
	if err == nil {
		m.announced = at.Rev
	}
	return err
}

func (m *Migration) head(ops int) store.Head {
	by := store.Author{Kind: store.Program, Name: "upgrade"}
	return store.Head{Time: m.Now().UTC().Truncate(time.Microsecond), Writes: []store.Write{{Author: by, Ops: ops}}}
}

func (v version) op(prev store.Rev) (store.Op, error) {
	value, err := json.Marshal(v)
	return store.Op{Key: Key, Value: value, Prev: prev}, err
}

// standBack returns when whoever else rewrites the store is done, or does no
// more.
func (m *Migration) standBack(ctx context.Context, rev store.Rev) error {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for still := time.Duration(0); still < quiet; still += lookEvery {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return ctx.Err()
		}
		v, now, err := m.look(ctx)
		if err != nil || v.From == 0 {
			return err
		}
		if now != rev {
			rev, still = now, 0
		}
	}
	m.announced = rev
	return nil
}
