package state

import (
	"context"
	"fmt"
	"strings"

	"netkeep/internal/kind"
	"netkeep/internal/store"
)

// load replaces memory by what the store holds now.
func (s *State) load(ctx context.Context) error {
	// A draft that owns all its tables writes in place: nothing is shared yet.
	w := newDraft(newSnapshot(s.set))
	for i := range w.owned {
		w.owned[i] = true
	}
	mark, err := s.store.Load(ctx, func(rec store.Record) error {
		s.applyRecord(w, rec)
		return nil
	})
	if err != nil {
		return fmt.Errorf("load the store: %w", err)
	}
	w.Rev, w.head, w.Time = mark.Rev, mark.Head, mark.Time
	s.fed, s.retry = mark.Rev, nil
	clear(s.ahead)
	s.current.Store(w.Snapshot)
	if s.loaded != nil {
		s.loaded <- s.fed
		s.loaded = nil
	}
	return nil
}

// applyRecord puts a record as the store has it into the draft; a nil value
// deletes. A record this controller cannot read is left out: it may belong to
// a newer version, and the integrity scan reports it.
func (s *State) applyRecord(w draft, rec store.Record) {
	d, id, ok := s.split(rec.Key)
	if !ok {
		return
	}
	old := w.Snapshot.table(d).get(id)
	if old != nil && s.opt.Frozen {
		old.checkFrozen(d)
	}
	if rec.Value != nil {
		r, err := s.decode(d, id, rec)
		if err == nil {
			w.writable(d).put(r)
			return
		}
		s.opt.Logger.Error("a stored record cannot be read", "key", rec.Key, "error", err)
	}
	if old != nil {
		w.writable(d).delete(old)
	}
}

func (s *State) decode(d *kind.Def, id string, rec store.Record) (*row, error) {
	v, err := d.Decode(rec.Value)
	if err != nil {
		return nil, err
	}
	if v.Base().ID != id {
		return nil, fmt.Errorf("record holds id %q", v.Base().ID)
	}
	r := &row{id: id, rec: v, rev: rec.Rev}
	if s.opt.Frozen {
		r.sum = digest(d, v)
	}
	return r, nil
}

// split tells what a key of the store means. Kinds of a newer version are
// reported once.
func (s *State) split(key string) (d *kind.Def, id string, ok bool) {
	name, id, _ := strings.Cut(key, "/")
	if d = s.set.Named(name); d != nil && id != "" {
		return d, id, true
	}
	if !s.alien[name] {
		s.alien[name] = true
		s.opt.Logger.Warn("the store holds records of an unknown kind", "key", key)
	}
	return nil, "", false
}
