package kind_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"netkeep.internal/internal/lang/fault"
	"netkeep.internal/internal/lang/kind"
)

var columns = shop.Columns(widgets.Def)

// TestColumns shows a record with everything and one with nothing as answers
// do.
func TestColumns(t *testing.T) {
	all := create(t, full)
	all.ID, all.CreatedAt, all.UpdatedAt = "w1", kind.MomentOf(time.Unix(1, 0)), kind.MomentOf(time.Unix(2, 0))
	seen := time.Unix(3, 0)
	all.Seen, all.Digest, all.Rank, all.Size.Probe, all.Parts[0].Lot, all.Checked = &seen, "d", 3, "p", "l", "c"
	r := newWorld(newMaker("m1"), newMaker("m2"))
	var got strings.Builder
	for _, w := range []*widget{all, {}} {
		text := jsontext.Value(appendAll(nil, columns, r, w))
		if err := text.Indent(); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		fmt.Fprintf(&got, "%s\n", text)
	}
	golden(t, "answers.golden", got.String())
}

// parse returns what a JSON text holds, without repeated names at any depth.
func parse(t interface {
	Helper()
	Fatalf(string, ...any)
}, text []byte) (v any) {
	t.Helper()
	if err := json.Unmarshal(text, &v); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return v
}

// TestAnswersParse renders any records, with texts that are not UTF-8 too.
func TestAnswersParse(t *testing.T) {
	r := newWorld(newMaker("a"), newMaker("\xffx"))
	rapid.Check(t, func(t *rapid.T) {
		w := genWidget.Draw(t, "widget")
		w.Owner, w.MakerID = genBytes.Draw(t, "owner"), genBytes.Draw(t, "maker")
		w.Tags = kind.Tags{genBytes.Draw(t, "key"): genBytes.Draw(t, "value"), "n": []any{genBytes.Draw(t, "deep")}}
		w.Grades = map[string]string{genBytes.Draw(t, "grade"): genBytes.Draw(t, "of")}
		w.Roles = append(w.Roles, "#"+genBytes.Draw(t, "role"), "@a")
		got := parse(t, appendAll(nil, columns, r, w)).(map[string]any)
		for _, col := range columns {
			if _, there := got[col.Name]; !there && !col.Optional {
				t.Errorf("%s is missing", col.Name)
			}
		}
		if want := string([]rune(w.Owner)); want != "" && got["ownerName"] != want {
			t.Errorf("the owner %q is shown as %q", w.Owner, got["ownerName"])
		}
		if got["count"] != float64(w.Count) || got["active"] != w.Active || got["name"] != w.Name {
			t.Errorf("got %v of %+v", got, w)
		}
	})
}

// genBytes is texts, many of them not UTF-8.
var genBytes = rapid.Custom(func(t *rapid.T) string {
	return genText.Draw(t, "text") + string(rapid.SliceOfN(rapid.Byte(), 0, 3).Draw(t, "bytes"))
})

func TestAppendText(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := genBytes.Draw(t, "text")
		var got string
		if err := json.Unmarshal(kind.AppendText(nil, s), &got); err != nil {
			t.Fatal(err)
		}
		// Converting to runes replaces every byte that is not UTF-8.
		if want := string([]rune(s)); got != want {
			t.Errorf("%q reads as %q, want %q", s, got, want)
		}
	})
	for s, want := range map[string]string{"": `""`, "a/<b>": `"a/<b>"`, `"\`: `"\"\\"`, "\x00\n": `"\u0000\n"`, "a\xffb": "\"a\ufffdb\"", "é": `"é"`} {
		if got := string(kind.AppendText([]byte("x"), s)); got != "x"+want {
			t.Errorf("%q: got %s, want x%s", s, got, want)
		}
	}
}

// Times are written as the standard library would.
func TestAppendTimeProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		at := time.Unix(rapid.Int64Range(-100_000_000_000, 300_000_000_000).Draw(t, "seconds"), rapid.Int64Range(0, 999_999_999).Draw(t, "nanoseconds"))
		want := at.UTC().Format(`"2006-01-02T15:04:05.000Z"`)
		if got := string(kind.AppendTime(nil, at)); got != want {
			t.Errorf("%v is written %s, want %s", at, got, want)
		}
	})
}

func TestAppendTime(t *testing.T) {
	zone := time.FixedZone("", 2*60*60)
	for want, at := range map[string]time.Time{
		`"0001-01-01T00:00:00.000Z"`: {},
		`"2023-04-26T10:11:12.000Z"`: time.Date(2023, 4, 26, 10, 11, 12, 0, time.UTC),
		`"2023-04-26T10:11:12.345Z"`: time.Date(2023, 4, 26, 12, 11, 12, 345_999_999, zone),
		`"2023-04-26T10:11:12.007Z"`: time.Date(2023, 4, 26, 10, 11, 12, 7_000_000, time.UTC),
	} {
		if got := string(kind.AppendTime(nil, at)); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

// TestOneOrder shows that maps are read and shown in one order.
func TestOneOrder(t *testing.T) {
	const tags, prices = `{"a":1,"b":1,"c":1,"d":1,"e":1,"f":1,"g":1}`, `{"a":-1,"b":-1,"c":-1,"d":-1,"e":-1,"f":-1,"g":-1}`
	for range 20 {
		refused(t, kind.Create, bodyWith(kind.Create, `"tags":`+tags), fault.CodeInvalid, "tags.a")
		refused(t, kind.Create, bodyWith(kind.Create, `"prices":`+prices), fault.CodeInvalid, "prices.a")
		w := &widget{Meta: kind.Meta{Tags: kind.Tags{}}, Prices: map[string]int64{}}
		for _, key := range strings.Split("gfedcba", "") {
			w.Tags[key], w.Prices[key] = 1, -1
		}
		answer := string(appendAll(nil, columns, world{}, w))
		if !strings.Contains(answer, `"tags":`+tags) || !strings.Contains(answer, `"prices":`+prices) {
			t.Fatalf("got %s", answer)
		}
	}
}

func TestAppendAny(t *testing.T) {
	for want, v := range map[string]any{
		`null`: nil, `"a"`: "a", `true`: true, `1`: 1, `{"a":[1,"x"],"b":null}`: map[string]any{"b": nil, "a": []any{1, "x"}},
		"[\"\ufffd\"]": []string{"\xff"}, `[null]`: []any{nil},
	} {
		if got := string(kind.AppendAny(nil, v)); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	if got := string(kind.AppendAny(nil, make(chan int))); got != "null" {
		t.Errorf("got %s for what JSON cannot say", got)
	}
}

func TestAppendMember(t *testing.T) {
	raw := func(s string) func([]byte) []byte { return func(dst []byte) []byte { return append(dst, s...) } }
	dst := []byte("{")
	for _, v := range []string{"", "1", "", "2"} {
		dst = kind.AppendMember(dst, "a"+v, raw(v))
	}
	if got := string(dst); got != `{"a1":1,"a2":2` {
		t.Errorf("got %s", got)
	}
	if got := string(kind.AppendTexts(nil, []string{"a", `"`})); got != `["a","\""]` {
		t.Errorf("got %s", got)
	}
	if got := string(kind.AppendTexts(nil, nil)); got != `[]` {
		t.Errorf("got %s", got)
	}
}

func TestAppendRef(t *testing.T) {
	r := newWorld(newMaker("m1"))
	for want, got := range map[string][]byte{
		`{"_links":{"self":{"href":"./makers/m1"}},"entity":"makers","id":"m1","name":"maker m1"}`: kind.AppendRef(nil, r, makers.Def, "m1"),
		`{"_links":{"self":{"href":"./makers/m9"}},"entity":"makers","id":"m9"}`:                   kind.AppendRef(nil, r, makers.Def, "m9"),
		`{"_links":{"self":{"href":"./plains/p1"}},"entity":"plains","id":"p1"}`:                   kind.AppendRef(nil, r, plains.Def, "p1"),
	} {
		if string(got) != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
}

// TestRolesForReading shows the names of roles, and leaves out what is gone.
func TestRolesForReading(t *testing.T) {
	r := newWorld(newMaker("m1"))
	w := &widget{Roles: []string{"#a", "@m9", "@m1", "@"}}
	for _, col := range columns {
		if col.Name == "rolesDisplay" {
			const want = `[{"name":"#a","role":"#a"},{"name":"@maker m1","role":"@m1"}]`
			if got := string(col.Append(nil, r, w)); got != want {
				t.Errorf("got %s, want %s", got, want)
			}
			return
		}
	}
	t.Error("no column for reading")
}

func TestOutput(t *testing.T) {
	type answer struct {
		Code   string     `json:"code" kind:"secret"`
		List   []string   `json:"list"`
		Map    kind.Tags  `json:"map"`
		At     *time.Time `json:"at"`
		Gone   *time.Time `json:"gone" kind:"omit"`
		Number int        `json:"number" kind:"out=n"`
		Empty  []string   `json:"empty" kind:"omit"`
		Null   []string   `json:"null" kind:"nullable"`
	}
	out := kind.NewOutput[answer]()
	// An empty list is as good as none.
	for _, list := range [][]string{nil, {}} {
		const want = `{"list":[],"map":{},"at":null,"n":0,"null":null}`
		if got := string(out.Append(nil, &answer{List: list, Empty: list, Null: list})); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	if got, want := string(out.Append(nil, &answer{Code: "hush", Number: 3})), `{"list":[],"map":{},"at":null,"n":3,"null":null}`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	want := []any{"at", "list", "map", "n", "null"}
	s := parse(t, kind.AppendAny(nil, out.Schema())).(map[string]any)
	if diff := cmp.Diff(want, s["required"]); diff != "" {
		t.Error(diff)
	}
	if text := kind.AppendAny(nil, s); bytes.Contains(text, []byte("code")) || !bytes.Contains(text, []byte("gone")) {
		t.Errorf("got %s", text)
	}
}
