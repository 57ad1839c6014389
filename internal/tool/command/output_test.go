package command

import (
	"bytes"
	"testing"
	"unicode"

	"github.com/go-json-experiment/json"
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
