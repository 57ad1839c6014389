package kind

import (
	"bytes"
	"reflect"

	"github.com/go-json-experiment/json/jsontext"
)

// Difference is a field that two forms of a record have differently.
type Difference struct {
	Name string // as bodies call it
	// Before and After are its values as answers show them, null where they
	// leave it out. Those of a secret are null.
	Before, After jsontext.Value
}

// Differences lists what differs between a record and a later form of it,
// except for its time.
func (d *Def) Differences(before, after Record) (all []Difference) {
	was, is := reflect.ValueOf(before).Elem(), reflect.ValueOf(after).Elem()
	for _, f := range d.Fields {
		switch {
		case f.Name == "updatedAt" || f.Hidden && !f.Secret:
		case f.Secret:
			if !reflect.DeepEqual(f.value(was).Interface(), f.value(is).Interface()) {
				all = append(all, Difference{f.last, null, null})
			}
		default:
			if b, a := f.shown(was), f.shown(is); !bytes.Equal(b, a) {
				all = append(all, Difference{f.last, b, a})
			}
		}
	}
	return all
}

var null = jsontext.Value("null")

// shown is the JSON value of the field in v as answers show it.
func (f *Field) shown(v reflect.Value) jsontext.Value {
	if text := f.append(nil, v); len(text) > 0 {
		return text
	}
	return null
}
