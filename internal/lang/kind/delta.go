package kind

import (
	"bytes"
	"cmp"
	"fmt"
	"reflect"
	"slices"

	"github.com/go-json-experiment/json/jsontext"
)

// Delta is what became of a record, in a form that may be kept and shown: what
// only its owner may know is left out, by what its tags say.
type Delta struct {
	// Before and After are objects of the members that differ, as they are
	// stored; nil where there was no record, or is none.
	Before, After jsontext.Value
	// Withheld are the fields that differ too and that are secret or sealed, or
	// hold something that is.
	Withheld []string
}

// unknownMembers is what those are called that a newer version has written: nobody
// here knows whether they are secret.
const unknownMembers = "unknown"

// Delta compares a record with a later form of it. Either may be nil.
func (d *Def) Delta(before, after Record) (Delta, error) {
	was, is := newSide(before), newSide(after)
	defer was.free()
	defer is.free()
	var withheld []string
	for _, f := range d.layout.fields {
		if alike(was, is, f) || !differ(was, is, f) || !f.withholds {
			continue
		}
		withheld = append(withheld, f.Name)
		was.undo()
		is.undo()
		if f.Secret || f.Sealed {
			continue
		}
		was.w.open, is.w.open = true, true
		differ(was, is, f)
		was.w.open, is.w.open = false, false
	}
	if d.layout.unknown != nil && !bytes.Equal(was.unknown(d.layout), is.unknown(d.layout)) {
		withheld = append(withheld, unknownMembers)
	}
	if err := cmp.Or(was.w.err, is.w.err); err != nil {
		return Delta{}, fmt.Errorf("compare %s: %w", d.Name, err)
	}
	return Delta{Before: was.end(), After: is.end(), Withheld: withheld}, nil
}

// alike reports whether both sides have the same value in a field, as they have in
// most, where that is seen without writing it. What is not written since it is empty
// may still differ if it has a default: a variant has the field and another has not.
func alike(was, is *side, f *Field) bool {
	if !was.v.IsValid() || !is.v.IsValid() || f.staysZero {
		return false
	}
	a, b := f.value(was.v), f.value(is.v)
	switch {
	case f.Form == Struct && !f.optional():
		return false
	case f.Null && a.IsNil() != b.IsNil():
		return false
	case f.empty(a) || f.empty(b):
		return f.empty(a) && f.empty(b)
	case f.optional():
		return a.Pointer() == b.Pointer()
	}
	switch f.Form {
	case Text:
		return a.String() == b.String()
	case Bool:
		return a.Bool() == b.Bool()
	case Time:
		return timeIn(a) == timeIn(b)
	case Texts:
		return slices.Equal(*at[[]string](a), *at[[]string](b))
	}
	return false
}

// differ writes a field of both sides, and takes it back if it is the same.
func differ(was, is *side, f *Field) bool {
	if bytes.Equal(was.member(f), is.member(f)) {
		was.undo()
		is.undo()
		return false
	}
	return true
}

// side is a record while it is compared.
type side struct {
	w     *writer
	v     reflect.Value // invalid for none
	start int           // of the member that was written last
}

func newSide(rec Record) *side {
	s := &side{w: writers.Get().(*writer)}
	s.w.err, s.w.sealer, s.w.own = nil, nil, false
	s.w.dst = append(s.w.dst[:0], '{')
	if rec != nil {
		s.v = reflect.ValueOf(rec).Elem()
	}
	return s
}

// member writes a field and returns what it has written, without what is between
// it and the one before.
func (s *side) member(f *Field) []byte {
	s.start = len(s.w.dst)
	if s.v.IsValid() {
		s.w.member(f, s.v)
	}
	return bytes.TrimPrefix(s.w.dst[s.start:], []byte{','})
}

// undo takes back what was written last.
func (s *side) undo() { s.w.dst = s.w.dst[:s.start] }

func (s *side) unknown(l *layout) []byte {
	if !s.v.IsValid() {
		return nil
	}
	return l.unknownIn(s.v)
}

func (s *side) end() jsontext.Value {
	if !s.v.IsValid() {
		return nil
	}
	return slices.Clone(append(s.w.dst, '}'))
}

func (s *side) free() {
	s.w.open = false
	writers.Put(s.w)
}
