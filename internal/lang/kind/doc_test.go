package kind_test

import (
	"testing"

	"netkeep.internal/internal/lang/kind"
)

// lamp says of each field what it is.
type lamp struct {
	Color string `json:"color" kind:"enum=red|green" doc:"What it looks like."`
	Bulbs []bulb `json:"bulbs" doc:"What shines."`
	Shade *bulb  `json:"shade" doc:"What stands before it."`
	Plug  string `json:"plug"`
}

type bulb struct {
	Watts int `json:"watts" doc:"How much it takes."`
}

// TestDocs shows that a field says what it is in bodies and in answers.
func TestDocs(t *testing.T) {
	in := kind.NewInput[lamp]()
	if got := in.Fields[0].Doc; got != "What it looks like." {
		t.Errorf("the field says %q", got)
	}
	want := map[string]string{"color": "What it looks like.", "bulbs": "What shines.", "shade": "What stands before it.", "plug": ""}
	for form, s := range map[string]kind.Schema{"body": in.BodySchema(), "answer": kind.NewOutput[lamp]().Schema()} {
		props := s["properties"].(kind.Schema)
		for name, doc := range want {
			if got, _ := props[name].(kind.Schema)["description"].(string); got != doc {
				t.Errorf("%s: %s is described as %q, want %q", form, name, got, doc)
			}
		}
		item := props["bulbs"].(kind.Schema)["items"].(kind.Schema)
		for holder, s := range map[string]kind.Schema{"bulbs": item, "shade": props["shade"].(kind.Schema)} {
			watts := s["properties"].(kind.Schema)["watts"].(kind.Schema)
			if watts["description"] != "How much it takes." {
				t.Errorf("%s: the member of %s is described as %v", form, holder, watts["description"])
			}
		}
	}
}

func TestDescribed(t *testing.T) {
	text := kind.Schema{"type": "string"}
	for _, tt := range []struct {
		schema kind.Schema
		doc    string
		want   string
	}{
		{text, "A text.", `{"description":"A text.","type":"string"}`},
		{text, "", `{"type":"string"}`},
		{kind.RefTo("x"), "An x.", `{"allOf":[{"$ref":"#/components/schemas/x"}],"description":"An x.","type":"object"}`},
		{kind.RefTo("x"), "", `{"$ref":"#/components/schemas/x"}`},
	} {
		if got := string(kind.AppendAny(nil, kind.Described(tt.schema, tt.doc))); got != tt.want {
			t.Errorf("got %s, want %s", got, tt.want)
		}
	}
	if len(text) != 1 {
		t.Errorf("a schema that others use was changed: %v", text)
	}
}
