package api_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
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
		at = members[part]
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
