package command

import (
	"bytes"
	"testing"
	"unicode"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/goccy/go-yaml"
	"pgregory.net/rapid"
)

// TestRendered writes texts of all sorts for a terminal: nothing in them acts on
// it, and they can be read back as they were.
func TestRendered(t *testing.T) {
	texts := rapid.OneOf(rapid.String(), rapid.StringOf(rapid.RuneFrom([]rune("ab \n\t\r\"'\\:#{[\x00\x1b\x7f\u0085\u009b\u202e\u2028\ufeff\U000e0001"))))
	rapid.Check(t, func(t *rapid.T) {
		want := map[string]string{"name": texts.Draw(t, "text"), texts.Draw(t, "member"): "x"}
		raw, err := json.Marshal(want)
		if err != nil {
			t.Fatal(err)
		}
		for _, form := range []string{formJSON, formYAML} {
			text, err := rendered(form, raw, true)
			if err != nil {
				t.Fatalf("%s of %s: %v", form, raw, err)
			}
			if bytes.ContainsFunc(text, func(r rune) bool { return r != '\n' && !unicode.IsPrint(r) }) {
				t.Fatalf("%s acts on a terminal: %q", form, text)
			}
			var got map[string]string
			read := yaml.UnmarshalWithOptions
			if form == formJSON {
				read = func(data []byte, v any, _ ...yaml.DecodeOption) error { return json.Unmarshal(data, v) }
			}
			if err := read(text, &got); err != nil || len(got) != len(want) {
				t.Fatalf("%s is read as %q (%v): %q", form, got, err, text)
			}
			for name, value := range want {
				if got[name] != value {
					t.Fatalf("%s is read as %q, want %q: %q", form, got, want, text)
				}
			}
		}
	})
}

// TestCell shows what answers hold as tables do: what refers to a record by its name,
// or by its id if it has none.
func TestCell(t *testing.T) {
	for raw, want := range map[string]string{
		`"2026-01-02T03:04:05.678Z"`: "2026-01-02T03:04:05Z",
		`true`:                       "yes",
		`null`:                       "",
		`["a","b"]`:                  "a,b",
		`{"_links":{},"entity":"services","id":"s1","name":"wiki"}`:                    "wiki",
		`{"_links":{},"entity":"api-sessions","id":"a1"}`:                              "a1",
		`[{"_links":{},"id":"s1","name":"wiki"},{"_links":{},"id":"a1","name":""}]`:    "wiki,a1",
		`{"_links":{"self":{"href":"./api-sessions/a1"}},"id":"a1","urlName":"where"}`: "a1",
	} {
		if got := cell(jsontext.Value(raw)); got != want {
			t.Errorf("%s is shown as %q, want %q", raw, got, want)
		}
	}
}
