package kind_test

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"netkeep.internal/internal/lang/kind"
)

// shelf has lists for which bodies may say null, and one for which that says nothing.
type shelf struct {
	kind.Meta

	Words  []string `json:"words" kind:"attributes,null"`
	Makers []string `json:"makers" kind:"ref=maker:clear,null"`
	Other  []string `json:"other"`
}

var shelves = kind.Define(kind.Spec[shelf]{Name: "shelf", Path: "shelves", Doc: "A thing with lists."})

// listed is what a list is: null, or its entries.
func listed(list []string) string {
	if list == nil {
		return "null"
	}
	return "[" + strings.Join(list, " ") + "]"
}

// TestSaidNull holds against a model what bodies make of a list with the word null: a
// create and a replace take null for what it says, and what is absent for an empty list;
// a patch leaves the list in both cases. Storage keeps what is, and so does a copy.
func TestSaidNull(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rec, want := shelves.New(), "[]"
		for n := range rapid.IntRange(1, 6).Draw(t, "bodies") {
			shape := shapes[rapid.IntRange(0, 2).Draw(t, "shape")]
			if n == 0 {
				shape = kind.Create
			}
			said := rapid.SampledFrom([]string{"", "null", "[]", `["a"]`, `["b","a"]`}).Draw(t, "said")
			body := "{}"
			if said != "" {
				body = `{"words":` + said + `,"other":` + said + `}`
			}
			b, err := kind.ReadBody([]byte(body))
			if err != nil {
				t.Fatal(err)
			}
			if err := shelves.Apply(shape, rec, b); err != nil {
				t.Fatal(err)
			}
			switch {
			case said == `["a"]`:
				want = "[a]"
			case said == `["b","a"]`:
				want = "[a b]"
			case said == "[]" || said == "" && shape != kind.Patch:
				want = "[]"
			case said == "null" && shape != kind.Patch:
				want = "null"
			}
			stored, err := shelves.Encode(rec)
			if err != nil {
				t.Fatal(err)
			}
			back, err := shelves.Decode(stored)
			if err != nil {
				t.Fatal(err)
			}
			again, err := shelves.Encode(back)
			if err != nil || string(again) != string(stored) {
				t.Fatalf("two texts for one record (%v): %s and %s", err, stored, again)
			}
			for _, r := range []*shelf{rec, back.(*shelf), shelves.Clone(back).(*shelf)} {
				if got := listed(r.Words); got != want {
					t.Fatalf("%s %s made %s, want %s; stored as %s", shape, body, got, want, stored)
				}
				if shelves.Attributes.SaidNull(r) != (want == "null") {
					t.Fatalf("%s is told to be null, or not to be", want)
				}
			}
			if said := strings.Contains(string(stored), "null"); said != (want == "null") || strings.Contains(string(stored), "[]") {
				t.Fatalf("%s is stored as %s", want, stored)
			}
			rec = back.(*shelf)
		}
	})
}

// TestNullStored has lists that stored records lack read as empty, as those were of all
// records before lists could be null, and so has a list that a rule has emptied.
func TestNullStored(t *testing.T) {
	for stored, want := range map[string]string{
		`{"id":"s"}`:                "[]",
		`{"id":"s","words":null}`:   "null",
		`{"id":"s","words":[]}`:     "[]",
		`{"id":"s","words":["x"]}`:  "[x]",
		`{"id":"s","other":null}`:   "[]",
		`{"id":"s","makers":["m"]}`: "[]",
	} {
		rec, err := shelves.Decode([]byte(stored))
		if err != nil {
			t.Fatal(err)
		}
		if got := listed(rec.(*shelf).Words); got != want {
			t.Errorf("%s is read as %s, want %s", stored, got, want)
		}
	}
}

// TestNullCompared shows where null and an empty list differ: in what is kept of a
// change, which the past is made of, and nowhere where people are told of changes.
func TestNullCompared(t *testing.T) {
	null, empty := &shelf{Words: nil, Makers: []string{}}, &shelf{Words: []string{}, Makers: []string{}}
	for _, pair := range [][2]*shelf{{null, empty}, {empty, null}} {
		if all := shelves.Differences(pair[0], pair[1]); len(all) > 0 {
			t.Errorf("people are told of %+v", all)
		}
	}
	d, err := shelves.Delta(null, empty)
	if err != nil || string(d.Before) != `{"words":null}` || string(d.After) != `{}` {
		t.Errorf("kept are %s and %s (%v)", d.Before, d.After, err)
	}
	if d, err = shelves.Delta(empty, null); err != nil || string(d.Before) != `{}` || string(d.After) != `{"words":null}` {
		t.Errorf("kept are %s and %s (%v)", d.Before, d.After, err)
	}
	if d, err = shelves.Delta(null, null); err != nil || string(d.Before) != `{}` || string(d.After) != `{}` {
		t.Errorf("kept are %s and %s of what is the same (%v)", d.Before, d.After, err)
	}
	for _, rec := range []*shelf{null, empty} {
		for _, m := range shelves.Members(rec, kind.Create) {
			if slices.Contains([]string{"words", "makers", "other"}, m.Field.Last()) && string(m.Text) != "[]" {
				t.Errorf("who compares reads %s as %s", m.Field.Last(), m.Text)
			}
		}
	}
}
