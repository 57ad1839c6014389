package kind

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Flaw is a rule that a stored record breaks. One of Missing, Holder and Err
// says which.
type Flaw struct {
	Def     *Def
	Field   *Field   // nil for a rule of the kind as a whole
	Missing []string // ids that the field refers to and no record has
	Holder  string   // the record that had the field's unique value first
	Err     error    // any other rule
}

// Flaws returns the rules that a stored record breaks, judged as if it were
// made again as it is. Of two records with one unique value the younger has
// the flaw. The kind's own check sees only records that have no other flaw.
func (s *Catalog) Flaws(r Reader, d *Def, rec Record) (flaws []Flaw) {
	again := d.Clone(rec)
	d.fill(again)
	for _, f := range d.layout.limited {
		if err := f.breaks(reflect.ValueOf(again).Elem(), f.Name); err != nil {
			flaws = append(flaws, Flaw{Def: d, Field: f, Err: err})
		}
	}
	for _, ix := range d.Indexes {
		if holder := ix.holder(r, d, rec); holder != "" {
			flaws = append(flaws, Flaw{Def: d, Field: ix.field, Holder: holder})
		}
		if missing := s.missing(r, ix, rec); len(missing) > 0 {
			slices.Sort(missing)
			flaws = append(flaws, Flaw{Def: d, Field: ix.field, Missing: slices.Compact(missing)})
		}
	}
	if len(flaws) > 0 || d.hooks.check == nil {
		return flaws
	}
	if err := d.hooks.check(r, rec, again); err != nil {
		flaws = append(flaws, Flaw{Def: d, Err: err})
	}
	return flaws
}

// holder returns the id of another record with the same unique value that had
// it first, if there is one.
func (ix *Index) holder(r Reader, d *Def, rec Record) string {
	if !ix.Unique {
		return ""
	}
	key := ix.field.text(rec)
	if key == "" {
		return ""
	}
	for other := range r.Select(d, ix.Name, key) {
		if older(other.Base(), rec.Base()) {
			return other.Base().ID
		}
	}
	return ""
}

func older(a, b *Meta) bool {
	if !a.CreatedAt.Equal(b.CreatedAt) {
		return a.CreatedAt.Before(b.CreatedAt)
	}
	return a.ID < b.ID
}

// String says what is wrong. It repeats no value of a field, which may be a
// secret.
func (f Flaw) String() string {
	switch {
	case f.Holder != "":
		return fmt.Sprintf("%s is not unique: %s %s has the same", f.Field.Name, f.Def.Name, f.Holder)
	case len(f.Missing) > 0:
		return fmt.Sprintf("%s refers to %s %s, which does not exist", f.Field.Name, f.Field.target(), strings.Join(f.Missing, ", "))
	}
	return f.Err.Error()
}

// Remedy is what makes a flaw go away.
type Remedy uint8

// The remedies.
const (
	Decide Remedy = iota // somebody must decide
	Mend                 // the record is changed by Flaw.Mend
	Remove               // the record is deleted
)

// Remedy says what to do. A missing record counts as deleted, so references
// follow their own rule. One that would have kept its target is different:
// what the record means depends on it. It goes back to its default; a record
// that cannot be without is removed; otherwise nobody but the owner can say,
// because to be without may allow what the reference was there to forbid.
func (f Flaw) Remedy() Remedy {
	switch {
	case f.Holder != "":
		return Mend
	case len(f.Missing) == 0:
		return Decide
	}
	switch (Referrer{f.Def, f.Field}).OnDelete() {
	case Clear:
		return Mend
	case Cascade:
		return Remove
	}
	switch {
	case f.Field.Form != Text:
		return Decide
	case f.Field.Required != 0:
		return Remove
	case f.Field.initial.IsValid():
		return Mend
	}
	return Decide
}

// Mend changes a copy of the record so that the flaw is gone, and says how.
// Its Remedy must be Mend.
func (f Flaw) Mend(r Reader, rec Record) string {
	for _, id := range f.Missing {
		f.Field.drop(rec, func(held string) bool { return held == id })
	}
	if f.Holder == "" {
		if f.Field.initial.IsValid() {
			return f.Field.Name + " is now " + f.Field.text(rec)
		}
		return "taken out of " + f.Field.Name
	}
	if f.Field.Required == 0 && f.Field != f.Def.label {
		f.Field.in(rec).SetZero()
		return f.Field.Name + " is now empty"
	}
	f.Field.in(rec).SetString(f.free(r, f.Field.text(rec)))
	if f.Field.Secret {
		return f.Field.Name + " has a new value"
	}
	return f.Field.Name + " is now " + f.Field.text(rec)
}

// free returns the value with the lowest number behind it that makes it
// unique, cut where it would be too long.
func (f Flaw) free(r Reader, value string) string {
	for n := 2; ; n++ {
		suffix := "-" + strconv.Itoa(n)
		if f.Field.Limited {
			value = cut(value, int(f.Field.Max)-len(suffix))
		}
		taken := false
		for range r.Select(f.Def, f.Field.Name, value+suffix) {
			taken = true
			break
		}
		if !taken {
			return value + suffix
		}
	}
}

// cut returns the first n characters of a text.
func cut(s string, n int) string {
	for utf8.RuneCountInString(s) > n {
		_, last := utf8.DecodeLastRuneInString(s)
		s = s[:len(s)-last]
	}
	return s
}
