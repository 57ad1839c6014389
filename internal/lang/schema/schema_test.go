package schema

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"netkeep.internal/internal/lang/fault"
)

// object reads a JSON object.
func object(t testing.TB, text string) map[string]any {
	t.Helper()
	var v map[string]any
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return v
}

// Compile compiles a schema that was not compiled before.
func Compile(field string, schema map[string]any) (*Schema, error) {
	return new(Compiler).Compile(field, schema)
}

// compiled compiles a schema that must be good.
func compiled(t testing.TB, text string) *Schema {
	t.Helper()
	s, err := Compile("schema", object(t, text))
	if err != nil {
		t.Fatalf("Compile(%s): %v", text, err)
	}
	return s
}

// failer is what a test and a property have in common.
type failer interface {
	Helper()
	Fatalf(format string, args ...any)
}

// invalid returns the fault of a field that err must be.
func invalid(t failer, err error) *fault.Error {
	t.Helper()
	f, ok := errors.AsType[*fault.Error](err)
	if !ok || f.Code != fault.CodeInvalid {
		t.Fatalf("error = %v, want a fault of code %s", err, fault.CodeInvalid)
	}
	return f
}

func TestCompile(t *testing.T) {
	deep := strings.Repeat(`{"not":`, maxDepth) + `{}` + strings.Repeat(`}`, maxDepth)
	tests := []struct{ name, schema, reason string }{
		{"root type", `{"type": "object"}`, ""},
		{"no root type", `{"properties": {}}`, `must have the root type "object"`},
		{"other root type", `{"type": "array"}`, `must have the root type "object"`},
		{"root types", `{"type": ["object", "null"]}`, `must have the root type "object"`},
		{"reference in the document", `{"type": "object", "properties": {"a": {"$ref": "#/definitions/b"}}, "definitions": {"b": {}}}`, ""},
		{"reference to the root", `{"type": "object", "additionalProperties": {"$ref": "#"}}`, ""},
		{"reference by own id", `{"type": "object", "$id": "http://169.254.169.254/a", "properties": {"a": {"$ref": "a#/definitions/b"}}, "definitions": {"b": {}}}`, ""},
		{"reference to nothing", `{"type": "object", "properties": {"a": {"$ref": "#/definitions/b"}}}`, `"#/definitions/b" not found`},
		{"reference to a draft", `{"type": "object", "properties": {"a": {"$ref": "http://json-schema.org/draft-07/schema#"}}}`, ""},
		{"unknown keyword value", `{"type": "object", "properties": {"a": {"type": "text"}}}`, `is not a JSON schema: properties.a.type must be one of "array", `},
		{"wrong keyword type", `{"type": "object", "required": "a"}`, "is not a JSON schema: required must be of type array"},
		{"bad pattern", `{"type": "object", "properties": {"a": {"pattern": "("}}}`, "properties.a.pattern must be a regular expression: error parsing regexp"},
		{"pattern outside RE2", `{"type": "object", "properties": {"a": {"pattern": "(a)\\1"}}}`, "properties.a.pattern must be a regular expression: error parsing regexp"},
		{"huge pattern", `{"type": "object", "properties": {"a": {"pattern": "(abcde){1000}"}}}`, "properties.a.pattern must be a regular expression: more than 4096"},
		{"huge pattern of names", `{"type": "object", "patternProperties": {"(abcde){1000}": {}}}`, "is not a JSON schema: it must not have a member named \"(abcde){1000}\""},
		{"too deep", `{"type": "object", "not": ` + deep + `}`, "must be nested at most 64 deep"},
		{"too long", `{"type": "object", "description": "` + strings.Repeat("a", maxSize) + `"}`, "must have at most 65536 bytes"},
		{"too many values", `{"type": "object", "enum": [0` + strings.Repeat(",0", maxValues) + `]}`, "must hold at most 4096 values"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := Compile("schema", object(t, tt.schema))
			if tt.reason == "" {
				if err != nil {
					t.Fatalf("Compile: %v", err)
				}
				return
			}
			f := invalid(t, err)
			if f.Field != "schema" || !strings.Contains(f.Reason, tt.reason) {
				t.Errorf("Compile: %s %s, want schema ... %s ...", f.Field, f.Reason, tt.reason)
			}
			if strings.Contains(f.Reason, location) || len(f.Reason) > maxText+len("…") {
				t.Errorf("reason %q shows our location or is too long", f.Reason)
			}
		})
	}
}

func TestCompileNotJSON(t *testing.T) {
	for name, value := range map[string]any{
		"type":         struct{}{},
		"infinite":     math.Inf(1),
		"not a number": math.NaN(),
		"huge number":  json.Number("1e400"),
		"no number":    json.Number("one"),
		"bytes":        "\xff",
		"name":         map[string]any{"\xff": 1},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Compile("schema", map[string]any{"type": "object", "default": []any{value}})
			if f := invalid(t, err); f.Field != "schema" {
				t.Errorf("field = %q", f.Field)
			}
		})
	}
}

func TestEmptySchema(t *testing.T) {
	for name, doc := range map[string]map[string]any{"nil": nil, "empty": {}} {
		t.Run(name, func(t *testing.T) {
			s, err := Compile("schema", doc)
			if err != nil {
				t.Fatal(err)
			}
			for _, data := range []string{`{}`, `{"a": [1, null, {"b": "c"}]}`} {
				if err := s.Accepts("data", object(t, data)); err != nil {
					t.Errorf("Accepts(%s): %v", data, err)
				}
			}
			if f := invalid(t, s.Accepts("data", nil)); f.Field != "data" {
				t.Errorf("field of no data = %q", f.Field)
			}
		})
	}
}

func TestDrafts(t *testing.T) {
	tests := []struct{ uri, schema, good, bad string }{
		{"", `"propertyNames": {"maxLength": 1}, "if": {"required": ["a"]}, "then": {"required": ["b"]}`, `{"a": 1, "b": 1}`, `{"a": 1}`},
		{"http://json-schema.org/draft-07/schema#", `"if": {"required": ["a"]}, "then": {"required": ["b"]}`, `{"a": 1, "b": 1}`, `{"a": 1}`},
		{"https://json-schema.org/draft-07/schema", `"if": {"required": ["a"]}, "then": {"required": ["b"]}`, `{"a": 1, "b": 1}`, `{"a": 1}`},
		{"http://json-schema.org/draft-06/schema#", `"properties": {"a": {"const": 1}}`, `{"a": 1}`, `{"a": 2}`},
		{"http://json-schema.org/draft-04/schema#", `"properties": {"a": {"maximum": 1, "exclusiveMaximum": true}}`, `{"a": 0}`, `{"a": 1}`},
		{"https://json-schema.org/draft/2019-09/schema", `"dependentRequired": {"a": ["b"]}, "properties": {"i": {"format": "ipv4"}}`, `{"a": 1, "b": 1}`, `{"i": "x"}`},
		{"https://json-schema.org/draft/2020-12/schema", `"properties": {"a": {"prefixItems": [{"format": "ipv4"}]}}`, `{"a": ["1.2.3.4"]}`, `{"a": ["x"]}`},
		{"http://json-schema.org/schema#", `"properties": {"a": {"prefixItems": [{"type": "string"}]}}`, `{"a": ["b"]}`, `{"a": [1]}`},
	}
	for _, tt := range tests {
		t.Run(tt.uri, func(t *testing.T) {
			draft := ""
			if tt.uri != "" {
				draft = fmt.Sprintf(`"$schema": %q,`, tt.uri)
			}
			s := compiled(t, `{`+draft+`"type": "object", `+tt.schema+`}`)
			if err := s.Accepts("data", object(t, tt.good)); err != nil {
				t.Errorf("Accepts(%s): %v", tt.good, err)
			}
			if err := s.Accepts("data", object(t, tt.bad)); err == nil {
				t.Errorf("Accepts(%s): nil", tt.bad)
			}
			// Each draft checks nested schemas too.
			_, err := Compile("schema", object(t, `{`+draft+`"type": "object", "properties": {"a": {"not": {"type": 5}}}}`))
			if f := invalid(t, err); !strings.Contains(f.Reason, "properties.a.not.type") {
				t.Errorf("reason of a bad nested schema = %q", f.Reason)
			}
		})
	}
}

func TestUnknownDraft(t *testing.T) {
	for _, uri := range []string{
		"http://json-schema.org/draft-03/schema#",
		"https://json-schema.org/draft/2020-12/meta/core",
		"http://json-schema.org/draft-07/schema#/definitions",
		"http://example.com/schema",
		"http://169.254.169.254/latest/meta-data",
		location,
		"draft-07",
		"",
	} {
		_, err := Compile("schema", map[string]any{"type": "object", "$schema": uri})
		f := invalid(t, err)
		if !strings.Contains(f.Reason, "unknown $schema") || f.Value != uri {
			t.Errorf("Compile with $schema %q: %v, value %v", uri, f, f.Value)
		}
	}
}

// TestNothingIsFetched points every way in which a schema can name another
// document at documents that exist and are good schemas.
func TestNothingIsFetched(t *testing.T) {
	var fetched atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fetched.Add(1)
		fmt.Fprint(w, `{"type": "object", "definitions": {"a": {}}}`)
	}))
	defer server.Close()
	path := filepath.Join(t.TempDir(), "schema.json")
	if err := os.WriteFile(path, []byte(`{"type": "object", "definitions": {"a": {}}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	urls := []string{
		server.URL,
		server.URL + "/schema.json#/definitions/a",
		"http://169.254.169.254/latest/meta-data/",
		"https://metadata.google.internal/computeMetadata/v1/",
		"file://" + path,
		(&url.URL{Scheme: "file", Path: path, Fragment: "/definitions/a"}).String(),
		path,
		"schema.json",
		"//" + strings.TrimPrefix(server.URL, "http://"),
		"urn:example:schema",
		"data:application/json,{}",
		"http://json-schema.org/draft-03/schema",
	}
	shapes := map[string]string{
		"$ref":          `{"type": "object", "properties": {"a": {"$ref": %q}}}`,
		"$ref at root":  `{"type": "object", "$ref": %q}`,
		"$ref from $id": `{"type": "object", "$id": "` + server.URL + `/root.json", "properties": {"a": {"$ref": %q}}}`,
		"$recursiveRef": `{"$schema": "https://json-schema.org/draft/2019-09/schema", "type": "object", "properties": {"a": {"$recursiveRef": %q}}}`,
		"$dynamicRef":   `{"$schema": "https://json-schema.org/draft/2020-12/schema", "type": "object", "properties": {"a": {"$dynamicRef": %q}}}`,
		"inner $schema": `{"$schema": "https://json-schema.org/draft/2020-12/schema", "type": "object", "properties": {"a": {"$id": "b", "$schema": %q}}}`,
	}
	for name, shape := range shapes {
		for _, u := range urls {
			t.Run(name+" "+u, func(t *testing.T) {
				_, err := Compile("schema", object(t, fmt.Sprintf(shape, u)))
				if f := invalid(t, err); f.Field != "schema" {
					t.Errorf("field = %q", f.Field)
				}
			})
		}
	}
	if n := fetched.Load(); n != 0 {
		t.Errorf("%d documents were fetched", n)
	}
}

func TestCompileKeepsACopy(t *testing.T) {
	doc := object(t, `{"type": "object", "required": ["a"], "properties": {"a": {"enum": [1]}}}`)
	s, err := Compile("schema", doc)
	if err != nil {
		t.Fatal(err)
	}
	doc["properties"].(map[string]any)["a"].(map[string]any)["enum"].([]any)[0] = 2
	clear(doc)
	if err := s.Accepts("data", map[string]any{"a": 1}); err != nil {
		t.Errorf("Accepts after a change of the document: %v", err)
	}
	if err := s.Accepts("data", map[string]any{"a": 2}); err == nil {
		t.Error("the compiled schema changed with the document")
	}
}

func TestCompilerRemembers(t *testing.T) {
	numbered := func(i int) map[string]any { return map[string]any{"type": "object", "maxProperties": i} }
	var c Compiler
	get := func(i int) *Schema {
		s, err := c.Compile("schema", numbered(i))
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	first := get(0)
	for i := range 10 * generation {
		if get(0) != first {
			t.Fatalf("schema in use was forgotten after %d others", i)
		}
		s := get(1 + i)
		if got := get(1 + i); got != s {
			t.Fatalf("schema %d was compiled twice in a row", i)
		}
		if err := s.Accepts("data", map[string]any{"a": 1}); err != nil {
			t.Fatalf("schema %d: %v", i, err)
		}
	}
	if n := len(c.young) + len(c.old); n > 2*generation {
		t.Errorf("the cache holds %d schemas", n)
	}
	if again := get(1); again == nil || again.Accepts("data", map[string]any{"a": 1, "b": 2}) == nil {
		t.Error("a forgotten schema came back as another")
	}
	for range 2 {
		_, err := c.Compile("schema", map[string]any{"type": "array"})
		invalid(t, err)
		_, err = c.Compile("schema", object(t, `{"type": "object", "required": 1}`))
		invalid(t, err)
	}
}

// TestConcurrent shares a compiler and its schemas; the race detector
// watches.
func TestConcurrent(t *testing.T) {
	var c Compiler
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			for i := range 50 {
				limit := (g + i) % 40
				s, err := c.Compile("schema", object(t, fmt.Sprintf(`{"type": "object", "properties": {"a": {"maximum": %d}}}`, limit)))
				if err != nil {
					t.Error(err)
					return
				}
				if err := s.Accepts("data", map[string]any{"a": limit}); err != nil {
					t.Errorf("%d: %v", limit, err)
				}
				if err := s.Accepts("data", map[string]any{"a": limit + 1}); err == nil {
					t.Errorf("%d: no error", limit)
				}
			}
		})
	}
	wg.Wait()
}
