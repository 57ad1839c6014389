package manifest

import (
	"math"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"netkeep.internal/internal/lang/document"
)

// someText is one of the texts that writers of YAML get wrong.
func someText() *rapid.Generator[string] {
	return rapid.OneOf(
		rapid.String(),
		rapid.StringMatching(`[ -~]{0,20}`),
		rapid.StringMatching(`[a-z #@:\-\[\]{},&*!|>'"%\\\n\t]{0,30}`),
		rapid.SampledFrom([]string{"", "yes", "No", "null", "~", "true", "1", "0x10", "1e3", "-", "---", "...", "? a", "a: b", "- a", "#all", "@bob", "a #b", " a", "a ",
			"2024-01-01", ".inf", "=", "<<", "a\nb", "a\nb\n", "a\n\nb\n", "-----BEGIN X-----\nAA==\n-----END X-----\n", "\u2028", "\ufeffx", "\x00", "😀", "a\r\nb", "\\", "\u0085"}),
	)
}

// someValue is any JSON value.
func someValue(depth int) *rapid.Generator[*value] {
	return rapid.Custom(func(t *rapid.T) *value {
		kinds := 6
		if depth == 0 {
			kinds = 4
		}
		switch rapid.IntRange(0, kinds-1).Draw(t, "kind") {
		case 0:
			return &value{scalar: quote(nil, strings.ToValidUTF8(someText().Draw(t, "text"), "?"))}
		case 1:
			return &value{scalar: []byte(strconv.FormatInt(rapid.Int64().Draw(t, "int"), 10))}
		case 2:
			f := rapid.Float64().Filter(func(f float64) bool { return !math.IsInf(f, 0) && !math.IsNaN(f) }).Draw(t, "float")
			return &value{scalar: []byte(strconv.FormatFloat(f, 'g', -1, 64))}
		case 3:
			return &value{scalar: []byte(rapid.SampledFrom([]string{"true", "false", "null", "1.0", "-0", "1E5", "12345678901234567890123"}).Draw(t, "word"))}
		case 4:
			return &value{list: true, items: rapid.SliceOfN(someValue(depth-1), 0, 4).Draw(t, "items")}
		}
		v := &value{}
		for _, name := range rapid.SliceOfNDistinct(someText(), 0, 4, rapid.ID[string]).Draw(t, "names") {
			v.members = append(v.members, member{name: strings.ToValidUTF8(name, "?"), value: someValue(depth-1).Draw(t, "member")})
		}
		return v
	})
}

// TestWrittenIsRead writes values and reads them again.
func TestWrittenIsRead(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := &value{members: []member{{name: "top", value: someValue(3).Draw(t, "value")}}}
		text, err := document.YAML(v.json())
		if err != nil {
			t.Fatal(err)
		}
		docs, err := parse("f", text)
		if err != nil || len(docs) != 1 {
			t.Fatalf("%v, %d documents\n%s", err, len(docs), text)
		}
		if want, got := string(v.appendJSON(nil)), string(docs[0].appendJSON(nil)); got != want {
			t.Fatalf("wrote %s\nread  %s\n%s", want, got, text)
		}
	})
}
