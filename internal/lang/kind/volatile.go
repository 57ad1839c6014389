package kind

import "iter"

// Source is the part of a program that holds the records of a volatile kind. It
// tells of them as they are at the moment; what it hands out is shared: never
// write to it.
type Source interface {
	Lookup(id string) (Record, bool)
	// All yields every record, by id.
	All() iter.Seq[Record]
	Len() int
}

// Sources is who holds which volatile kinds, and so a Reader of them. Of kinds
// that nobody holds there are no records.
type Sources map[*Def]Source

var _ Reader = Sources(nil)

// Lookup returns the record with an id.
func (s Sources) Lookup(d *Def, id string) (Record, bool) {
	if source := s[d]; source != nil {
		return source.Lookup(id)
	}
	return nil, false
}

// Select yields the records that an index would file under key. There is none,
// so it looks at all of them.
func (s Sources) Select(d *Def, index, key string) iter.Seq[Record] {
	return func(yield func(Record) bool) {
		ix := d.Index(index)
		for rec := range s.All(d) {
			filed := false
			ix.Keys(rec, func(k string) { filed = filed || k == key })
			if filed && !yield(rec) {
				return
			}
		}
	}
}

// All yields every record, by id.
func (s Sources) All(d *Def) iter.Seq[Record] {
	if source := s[d]; source != nil {
		return source.All()
	}
	return func(func(Record) bool) {}
}

// Len is how many records there are.
func (s Sources) Len(d *Def) int {
	if source := s[d]; source != nil {
		return source.Len()
	}
	return 0
}

// checkVolatile panics if a volatile kind says something that nobody follows: no
// body makes its records, and no store keeps them.
func (d *Def) checkVolatile() {
	if d.Lane != Volatile {
		return
	}
	for _, f := range d.Fields {
		if !f.Server && f.Form != Marks || f.Unique || f.Sealed || f.Was != nil {
			misdeclared(d.typ, f.Name, "a volatile record is neither sent nor stored: its fields have the word server, and not unique, sealed or was")
		}
	}
	if d.Verbs&^(Lists|Gets|Deletes) != 0 || d.InFiles {
		misdeclared(d.typ, d.Name, "nobody can create or change a volatile record")
	}
}
