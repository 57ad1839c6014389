package kind

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"netkeep.internal/internal/lang/fault"
)

// Naming returns the id of a record of one of the kinds that a text stands
// for. It returns the text itself if there is no such record: that is for the
// rules of the kind to refuse.
type Naming func(kinds []string, text string) (id string, err error)

// Named returns the body with names in the places of ids, which Apply looks
// up.
func (b Body) Named(naming Naming) Body {
	b.naming = naming
	return b
}

// Targets are the kinds whose ids the field holds, as its value, its entries
// or its keys; nil if it holds none.
func (f *Field) Targets() []string {
	if target := f.target(); target != "" {
		return []string{target}
	}
	return f.Among
}

// Naming finds records by their ids and names, as r has them. Where a text
// stands for records of two kinds, it means the one that is not about to be
// deleted.
func (s *Catalog) Naming(r Reader, leaving func(d *Def, id string) bool) Naming {
	return func(kinds []string, text string) (string, error) {
		found := ""
		var by *Def
		for _, name := range kinds {
			d := s.byName[name]
			rec, err := d.Called(r, text)
			switch {
			case err != nil:
				return "", err
			case rec == nil:
			case by != nil && leaving(d, rec.Base().ID):
			case by != nil && !leaving(by, found):
				return "", fault.Invalid("", fmt.Sprintf("is the name or id of both one %s and one %s; rename one of them or give its id", spoken(by.Name), spoken(name)), text)
			default:
				found, by = rec.Base().ID, d
			}
		}
		if by == nil {
			return text, nil
		}
		return found, nil
	}
}

// Called returns the record that has a text as its id or as its name; nil if
// there is none. It fails if these are two.
func (d *Def) Called(r Reader, text string) (Record, error) {
	rec, _ := r.Lookup(d, text)
	if d.label == nil || !d.label.Unique || text == "" {
		return rec, nil
	}
	for named := range r.Select(d, d.label.Name, text) {
		if rec != nil && rec.Base().ID != named.Base().ID {
			noun := spoken(d.Name)
			return nil, fault.Invalid("", fmt.Sprintf("is the id of one %s and the name of another; rename that, or give its id", noun), text)
		}
		return named, nil
	}
	return rec, nil
}

// rename puts ids in the place of names.
func (f *Field) rename(v reflect.Value, naming Naming, path string) error {
	err := f.translate(v, naming)
	if e, ok := errors.AsType[*fault.Error](err); ok {
		return f.refuse(e.Code, path, e.Reason, e.Value)
	}
	return err
}

// translate replaces every id in a value of the field.
func (f *Field) translate(v reflect.Value, naming Naming) error {
	kinds := f.Targets()
	if kinds == nil {
		return nil
	}
	switch f.Form {
	case Text:
		if v.Len() == 0 {
			return nil
		}
		id, err := naming(kinds, v.String())
		v.SetString(id)
		return err
	case Texts:
		list, err := f.translateAll(*at[[]string](v), kinds, naming)
		v.Set(reflect.ValueOf(list))
		return err
	}
	return translateKeys(v, kinds, naming)
}

func (f *Field) translateAll(list, kinds []string, naming Naming) ([]string, error) {
	list = slices.Clone(list)
	for i, text := range list {
		if f.Roles != "" && !strings.HasPrefix(text, "@") {
			continue
		}
		id, err := naming(kinds, strings.TrimPrefix(text, f.refKey("")))
		if err != nil {
			return nil, err
		}
		list[i] = f.refKey(id)
	}
	if f.Roles != "" { // a set, in order
		slices.Sort(list)
		list = slices.Compact(list)
	}
	return list, nil
}

// translateKeys replaces the keys of a map. Two that turn out to be the same
// would leave it to chance which value counts.
func translateKeys(v reflect.Value, kinds []string, naming Naming) error {
	if v.Len() == 0 {
		return nil
	}
	next := reflect.MakeMapWithSize(v.Type(), v.Len())
	for _, text := range mapKeys(v) {
		id, err := naming(kinds, text)
		if err != nil {
			return err
		}
		if next.MapIndex(reflect.ValueOf(id)).IsValid() {
			return fault.Invalid("", "is there twice, by its name and by its id; send one", text)
		}
		next.SetMapIndex(reflect.ValueOf(id), v.MapIndex(reflect.ValueOf(text)))
	}
	v.Set(next)
	return nil
}

// Renamed returns a copy of the record with every id that it holds of another
// replaced.
func (d *Def) Renamed(rec Record, as func(id string) string) Record {
	c := d.Clone(rec)
	for _, f := range d.naming {
		if v := f.in(c); v.IsValid() {
			// No text that as returns can fail.
			_ = f.translate(v, func(_ []string, id string) (string, error) { return as(id), nil })
		}
	}
	return c
}
