package kind

import (
	"reflect"
	"slices"
	"strings"
)

// Index files records under the values of one field: its text, each text of a
// list, each key of a map. A record whose text is empty is not filed.
type Index struct {
	Name   string // the field's name
	Unique bool
	// Searched says that filters ask for parts of the keys.
	Searched bool
	// Few says that many records have the same key.
	Few   bool
	field *Field
}

// newIndex returns the index that a field's tags ask for, or nil.
func newIndex(f *Field) *Index {
	if !f.Unique && !f.Indexed && f.Ref == "" && f.Roles == "" {
		return nil
	}
	return &Index{Name: f.Name, Unique: f.Unique, Searched: f.Searched, Few: f.Few, field: f}
}

// Keys calls file for every key of the record.
func (ix *Index) Keys(rec Record, file func(key string)) {
	f := ix.field
	switch f.Form {
	case Text:
		if s := f.text(rec); s != "" {
			file(s)
		}
	case Texts:
		for _, s := range f.texts(rec) {
			file(s)
		}
	case Map:
		if v := f.in(rec); v.IsValid() {
			for it := v.MapRange(); it.Next(); {
				file(it.Key().String())
			}
		}
	}
}

// Index returns the index of a field, or nil.
func (d *Def) Index(name string) *Index {
	for _, ix := range d.Indexes {
		if ix.Name == name {
			return ix
		}
	}
	return nil
}

// Ranks reports whether the kind has an order of its own.
func (d *Def) Ranks() bool { return d.hooks.ranked != nil }

// Rank is where a record comes in the kind's own order: in which group, and
// where in it.
func (d *Def) Rank(rec Record) (group, place string) { return d.hooks.ranked(rec) }

// AttributesOf returns the record's role attributes.
func (d *Def) AttributesOf(rec Record) []string {
	if d.Attributes == nil {
		return nil
	}
	return d.Attributes.texts(rec)
}

// drop removes references to some ids from the field.
func (f *Field) drop(rec Record, gone func(id string) bool) {
	v := f.in(rec)
	if !v.IsValid() {
		return
	}
	switch f.Form {
	case Text:
		f.reset(Patch, v)
	case Texts:
		list := at[[]string](v)
		*list = slices.DeleteFunc(slices.Clone(*list), func(s string) bool {
			id, is := strings.CutPrefix(s, f.refKey(""))
			return is && gone(id)
		})
	case Map:
		for _, id := range mapKeys(v) {
			if gone(id) {
				v.SetMapIndex(reflect.ValueOf(id), reflect.Value{})
			}
		}
	}
}

// refKey is how the field writes a reference to id.
func (f *Field) refKey(id string) string {
	if f.Roles != "" {
		return "@" + id
	}
	return id
}
