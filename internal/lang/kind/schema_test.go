package kind_test

import (
	"maps"
	"slices"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/go-json-experiment/json"
	"pgregory.net/rapid"

	"netkeep.internal/internal/lang/kind"
)

// loadSchemas puts the schemas of widgets into a document, which must be
// valid, and returns them.
func loadSchemas(t *testing.T) openapi3.Schemas {
	t.Helper()
	detail, required := kind.Schema{}, []string{}
	for _, col := range columns {
		detail[col.Name] = col.Schema
		if !col.Optional {
			required = append(required, col.Name)
		}
	}
	schemas := kind.Schema{
		"detail": kind.Schema{"type": "object", "properties": detail, "required": required, "additionalProperties": false},
		"list":   kind.ListOf(kind.RefTo("detail")),
	}
	for name, s := range kind.Shared() {
		schemas[name] = s
	}
	for _, shape := range shapes {
		schemas[shape.String()] = widgets.BodySchema(shape)
	}
	data, err := json.Marshal(kind.Schema{
		"openapi": "3.0.3", "info": kind.Schema{"title": "Widgets", "version": "1"}, "paths": kind.Schema{},
		"components": kind.Schema{"schemas": schemas},
	})
	if err != nil {
		t.Fatal(err)
	}
	doc, err := openapi3.NewLoader().LoadFromData(data)
	if err != nil {
		t.Fatal(err)
	}
	if err := doc.Validate(t.Context(), openapi3.EnableSchemaFormatValidation()); err != nil {
		t.Fatal(err)
	}
	return doc.Components.Schemas
}

// TestSchemas shows that a schema allows the bodies that are accepted, and
// that answers are what their schema says.
func TestSchemas(t *testing.T) {
	schemas := loadSchemas(t)
	r := newWorld(newMaker("a"))
	rapid.Check(t, func(t *rapid.T) {
		shape := rapid.SampledFrom(shapes).Draw(t, "shape")
		body := drawBody(t, shape)
		if rapid.Bool().Draw(t, "odd") {
			name := rapid.SampledFrom(memberNames).Draw(t, "odd member")
			body[name] = genJSON.Draw(t, "odd value")
		}
		w := new(widget)
		if shape != kind.Create {
			w = widgets.Clone(wheel).(*widget)
		}
		stayWithin(body, w.Type)
		if !applyTo(t, w, shape, body) {
			return
		}
		data := kind.AppendAny(nil, body)
		if err := schemas[shape.String()].Value.VisitJSON(parse(t, data)); err != nil {
			t.Errorf("%s accepts %s, its schema does not: %v", shape, data, err)
		}
		data = appendAll(nil, columns, r, w)
		if err := schemas["detail"].Value.VisitJSON(parse(t, data)); err != nil {
			t.Errorf("the answer %s is not what its schema says: %v", data, err)
		}
	})
}

var (
	wheel       = &widget{Name: "w", Mode: "slow", Type: "wheel", Size: size{Width: 1, Unit: "mm"}}
	memberNames = slices.Sorted(maps.Keys(widgets.BodySchema(kind.Create)["properties"].(kind.Schema)))
)

// stayWithin removes what is accepted beyond the schema: empty texts for
// defaults and members of another variant.
func stayWithin(body map[string]any, typ string) {
	if sent, ok := body["type"].(string); ok {
		typ = sent
	}
	if typ != "disk" {
		delete(body, "bytes")
	}
	if typ != "wheel" {
		delete(body, "spokes")
		delete(body, "tube")
		delete(body, "gear")
	}
	if body["mode"] == "" {
		delete(body, "mode")
	}
	if s, ok := body["size"].(map[string]any); ok && s["unit"] == "" {
		delete(s, "unit")
	}
}

// TestBodySchemas shows what a schema says of each word.
func TestBodySchemas(t *testing.T) {
	tests := []struct {
		shape kind.Shape
		path  []string
		want  string // nothing if the schema must not have it
	}{
		{kind.Create, []string{"required"}, `["name","serial"]`},
		{kind.Replace, []string{"required"}, `["count","name"]`},
		{kind.Patch, []string{"required"}, `["note"]`},
		{kind.Create, []string{"properties", "name"}, `{"maxLength":8,"minLength":1,"type":"string"}`},
		{kind.Patch, []string{"properties", "name"}, `{"maxLength":8,"minLength":1,"nullable":true,"type":"string"}`},
		{kind.Create, []string{"properties", "serial"}, `{"type":"string"}`},
		{kind.Replace, []string{"properties", "serial"}, ``},
		{kind.Patch, []string{"properties", "serial"}, ``},
		{kind.Create, []string{"properties", "digest"}, ``},
		{kind.Create, []string{"properties", "id"}, ``},
		{kind.Create, []string{"properties", "key"}, `{"maxLength":6,"minLength":3,"nullable":true,"type":"string"}`},
		{kind.Create, []string{"properties", "owner"}, `{"nullable":true,"type":"string"}`},
		{kind.Create, []string{"properties", "ownerName"}, ``},
		{kind.Create, []string{"properties", "mode"}, `{"default":"slow","enum":["slow","fast"],"nullable":true,"type":"string"}`},
		{kind.Create, []string{"properties", "active"}, `{"default":true,"nullable":true,"type":"boolean"}`},
		{kind.Create, []string{"properties", "level"}, `{"default":3,"nullable":true,"type":"integer"}`},
		{kind.Create, []string{"properties", "count"}, `{"maximum":5,"minimum":-5,"nullable":true,"type":"integer"}`},
		{kind.Create, []string{"properties", "site"}, `{"format":"uri","nullable":true,"type":"string"}`},
		{kind.Create, []string{"properties", "made"}, `{"format":"date-time","nullable":true,"type":"string"}`},
		{kind.Create, []string{"properties", "blob"}, `{"format":"byte","nullable":true,"type":"string"}`},
		{kind.Create, []string{"properties", "colors"}, `{"items":{"enum":["red","green","blue"],"type":"string"},"maxItems":3,"minItems":0,"nullable":true,"type":"array"}`},
		{kind.Create, []string{"properties", "prices", "additionalProperties"}, `{"maximum":99,"minimum":0,"type":"integer"}`},
		{kind.Create, []string{"properties", "grades", "additionalProperties"}, `{"enum":["good","bad"],"type":"string"}`},
		{kind.Create, []string{"properties", "switches", "additionalProperties"}, `{"type":"boolean"}`},
		{kind.Create, []string{"properties", "data"}, `{"nullable":true,"type":"object"}`},
		{kind.Create, []string{"properties", "size", "required"}, `["width"]`},
		{kind.Patch, []string{"properties", "size", "required"}, ``},
		{kind.Create, []string{"properties", "size", "properties", "origin"}, `{"nullable":true,"type":"string"}`},
		{kind.Patch, []string{"properties", "size", "properties", "origin"}, ``},
		{kind.Patch, []string{"properties", "size", "properties", "unit"}, `{"default":"mm","nullable":true,"type":"string"}`},
		{kind.Patch, []string{"properties", "parts", "items", "required"}, `["code"]`},
		{kind.Patch, []string{"properties", "parts", "items", "properties", "lot"}, ``},
		{kind.Create, []string{"properties", "bytes"}, `{"type":"integer"}`},
	}
	for _, tt := range tests {
		var at any = parse(t, kind.AppendAny(nil, widgets.BodySchema(tt.shape)))
		for _, name := range tt.path {
			members, _ := at.(map[string]any)
			at = members[name]
		}
		got := ""
		if at != nil {
			got = string(kind.AppendAny(nil, at))
		}
		if got != tt.want {
			t.Errorf("%s %v: got %s, want %s", tt.shape, tt.path, got, tt.want)
		}
	}
}

// TestAnswerSchemas does the same for answers.
func TestAnswerSchemas(t *testing.T) {
	want := map[string]string{
		"name":      `{"type":"string"}`,
		"mode":      `{"enum":["slow","fast"],"type":"string"}`,
		"type":      `{"type":"string"}`,
		"ownerName": `{"nullable":true,"type":"string"}`,
		"maker":     `{"allOf":[{"$ref":"#/components/schemas/entityRef"}],"description":"Name and address of the maker that makerId refers to.","nullable":true,"type":"object"}`,
		"backup":    `{"allOf":[{"$ref":"#/components/schemas/entityRef"}],"description":"Name and address of the maker that backupId refers to.","type":"object"}`,
		"made":      `{"format":"date-time","type":"string"}`,
		"sold":      `{"format":"date-time","nullable":true,"type":"string"}`,
		"seen":      `{"format":"date-time","type":"string"}`,
		"level":     `{"type":"integer"}`,
		"box":       `{"nullable":true,"properties":{"depth":{"type":"integer"},"label":{"type":"string"},"stamps":{"items":{"type":"string"},"nullable":true,"type":"array"}},"required":["depth","label","stamps"],"type":"object"}`,
		"parts":     `{"items":{"properties":{"code":{"type":"string"},"lot":{"type":"string"},"qty":{"type":"integer"}},"required":["code","lot","qty"],"type":"object"},"type":"array"}`,
	}
	optional := map[string]bool{
		"site": true, "backupId": true, "backup": true, "seen": true, "bytes": true, "spokes": true, "tube": true, "gear": true, "checked": true,
	}
	for _, col := range columns {
		if w, ok := want[col.Name]; ok && w != string(kind.AppendAny(nil, col.Schema)) {
			t.Errorf("%s: got %s, want %s", col.Name, kind.AppendAny(nil, col.Schema), w)
		}
		delete(want, col.Name)
		if col.Optional != optional[col.Name] {
			t.Errorf("%s: optional is %t", col.Name, col.Optional)
		}
	}
	if len(want) > 0 {
		t.Errorf("no columns for %v", want)
	}
}
