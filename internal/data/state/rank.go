package state

import (
	"netkeep/internal/data/state/cow"
	"netkeep/internal/lang/kind"
)

// Ranking is the records of a kind in the kind's own order, and among equals by
// id. Every question is answered without a look at all of them.
type Ranking struct {
	def  *kind.Def
	tree *cow.Tree[entry]
}

// Ranked returns the records of a kind that has an order of its own.
func (s *Snapshot) Ranked(d *kind.Def) Ranking { return Ranking{d, s.table(d).ranked} }

// From returns the first record that comes at key or after it, and where it
// comes.
func (r Ranking) From(key string) (rec kind.Record, at string, ok bool) {
	r.tree.From(entry{key, firstRow}, func(e entry) bool {
		rec, at, ok = e.row.rec, e.key, true
		return false
	})
	return rec, at, ok
}

// Before is how many records come before key.
func (r Ranking) Before(key string) int { return r.tree.Before(entry{key, firstRow}) }

// Ahead is how many records come before this one, which must be among them.
func (r Ranking) Ahead(rec kind.Record) int {
	return r.tree.Before(entry{r.def.Rank(rec), &row{id: rec.Base().ID}})
}

// At returns the record that n others come before; nil if there is none.
func (r Ranking) At(n int) kind.Record {
	if e, ok := r.tree.At(n); ok {
		return e.row.rec
	}
	return nil
}

// rank moves a record from where old comes to where r does. Either may be nil.
func (t *table) rank(old, r *row) {
	if t.ranked == nil {
		return
	}
	if old != nil {
		t.ranked.Delete(entry{t.def.Rank(old.rec), old})
	}
	if r != nil {
		t.ranked.Set(entry{t.def.Rank(r.rec), r})
	}
}
