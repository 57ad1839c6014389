package schema

import (
	"fmt"
	"strings"
	"testing"
)

// doubling is a schema in which each definition names the next one twice, in
// the given shape, down to a leaf.
func doubling(t *testing.T, draft, shape, leaf string) *Schema {
	t.Helper()
	var b strings.Builder
	const levels = 50
	for i := range levels {
		ref := fmt.Sprintf(`{"$ref": "#/definitions/d%d"}`, i+1)
		fmt.Fprintf(&b, `"d%d": %s,`, i, strings.ReplaceAll(shape, "NEXT", ref))
	}
	return compiled(t, fmt.Sprintf(`{"$schema": %q, "type": "object", "allOf": [{"$ref": "#/definitions/d0"}], "definitions": {%s "d%d": %s}}`,
		draft, b.String(), levels, leaf))
}

// TestCostIsBounded has schemas of a few kilobytes that ask for 2^50
// evaluations. Without a bound the test does not end.
func TestCostIsBounded(t *testing.T) {
	numbers := make([]string, 2000)
	for i := range numbers {
		numbers[i] = fmt.Sprint(i)
	}
	enum := `{"properties": {"a": {"enum": [` + strings.Join(numbers, ",") + `]}}}`
	const (
		draft7 = "http://json-schema.org/draft-07/schema#"
		draft9 = "https://json-schema.org/draft/2019-09/schema"
	)
	tests := []struct{ name, draft, shape, leaf string }{
		{"allOf", draft7, `{"allOf": [NEXT, NEXT]}`, `{}`},
		{"allOf, later draft", draft9, `{"allOf": [NEXT, NEXT]}`, `{}`},
		{"anyOf that fails", draft7, `{"anyOf": [NEXT, NEXT]}`, `{"type": "string"}`},
		{"oneOf", draft7, `{"oneOf": [NEXT, NEXT]}`, `{"const": 1}`},
		{"not", draft7, `{"not": {"anyOf": [NEXT, NEXT]}}`, `false`},
		{"if", draft7, `{"if": NEXT, "then": NEXT, "else": NEXT}`, `{}`},
		{"dependencies", draft7, `{"not": {"dependencies": {"a": NEXT, "b": NEXT}}}`, `false`},
		{"dependentSchemas", draft9, `{"not": {"dependentSchemas": {"a": NEXT, "b": NEXT}}}`, `false`},
		{"names", draft7, `{"propertyNames": {"allOf": [NEXT, NEXT]}, "allOf": [NEXT, NEXT]}`, `{}`},
		{"enum", draft7, `{"allOf": [NEXT, NEXT]}`, enum},
		{"pattern", draft7, `{"allOf": [NEXT, NEXT]}`, `{"properties": {"t": {"pattern": "^(a?){500}$"}}}`},
	}
	data := map[string]any{"a": -1, "b": 1, "t": strings.Repeat("a", 500)}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := doubling(t, tt.draft, tt.shape, tt.leaf)
			s.meter.limit /= 16 // as good as the whole, and sooner
			for range 2 {
				f := invalid(t, s.Accepts("data", data))
				if f.Field != "data" || f.Reason != errTooCostly.Error() {
					t.Errorf("Accepts: %v", f)
				}
			}
		})
	}
}

// TestCostOfRecursion has schemas that visit each level of the data twice as
// often as the one above.
func TestCostOfRecursion(t *testing.T) {
	data := map[string]any{}
	list := []any{}
	for range maxDepth - 2 {
		data = map[string]any{"a": data}
		list = []any{list}
	}
	tests := []struct {
		schema string
		data   map[string]any
	}{
		{`{"type": "object", "properties": {"a": {"allOf": [{"$ref": "#"}, {"$ref": "#"}]}}}`, data},
		{`{"type": "object", "properties": {"a": {"$ref": "#"}}, "patternProperties": {"a": {"$ref": "#"}}}`, data},
		{`{"type": "object", "not": {"properties": {"a": {"$ref": "#/definitions/l"}}}, "definitions": {"l": {"items": {"$ref": "#/definitions/l"}, "contains": {"$ref": "#/definitions/l"}}}}`, map[string]any{"a": list}},
	}
	for _, tt := range tests {
		s := compiled(t, tt.schema)
		s.meter.limit /= 16
		f := invalid(t, s.Accepts("data", tt.data))
		if f.Field != "data" || f.Reason != errTooCostly.Error() {
			t.Errorf("%s: %v", tt.schema, f)
		}
	}
}

// TestLargeDataIsAffordable has far more data than a config needs.
func TestLargeDataIsAffordable(t *testing.T) {
	var addresses, ranges []any
	for i := range 5000 {
		addresses = append(addresses, fmt.Sprintf("host-%d.department.example.com", i))
		ranges = append(ranges, map[string]any{"low": i, "high": i + 1})
	}
	data := map[string]any{"protocols": []any{"tcp"}, "addresses": addresses, "portRanges": ranges}
	if err := builtin(t, "intercept.v1").Accepts("data", data); err != nil {
		t.Error(err)
	}
}
