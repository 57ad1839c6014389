package state

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"netkeep.internal/internal/lang/kind"
)

// filled has every way in which a record can be found.
type filled struct {
	kind.Meta
	Name   string         `json:"name" kind:"unique,searched"`
	Zone   string         `json:"zone" kind:"index"`
	Floor  string         `json:"floor" kind:"index,few"`
	Lists  []string       `json:"lists" kind:"ref=filled:clear"`
	Others []string       `json:"others" kind:"ref=filled:clear,few"`
	Map    map[string]int `json:"map" kind:"ref=filled:clear"`
	Traits []string       `json:"traits" kind:"attributes"`
}

func (f *filled) Ranked() (group, place string) { return f.Zone + "\x00", f.Name }

var (
	filleds    = kind.Define(kind.Spec[filled]{Name: "filled", Path: "filleds", Doc: "A record."})
	filledsSet = kind.NewCatalog(filleds.Def)
)

// TestFill holds tables that are filled at once, and what is then made of them by writes, to
// those into which one row is put after the other.
func TestFill(t *testing.T) {
	word := rapid.OneOf(
		rapid.SampledFrom([]string{"", "a", "b", "ab", "a\x00", "a\x00b", "é", "\xff"}),
		rapid.StringOfN(rapid.SampledFrom([]rune{'a', 'b', '\x00', '0', 'é'}), 0, 12, -1),
		rapid.Map(rapid.IntRange(0, 999), func(n int) string { return fmt.Sprintf("name-of-the-%03d", n) }),
	)
	record := func(t *rapid.T, id string) *row {
		rec := &filled{
			Meta: kind.Meta{ID: id}, Name: word.Draw(t, "name"), Zone: word.Draw(t, "zone"), Floor: word.Draw(t, "floor"),
			Others: rapid.SliceOfN(word, 0, 3).Draw(t, "others"),
			Lists:  rapid.SliceOfN(word, 0, 3).Draw(t, "list"), Map: rapid.MapOfN(word, rapid.Just(1), 0, 2).Draw(t, "map"),
			Traits: rapid.SliceOfNDistinct(word, 0, 3, rapid.ID[string]).Draw(t, "traits"),
		}
		return &row{id: id, rec: rec}
	}
	rapid.Check(t, func(t *rapid.T) {
		at, one := newSnapshot(filledsSet), newSnapshot(filledsSet)
		var rows []*row
		for _, id := range rapid.SliceOfNDistinct(rapid.StringMatching(`[a-e]{1,4}`), 0, 200, rapid.ID[string]).Draw(t, "ids") {
			rows = append(rows, record(t, id))
		}
		for _, r := range slices.SortedFunc(slices.Values(rows), func(a, b *row) int { return strings.Compare(a.id, b.id) }) {
			copied := *r
			one.tables[0].put(nil, &copied)
		}
		at.fill([][]*row{rows})
		sameTables(t, at.tables[0], one.tables[0])
		for range rapid.IntRange(0, 20).Draw(t, "writes") {
			if n := at.Len(filleds.Def); n > 0 && rapid.Bool().Draw(t, "delete") {
				r, _ := at.tables[0].rows.At(rapid.IntRange(0, n-1).Draw(t, "which"))
				at.tables[0].delete(r)
				one.tables[0].delete(one.tables[0].get(r.id))
				continue
			}
			r := record(t, rapid.StringMatching(`[a-f]{1,4}`).Draw(t, "id"))
			copied := *r
			at.tables[0].put(at.tables[0].get(r.id), r)
			one.tables[0].put(one.tables[0].get(r.id), &copied)
		}
		sameTables(t, at.tables[0], one.tables[0])
		for id, right := range at.Filing(filleds.Def) {
			if !right {
				t.Fatalf("%q is not found as it should be", id)
			}
		}
	})
}

// sameTables fails if two tables do not hold the same in every respect.
func sameTables(t *rapid.T, a, b *table) {
	same := func(what, a, b string) {
		if a != b {
			t.Fatalf("%s: %q, want %q", what, a, b)
		}
	}
	same("rows", shown(a), shown(b))
	for i, index := range a.def.Indexes {
		same(index.Name, entriesOf(a, i), entriesOf(b, i))
		if (a.texts[i] == nil) != (b.texts[i] == nil) {
			t.Fatalf("texts of %s: %t", index.Name, a.texts[i] == nil)
		}
		if a.texts[i] != nil {
			same("texts of "+index.Name, textsOf(a, i), textsOf(b, i))
		}
	}
	same("attributes", attributesOf(a), attributesOf(b))
	same("free ordinals", fmt.Sprint(slices.Collect(a.free.All()), a.next), fmt.Sprint(slices.Collect(b.free.All()), b.next))
	same("ranks", ranksOf(a), ranksOf(b))
}

func shown(t *table) string {
	var s strings.Builder
	for r := range t.rows.All() {
		fmt.Fprintf(&s, "%q %d %v\n", r.id, r.ord, r.rec)
	}
	for r := range t.byOrd.All() {
		fmt.Fprintf(&s, "%d %q\n", r.ord, r.id)
	}
	return s.String()
}

func entriesOf(t *table, index int) string {
	var s strings.Builder
	for key, r := range t.indexes[index].all() {
		fmt.Fprintf(&s, "%q %q %t\n", key, r.id, t.get(r.id) == r)
	}
	return fmt.Sprint(s.String(), t.indexes[index].len())
}

func textsOf(t *table, index int) string {
	var all []string
	t.texts[index].With("", false, false, func(s string) bool {
		all = append(all, s)
		return true
	})
	return fmt.Sprintf("%q %d", all, t.texts[index].Len())
}

func attributesOf(t *table) string {
	var s strings.Builder
	for key := range t.bits.Keys() {
		fmt.Fprintf(&s, "%q %v\n", key, t.bits.Get(key).ToArray())
	}
	return fmt.Sprint(s.String(), t.bits.Len())
}

func ranksOf(t *table) string {
	var s strings.Builder
	for e := range t.ranked.tree.All() {
		fmt.Fprintf(&s, "%q %q\n", e.key, e.row.id)
	}
	for g := range t.ranked.groups.All() {
		fmt.Fprintf(&s, "%q %d\n", g.group, g.n)
	}
	return s.String()
}

// TestInOrder holds the order of entries to that of their keys and ids.
func TestInOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		keys := rapid.SliceOfN(rapid.StringOfN(rapid.SampledFrom([]rune{'a', '\x00', 'z'}), 0, 20, -1), 0, 60).Draw(t, "keys")
		entries := make([]entry, len(keys))
		for i, key := range keys {
			entries[i] = entry{"the same " + key, &row{id: fmt.Sprintf("%02d", i)}}
		}
		want := slices.Clone(entries)
		slices.SortFunc(want, func(a, b entry) int { return cmp.Or(cmp.Compare(a.key, b.key), cmp.Compare(a.row.id, b.row.id)) })
		if got := inOrder(entries); !slices.Equal(got, want) {
			t.Fatalf("got %v, want %v", got, want)
		}
	})
}
