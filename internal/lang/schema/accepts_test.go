package schema

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestViolations(t *testing.T) {
	tests := []struct {
		name   string
		schema string // members beside the root type
		data   string
		field  string
		reason string
		value  any
	}{
		{"missing", `"required": ["a", "b", "c"]`, `{"b": 1}`, "(root)", `must have "a", "c"`, `{"b":1}`},
		{"additional", `"additionalProperties": false`, `{"b": 1, "a": 2}`, "(root)", `must not have "a", "b"`, `{"a":2,"b":1}`},
		{"names", `"propertyNames": {"pattern": "^a"}`, `{"b": 1}`, "(root)", `must not have a member named "b"`, `{"b":1}`},
		{"names within", `"additionalProperties": {"items": {"propertyNames": {"pattern": "^a"}}}`, `{"l": [{"a": 1}, {"b": 1}, {"a": 1}, {"a": 2}]}`, "l.1", `must not have a member named "b"`, `{"b":1}`},
		{"few members", `"minProperties": 2`, `{"b": 1}`, "(root)", "must have at least 2 members", `{"b":1}`},
		{"many members", `"maxProperties": 1`, `{"a": 1, "b": 1}`, "(root)", "must have at most 1 member", `{"a":1,"b":1}`},
		{"dependency", `"dependencies": {"a": ["b"]}`, `{"a": 1}`, "(root)", `must have "b" along with "a"`, `{"a":1}`},
		{"false", `"properties": {"a": false}`, `{"a": 1}`, "a", "is not allowed", int64(1)},
		{"type", `"properties": {"a": {"type": ["integer", "null"]}}`, `{"a": "1"}`, "a", "must be of type null or integer", "1"},
		{"const", `"properties": {"a": {"const": {"b": "<"}}}`, `{"a": true}`, "a", `must be {"b":"<"}`, true},
		{"enum", `"properties": {"a": {"enum": ["b", null, 1]}}`, `{"a": "c"}`, "a", `must be one of "b", null, 1`, "c"},
		{"format", `"properties": {"a": {"format": "date"}}`, `{"a": "c"}`, "a", `must have the format "date"`, "c"},
		{"format with title", `"properties": {"a": {"title": "a day", "format": "date"}}`, `{"a": "c"}`, "a", `must be a day`, "c"},
		{"unknown format", `"required": ["b"], "properties": {"a": {"format": "colour"}}`, `{"a": "c"}`, "(root)", `must have "b"`, `{"a":"c"}`},
		{"pattern", `"properties": {"a": {"pattern": "^b$"}}`, `{"a": "c"}`, "a", "must match the pattern ^b$", "c"},
		{"pattern with title", `"properties": {"a": {"title": "the letter b", "pattern": "^b$"}}`, `{"a": "c"}`, "a", "must be the letter b", "c"},
		{"short", `"properties": {"a": {"minLength": 1}}`, `{"a": ""}`, "a", "must have at least 1 character", ""},
		{"long", `"properties": {"a": {"maxLength": 2}}`, `{"a": "äöü"}`, "a", "must have at most 2 characters", "äöü"},
		{"minimum", `"properties": {"a": {"minimum": 0.5}}`, `{"a": 0.25}`, "a", "must be at least 0.5", 0.25},
		{"maximum", `"properties": {"a": {"maximum": 2147483647}}`, `{"a": 2147483648}`, "a", "must be at most 2147483647", int64(2147483648)},
		{"above", `"properties": {"a": {"exclusiveMinimum": 0}}`, `{"a": 0}`, "a", "must be more than 0", int64(0)},
		{"below", `"properties": {"a": {"exclusiveMaximum": 0}}`, `{"a": 0}`, "a", "must be less than 0", int64(0)},
		{"multiple", `"properties": {"a": {"multipleOf": 0.1}}`, `{"a": 0.25}`, "a", "must be a multiple of 0.1", 0.25},
		{"few items", `"properties": {"a": {"minItems": 1}}`, `{"a": []}`, "a", "must have at least 1 item", "[]"},
		{"many items", `"properties": {"a": {"maxItems": 1}}`, `{"a": [1, 2]}`, "a", "must have at most 1 item", "[1,2]"},
		{"further items", `"properties": {"a": {"items": [true], "additionalItems": false}}`, `{"a": [1, 2, 3]}`, "a", "has 2 items too many", "[1,2,3]"},
		{"equal items", `"properties": {"a": {"uniqueItems": true}}`, `{"a": [1, 2, 1.0]}`, "a", "must not repeat an item, and items 0 and 2 are equal", "[1,2,1]"},
		{"contains", `"properties": {"a": {"contains": {"const": 1}}}`, `{"a": [2]}`, "a", "must have an item that the schema asks for", "[2]"},
		{"not", `"properties": {"a": {"not": {"const": 1}}}`, `{"a": 1}`, "a", "must not be what the schema excludes", int64(1)},
		{"within", `"properties": {"l": {"items": {"properties": {"a": {"type": "string"}}}}}`, `{"l": [{}, {"a": "x"}, {"a": 1}]}`, "l.2.a", "must be of type string", int64(1)},
		{"any", `"anyOf": [{"required": ["a"]}, {"required": ["b"]}]`, `{}`, "(root)", `must have "a", or must have "b"`, "{}"},
		{"any of the same", `"anyOf": [{"required": ["a"]}, {"required": ["a"]}]`, `{}`, "(root)", `must have "a"`, "{}"},
		{"any, deeper", `"anyOf": [{"required": ["b"]}, {"properties": {"a": {"type": "string"}}}]`, `{"a": 1}`, "a", "must be of type string", int64(1)},
		{"any with title", `"properties": {"a": {"title": "a letter", "anyOf": [{"const": "a"}, {"const": "b"}]}}`, `{"a": 1}`, "a", "must be a letter", int64(1)},
		{"object with title", `"title": "A thing", "anyOf": [{"required": ["a"]}]`, `{}`, "(root)", `must have "a"`, "{}"},
		{"one of none", `"oneOf": [{"required": ["a"]}, {"required": ["b"]}]`, `{}`, "(root)", `must have "a", or must have "b"`, "{}"},
		{"one of several", `"oneOf": [{"required": ["a"]}, {"required": ["b"]}]`, `{"a": 1, "b": 1}`, "(root)", "must match one alternative of the schema, and matches several", `{"a":1,"b":1}`},
		{"all", `"allOf": [{"required": ["b"]}, {"required": ["a"]}]`, `{}`, "(root)", `must have "a"`, "{}"},
		{"then", `"if": {"required": ["a"]}, "then": {"required": ["b"]}`, `{"a": 1}`, "(root)", `must have "b"`, `{"a":1}`},
		{"reference", `"properties": {"a": {"$ref": "#/definitions/s"}}, "definitions": {"s": {"type": "string"}}`, `{"a": 1}`, "a", "must be of type string", int64(1)},
		{"outer first", `"required": ["z"], "properties": {"a": {"type": "string"}}`, `{"a": 1}`, "(root)", `must have "z"`, `{"a":1}`},
		{"by name", `"additionalProperties": {"type": "string"}`, `{"c": 1, "a": 2, "b": 3}`, "a", "must be of type string", int64(2)},
		{"by number", `"additionalProperties": {"type": "string"}`, `{"10": 1, "9": 2, "1a": 3}`, "9", "must be of type string", int64(2)},
		{"by index", `"properties": {"l": {"items": {"type": "string"}}}`, `{"l": ["", "", 0, "", "", "", "", "", "", "", 1]}`, "l.2", "must be of type string", int64(0)},
		{"endless", `"allOf": [{"$ref": "#"}]`, `{}`, "(root)", "cannot be judged, as the schema refers to itself without end", "{}"},
		{"dots in names", `"properties": {"a.b": {"type": "string"}}`, `{"a.b": 1}`, "a.b", "must be of type string", int64(1)},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := compiled(t, `{"type": "object", `+tt.schema+`}`)
			var data map[string]any
			dec := json.NewDecoder(strings.NewReader(tt.data))
			dec.UseNumber()
			if err := dec.Decode(&data); err != nil {
				t.Fatal(err)
			}
			// Maps are walked in random order; the answer is not.
			for range 20 {
				f := invalid(t, s.Accepts("data", data))
				got := []any{f.Field, f.Reason, f.Value}
				if diff := cmp.Diff([]any{tt.field, tt.reason, tt.value}, got); diff != "" {
					t.Fatalf("Accepts(%s) (-want +got):\n%s", tt.data, diff)
				}
			}
		})
	}
}

func TestLaterDraftViolations(t *testing.T) {
	tests := []struct{ schema, data, field, reason string }{
		{`"dependentRequired": {"a": ["b"]}`, `{"a": 1}`, "(root)", `must have "b" along with "a"`},
		{`"unevaluatedProperties": false, "allOf": [{"properties": {"a": true}}]`, `{"a": 1, "c": 1, "b": 1}`, "b", "is not allowed"},
		{`"properties": {"a": {"contains": {"const": 1}, "minContains": 2}}`, `{"a": [1]}`, "a", "must have at least 2 items that the schema asks for"},
		{`"properties": {"a": {"contains": {"const": 1}, "maxContains": 1}}`, `{"a": [1, 1]}`, "a", "must have at most 1 item that the schema asks for"},
		{`"properties": {"a": {"$dynamicRef": "#n"}}, "$defs": {"n": {"$dynamicAnchor": "n", "type": "string"}}`, `{"a": 1}`, "a", "must be of type string"},
	}
	for _, tt := range tests {
		s := compiled(t, `{"$schema": "https://json-schema.org/draft/2020-12/schema", "type": "object", `+tt.schema+`}`)
		f := invalid(t, s.Accepts("data", object(t, tt.data)))
		if f.Field != tt.field || f.Reason != tt.reason {
			t.Errorf("Accepts(%s) by %s: %v, want %s %s", tt.data, tt.schema, f, tt.field, tt.reason)
		}
	}
}

func TestErrorsAreShort(t *testing.T) {
	s := compiled(t, `{"type": "object", "additionalProperties": {"enum": ["`+strings.Repeat("ä", 2000)+`"]}}`)
	for name, value := range map[string]any{
		"text":   "o" + strings.Repeat("ö", 5000),
		"array":  []any{strings.Repeat("ö", 5000)},
		"object": map[string]any{strings.Repeat("ö", 5000): nil},
	} {
		f := invalid(t, s.Accepts("data", map[string]any{strings.Repeat("ü", 5000): value}))
		for what, got := range map[string]any{"field": f.Field, "reason": f.Reason, "value": f.Value} {
			text := got.(string)
			if len(text) > maxText+len("…") || !strings.HasSuffix(text, "…") || strings.ContainsRune(text, '\uFFFD') {
				t.Errorf("%s of a long %s = %q", what, name, text)
			}
		}
	}
}

func TestNumbers(t *testing.T) {
	s := compiled(t, `{"type": "object", "properties": {"a": {"type": "integer", "minimum": 1, "maximum": 10, "multipleOf": 2}}}`)
	for _, good := range []any{
		4, int8(4), int16(4), int32(4), int64(4), uint(4), uint8(4), uint16(4), uint32(4), uint64(4),
		float32(4), 4.0, json.Number("4"), json.Number("4.0"), json.Number("4e0"), json.Number("40E-1"),
	} {
		if err := s.Accepts("data", map[string]any{"a": good}); err != nil {
			t.Errorf("%T(%v): %v", good, good, err)
		}
	}
	for _, bad := range []any{
		5, int64(12), 4.5, float32(0.5), -4, json.Number("5"), json.Number("1e300"), json.Number("-1e-300"),
		json.Number("18446744073709551615"), json.Number("184467440737095516150"), "4", nil, true,
	} {
		if f := invalid(t, s.Accepts("data", map[string]any{"a": bad})); f.Field != "a" {
			t.Errorf("%T(%v): field %q", bad, bad, f.Field)
		}
	}
	// Numbers beyond those of float64 are refused before anyone computes with
	// them, and those that are too small for one are zero.
	for _, huge := range []string{"1e400", "-1e999999999", "1" + strings.Repeat("0", 400)} {
		if f := invalid(t, s.Accepts("data", map[string]any{"a": json.Number(huge)})); f.Field != "data" {
			t.Errorf("%s: field %q", huge, f.Field)
		}
	}
	if f := invalid(t, s.Accepts("data", map[string]any{"a": json.Number("1e-999999999")})); f.Reason != "must be at least 1" {
		t.Errorf("a tiny number %s", f.Reason)
	}
}

func TestDataBounds(t *testing.T) {
	s := compiled(t, `{"type": "object", "additionalProperties": {"$ref": "#"}}`)
	nested := func(depth int) map[string]any {
		data := map[string]any{}
		for range depth - 1 {
			data = map[string]any{"a": data}
		}
		return data
	}
	if err := s.Accepts("data", nested(maxDepth)); err != nil {
		t.Errorf("at the limit: %v", err)
	}
	for name, data := range map[string]map[string]any{
		"deep":  nested(maxDepth + 1),
		"none":  nil,
		"type":  {"a": struct{}{}},
		"bytes": {"a": "\xff"},
		"name":  {"\xff": 1},
	} {
		if f := invalid(t, s.Accepts("data", data)); f.Field != "data" {
			t.Errorf("%s: field %q", name, f.Field)
		}
	}
}

func TestAcceptsLeavesData(t *testing.T) {
	s := compiled(t, `{"type": "object", "required": ["b"]}`)
	data := map[string]any{"a": []any{json.Number("1"), 2, map[string]any{"b": 3.0}}}
	want := fmt.Sprintf("%#v", data)
	invalid(t, s.Accepts("data", data))
	if got := fmt.Sprintf("%#v", data); got != want {
		t.Errorf("data became %s", got)
	}
}

// TestNaive compares the verdict with a plain reading of a small schema.
func TestNaive(t *testing.T) {
	s := compiled(t, `{
		"type": "object",
		"required": ["list"],
		"additionalProperties": false,
		"properties": {
			"list": {"type": "array", "uniqueItems": true, "items": {"type": "integer", "maximum": 5}},
			"name": {"type": "string", "minLength": 1, "pattern": "^[a-c]*$"}
		}
	}`)
	name := rapid.StringMatching(`[a-d]{0,3}`)
	value := rapid.OneOf(
		rapid.Map(rapid.SliceOfN(rapid.IntRange(0, 7), 0, 4), func(l []int) any {
			items := make([]any, len(l))
			for i, n := range l {
				items[i] = n
			}
			return items
		}),
		rapid.Map(name, func(s string) any { return s }),
		rapid.Map(rapid.Bool(), func(b bool) any { return b }),
	)
	key := rapid.SampledFrom([]string{"list", "list", "name", "other"})
	rapid.Check(t, func(t *rapid.T) {
		data := rapid.MapOfN(key, value, 0, 3).Draw(t, "data")
		want := naive(data)
		if err := s.Accepts("data", data); (err == nil) != want {
			t.Fatalf("Accepts(%v) = %v, want ok %v", data, err, want)
		}
	})
}

func naive(data map[string]any) bool {
	if _, ok := data["list"]; !ok {
		return false
	}
	for key, v := range data {
		switch key {
		case "list":
			items, ok := v.([]any)
			seen := make(map[any]bool)
			for _, n := range items {
				ok = ok && n.(int) <= 5 && !seen[n]
				seen[n] = true
			}
			if !ok {
				return false
			}
		case "name":
			s, ok := v.(string)
			if !ok || s == "" || strings.Contains(s, "d") {
				return false
			}
		default:
			return false
		}
	}
	return true
}

func FuzzCompileAccepts(f *testing.F) {
	for _, typ := range BuiltIn() {
		text, err := json.Marshal(typ.Schema)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(text), `{"protocols": ["tcp"], "addresses": ["*.a"], "portRanges": [{"low": 1, "high": 1e400}], "port": 1}`)
	}
	f.Add(`{"type": "object", "allOf": [{"$ref": "#"}], "$id": "a:b"}`, `{"a": {"b": [1]}}`)
	f.Add(`{"type": "object", "$schema": "https://json-schema.org/draft/2020-12/schema", "$dynamicAnchor": "a", "additionalProperties": {"$dynamicRef": "#a", "unevaluatedItems": false}}`, `{"a": {"b": [1]}}`)
	f.Add(`{"type": "object", "$schema": "https://json-schema.org/draft/2019-09/schema", "$recursiveAnchor": true, "additionalProperties": {"$recursiveRef": "#"}}`, `{"a": {"b": [1]}}`)
	f.Add(`{"type": "object", "propertyNames": {"minLength": 1e99}, "patternProperties": {"a": {"oneOf": [true, {"multipleOf": 1e-99}]}}}`, `{"a": 1e99}`)
	f.Fuzz(func(t *testing.T, schema, data string) {
		doc, ok := decode(schema)
		if !ok {
			return
		}
		s, err := Compile("schema", doc)
		if err != nil {
			invalid(t, err)
			return
		}
		value, ok := decode(data)
		if !ok {
			return
		}
		if err := s.Accepts("data", value); err != nil {
			first := invalid(t, err)
			again := invalid(t, s.Accepts("data", value))
			if diff := cmp.Diff(first, again); diff != "" {
				t.Errorf("the second answer differs:\n%s", diff)
			}
			if first.Field == "" || first.Reason == "" {
				t.Errorf("empty field or reason: %#v", first)
			}
		}
	})
}

func decode(text string) (map[string]any, bool) {
	dec := json.NewDecoder(strings.NewReader(text))
	dec.UseNumber()
	var v map[string]any
	err := dec.Decode(&v)
	return v, err == nil
}
