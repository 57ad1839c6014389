package kind

import "reflect"

// A kind may embed a pointer to a struct with fields that few of its records have. To code it
// is as if they were fields of the record. Whoever makes, reads or clones a record has such
// a struct of its own. In memory all records in which these fields say nothing have the same
// one, which takes a tenth of the space: that is why nobody copies such records but with
// Clone, which Uncopied has go vet look after.

// Uncopied has go vet refuse copies of the struct that it is a field of, which would share with
// each other what is kept apart.
type Uncopied struct{}

var uncopiedType = reflect.TypeFor[Uncopied]()

// Lock is what go vet looks for.
func (*Uncopied) Lock() {}

// Unlock is, too.
func (*Uncopied) Unlock() {}

// apart is an embedded struct that is kept apart.
type apart struct {
	at     int           // place in the record's struct
	fields []*Field      // those in it
	common reflect.Value // a pointer to the one of records in which they say nothing
}

// keptApart finds what is kept apart.
func (d *Def) keptApart() (all []apart) {
	uncopied := false
	for i := range d.typ.NumField() {
		sf := d.typ.Field(i)
		uncopied = uncopied || sf.Type == uncopiedType
		if !sf.Anonymous || sf.Type.Kind() != reflect.Pointer {
			continue
		}
		if !uncopied {
			misdeclared(d.typ, sf.Name, "a record that keeps fields apart needs a field of the type Uncopied before them")
		}
		a := apart{at: i}
		rec := reflect.New(d.typ).Elem()
		for _, f := range d.Fields {
			if f.seldom && f.index[0] == i {
				a.fields = append(a.fields, f)
			}
		}
		rec.Field(i).Set(reflect.New(sf.Type.Elem()))
		d.layout.initialise(rec, nil)
		a.common = rec.Field(i)
		all = append(all, a)
	}
	return all
}

// made is a new record, with a struct of its own for what is kept apart.
func (d *Def) made() reflect.Value {
	rec := reflect.New(d.typ)
	d.own(rec.Elem())
	return rec
}

// own gives a record what it lacks of that: a literal has none of it.
func (d *Def) own(v reflect.Value) {
	for _, a := range d.apart {
		if f := v.Field(a.at); f.IsNil() {
			f.Set(reflect.New(f.Type().Elem()))
		}
	}
}

// says reports whether a field of a struct that is kept apart is otherwise than in the common one.
func (a apart) says(rec reflect.Value) bool {
	for _, f := range a.fields {
		v := f.value(rec)
		switch {
		case f.Null: // a nil one says something too
			if v.IsNil() || v.Len() > 0 {
				return true
			}
		case f.first().IsValid():
			if !v.Equal(f.first()) {
				return true
			}
		case !f.empty(v):
			return true
		}
	}
	return false
}

// Kept returns a record as it is kept from now on, when nobody writes to it any more: another
// one with what is in common, if that is all that it says there. Who has rec may go on to
// write to it.
func (d *Def) Kept(rec Record) Record {
	v := reflect.ValueOf(rec).Elem()
	for _, a := range d.apart {
		if a.says(v) || v.Field(a.at).Pointer() == a.common.Pointer() {
			continue
		}
		c := reflect.New(d.typ)
		c.Elem().Set(v)
		c.Elem().Field(a.at).Set(a.common)
		v, rec = c.Elem(), c.Interface().(Record)
	}
	return rec
}

// Settle is Kept for a record that nobody else has.
func (d *Def) Settle(rec Record) {
	v := reflect.ValueOf(rec).Elem()
	for _, a := range d.apart {
		if !a.says(v) {
			v.Field(a.at).Set(a.common)
		}
	}
}
