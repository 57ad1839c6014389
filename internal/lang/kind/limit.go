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
	"unicode/utf8"

	"netkeep/internal/lang/fault"
)

// format is what a text must look like.
type format struct {
	schema string // what JSON schemas call it
	reason string // what to say to a text that does not
	fits   func(string) bool
}

// formats are those that a tag may ask for.
var formats = map[string]format{
	"uri": {"uri", "must be an absolute URI", func(s string) bool {
		u, err := url.Parse(s)
		return err == nil && u.IsAbs()
	}},
	"url": {"uri", "must be an http or https URL", func(s string) bool {
		u, err := url.Parse(s)
		return err == nil && u.Hostname() != "" && (u.Scheme == "http" || u.Scheme == "https")
	}},
}

// limit checks a decoded value against range, enum, format and the rules of
// its form.
func (f *Field) limit(v reflect.Value, path string) error {
	if reason := f.outOfRange(v); reason != "" {
		return f.invalid(path, reason, v.Interface())
	}
	switch f.Form {
	case Text:
		return f.limitText(v.String(), path)
	case Texts:
		return f.limitTexts(v.Interface().([]string), path)
	case Marks:
		return f.limitTags(v.Interface().(Tags), path)
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

func (f *Field) limitText(s, path string) error {
	if len(f.Enum) > 0 && !slices.Contains(f.Enum, s) {
		return f.invalid(path, "must be one of "+strings.Join(f.Enum, ", "), s)
	}
	// An empty text unsets an optional field, so it needs no format.
	if format, ok := formats[f.Format]; ok && s != "" && !format.fits(s) {
		return f.invalid(path, format.reason, s)
	}
	return nil
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
			err = f.limitText(s, path+"."+strconv.Itoa(i))
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

func (f *Field) limitMap(v reflect.Value, path string) error {
	if len(f.Enum) == 0 && !f.Limited {
		return nil
	}
	for _, key := range mapKeys(v) {
		at, value := f.member(path, key), v.MapIndex(reflect.ValueOf(key))
		if f.Limited {
			if reason := f.outside(value.Int(), ""); reason != "" {
				return f.invalid(at, reason, value.Interface())
			}
		} else if err := f.limitText(value.String(), at); err != nil {
			return err
		}
	}
	return nil
}

func (f *Field) limitTags(tags Tags, path string) error {
	for _, key := range sortedKeys(tags) {
		switch value := tags[key].(type) {
		case nil, string, bool:
		default:
			return f.invalid(f.member(path, key), "must be null, a text or a boolean", value)
		}
	}
	return nil
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
