package state

import (
	"iter"
	"slices"

	"netkeep.internal/internal/data/state/cow"
	"netkeep.internal/internal/lang/kind"
)

// index finds rows by keys: those under one in the order of ids.
type index interface {
	copy() index
	// set files a row, in the place of the one with its id, if there is one.
	set(key string, r *row)
	delete(key string, r *row)
	get(key string, r *row) (*row, bool) // with the id of r
	count(key string) int
	// under calls yield with the rows under a key, until it says no.
	under(key string, yield func(*row) bool)
	// after is under, less the first rows.
	after(key string, skip int) iter.Seq[*row]
	all() iter.Seq2[string, *row]
	len() int
}

// newIndex returns an index without rows.
func newIndex(ix *kind.Index) index {
	if ix.Few {
		return shelved{cow.NewShelves(rowLess)}
	}
	return sorted{cow.NewTree(entryLess)}
}

// filledIndex returns an index of rows that are in the order of ids.
func filledIndex(ix *kind.Index, rows []*row) index {
	if ix.Few {
		return shelvedOf(ix, rows)
	}
	return sortedOf(ix, rows)
}

// sorted has an entry for each row and key.
type sorted struct{ cow.Tree[entry] }

// entry files a row under a key.
type entry struct {
	key string
	row *row
}

// entryLess is the order of entries.
func entryLess(a, b entry) bool {
	if a.key != b.key {
		return a.key < b.key
	}
	return a.row.id < b.row.id
}

// firstRow comes before all others of a key.
var firstRow = &row{}

func sortedOf(ix *kind.Index, rows []*row) index {
	var entries []entry
	for _, r := range rows {
		ix.Keys(r.rec, func(key string) { entries = append(entries, entry{key, r}) })
	}
	return sorted{cow.TreeOf(entryLess, slices.Compact(inOrder(entries)))} // a list may say the same twice
}

func (s sorted) copy() index               { return sorted{s.Copy()} }
func (s sorted) set(key string, r *row)    { s.Set(entry{key, r}) }
func (s sorted) delete(key string, r *row) { s.Delete(entry{key, r}) }
func (s sorted) len() int                  { return s.Len() }

func (s sorted) get(key string, r *row) (*row, bool) {
	e, ok := s.Get(entry{key, r})
	return e.row, ok
}

// begin is how many entries come before those of a key.
func (s sorted) begin(key string) int { return s.Before(entry{key, firstRow}) }

func (s sorted) count(key string) int { return s.begin(key+"\x00") - s.begin(key) }

func (s sorted) under(key string, yield func(*row) bool) {
	s.From(entry{key, firstRow}, func(e entry) bool { return e.key == key && yield(e.row) })
}

func (s sorted) after(key string, skip int) iter.Seq[*row] {
	return func(yield func(*row) bool) {
		for e := range s.AllFrom(s.begin(key) + skip) {
			if e.key != key || !yield(e.row) {
				return
			}
		}
	}
}

func (s sorted) all() iter.Seq2[string, *row] {
	return func(yield func(string, *row) bool) {
		for e := range s.All() {
			if !yield(e.key, e.row) {
				return
			}
		}
	}
}

// shelved has each key once, for keys that many rows have: a third of the memory of entries.
type shelved struct{ *cow.Shelves[*row] }

func shelvedOf(ix *kind.Index, rows []*row) index {
	under := map[string][]*row{}
	for _, r := range rows {
		ix.Keys(r.rec, func(key string) {
			if on := under[key]; len(on) == 0 || on[len(on)-1] != r { // a list may say the same twice
				under[key] = append(on, r)
			}
		})
	}
	s := shelved{cow.NewShelves(rowLess)}
	for key, on := range under {
		s.Fill(key, on)
	}
	return s
}

func (s shelved) copy() index               { return shelved{s.Copy()} }
func (s shelved) set(key string, r *row)    { s.Set(key, r) }
func (s shelved) delete(key string, r *row) { s.Delete(key, r) }
func (s shelved) len() int                  { return s.Len() }

func (s shelved) get(key string, r *row) (*row, bool)       { return s.Of(key).Get(r) }
func (s shelved) count(key string) int                      { return s.Of(key).Len() }
func (s shelved) under(key string, yield func(*row) bool)   { s.Of(key).All()(yield) }
func (s shelved) after(key string, skip int) iter.Seq[*row] { return s.Of(key).AllFrom(skip) }
func (s shelved) all() iter.Seq2[string, *row]              { return s.All() }
