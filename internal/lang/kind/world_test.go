package kind_test

import (
	"iter"
	"maps"
	"slices"
	"time"

	"netkeep.internal/internal/lang/kind"
)

// world is records by kind and id: the plainest Reader there can be.
type world map[*kind.Def]map[string]kind.Record

func newWorld(recs ...kind.Record) world {
	w := world{}
	for _, rec := range recs {
		d := widgets.Def
		if _, ok := rec.(*maker); ok {
			d = makers.Def
		}
		if w[d] == nil {
			w[d] = map[string]kind.Record{}
		}
		w[d][rec.Base().ID] = rec
	}
	return w
}

func (w world) Lookup(d *kind.Def, id string) (kind.Record, bool) {
	rec, ok := w[d][id]
	return rec, ok
}

func (w world) Select(d *kind.Def, index, key string) iter.Seq[kind.Record] {
	return func(yield func(kind.Record) bool) {
		for rec := range w.All(d) {
			var found bool
			d.Index(index).Keys(rec, func(k string) { found = found || k == key })
			if found && !yield(rec) {
				return
			}
		}
	}
}

func (w world) All(d *kind.Def) iter.Seq[kind.Record] {
	return func(yield func(kind.Record) bool) {
		for _, id := range slices.Sorted(maps.Keys(w[d])) {
			if !yield(w[d][id]) {
				return
			}
		}
	}
}

func (w world) Len(d *kind.Def) int { return len(w[d]) }

// writer is a world that can be changed, with no rule in the way.
type writer struct{ world }

func (w writer) Now() time.Time { return time.Unix(0, 0) }
func (w writer) NewID() string  { return "fresh" }

func (w writer) Create(d *kind.Def, rec kind.Record) error {
	if w.world[d] == nil {
		w.world[d] = map[string]kind.Record{}
	}
	w.world[d][rec.Base().ID] = rec
	return nil
}

func (w writer) Edit(d *kind.Def, id string, change func(kind.Record) error) error {
	next := d.Clone(w.world[d][id])
	w.world[d][id] = next
	return change(next)
}

func (w writer) Delete(d *kind.Def, id string) error {
	delete(w.world[d], id)
	return nil
}

// appendAll adds the record as an answer shows it.
func appendAll(dst []byte, cols []kind.Column, r kind.Reader, rec kind.Record) []byte {
	dst = append(dst, '{')
	for _, col := range cols {
		dst = kind.AppendMember(dst, col.Name, func(dst []byte) []byte { return col.Append(dst, r, rec) })
	}
	return append(dst, '}')
}
