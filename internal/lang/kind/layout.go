package kind

import (
	"reflect"
	"slices"

	"github.com/go-json-experiment/json/jsontext"
)

// layout is the fields of one struct type, and what of them each write has to
// look at: worked out once, since records are written more often than declared.
type layout struct {
	fields    []*Field
	named     map[string]place  // every name that a stored member may have
	spelled   map[string]*Field // by their names in lower case
	shown     map[string]bool   // further names that answers use, in lower case
	unknown   []int             // index of where members go that no field has; nil for nowhere
	initial   []int             // places of the fields that have a default, or members that do
	limited   []*Field          // those whose values can break a limit, as seen from the struct
	completed []*Field          // those that complete may have to change
}

// place is a field by its place among the fields, and by which of its names it
// was found there: its own, or one that it had before.
type place struct {
	field int
	name  uint8
}

// ownName is the first of a field's names. There is none before it.
const ownName uint8 = 1

// newLayout works out the layouts of a struct and of those in it. What tags
// say must be passed on by then: it copies fields.
func newLayout(t reflect.Type, fields []*Field) *layout {
	l := &layout{fields: fields, named: map[string]place{}, spelled: map[string]*Field{}, shown: map[string]bool{}, unknown: unknownOf(t)}
	for i, f := range fields {
		if f.Form == Struct || f.Form == Structs {
			f.layout = newLayout(f.structType(), f.Members)
		}
		f.key = NewKey(nil, f.last)
		f.withholds = f.Secret || f.Sealed || slices.ContainsFunc(f.Members, func(m *Field) bool { return m.withholds })
		f.alone = f.typ == textType && (f.Unique || f.Name == "id")
		f.staysZero = f.initial.IsValid() && !f.initial.IsZero()
		if f.first().IsValid() || f.Form == Struct && !f.optional() && f.layout.initial != nil {
			l.initial = append(l.initial, i)
		}
		l.name(t, i)
		l.spell(t, f)
		if f.When != "" || f.Form == Text && f.initial.IsValid() || formats[f.Format].tidy != nil || f.layout != nil && f.layout.completed != nil {
			l.completed = append(l.completed, f)
		}
	}
	l.limited = slices.DeleteFunc(leaves(fields, nil), func(f *Field) bool { return !f.limited() })
	return l
}

// name notes the names of the field at a place.
func (l *layout) name(t reflect.Type, i int) {
	f := l.fields[i]
	for rank, name := range f.names() {
		if _, taken := l.named[name]; taken || name != f.last && slices.ContainsFunc(l.fields, func(o *Field) bool { return o.last == name }) {
			misdeclared(t, f.Name, "the name %q is taken", name)
		}
		l.named[name] = place{i, ownName + uint8(rank)}
	}
}

// spell notes how a field's name may be spelt.
func (l *layout) spell(t reflect.Type, f *Field) {
	if twin := l.spelled[lowered(f.last)]; twin != nil {
		misdeclared(t, f.Name, "the name is that of %s in another spelling", twin.Name)
	}
	l.spelled[lowered(f.last)] = f
	if f.Out != "" {
		l.shown[lowered(f.Out)] = true
	}
}

// unknownOf finds where a struct keeps members that no field has.
func unknownOf(t reflect.Type) []int {
	for i := range t.NumField() {
		sf := t.Field(i)
		if isUnknown(sf) {
			return sf.Index
		}
		if sf.Anonymous && sf.Type.Kind() == reflect.Struct {
			if within := unknownOf(sf.Type); within != nil {
				return append(slices.Clone(sf.Index), within...)
			}
		}
	}
	return nil
}

// unknownIn returns the members that no field has of a struct that has a place for them.
func (l *layout) unknownIn(v reflect.Value) jsontext.Value {
	if members := *at[*jsontext.Value](v.FieldByIndex(l.unknown)); members != nil {
		return *members
	}
	return nil
}

// initialise gives the fields of a struct that were not given their defaults.
// None was if given is nil.
func (l *layout) initialise(v reflect.Value, given []uint8) {
	for _, i := range l.initial {
		f := l.fields[i]
		switch {
		case given != nil && given[i] != 0 || !f.applies(v):
		case f.Form == Struct:
			f.layout.initialise(f.value(v), nil)
		default:
			f.value(v).Set(f.first())
		}
	}
}

// complete gives empty texts in a struct their defaults, tidies others and takes
// what its variant does not have. Other values than texts have no way to be empty, so
// their zero stays.
func (l *layout) complete(v reflect.Value) {
	for _, f := range l.completed {
		switch dst := f.value(v); {
		case !f.applies(v):
			dst.SetZero()
		case f.Form == Structs:
			for i := range dst.Len() {
				f.layout.complete(dst.Index(i))
			}
		case f.Form == Struct && !f.optional():
			f.layout.complete(dst)
		case f.Form == Struct && !dst.IsNil():
			f.layout.complete(dst.Elem())
		case f.Form == Text && dst.Len() == 0 && f.initial.IsValid():
			dst.Set(f.initial)
		default:
			f.tidy(dst)
		}
	}
}
