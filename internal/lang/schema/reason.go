package schema

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
)

// maxText bounds each text of an error, in bytes.
const maxText = 256

// violation is one way in which data misses its schema.
type violation struct {
	path   []string // members and indexes from the root
	reason string   // what is expected, to be read after the path
}

// field is the path as a caller reads it.
func (v violation) field() string {
	if len(v.path) == 0 {
		return "(root)"
	}
	return shorten(strings.Join(v.path, "."))
}

// compare orders violations by place, outer ones first.
func compare(a, b violation) int {
	return cmp.Or(
		slices.CompareFunc(a.path, b.path, compareStep),
		cmp.Compare(a.reason, b.reason),
	)
}

// compareStep orders numbers by size and ahead of names.
func compareStep(a, b string) int {
	i, errA := strconv.Atoi(a)
	j, errB := strconv.Atoi(b)
	switch {
	case errA == nil && errB == nil:
		return cmp.Or(cmp.Compare(i, j), cmp.Compare(a, b))
	case errA == nil:
		return -1
	case errB == nil:
		return +1
	}
	return cmp.Compare(a, b)
}

// judge turns the library's tree of errors into one violation.
type judge struct {
	data   any
	titles map[string]string
}

// first returns the first violation of a tree, in an order that does not
// depend on the order in which the library met them.
func (j *judge) first(e *jsonschema.ValidationError) violation {
	switch e.ErrorKind.(type) {
	case *kind.Schema, *kind.Group, *kind.Reference, *kind.AllOf:
		return slices.MinFunc(j.firsts(e.Causes), compare)
	case *kind.AnyOf, *kind.OneOf:
		if len(e.Causes) > 0 {
			return j.closest(e)
		}
	case *kind.PropertyNames:
		if len(e.Causes) > 0 { // the library's own, see names
			return violation{nil, j.reason(e)}
		}
	}
	return violation{e.InstanceLocation, j.reason(e)}
}

func (j *judge) firsts(causes []*jsonschema.ValidationError) []violation {
	all := make([]violation, len(causes))
	for i, cause := range causes {
		all[i] = j.first(cause)
	}
	return all
}

// closest describes data that satisfies none of several alternatives: by the
// violation that lies deepest, since that alternative went furthest, or by all
// of them when none went further than the value itself.
func (j *judge) closest(e *jsonschema.ValidationError) violation {
	all := j.firsts(e.Causes)
	deepest := slices.MaxFunc(all, func(a, b violation) int { return cmp.Compare(len(a.path), len(b.path)) })
	if len(deepest.path) > len(e.InstanceLocation) {
		return deepest
	}
	if title := j.title(e); title != "" {
		return violation{e.InstanceLocation, shorten("must be " + title)}
	}
	var reasons []string
	for _, v := range all {
		if !slices.Contains(reasons, v.reason) {
			reasons = append(reasons, v.reason)
		}
	}
	return violation{e.InstanceLocation, shorten(strings.Join(reasons, ", or "))}
}

// title returns the title of the subschema that a scalar violates. It says
// better than a pattern what the scalar should be.
func (j *judge) title(e *jsonschema.ValidationError) string {
	switch j.at(e.InstanceLocation).(type) {
	case map[string]any, []any:
		return ""
	}
	return j.titles[e.SchemaURL]
}

// at returns the value at a path, or nil.
func (j *judge) at(path []string) any {
	v := j.data
	for _, step := range path {
		switch in := v.(type) {
		case map[string]any:
			v = in[step]
		case []any:
			i, err := strconv.Atoi(step)
			if err != nil || i < 0 || i >= len(in) {
				return nil
			}
			v = in[i]
		default:
			return nil
		}
	}
	return v
}

// reason says what a violated keyword expects.
func (j *judge) reason(e *jsonschema.ValidationError) string {
	switch e.ErrorKind.(type) {
	case *kind.Pattern, *kind.Format, *kind.Not:
		if title := j.title(e); title != "" {
			return shorten("must be " + title)
		}
	}
	for _, say := range []func(jsonschema.ErrorKind) string{ofValue, ofMembers, ofItems, ofSize} {
		if reason := say(e.ErrorKind); reason != "" {
			return shorten(reason)
		}
	}
	return "does not satisfy the schema"
}

// ofValue speaks of keywords for any value and for text.
func ofValue(k jsonschema.ErrorKind) string {
	switch k := k.(type) {
	case *kind.Type:
		return "must be of type " + strings.Join(k.Want, " or ")
	case *kind.Const:
		return "must be " + compact(k.Want)
	case *kind.Enum:
		return "must be one of " + list(k.Want)
	case *kind.Format:
		if k.Want == "regex" {
			return fmt.Sprintf("must be a regular expression: %v", k.Err)
		}
		return fmt.Sprintf("must have the format %q", k.Want)
	case *kind.Pattern:
		return "must match the pattern " + k.Want
	case *kind.MinLength:
		return "must have at least " + count(k.Want, "character")
	case *kind.MaxLength:
		return "must have at most " + count(k.Want, "character")
	case *kind.Not:
		return "must not be what the schema excludes"
	case *kind.OneOf:
		return "must match one alternative of the schema, and matches several"
	case *kind.FalseSchema:
		return "is not allowed"
	case *kind.RefCycle:
		return "cannot be judged, as the schema refers to itself without end"
	}
	return ""
}

// ofMembers speaks of keywords for objects.
func ofMembers(k jsonschema.ErrorKind) string {
	switch k := k.(type) {
	case *kind.Required:
		return "must have " + list(k.Missing)
	case *kind.Dependency:
		return fmt.Sprintf("must have %s along with %q", list(k.Missing), k.Prop)
	case *kind.DependentRequired:
		return fmt.Sprintf("must have %s along with %q", list(k.Missing), k.Prop)
	case *kind.AdditionalProperties:
		return "must not have " + list(slices.Sorted(slices.Values(k.Properties)))
	case *kind.PropertyNames:
		return fmt.Sprintf("must not have a member named %q", k.Property)
	case *kind.MinProperties:
		return "must have at least " + count(k.Want, "member")
	case *kind.MaxProperties:
		return "must have at most " + count(k.Want, "member")
	}
	return ""
}

// ofItems speaks of keywords for arrays.
func ofItems(k jsonschema.ErrorKind) string {
	switch k := k.(type) {
	case *kind.MinItems:
		return "must have at least " + count(k.Want, "item")
	case *kind.MaxItems:
		return "must have at most " + count(k.Want, "item")
	case *kind.AdditionalItems:
		return fmt.Sprintf("has %s too many", count(k.Count, "item"))
	case *kind.UniqueItems:
		return fmt.Sprintf("must not repeat an item, and items %d and %d are equal", k.Duplicates[0], k.Duplicates[1])
	case *kind.Contains:
		return "must have an item that the schema asks for"
	case *kind.MinContains:
		return fmt.Sprintf("must have at least %s that the schema asks for", count(k.Want, "item"))
	case *kind.MaxContains:
		return fmt.Sprintf("must have at most %s that the schema asks for", count(k.Want, "item"))
	}
	return ""
}

// ofSize speaks of keywords for numbers.
func ofSize(k jsonschema.ErrorKind) string {
	switch k := k.(type) {
	case *kind.Minimum:
		return "must be at least " + decimal(k.Want)
	case *kind.Maximum:
		return "must be at most " + decimal(k.Want)
	case *kind.ExclusiveMinimum:
		return "must be more than " + decimal(k.Want)
	case *kind.ExclusiveMaximum:
		return "must be less than " + decimal(k.Want)
	case *kind.MultipleOf:
		return "must be a multiple of " + decimal(k.Want)
	}
	return ""
}

func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

func decimal(n *big.Rat) string {
	if n.IsInt() && n.Num().IsInt64() {
		return n.Num().String()
	}
	f, _ := n.Float64()
	return strconv.FormatFloat(f, 'g', -1, 64)
}

func list[T any](values []T) string {
	texts := make([]string, len(values))
	for i, v := range values {
		texts[i] = compact(v)
	}
	return strings.Join(texts, ", ")
}

// compact returns v as JSON on one line.
func compact(v any) string {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return "a value"
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// render returns an offending value in a size fit for an error.
func render(v any) any {
	switch v := v.(type) {
	case string:
		return shorten(v)
	case map[string]any, []any:
		return shorten(compact(v))
	}
	return v
}

// shorten cuts a long text, between characters.
func shorten(s string) string {
	if len(s) <= maxText {
		return s
	}
	end := maxText
	for !utf8.RuneStart(s[end]) {
		end--
	}
	return s[:end] + "…"
}
