package kind

import (
	"reflect"
	"slices"
	"strings"

	"netkeep.internal/internal/lang/fault"
)

// Validate fills in what follows from other fields and runs every rule of the
// kind on a record about to be written, whoever writes it: its own checks, the
// limits of each field, unique values, references. old is nil on create.
func (s *Catalog) Validate(r Reader, d *Def, old, next Record) error {
	d.own(reflect.ValueOf(next).Elem())
	d.fill(next)
	// The kind comes first: it can say why a change as a whole is refused.
	if d.hooks.check != nil {
		if err := d.hooks.check(r, old, next); err != nil {
			return err
		}
	}
	if err := d.judge(old, next); err != nil {
		return err
	}
	for _, ix := range d.Indexes {
		if err := ix.unique(r, d, next); err != nil {
			return err
		}
	}
	for _, ix := range d.Indexes {
		if err := s.resolve(r, ix, next); err != nil {
			return err
		}
	}
	return nil
}

// fill sets what a writer may leave to the kind.
func (d *Def) fill(rec Record) {
	d.layout.complete(reflect.ValueOf(rec).Elem())
	if d.hooks.fill != nil {
		d.hooks.fill(rec)
	}
}

// judge returns the first limit that a value in the record breaks. An edit may
// leave alone what was so before: nobody should have to mend a name to disable
// an identity, nor to delete what the record refers to. The scan goes on to
// report it, and no body can send it again.
func (d *Def) judge(old, next Record) error {
	v := reflect.ValueOf(next).Elem()
	for _, f := range d.layout.limited {
		err := f.breaks(v, f.Name)
		if err != nil && (old == nil || !f.inherits(reflect.ValueOf(old).Elem(), v)) {
			return err
		}
	}
	return nil
}

// Guard asks the kind whether the record may be deleted.
func (d *Def) Guard(r Reader, rec Record) error {
	if d.hooks.guard == nil {
		return nil
	}
	return d.hooks.guard(r, rec)
}

// Saved lets the kind write what must change with a record. old is nil on
// create.
func (d *Def) Saved(w Writer, old, next Record) error {
	if d.hooks.saved == nil {
		return nil
	}
	return d.hooks.saved(w, old, next)
}

// Deleted lets the kind write what must change when a record is gone.
func (d *Def) Deleted(w Writer, old Record) error {
	if d.hooks.deleted == nil {
		return nil
	}
	return d.hooks.deleted(w, old)
}

// Whole asks the kind whether a record may be so at the end of a write: what
// refers in circles is there by then, in whichever order it was written. old is
// what was there before the write, nil if nothing was.
func (d *Def) Whole(r Reader, old, next Record) error {
	if d.hooks.whole == nil {
		return nil
	}
	return d.hooks.whole(r, old, next)
}

func (ix *Index) unique(r Reader, d *Def, next Record) error {
	key := ix.field.text(next)
	if !ix.Unique || key == "" {
		return nil
	}
	for rec := range r.Select(d, ix.Name, key) {
		if rec.Base().ID != next.Base().ID {
			return ix.field.invalid(ix.Name, "must be unique", key)
		}
	}
	return nil
}

// Confine refuses a record that refers to one, which old did not, that may says is not
// there for whoever writes it, in the words for one that is not there at all. part says
// whether the record goes when the other does, as a part of it. What is not there at all may
// is asked about too, with a nil record: that it is not is for the check of references to say,
// unless nobody who writes this may know.
func (s *Catalog) Confine(r Reader, d *Def, old, next Record, may func(target *Def, rec Record, part bool) bool) error {
	for _, ix := range d.Indexes {
		held := map[string]bool{}
		ix.Keys(old, func(key string) { held[key] = true })
		err := ix.lacks(s.outside(ix, next, func(target *Def, id string) bool {
			rec, ok := r.Lookup(target, id)
			if !ok {
				rec = nil
			}
			return held[ix.field.refKey(id)] || may(target, rec, ix.field.Roles == "" && ix.field.OnDelete == Cascade)
		}))
		if err != nil {
			return err
		}
	}
	for _, f := range d.Fields {
		if err := s.confineAmong(r, f, old, next, may); err != nil {
			return err
		}
	}
	return nil
}

// confineAmong is Confine for a field with ids of several kinds, of which the kind's own
// check says whether they must exist.
func (s *Catalog) confineAmong(r Reader, f *Field, old, next Record, may func(target *Def, rec Record, part bool) bool) error {
	if f.Among == nil || f.Form != Texts {
		return nil
	}
	held := f.texts(old)
	for _, id := range f.texts(next) {
		if !slices.Contains(held, id) && s.hides(r, f, id, may) {
			return f.refuse(fault.CodeNotFound, f.Name, "no "+strings.Join(f.Among, " or ")+" with this id", id)
		}
	}
	return nil
}

// hides reports whether may lets nobody know whether there is a record with an id of any of
// the kinds that a field names.
func (s *Catalog) hides(r Reader, f *Field, id string, may func(target *Def, rec Record, part bool) bool) bool {
	there := false
	for _, name := range f.Among {
		if rec, ok := r.Lookup(s.byName[name], id); ok {
			if there = true; may(s.byName[name], rec, false) {
				return false
			}
		}
	}
	for _, name := range f.Among { // what is not there is refused in the same way
		if !may(s.byName[name], nil, false) {
			return true
		}
	}
	return there
}

// resolve checks that what the field refers to exists.
func (s *Catalog) resolve(r Reader, ix *Index, next Record) error {
	return ix.lacks(s.missing(r, ix, next))
}

// lacks refuses ids that the field refers to in vain.
func (ix *Index) lacks(missing []string) error {
	f := ix.field
	switch {
	case len(missing) == 0:
		return nil
	case f.Roles != "":
		return f.invalid(f.Name, "refers to missing records; what follows an @ is the id of a record, not its name", missing)
	}
	slices.Sort(missing) // the keys of a map come in any order
	return f.refuse(fault.CodeNotFound, f.Name, "no "+f.target()+" with this id", missing[0])
}

// missing returns the ids that the field refers to and no record has.
func (s *Catalog) missing(r Reader, ix *Index, rec Record) []string {
	return s.outside(ix, rec, func(target *Def, id string) bool {
		_, ok := r.Lookup(target, id)
		return ok
	})
}

// outside returns the ids that the field refers to and that are not there, as there says.
func (s *Catalog) outside(ix *Index, rec Record, there func(target *Def, id string) bool) (missing []string) {
	f := ix.field
	target := s.byName[f.target()]
	if target == nil {
		return nil
	}
	ix.Keys(rec, func(id string) {
		if f.Roles != "" {
			var isID bool
			if id, isID = strings.CutPrefix(id, "@"); !isID {
				return
			}
		}
		if !there(target, id) {
			missing = append(missing, id)
		}
	})
	return missing
}
