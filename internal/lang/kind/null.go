package kind

import "reflect"

// A list with the word null is nil where a body said null for it, and an empty list
// where nobody said anything, or that it is empty. What a kind's rules and filters make
// of the two is the same, and so are they to whoever compares records: the difference
// is for answers alone, where tools tell null from a list without entries.

// unsaid is such a list of which nobody said anything.
var unsaid = reflect.ValueOf([]string{})

// SaidNull reports whether a body said null for the field, a list, of a record.
func (f *Field) SaidNull(rec Record) bool {
	if !f.Null {
		return false
	}
	v := f.in(rec)
	return v.IsValid() && v.IsNil()
}

// first is what the field has if nobody says; invalid if that is its zero.
func (f *Field) first() reflect.Value {
	if f.Null {
		return unsaid
	}
	return f.initial
}
