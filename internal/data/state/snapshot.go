package state

import (
	"iter"
	"time"

	"netkeep.internal/internal/data/state/cow"
	"netkeep.internal/internal/data/store"
	"netkeep.internal/internal/lang/kind"
)

// Snapshot is everything at one moment. It never changes, needs no lock and
// may be kept as long as anyone likes. Its records are shared: never write to
// them.
type Snapshot struct {
	mark
	slots  map[*kind.Def]int
	tables []*table
}

// mark is where in the log a snapshot is.
type mark struct {
	// Rev is the revision of the last batch in the snapshot; Time is the time
	// of the last commit.
	Rev  store.Rev
	Time time.Time

	head store.Rev // revision of the last commit
	end  string    // what it says of where the journal ends
}

// JournalEnd is what commits say of where the journal ends; nothing as long as it
// is for a record to say.
func (s *Snapshot) JournalEnd() string { return s.end }

var _ kind.Reader = (*Snapshot)(nil)

func newSnapshot(set *kind.Catalog) *Snapshot {
	s := &Snapshot{slots: map[*kind.Def]int{}}
	for i, d := range set.Defs {
		s.slots[d] = i
		s.tables = append(s.tables, newTable(d))
	}
	return s
}

// fork returns a snapshot that shares every table with s.
func (s *Snapshot) fork() *Snapshot {
	c := *s
	c.tables = append([]*table(nil), s.tables...)
	return &c
}

func (s *Snapshot) table(d *kind.Def) *table { return s.tables[s.slots[d]] }

// Lookup returns the record with an id.
func (s *Snapshot) Lookup(d *kind.Def, id string) (kind.Record, bool) {
	if r := s.table(d).get(id); r != nil {
		return r.rec, true
	}
	return nil, false
}

// Select yields the records that an index files under key, by id.
func (s *Snapshot) Select(d *kind.Def, index, key string) iter.Seq[kind.Record] {
	return s.table(d).filed(index, key)
}

// All yields every record of a kind, by id.
func (s *Snapshot) All(d *kind.Def) iter.Seq[kind.Record] { return s.table(d).all() }

// Stored yields every record of a kind, by id, with the revision that wrote
// it.
func (s *Snapshot) Stored(d *kind.Def) iter.Seq2[kind.Record, store.Rev] {
	return func(yield func(kind.Record, store.Rev) bool) {
		for r := range s.table(d).rows.All() {
			if !yield(r.rec, r.rev) {
				return
			}
		}
	}
}

// RevOf is the revision that wrote a record, 0 if there is none.
func (s *Snapshot) RevOf(d *kind.Def, id string) store.Rev { return s.table(d).rev(id) }

// Len is the number of records of a kind.
func (s *Snapshot) Len(d *kind.Def) int { return s.table(d).rows.Len() }

// Tagged returns the ordinals of the records that have a role attribute; nil
// if there are none. Everyone is under "". The set must not be written.
func (s *Snapshot) Tagged(d *kind.Def, attribute string) *cow.Bitmap {
	return s.table(d).bits.Get(attribute)
}

// Attributes yields the role attributes in use by a kind, in order.
func (s *Snapshot) Attributes(d *kind.Def) iter.Seq[string] {
	return func(yield func(string) bool) {
		for a := range s.table(d).bits.Keys() {
			if a != "" && !yield(a) {
				return
			}
		}
	}
}

// At yields the records of a kind with role attributes that have the ordinals
// in set.
func (s *Snapshot) At(d *kind.Def, set *cow.Bitmap) iter.Seq[kind.Record] {
	return s.table(d).at(set)
}

// Ordinal returns the dense number of a record of a kind with role attributes.
func (s *Snapshot) Ordinal(d *kind.Def, id string) (uint32, bool) {
	r := s.table(d).get(id)
	if r == nil {
		return 0, false
	}
	return r.ord, true
}
