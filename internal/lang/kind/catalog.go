package kind

import (
	"fmt"
	"slices"
)

// Catalog is the kinds of one program and what they say of each other.
type Catalog struct {
	Defs      []*Def
	byName    map[string]*Def
	referrers map[string][]Referrer
}

// Referrer is a field whose values are ids of another kind.
type Referrer struct {
	Def   *Def
	Field *Field
}

// NewCatalog joins kinds. It panics when two have one name or a reference leads
// nowhere.
func NewCatalog(defs ...*Def) *Catalog {
	s := &Catalog{Defs: defs, byName: map[string]*Def{}, referrers: map[string][]Referrer{}}
	for _, d := range defs {
		if s.byName[d.Name] != nil {
			panic(fmt.Sprintf("kind: two kinds are called %q", d.Name))
		}
		s.byName[d.Name] = d
	}
	for _, d := range defs {
		s.link(d)
		s.checkColumns(d)
	}
	return s
}

// link notes to which kinds the fields of d refer.
func (s *Catalog) link(d *Def) {
	for _, f := range d.naming {
		for _, name := range f.Targets() {
			if s.byName[name] == nil {
				misdeclared(d.typ, f.Name, "refers to unknown kind %q", name)
			}
		}
	}
	if d.Lane == Volatile {
		return // no delete has to look for its records
	}
	for _, ix := range d.Indexes {
		target := ix.field.target()
		if target == "" {
			continue
		}
		s.referrers[target] = append(s.referrers[target], Referrer{d, ix.field})
	}
}

// checkColumns panics if two members of an answer have one name.
func (s *Catalog) checkColumns(d *Def) {
	taken := map[string]bool{}
	for _, col := range s.Columns(d) {
		if taken[col.Name] {
			panic(fmt.Sprintf("kind: answers of %s have two members %q", d.typ, col.Name))
		}
		taken[col.Name] = true
	}
}

// Named returns the kind with a name, or nil.
func (s *Catalog) Named(name string) *Def { return s.byName[name] }

// Referrers lists the fields that may hold ids of the kind.
func (s *Catalog) Referrers(d *Def) []Referrer { return s.referrers[d.Name] }

// Lead is a link of answers to the record that a field refers to.
type Lead struct {
	Path  string // collection of the target
	field *Field
}

// ID is the target's; empty if the record has none.
func (l Lead) ID(rec Record) string { return l.field.text(rec) }

// Leads lists where answers of the kind lead besides to their own parts.
func (s *Catalog) Leads(d *Def) (leads []Lead) {
	for _, f := range d.Fields {
		if f.Linked {
			leads = append(leads, Lead{s.byName[f.Ref].Path, f})
		}
	}
	return leads
}

// target is the kind whose ids the field holds, if any.
func (f *Field) target() string {
	if f.Roles != "" {
		return f.Roles
	}
	return f.Ref
}

// Holders returns the ids of the records that refer to id.
func (rf Referrer) Holders(r Reader, id string) []string {
	var ids []string
	for rec := range r.Select(rf.Def, rf.Field.Name, rf.Field.refKey(id)) {
		ids = append(ids, rec.Base().ID)
	}
	slices.Sort(ids)
	return ids
}

// Drop removes the reference to id from a copy of a holder, and those to others
// that go with it.
func (rf Referrer) Drop(rec Record, id string, others func(id string) bool) {
	rf.Field.drop(rec, func(held string) bool { return held == id || others(held) })
}

// OnDelete says what a delete of the target does to a holder.
func (rf Referrer) OnDelete() OnDelete {
	if rf.Field.Roles != "" {
		return Clear
	}
	return rf.Field.OnDelete
}
