package api_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// visit calls fn with every object of a document and where it is.
func visit(at string, v any, fn func(at string, o M)) {
	switch v := v.(type) {
	case M:
		fn(at, v)
		for _, name := range slices.Sorted(maps.Keys(v)) {
			visit(at+"/"+name, v[name], fn)
		}
	case []any:
		for i, item := range v {
			visit(fmt.Sprintf("%s/%d", at, i), item, fn)
		}
	}
}

// lookup returns what a reference inside of a document leads to.
func lookup(doc any, ref string) M {
	at := doc
	for part := range strings.SplitSeq(strings.TrimPrefix(ref, "#/"), "/") {
		members, _ := at.(M)
		at = members[strings.ReplaceAll(part, "~1", "/")]
	}
	found, _ := at.(M)
	return found
}

// sentence reports whether something is told in whole sentences.
func sentence(v any) bool {
	s, _ := v.(string)
	return strings.Contains(s, " ") && strings.HasSuffix(s, ".") && s[:1] == strings.ToUpper(s[:1])
}

// forDocuments runs a test for both specifications.
func forDocuments(t *testing.T, test func(t *testing.T, doc M)) {
	for _, id := range specIDs {
		t.Run(id, func(t *testing.T) { test(t, served(t, id, "application/json").JSON.(M)) })
	}
}

// TestOpenAPIDescribes wants a sentence of everything that somebody can send
// or see.
func TestOpenAPIDescribes(t *testing.T) {
	forDocuments(t, func(t *testing.T, doc M) {
		described := func(o M) bool {
			if ref, ok := o["$ref"].(string); ok {
				o = lookup(doc, ref)
			}
			return sentence(o["description"])
		}
		n := 0
		visit("#", doc, func(at string, o M) {
			properties, _ := o["properties"].(M)
			for _, name := range slices.Sorted(maps.Keys(properties)) {
				n++
				if !described(properties[name].(M)) {
					t.Errorf("%s: property %s does not say what it is", at, name)
				}
			}
			if _, is := o["in"]; is && !described(o) {
				t.Errorf("%s: parameter %v does not say what it is", at, o["name"])
			}
			if _, is := o["operationId"]; is && (!sentence(o["summary"]) || !sentence(o["description"])) {
				t.Errorf("%s: operation %v does not say what it does", at, o["operationId"])
			}
		})
		if n < 200 {
			t.Errorf("found only %d properties", n)
		}
		t.Logf("%d properties", n)
	})
}

// TestOpenAPIIsStrict looks for what lenient tools overlook and strict ones
// stumble over.
func TestOpenAPIIsStrict(t *testing.T) {
	forDocuments(t, func(t *testing.T, doc M) {
		visit("#", doc, func(at string, o M) {
			if ref, is := o["$ref"].(string); is {
				if lookup(doc, ref) == nil {
					t.Errorf("%s: %s leads nowhere", at, ref)
				}
				if len(o) > 1 {
					t.Errorf("%s: nobody reads what stands beside a reference", at)
				}
			}
			if o["nullable"] == true && o["type"] == nil {
				t.Errorf("%s: without a type nullable says nothing", at)
			}
			// A null passes an allOf only if each of its parts lets it.
			parts, _ := o["allOf"].([]any)
			for _, part := range parts {
				ref, _ := part.(M)["$ref"].(string)
				if o["nullable"] == true && lookup(doc, ref)["nullable"] != true {
					t.Errorf("%s: %s cannot be null", at, ref)
				}
			}
			if required, is := o["required"].([]any); is {
				properties, _ := o["properties"].(M)
				for _, name := range required {
					if properties[name.(string)] == nil {
						t.Errorf("%s: there is no property %v that could be required", at, name)
					}
				}
			}
		})
	})
}

// eachOperation calls fn with every operation of a document.
func eachOperation(doc M, fn func(at string, op M)) {
	visit("#", doc, func(at string, o M) {
		if _, is := o["operationId"]; is {
			fn(at, o)
		}
	})
}

// TestOpenAPIOperations checks what generators make of operations: names,
// credentials and failures.
func TestOpenAPIOperations(t *testing.T) {
	forDocuments(t, func(t *testing.T, doc M) {
		schemes := lookup(doc, "#/components/securitySchemes")
		for name, header := range map[string]string{"netSession": "net-session", "ztSession": "zt-session"} {
			want := M{"type": "apiKey", "in": "header", "name": header}
			for member, value := range want {
				if got := lookup(schemes, name)[member]; got != value {
					t.Errorf("security scheme %s: %s is %v, want %v", name, member, got, value)
				}
			}
		}
		taken := map[string]string{}
		eachOperation(doc, func(at string, op M) {
			id := strings.ToLower(op["operationId"].(string))
			if taken[id] != "" {
				t.Errorf("%s: operation id %s is that of %s", at, id, taken[id])
			}
			taken[id] = at
			want := []any{M{"netSession": []any{}}, M{"ztSession": []any{}}}
			if op["x-access"] == "anonymous" {
				want = []any{}
			}
			if diff := cmp.Diff(any(want), op["security"]); diff != "" {
				t.Errorf("%s: credentials differ (-want +got):\n%s", at, diff)
			}
			failures := op["responses"].(M)
			for _, status := range []string{"4XX", "5XX"} {
				if ref, _ := failures[status].(M)["$ref"].(string); !sentence(lookup(doc, ref)["description"]) {
					t.Errorf("%s: nobody says what %s means", at, status)
				}
			}
		})
	})
}

// answerOf returns the schema of the data that an operation answers with, and
// whether it is a list of it.
func answerOf(op M) (ref string, list bool) {
	success, _ := op["responses"].(M)["200"].(M)
	data := lookup(success["content"], "application~1json/schema/properties/data")
	if items, is := data["items"].(M); is {
		data, list = items, true
	}
	ref, _ = data["$ref"].(string)
	return ref, list
}

// TestOpenAPIParameters wants in the document what operations that show
// records can be asked.
func TestOpenAPIParameters(t *testing.T) {
	forDocuments(t, func(t *testing.T, doc M) {
		lists := 0
		eachOperation(doc, func(at string, op M) {
			has := map[any]bool{}
			params, _ := op["parameters"].([]any)
			for _, p := range params {
				has[p.(M)["name"]] = true
			}
			shown, list := answerOf(op)
			if list && shown != "" {
				lists++
				for _, name := range []string{"limit", "offset", "filter", "sort"} {
					if !has[name] {
						t.Errorf("%s: a list lacks the parameter %s", at, name)
					}
				}
			}
			if strings.HasSuffix(shown, "/serviceDetail") && !has["configTypes"] {
				t.Errorf("%s: it shows services and lacks the parameter configTypes", at)
			}
			if has["roleFilter"] != has["roleSemantic"] {
				t.Errorf("%s: it has only one of the parameters roleFilter and roleSemantic", at)
			}
		})
		if lists < 5 {
			t.Errorf("found only %d lists", lists)
		}
	})
}

// TestOpenAPILists wants every list of every answer to be there, empty or not:
// there are clients that walk through a list without a look whether it is. Null are
// those alone that nulls names, for tools. What
// servers answer in tests is held to the document, so that it is so in fact.
// Posture checks have the lists of their type alone.
func TestOpenAPILists(t *testing.T) {
	forDocuments(t, func(t *testing.T, doc M) {
		lists, seen := 0, map[string]bool{}
		var walk func(at string, schema M)
		walk = func(at string, schema M) {
			if ref, is := schema["$ref"].(string); is {
				if seen[ref] {
					return
				}
				seen[ref], at, schema = true, ref, lookup(doc, ref)
			}
			required, _ := schema["required"].([]any)
			properties, _ := schema["properties"].(M)
			for _, name := range slices.Sorted(maps.Keys(properties)) {
				p := properties[name].(M)
				if ref, is := p["$ref"].(string); is && lookup(doc, ref)["type"] == "array" {
					p = lookup(doc, ref)
				}
				if p["type"] == "array" && !strings.HasSuffix(at, "/postureCheckDetail") {
					lists++
					schema := strings.TrimPrefix(at, "#/components/schemas/")
					if !slices.Contains(required, any(name)) || (p["nullable"] == true) != mayBeNull(doc, schema, name) {
						t.Errorf("%s: the list %s may be absent or null, or is never null and should be", at, name)
					}
				}
				walk(at+"/"+name, p)
			}
			for _, word := range []string{"items", "additionalProperties"} {
				if inner, is := schema[word].(M); is {
					walk(at+"/"+word, inner)
				}
			}
			for _, word := range []string{"allOf", "anyOf", "oneOf"} {
				parts, _ := schema[word].([]any)
				for _, part := range parts {
					walk(at+"/"+word, part.(M))
				}
			}
		}
		eachOperation(doc, func(at string, op M) {
			for status, answer := range op["responses"].(M) {
				content, _ := answer.(M)["content"].(M)
				if schema := lookup(content, "application~1json/schema"); schema != nil && status < "3" {
					walk(at, schema)
				}
			}
		})
		if lists < 10 {
			t.Errorf("found only %d lists", lists)
		}
		t.Logf("%d lists", lists)
	})
}
