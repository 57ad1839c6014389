package schema

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// TestRandomSchemas builds schemas from all keywords, with references that
// cross, loop and lead nowhere. None may panic or answer differently when
// asked again.
func TestRandomSchemas(t *testing.T) {
	var accepted, refused, invalidSchemas int
	rapid.Check(t, func(r *rapid.T) {
		doc := randomSchema(r, 3)
		doc["type"] = "object"
		doc["definitions"] = map[string]any{"a": randomSubschema(r, 2), "b": randomSubschema(r, 2)}
		if draft := rapid.SampledFrom([]string{"", "", "http://json-schema.org/draft-04/schema#", "http://json-schema.org/draft-06/schema#",
			"https://json-schema.org/draft/2019-09/schema", "https://json-schema.org/draft/2020-12/schema"}).Draw(r, "draft"); draft != "" {
			doc["$schema"] = draft
		}
		s, err := Compile("schema", doc)
		if err != nil {
			if f := invalid(r, err); f.Field != "schema" || f.Reason == "" {
				r.Fatalf("Compile: %#v", f)
			}
			invalidSchemas++
			return
		}
		data := map[string]any{"a": randomData(r, 3), "b": randomData(r, 2)}
		err = s.Accepts("data", data)
		if err == nil {
			accepted++
			return
		}
		refused++
		if diff := cmp.Diff(invalid(r, err), invalid(r, s.Accepts("data", data))); diff != "" {
			r.Fatalf("the second answer differs:\n%s", diff)
		}
	})
	t.Logf("%d accepted, %d refused, %d invalid schemas", accepted, refused, invalidSchemas)
	if accepted == 0 || refused == 0 || invalidSchemas == 0 {
		t.Errorf("%d accepted, %d refused, %d invalid schemas: the generator is too narrow", accepted, refused, invalidSchemas)
	}
}

func randomSubschema(r *rapid.T, depth int) any {
	if rapid.IntRange(0, 9).Draw(r, "bool") == 0 {
		return rapid.Bool().Draw(r, "schema")
	}
	return randomSchema(r, depth)
}

func randomSchema(r *rapid.T, depth int) map[string]any {
	doc := make(map[string]any)
	for range rapid.IntRange(0, 3).Draw(r, "keywords") {
		if depth == 0 || rapid.Bool().Draw(r, "leaf") {
			assertion(r, doc)
		} else {
			applicator(r, depth-1, doc)
		}
	}
	return doc
}

// assertion sets a keyword without subschemas.
func assertion(r *rapid.T, doc map[string]any) {
	number := rapid.SampledFrom([]any{0, 1, 2, 0.5, -1, 1e300, "1", nil})
	size := rapid.SampledFrom([]any{0, 1, 2, 3, 1.0, 1e300, -1, true})
	name := rapid.SampledFrom([]string{"a", "b", "c"})
	switch key := rapid.SampledFrom([]string{
		"type", "enum", "const", "format", "pattern", "multipleOf", "minimum", "maximum", "exclusiveMinimum", "minLength", "maxLength",
		"minItems", "maxItems", "uniqueItems", "minProperties", "required", "minContains", "dependentRequired",
		"$ref", "$ref", "$ref", "$recursiveRef", "$dynamicRef", "$id", "id", "$anchor", "$dynamicAnchor", "$recursiveAnchor", "title",
	}).Draw(r, "assertion"); key {
	case "type":
		doc[key] = rapid.SampledFrom([]any{"string", "object", "array", "integer", []any{"null", "number"}, "other"}).Draw(r, key)
	case "enum":
		doc[key] = []any{randomData(r, 1), randomData(r, 1)}
	case "const":
		doc[key] = randomData(r, 1)
	case "format":
		doc[key] = rapid.SampledFrom([]string{"ipv4", "cidr", "regex", "uri", "other"}).Draw(r, key)
	case "pattern":
		doc[key] = rapid.SampledFrom([]string{"^a", "b$", "", "(", "(a?){50}"}).Draw(r, key)
	case "multipleOf", "minimum", "maximum", "exclusiveMinimum":
		doc[key] = number.Draw(r, key)
	case "uniqueItems", "$recursiveAnchor":
		doc[key] = rapid.Bool().Draw(r, key)
	case "required":
		doc[key] = []any{name.Draw(r, key)}
	case "dependentRequired":
		doc[key] = map[string]any{name.Draw(r, key): []any{name.Draw(r, key)}}
	case "$ref", "$recursiveRef", "$dynamicRef":
		doc[key] = rapid.SampledFrom([]string{"#", "#/definitions/a", "#/definitions/b", "#x", "x", "x#/not", "#/allOf/0", "#/definitions", "#/type", "%", "//h"}).Draw(r, key)
	case "$id", "id":
		doc[key] = rapid.SampledFrom([]string{"x", "y", "#x", "urn:x", "http://h/x", "/", "%", ""}).Draw(r, key)
	case "$anchor", "$dynamicAnchor", "title":
		doc[key] = rapid.SampledFrom([]string{"x", "y"}).Draw(r, key)
	default:
		doc[key] = size.Draw(r, key)
	}
}

// applicator sets a keyword with subschemas.
func applicator(r *rapid.T, depth int, doc map[string]any) {
	sub := func() any { return randomSubschema(r, depth) }
	switch key := rapid.SampledFrom([]string{
		"allOf", "anyOf", "oneOf", "not", "if", "then", "else", "properties", "patternProperties", "additionalProperties", "propertyNames",
		"dependencies", "dependentSchemas", "items", "prefixItems", "additionalItems", "contains", "unevaluatedProperties", "unevaluatedItems",
	}).Draw(r, "applicator"); key {
	case "allOf", "anyOf", "oneOf", "prefixItems":
		doc[key] = []any{sub(), sub()}
	case "properties", "patternProperties", "dependencies", "dependentSchemas":
		doc[key] = map[string]any{"a": sub(), "b": sub()}
	default:
		doc[key] = sub()
	}
}

func randomData(r *rapid.T, depth int) any {
	if depth > 0 {
		switch rapid.IntRange(0, 2).Draw(r, "container") {
		case 0:
			return []any{randomData(r, depth-1), randomData(r, depth-1)}
		case 1:
			return map[string]any{"a": randomData(r, depth-1), "c": randomData(r, depth-1)}
		}
	}
	return rapid.SampledFrom([]any{nil, true, "", "a", "1.2.3.4", "(", 0, 1, 2.5, -1}).Draw(r, "scalar")
}
