package kind_test

import (
	"bytes"
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"netkeep.internal/internal/lang/kind"
)

// cup and mug have the same fields, of which a mug keeps some apart.
type cup struct {
	kind.Meta
	Name string `json:"name"`
	Handle
}

type mug struct {
	kind.Meta
	_ kind.Uncopied `json:"-"`

	Name string `json:"name"`
	*Handle
}

// Handle has a field of every sort that matters to whether it says something.
type Handle struct {
	Side   string            `json:"side" kind:"default=left"`
	Cost   int               `json:"cost"`
	Broken bool              `json:"broken"`
	Words  []string          `json:"words" kind:"null"`
	Tools  []string          `json:"tools"`
	Sizes  map[string]int    `json:"sizes"`
	Notes  map[string]string `json:"notes"`
	Grip   Grip              `json:"grip"`
}

// Grip is a struct in it.
type Grip struct {
	Hard bool   `json:"hard"`
	Kind string `json:"kind"`
}

var (
	cups = kind.Define(kind.Spec[cup]{Name: "cup", Path: "cups", Doc: "A cup."})
	mugs = kind.Define(kind.Spec[mug]{Name: "mug", Path: "mugs", Doc: "A mug."})
)

// TestSeldom holds records that keep fields apart to those that do not: what is stored, read,
// cloned and kept of them is the same, and a write to a clone is nobody else's.
func TestSeldom(t *testing.T) {
	word := rapid.SampledFrom([]string{"", "a", "left"})
	fill := func(t *rapid.T, h *Handle) {
		if rapid.Bool().Draw(t, "nothing") {
			return
		}
		h.Side, h.Cost, h.Broken = word.Draw(t, "side"), rapid.IntRange(0, 1).Draw(t, "cost"), rapid.Bool().Draw(t, "broken")
		h.Words = rapid.SampledFrom([][]string{nil, {}, {"w"}}).Draw(t, "words")
		h.Tools = rapid.SampledFrom([][]string{nil, {}, {"t", "u"}}).Draw(t, "tools")
		h.Sizes = rapid.SampledFrom([]map[string]int{nil, {}, {"s": 1}}).Draw(t, "sizes")
		h.Grip = rapid.SampledFrom([]Grip{{}, {Hard: true}, {Kind: "k"}}).Draw(t, "grip")
	}
	stored := func(t *rapid.T, d *kind.Def, rec kind.Record) []byte {
		data, err := d.Encode(rec)
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	rapid.Check(t, func(t *rapid.T) {
		plain, apart := cups.New(), mugs.New()
		fill(t, &plain.Handle)
		*apart.Handle = plain.Handle
		want := stored(t, cups.Def, plain)
		read, err := mugs.Decode(want)
		if err != nil {
			t.Fatal(err)
		}
		kept := mugs.Kept(apart).(*mug)
		again := mugs.Kept(kept).(*mug)
		mugs.Settle(read)
		for what, rec := range map[string]kind.Record{
			"made": apart, "kept": kept, "kept again": again, "read": read, "cloned": mugs.Clone(kept), "cloned as it was": mugs.Clone(apart),
		} {
			if got := stored(t, mugs.Def, rec); !bytes.Equal(got, want) {
				t.Fatalf("%s: %s, want %s", what, got, want)
			}
		}
		if cmp.Equal(plain.Handle, cups.New().Handle) != (kept.Handle == mugs.Kept(mugs.New()).(*mug).Handle) && !hollow(plain.Handle) {
			t.Fatalf("%+v is kept as %p", plain.Handle, kept.Handle)
		}
		if kept.Handle != again.Handle {
			t.Fatal("it is another one when it is kept again")
		}
		for _, rec := range []*mug{mugs.Clone(kept).(*mug), mugs.Clone(read).(*mug), apart} {
			before := stored(t, mugs.Def, mugs.Kept(mugs.New()))
			rec.Side, rec.Cost, rec.Tools = "right", 7, append(rec.Tools, "x")
			if got := stored(t, mugs.Def, mugs.Kept(mugs.New())); !bytes.Equal(got, before) {
				t.Fatalf("a write to one made all others %s", got)
			}
		}
		if got := stored(t, mugs.Def, read); !bytes.Equal(got, want) {
			t.Fatalf("a write to others made it %s, want %s", got, want)
		}
	})
}

// hollow reports whether a handle says nothing, though in other words than none.
func hollow(h Handle) bool {
	return h.Side == "left" && h.Cost == 0 && !h.Broken && h.Words != nil && len(h.Words)+len(h.Tools)+len(h.Sizes) == 0 && h.Grip == Grip{}
}

// TestSeldomLiteral shows that a literal may leave out what is kept apart.
func TestSeldomLiteral(t *testing.T) {
	set := kind.NewCatalog(mugs.Def)
	rec := &mug{Name: "m"}
	if err := set.Validate(nil, mugs.Def, nil, rec); err != nil || rec.Handle == nil || rec.Side != "left" {
		t.Fatalf("got %+v, %v", rec.Handle, err)
	}
	bare := &mug{Name: "m"}
	got, err := mugs.Encode(bare)
	if want, failed := cups.Encode(&cup{Name: "m"}); err != nil || failed != nil || !bytes.Equal(got, want) {
		t.Fatalf("got %s, want %s, %v", got, want, err)
	}
	if c := mugs.Clone(&mug{}).(*mug); c.Handle == nil {
		t.Error("a clone has nothing to write to")
	}
	names := func(d *kind.Def) (all []string) {
		for _, f := range d.Fields {
			all = append(all, fmt.Sprint(f.Name, f.Form, f.Default))
		}
		return all
	}
	if !slices.Equal(names(mugs.Def), names(cups.Def)) {
		t.Errorf("the fields are %q, and not %q", names(mugs.Def), names(cups.Def))
	}
}
