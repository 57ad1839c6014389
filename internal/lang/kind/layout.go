package kind

import (
	"reflect"
	"slices"
)

// layout is the fields of one struct type, and what of them each write has to
// look at: worked out once, since records are written more often than declared.
type layout struct {
	fields    []*Field
	limited   []*Field // those whose values can break a limit, as seen from the struct
	completed []*Field // those that complete may have to change
}

// newLayout works out the layouts of a struct and of those in it. What tags
// say must be passed on by then: it copies fields.
func newLayout(fields []*Field) *layout {
	l := &layout{fields: fields}
	for _, f := range fields {
		if f.Members != nil {
			f.layout = newLayout(f.Members)
		}
		if f.When != "" || f.Form == Text && f.initial.IsValid() || f.layout != nil && f.layout.completed != nil {
			l.completed = append(l.completed, f)
		}
	}
	l.limited = slices.DeleteFunc(leaves(fields, nil), func(f *Field) bool { return !f.limited() })
	return l
}

// complete gives empty texts in a struct their defaults and takes what its
// variant does not have. Other values than texts have no way to be empty, so
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
		}
	}
}
