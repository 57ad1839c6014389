package kind_test

import (
	"iter"
	"slices"
	"testing"

	"netkeep.internal/internal/lang/kind"
)

// wire is of a kind that no store knows.
type wire struct {
	kind.Meta
	Ends []string `json:"ends" kind:"server,ref=pole:cascade"`
}

type pole struct {
	kind.Meta
	Name string `json:"name" kind:"required"`
}

var (
	wires = kind.Define(kind.Spec[wire]{Name: "wire", Path: "wires", Lane: kind.Volatile, Verbs: kind.Lists | kind.Gets})
	poles = kind.Define(kind.Spec[pole]{Name: "pole", Path: "poles"})
)

// held is wires by id.
type held []*wire

func (h held) Lookup(id string) (kind.Record, bool) {
	for rec := range h.All() {
		if rec.Base().ID == id {
			return rec, true
		}
	}
	return nil, false
}

func (h held) All() iter.Seq[kind.Record] {
	return func(yield func(kind.Record) bool) {
		for _, w := range h {
			if !yield(w) {
				return
			}
		}
	}
}

func (h held) Len() int { return len(h) }

// TestSources reads a volatile kind as any other.
func TestSources(t *testing.T) {
	r := kind.Sources{wires.Def: held{
		{Meta: kind.Meta{ID: "1"}, Ends: []string{"a", "b"}}, {Meta: kind.Meta{ID: "2"}, Ends: []string{"b", "c"}}, {Meta: kind.Meta{ID: "3"}, Ends: []string{"c", "d"}},
	}}
	ids := func(seq iter.Seq[*wire]) (list []string) {
		for w := range seq {
			list = append(list, w.ID)
		}
		return list
	}
	if got := ids(wires.All(r)); !slices.Equal(got, []string{"1", "2", "3"}) || r.Len(wires.Def) != 3 {
		t.Errorf("all are %v", got)
	}
	if got := ids(wires.Select(r, "ends", "b")); !slices.Equal(got, []string{"1", "2"}) {
		t.Errorf("those at b are %v", got)
	}
	if first, ok := wires.Find(r, "ends", "c"); !ok || first.ID != "2" {
		t.Errorf("the first at c is %v", first)
	}
	if w, ok := wires.Get(r, "3"); !ok || w.Ends[1] != "d" {
		t.Errorf("the third is %v", w)
	}
	if w, ok := wires.Get(r, "4"); ok || w != nil {
		t.Errorf("there is a fourth: %v", w)
	}
	for range poles.All(r) {
		t.Error("there is one of a kind that nobody holds")
	}
	if _, ok := poles.Get(r, "1"); ok || r.Len(poles.Def) != 0 {
		t.Error("there are some of a kind that nobody holds")
	}
}

// TestVolatileNeedsNoRelease has a delete of a target not look for volatile
// records: who holds them sees to it.
func TestVolatileNeedsNoRelease(t *testing.T) {
	if refs := kind.NewCatalog(poles.Def, wires.Def).Referrers(poles.Def); len(refs) != 0 {
		t.Errorf("a delete of a pole looks at %v", refs)
	}
	wantPanic(t, `unknown kind "pole"`, func() { kind.NewCatalog(wires.Def) })
}

// TestVolatileMistakes refuses what nobody follows in a volatile kind.
func TestVolatileMistakes(t *testing.T) {
	type (
		sent struct {
			kind.Meta
			X string `json:"x"`
		}
		unique struct {
			kind.Meta
			X string `json:"x" kind:"server,unique"`
		}
		older struct {
			kind.Meta
			X string `json:"x" kind:"server,was=y"`
		}
	)
	const want = "a volatile record is neither sent nor stored"
	wantPanic(t, want, func() { kind.Define(kind.Spec[sent]{Name: "x", Lane: kind.Volatile}) })
	wantPanic(t, want, func() { kind.Define(kind.Spec[unique]{Name: "x", Lane: kind.Volatile}) })
	wantPanic(t, want, func() { kind.Define(kind.Spec[older]{Name: "x", Lane: kind.Volatile}) })
	const made = "nobody can create or change a volatile record"
	wantPanic(t, made, func() { kind.Define(kind.Spec[wire]{Name: "x", Lane: kind.Volatile, Verbs: kind.CRUD}) })
	wantPanic(t, made, func() { kind.Define(kind.Spec[wire]{Name: "x", Lane: kind.Volatile, InFiles: true}) })
}
