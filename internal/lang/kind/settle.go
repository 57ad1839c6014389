package kind

import (
	"reflect"

	"github.com/go-json-experiment/json/jsontext"
)

// Settled reads the body of a create and returns what bodies can set, by the
// names that bodies use, in the form in which a record made from it answers
// them: whoever compares a record with a wish need not know what the kind
// tidies, sorts or fills in. Members that the record does not have are left
// out. What a text refers to is not looked at, so that it may be a name.
func (d *Def) Settled(body Body) (map[string]jsontext.Value, error) {
	rec := d.New()
	if err := d.Apply(Create, rec, body); err != nil {
		return nil, err
	}
	d.fill(rec)
	v := reflect.ValueOf(rec).Elem()
	members := map[string]jsontext.Value{}
	for _, f := range d.Fields {
		if text := f.append(nil, v); f.settable(Create) && len(text) > 0 {
			members[f.last] = text
		}
	}
	return members, nil
}

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
