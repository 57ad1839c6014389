package history

import (
	"bytes"
	"context"
	"fmt"
	"hash/maphash"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"netkeep.internal/internal/data/state"
	"netkeep.internal/internal/lang/kind"
	"netkeep.internal/internal/model"
)

// tooFar says that a snapshot would hold too many records of its own.
type tooFar struct {
	number int64 // of the entry up to which it is possible
	at     time.Time
}

func (t *tooFar) Error() string {
	return fmt.Sprintf("history: too much differs before entry %d", t.number)
}

// back is the network as it was after an entry, given how it was after a later one.
// If it fails it returns how far it came, which is somewhere in between.
func (h *History) back(ctx context.Context, from *Past, number int64) (*Past, error) {
	way := &way{kinds: h.Log.State.Kinds(), past: from, seen: map[uint64]bool{}}
	for entry, err := range h.Log.Back(ctx, from.Number, number+1) {
		if err != nil {
			return way.past, err
		}
		way.undo(entry)
		if len(way.forms) < inPart && way.bytes < partBytes {
			continue
		}
		if err := way.turn(h, entry); err != nil {
			return way.past, err
		}
		if ctx.Err() != nil {
			return way.past, ctx.Err()
		}
	}
	if from.Number == number {
		return from, nil
	}
	at := time.Time{}
	if entry, err := h.Log.Entry(ctx, number); err == nil {
		at = entry.CreatedAt.Time()
	}
	return way.past, way.end(h, number, at)
}

// way is one into the past. Entries are undone some at a time: what they say of one
// record comes together before it is read once.
type way struct {
	kinds *kind.Catalog
	past  *Past
	forms map[state.Ref]*form
	bytes int // of the entries that these are from
	seen  map[uint64]bool
}

// form is what entries say of how a record was stored.
type form struct {
	gone    bool
	whole   bool                      // whether members are all that there were
	members map[string]jsontext.Value // nil for one that was not there
}

// undo takes an entry back. Entries that tell of no change say nothing of records.
func (w *way) undo(e *model.AuditEntry) {
	d := w.kinds.Named(e.TargetKind)
	if d == nil || !d.Noted {
		return
	}
	if w.forms == nil {
		w.forms = map[state.Ref]*form{}
	}
	ref := state.Ref{Def: d, ID: e.TargetID}
	w.bytes += len(e.Before) + len(e.After)
	switch e.Event {
	case model.AuditCreated:
		w.forms[ref] = &form{gone: true}
	case model.AuditDeleted:
		if e.Before == nil { // nobody could read it then
			return
		}
		f := &form{whole: true, members: map[string]jsontext.Value{}}
		each(e.Before, func(name string, value jsontext.Value) { f.members[name] = value })
		w.forms[ref] = f
	case model.AuditUpdated:
		f := w.forms[ref]
		if f == nil {
			f = &form{members: map[string]jsontext.Value{}}
			w.forms[ref] = f
		}
		if f.gone {
			return
		}
		each(e.After, func(name string, _ jsontext.Value) { f.members[name] = nil })
		for _, name := range e.Withheld {
			f.members[name] = nil
		}
		each(e.Before, func(name string, value jsontext.Value) { f.members[name] = value })
	}
}

// turn ends a part of the way with an entry that is not there any more.
func (w *way) turn(h *History, undone *model.AuditEntry) error {
	return w.end(h, undone.Number-1, undone.CreatedAt.Time())
}

// end makes a snapshot of what was found: that after the entry with a number.
func (w *way) end(h *History, number int64, at time.Time) error {
	recs := make([]state.Revised, 0, len(w.forms))
	differing := w.past.differing
	var hash maphash.Hash
	hash.SetSeed(seed)
	for ref, f := range w.forms {
		rec, err := f.record(w.past, ref)
		if err != nil { // as good as none, as everywhere
			h.Log.State.Logger().Error("a record of the past cannot be read", "kind", ref.Def.Name, "id", ref.ID, "error", err)
		}
		recs = append(recs, state.Revised{Ref: ref, Record: rec})
		hash.Reset()
		hash.WriteString(ref.Def.Name)
		hash.WriteString(ref.ID)
		if key := hash.Sum64(); rec != nil && !w.seen[key] {
			w.seen[key] = true
			differing++
		}
	}
	if differing > h.most {
		return &tooFar{w.past.Number, w.past.Time}
	}
	w.past = &Past{Snapshot: w.past.Revise(recs, at), Number: number, differing: differing}
	w.forms, w.bytes = nil, 0
	return nil
}

var seed = maphash.MakeSeed()

// record is the record in a form, given what there is later; nil if there was none.
func (f *form) record(later kind.Reader, ref state.Ref) (kind.Record, error) {
	if f.gone {
		return nil, nil
	}
	object := []byte{'{'}
	add := func(name string, value jsontext.Value) {
		if len(object) > 1 {
			object = append(object, ',')
		}
		object, _ = jsontext.AppendQuote(object, name)
		object = append(append(object, ':'), value...)
	}
	if !f.whole {
		rec, ok := later.Lookup(ref.Def, ref.ID)
		if !ok {
			return nil, fmt.Errorf("an entry tells of a change of it, and later it is not there")
		}
		is, err := ref.Def.Encode(rec)
		if err != nil {
			return nil, err
		}
		each(is, func(name string, value jsontext.Value) {
			if _, other := f.members[name]; !other {
				add(name, value)
			}
		})
	}
	for name, value := range f.members {
		if value != nil {
			add(name, value)
		}
	}
	return ref.Def.Decode(append(object, '}'))
}

// each calls do for every member of an object, of which it may keep what it gets.
func each(object jsontext.Value, do func(name string, value jsontext.Value)) {
	dec := jsontext.NewDecoder(bytes.NewReader(object))
	if open, err := dec.ReadToken(); err != nil || open.Kind() != '{' {
		return
	}
	for dec.PeekKind() == '"' {
		name, err := dec.ReadToken()
		if err != nil {
			return
		}
		text := name.String()
		value, err := dec.ReadValue()
		if err != nil {
			return
		}
		do(text, value.Clone())
	}
}
