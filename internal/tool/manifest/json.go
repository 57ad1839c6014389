package manifest

import (
	"bytes"
	"slices"
	"strings"
	"sync"

	"github.com/go-json-experiment/json/jsontext"
)

// fromJSON returns a JSON value without a place, its objects sorted by name:
// their order says nothing. The value is made of parts of the text, which must
// not be changed any more. Names that are there twice were refused by whoever
// read it first.
func fromJSON(raw jsontext.Value) (*value, error) {
	switch {
	case string(raw) == "{}":
		return &value{}, nil
	case string(raw) == "[]":
		return &value{list: true}, nil
	case raw.Kind() != '{' && raw.Kind() != '[':
		return &value{scalar: raw}, nil
	}
	d := decoders.Get().(*decoder)
	defer decoders.Put(d)
	d.raw = raw
	d.Reset(bytes.NewBuffer(raw), jsontext.AllowDuplicateNames(true))
	v, err := d.value()
	d.raw, d.spare = nil, nil
	d.Reset(strings.NewReader(""))
	return v, err
}

var decoders = sync.Pool{New: func() any {
	return &decoder{Decoder: jsontext.NewDecoder(strings.NewReader("")), names: map[string]string{}}
}}

// decoder turns a text into values. Records are many and much alike, so that it
// keeps the names of their members, and makes some values at a time.
type decoder struct {
	*jsontext.Decoder
	raw   jsontext.Value
	names map[string]string
	spare []value
}

// fresh returns a value that is not in use.
func (d *decoder) fresh() *value {
	const some = 32
	if len(d.spare) == 0 { // there are as many as commas, about
		d.spare = make([]value, min(some, 2+bytes.Count(d.raw[d.InputOffset():], []byte{','})))
	}
	v := &d.spare[0]
	d.spare = d.spare[1:]
	return v
}

// value reads the next value.
func (d *decoder) value() (*value, error) {
	v := d.fresh()
	switch d.PeekKind() {
	case '{':
		return v, d.object(v)
	case '[':
		return v, d.list(v)
	}
	raw, err := d.ReadValue()
	end := int(d.InputOffset())
	v.scalar = d.raw[end-len(raw) : end : end] // raw itself is gone with the next one
	return v, err
}

func (d *decoder) object(v *value) error {
	if _, err := d.ReadToken(); err != nil {
		return err
	}
	for d.PeekKind() != '}' {
		raw, err := d.ReadValue()
		if err != nil {
			return err
		}
		m := member{name: d.name(raw)}
		if m.value, err = d.value(); err != nil {
			return err
		}
		v.members = append(v.members, m)
	}
	slices.SortFunc(v.members, func(a, b member) int { return strings.Compare(a.name, b.name) })
	_, err := d.ReadToken()
	return err
}

// name returns the name of a member, the one that was read before if there was.
func (d *decoder) name(raw jsontext.Value) string {
	const most = 200 // some objects have names that nobody else has
	if name, known := d.names[string(raw)]; known {
		return name
	}
	name, _ := (&value{scalar: raw}).text()
	if len(d.names) < most {
		d.names[string(raw)] = name
	}
	return name
}

func (d *decoder) list(v *value) error {
	v.list = true
	if _, err := d.ReadToken(); err != nil {
		return err
	}
	for d.PeekKind() != ']' {
		item, err := d.value()
		if err != nil {
			return err
		}
		v.items = append(v.items, item)
	}
	_, err := d.ReadToken()
	return err
}
