package kind

import (
	"reflect"
	"slices"
	"sync"

	"github.com/go-json-experiment/json/jsontext"
)

// Member is what a body says of a field.
type Member struct {
	Field *Field
	Text  jsontext.Value
}

// Settled reads the body of a create and returns what bodies can set, in the
// order of the fields and in the form in which a record made from it answers
// them: whoever compares a record with a wish need not know what the kind
// tidies, sorts or fills in. Members that the record does not have are left
// out. What a text refers to is not looked at, so that it may be a name.
//
// All texts are one in memory: who compares networks has very many.
func (d *Def) Settled(body Body) ([]Member, error) {
	rec := d.New()
	if err := d.Apply(Create, rec, body); err != nil {
		return nil, err
	}
	d.fill(rec)
	return d.Members(rec, Create), nil
}

// Members returns what bodies of a shape can set of a record, in the order of the
// fields and in the form in which answers have it. Members that the record does not
// have are left out.
func (d *Def) Members(rec Record, shape Shape) []Member {
	s := sheets.Get().(*sheet)
	defer sheets.Put(s)
	s.text, s.members = s.text[:0], s.members[:0]
	v := reflect.ValueOf(rec).Elem()
	for _, f := range d.Fields {
		if !f.settable(shape) {
			continue
		}
		before := len(s.text)
		if s.text = f.append(s.text, v); len(s.text) > before {
			s.members = append(s.members, Member{f, s.text[before:]})
		}
	}
	members, text := slices.Clone(s.members), slices.Clone(s.text)
	for i := range members {
		n := len(members[i].Text)
		members[i].Text, text = text[:n:n], text[n:]
	}
	return members
}

// sheet is where members are written before it is known how long they are.
type sheet struct {
	text    []byte
	members []Member
}

var sheets = sync.Pool{New: func() any { return new(sheet) }}

// Decides reports whether a field says which others a record has.
func (d *Def) Decides(f *Field) bool {
	for _, other := range d.Fields {
		for _, w := range other.when {
			if w.field.Name == f.Name {
				return true
			}
		}
	}
	return false
}

// Optional reports whether a struct may be absent.
func (f *Field) Optional() bool { return f.optional() }
