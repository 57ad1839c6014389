package kind

import (
	"fmt"
	"maps"
	"math"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"netkeep.internal/internal/lang/fault"
)

// format is what a text must look like.
type format struct {
	schema string // what JSON schemas call it
	reason string // what to say to a text that does not
	fits   func(string) bool
	// tidy, if set, returns the one way to write a text that can be written in
	// several.
	tidy func(string) string
}

// formats are those that a tag may ask for.
var formats = map[string]format{
	"uri": {schema: "uri", reason: "must be an absolute URI", fits: func(s string) bool {
		u, err := url.Parse(s)
		return err == nil && u.IsAbs()
	}},
	"url": {schema: "uri", reason: "must be an http or https URL", fits: func(s string) bool {
		u, err := url.Parse(s)
		return err == nil && u.Hostname() != "" && (u.Scheme == "http" || u.Scheme == "https")
	}},
	"visible": {reason: "must not begin or end with a blank, nor hold characters that nobody sees", fits: Visible},
	"hex": {reason: "must be hexadecimal digits, with any separators", tidy: tidyHex, fits: func(s string) bool {
		digits := strings.Trim(tidyHex(s), "0123456789abcdef") == ""
		return digits && tidyHex(s) != ""
	}},
}

// Visible reports whether everybody sees what is in a text: no blank is at its
// ends, and no character in it that nobody sees.
func Visible(s string) bool {
	return strings.TrimSpace(s) == s && !strings.ContainsFunc(s, invisible)
}

// invisible reports whether a character is one that nobody sees: of control, of
// writing direction, without width, or a blank other than the one on keyboards.
// Two texts that differ in such a one look the same.
func invisible(r rune) bool {
	const brailleBlank = '\u2800'
	return !unicode.IsPrint(r) || r == brailleBlank ||
		unicode.In(r, unicode.Variation_Selector, unicode.Other_Default_Ignorable_Code_Point)
}

// tidyHex writes hexadecimal digits in lower case and without separators.
func tidyHex(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			return unicode.ToLower(r)
		}
		return -1
	}, s)
}

// tidy writes the texts of a field in the one way that its format has.
func (f *Field) tidy(v reflect.Value) {
	tidy := formats[f.Format].tidy
	switch {
	case tidy == nil:
	case f.Form == Text:
		v.SetString(tidy(v.String()))
	default:
		list := slices.Clone(*at[[]string](v)) // which others may hold
		for i, s := range list {
			list[i] = tidy(s)
		}
		*at[[]string](v) = list
	}
}

// limited reports whether a value of the field can break a rule by itself.
func (f *Field) limited() bool {
	return f.Limited || len(f.Enum) > 0 || f.Format != "" || f.Attributes || f.Roles != "" || f.Form == Marks ||
		f.Form == Structs && len(f.layout.limited) > 0
}

// breaks says which limit the field of a struct breaks, if any. A value that
// nobody had to give breaks none by being absent.
func (f *Field) breaks(holder reflect.Value, path string) error {
	if !f.applies(holder) {
		return nil
	}
	v := f.value(holder)
	if !v.IsValid() || !f.needed && f.empty(v) {
		return nil
	}
	if err := f.limit(v, path); err != nil || f.Form != Structs {
		return err
	}
	for i := range v.Len() {
		for _, m := range f.layout.limited {
			if m.breaks(v.Index(i), "") != nil { // the path is written only where it is read
				return m.breaks(v.Index(i), path+"."+strconv.Itoa(i)+"."+m.Name)
			}
		}
	}
	return nil
}

// inherits reports whether the field broke a limit before an edit that brought
// nothing new into it.
func (f *Field) inherits(old, next reflect.Value) bool {
	if f.breaks(old, f.Name) == nil {
		return false
	}
	switch old, next = f.value(old), f.value(next); f.Form {
	case Texts:
		had := *at[[]string](old)
		return !slices.ContainsFunc(*at[[]string](next), func(s string) bool { return !slices.Contains(had, s) })
	case Map, Marks:
		for it := next.MapRange(); it.Next(); {
			had := old.MapIndex(it.Key())
			if !had.IsValid() || !reflect.DeepEqual(had.Interface(), it.Value().Interface()) {
				return false
			}
		}
		return true
	}
	return reflect.DeepEqual(old.Interface(), next.Interface())
}

// limit checks a value against range, enum, format and the rules of its form.
func (f *Field) limit(v reflect.Value, path string) error {
	if reason := f.outOfRange(v); reason != "" {
		return f.invalid(path, reason, v.Interface())
	}
	switch f.Form {
	case Text:
		if reason := f.misfit(v.String()); reason != "" {
			return f.invalid(path, reason, v.String())
		}
	case Texts:
		return f.limitTexts(*at[[]string](v), path)
	case Marks:
		return f.limitTags(*at[Tags](v), path)
	case Map:
		return f.limitMap(v, path)
	}
	return nil
}

// refuse returns a failure that repeats the value unless it is a secret.
func (f *Field) refuse(code fault.Code, path, reason string, value any) error {
	if f.Secret {
		value = nil
	}
	return fault.On(code, path, reason, value)
}

func (f *Field) invalid(path, reason string, value any) error {
	return f.refuse(fault.CodeInvalid, path, reason, value)
}

// outOfRange says what is wrong with a number or a length, if anything is.
func (f *Field) outOfRange(v reflect.Value) string {
	switch f.Form {
	case Text:
		return f.outside(int64(utf8.RuneCountInString(v.String())), " characters long")
	case Int:
		return f.outside(v.Int(), "")
	case Texts, Structs, Bytes:
		return f.outside(int64(v.Len()), " long")
	}
	return ""
}

func (f *Field) outside(n int64, unit string) string {
	switch {
	case !f.Limited || n >= f.Min && n <= f.Max:
		return ""
	case f.Max == math.MaxInt64:
		return fmt.Sprintf("must be at least %d%s", f.Min, unit)
	}
	return fmt.Sprintf("must be %d to %d%s", f.Min, f.Max, unit)
}

// misfit says why a text is not one that the field may hold.
func (f *Field) misfit(s string) string {
	// What comes as JSON always is; anything else could not be stored.
	if !utf8.ValidString(s) {
		return "must be UTF-8"
	}
	if len(f.Enum) > 0 && !slices.Contains(f.Enum, s) {
		return "must be one of " + strings.Join(f.Enum, ", ")
	}
	// An empty text unsets an optional field, so it needs no format; one in a
	// list says nothing.
	if format, ok := formats[f.Format]; ok && (s != "" || f.Form == Texts) && !format.fits(s) {
		return format.reason
	}
	return ""
}

func (f *Field) limitTexts(list []string, path string) error {
	for i, s := range list {
		var err error
		switch {
		case f.Attributes:
			err = f.limitAttribute(s, path)
		case f.Roles != "":
			err = f.limitRole(s, list, path)
		default:
			if reason := f.misfit(s); reason != "" {
				err = f.invalid(path+"."+strconv.Itoa(i), reason, s)
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (f *Field) limitAttribute(a, path string) error {
	if a == "" || a[0] == '#' || a[0] == '@' {
		return f.invalid(path, "must be plain texts that do not start with # or @", a)
	}
	return nil
}

func (f *Field) limitRole(r string, list []string, path string) error {
	switch {
	case len(r) < 2 || r[0] != '#' && r[0] != '@':
		return f.invalid(path, "must be #attribute or @id", r)
	case r == "#all" && len(list) > 1:
		return f.invalid(path, "must not hold #all together with other roles", list)
	}
	return nil
}

// limitMap looks at every value and complains of the first in the order of
// keys, so that one map always meets the same error.
func (f *Field) limitMap(v reflect.Value, path string) error {
	if len(f.Enum) == 0 && !f.Limited {
		return nil
	}
	var worst, why string
	var wrong reflect.Value
	for it := v.MapRange(); it.Next(); {
		reason := ""
		if f.Limited {
			reason = f.outside(it.Value().Int(), "")
		} else {
			reason = f.misfit(it.Value().String())
		}
		if key := it.Key().String(); reason != "" && (why == "" || key < worst) {
			worst, why, wrong = key, reason, it.Value()
		}
	}
	if why == "" {
		return nil
	}
	return f.invalid(f.member(path, worst), why, wrong.Interface())
}

// limitTags does the same for tags.
func (f *Field) limitTags(tags Tags, path string) error {
	var worst string
	var wrong any
	for key, value := range tags {
		switch value.(type) {
		case nil, string, bool:
			continue
		}
		if wrong == nil || key < worst {
			worst, wrong = key, value
		}
	}
	if wrong == nil {
		return nil
	}
	return f.invalid(f.member(path, worst), "must be null, a text or a boolean", wrong)
}

// sortedKeys lists the keys in one order, so that one body always meets the
// same error.
func sortedKeys[V any](m map[string]V) []string {
	if len(m) == 0 {
		return nil
	}
	return slices.Sorted(maps.Keys(m))
}

// mapKeys is sortedKeys for a map of any form.
func mapKeys(v reflect.Value) []string {
	if v.Len() == 0 {
		return nil
	}
	keys := make([]string, 0, v.Len())
	for it := v.MapRange(); it.Next(); {
		keys = append(keys, it.Key().String())
	}
	slices.Sort(keys)
	return keys
}
