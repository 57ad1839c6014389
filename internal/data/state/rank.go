package state

import (
	"iter"
	"strings"

	"netkeep.internal/internal/data/state/cow"
	"netkeep.internal/internal/lang/kind"
)

// Ranking is the records of a kind in the kind's own order, and among equals by
// id. No question takes a look at all of them.
type Ranking struct{ of *table }

// Ranked returns the records of a kind that has an order of its own.
func (s *Snapshot) Ranked(d *kind.Def) Ranking { return Ranking{s.table(d)} }

// Groups yields the groups that begin with a prefix, in order, and how many
// records each has.
func (r Ranking) Groups(prefix string) iter.Seq2[string, int] {
	return func(yield func(string, int) bool) {
		r.of.ranked.groups.From(tally{group: prefix}, func(t tally) bool {
			return strings.HasPrefix(t.group, prefix) && yield(t.group, t.n)
		})
	}
}

// In yields the records of the groups that begin with a prefix.
func (r Ranking) In(prefix string) iter.Seq[kind.Record] {
	return func(yield func(kind.Record) bool) {
		r.of.ranked.tree.From(entry{prefix, firstRow}, func(e entry) bool { return strings.HasPrefix(e.key, prefix) && yield(e.row.rec) })
	}
}

// From returns the first record that comes at key, a group with a place in it,
// or after it, and where it comes.
func (r Ranking) From(key string) (rec kind.Record, at string, ok bool) {
	r.of.ranked.tree.From(entry{key, firstRow}, func(e entry) bool {
		rec, at, ok = e.row.rec, e.key, true
		return false
	})
	return rec, at, ok
}

// Before is how many records come before key.
func (r Ranking) Before(key string) int { return r.of.ranked.tree.Before(entry{key, firstRow}) }

// Ahead is how many records come before this one, which must be among them.
func (r Ranking) Ahead(rec kind.Record) int {
	group, place := r.of.def.Rank(rec)
	return r.of.ranked.tree.Before(entry{group + place, &row{id: rec.Base().ID}})
}

// At returns the record that n others come before; nil if there is none.
func (r Ranking) At(n int) kind.Record {
	if e, ok := r.of.ranked.tree.At(n); ok {
		return e.row.rec
	}
	return nil
}

// ranks is rows in the order of their kind, and how many each group has.
type ranks struct {
	tree   cow.Tree[entry]
	groups cow.Tree[tally]
}

type tally struct {
	group string
	n     int
}

func newRanks() *ranks {
	return &ranks{cow.NewTree(entryLess), cow.NewTree(func(a, b tally) bool { return a.group < b.group })}
}

func (r *ranks) copy() *ranks { return &ranks{r.tree.Copy(), r.groups.Copy()} }

// count adds to the number of a group.
func (r *ranks) count(group string, more int) {
	t, _ := r.groups.Get(tally{group: group})
	if t.group, t.n = group, t.n+more; t.n > 0 {
		r.groups.Set(t)
	} else {
		r.groups.Delete(t)
	}
}

// rank moves a record from where old comes to where r does. Either may be nil.
func (t *table) rank(old, r *row) {
	if t.ranked == nil {
		return
	}
	if old != nil {
		group, place := t.def.Rank(old.rec)
		t.ranked.tree.Delete(entry{group + place, old})
		t.ranked.count(group, -1)
	}
	if r != nil {
		group, place := t.def.Rank(r.rec)
		t.ranked.tree.Set(entry{group + place, r})
		t.ranked.count(group, 1)
	}
}
