package document

import (
	"bytes"
	"errors"
	"reflect"
	"strings"
	"testing"
	"unicode"

	"github.com/go-json-experiment/json"
	"github.com/goccy/go-yaml"
	"pgregory.net/rapid"
)

// text is what the library can read back, which leaves out control characters.
var text = rapid.StringMatching(`[ -~éß\n]{0,12}`)

// documents are JSON values in objects, as specifications are.
var documents = rapid.MapOf(text, rapid.Deferred(func() *rapid.Generator[any] { return values(3) }))

func values(depth int) *rapid.Generator[any] {
	word := rapid.SampledFrom([]string{"", "a", "Yes", "no", "null", "~", "-", "#x", "1", "1e3", "0x1", "a: b", "a #b", " a", "{}", "2006-01-02", "\n", "é\u2028"})
	all := []*rapid.Generator[any]{
		rapid.Custom(func(t *rapid.T) any { return word.Draw(t, "word") }),
		rapid.Custom(func(t *rapid.T) any { return text.Draw(t, "text") }),
		rapid.Custom(func(t *rapid.T) any { return rapid.Bool().Draw(t, "bool") }),
		rapid.Custom(func(t *rapid.T) any { return float64(rapid.IntRange(-1000, 1000).Draw(t, "number")) }),
		rapid.Just(any(nil)),
	}
	if depth > 0 {
		next := rapid.Deferred(func() *rapid.Generator[any] { return values(depth - 1) })
		all = append(all,
			rapid.Custom(func(t *rapid.T) any { return rapid.SliceOfN(next, 0, 3).Draw(t, "list") }),
			rapid.Custom(func(t *rapid.T) any { return rapid.MapOfN(word, next, 0, 3).Draw(t, "object") }))
	}
	return rapid.OneOf(all...)
}

// TestYAML reads what was written with a library.
func TestYAML(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := documents.Draw(t, "document")
		data, err := json.Marshal(want, json.Deterministic(true))
		if err != nil {
			t.Fatal(err)
		}
		written, err := YAML(data)
		if err != nil {
			t.Fatal(err)
		}
		if bytes.ContainsFunc(written, func(r rune) bool { return r != '\n' && !unicode.IsPrint(r) }) {
			t.Fatalf("it acts on a terminal: %q", written)
		}
		var read, got map[string]any
		if err := yaml.Unmarshal(written, &read); err != nil {
			t.Fatalf("%v in:\n%s", err, written)
		}
		// The numbers of both are those of JSON then.
		back, err := json.Marshal(read)
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(back, &got); err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(got, want) {
			t.Fatalf("got %v, want %v, from:\n%s", got, want, written)
		}
	})
}

// TestYAMLForms shows how values look.
func TestYAMLForms(t *testing.T) {
	for text, want := range map[string]string{
		`"a"`:                                    "a\n",
		`"a\nb"`:                                 `"a\nb"` + "\n",
		`[]`:                                     "[]\n",
		`{}`:                                     "{}\n",
		`[1, "a b", true, null]`:                 "[1, a b, true, null]\n",
		`{"a":{},"b":[]}`:                        "a: {}\nb: []\n",
		`{"a":{"b":["#x"]}}`:                     "a:\n  b: [\"#x\"]\n",
		`{"a":[[1],{"b":2,"c":[{}]}]}`:           "a:\n  - [1]\n  - b: 2\n    c:\n      - {}\n",
		`{"a":"x\ny\n","b":["x\ny",{}]}`:         "a: |\n  x\n  y\nb:\n  - |-\n    x\n    y\n  - {}\n",
		`{"a":"\u001b\ud83d\udc4d\udb40\udc01"}`: `a: "\u001b👍\U000e0001"` + "\n",
	} {
		if got, err := YAML([]byte(text)); err != nil || string(got) != want {
			t.Errorf("%s is written as %q (%v), want %q", text, got, err, want)
		}
	}
	for _, text := range []string{``, `{`, `[1,`, `{"a"`, `nonsense`} {
		if got, err := YAML([]byte(text)); err == nil {
			t.Errorf("%s is written as %q", text, got)
		}
	}
	deep := strings.Repeat("[", 10*MaxDepth) + strings.Repeat("]", 10*MaxDepth)
	var excess *Excess
	if _, err := YAML([]byte(deep)); !errors.As(err, &excess) {
		t.Errorf("lists in lists in lists: %v", err)
	}
}
