package cow_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"netkeep.internal/internal/data/state/cow"
)

// TestTexts holds a set, and all that were copied from it, to one that is searched text by
// text.
func TestTexts(t *testing.T) {
	type texts = version[*cow.Texts, map[string]bool]
	piece := rapid.SampledFrom([]string{"a", "A", "b", "ab", "é", "É", "İ", "\x00", "-7", "7", strings.Repeat("x", 900), strings.Repeat("a", 5000)})
	text := rapid.Custom(func(t *rapid.T) string {
		return strings.Join(rapid.SliceOfN(piece, 1, 4).Draw(t, "pieces"), "")
	})
	part := rapid.Custom(func(t *rapid.T) string {
		return strings.Join(rapid.SliceOfN(rapid.SampledFrom([]string{"a", "A", "b", "é", "É", "i", "7", "x", "\x00", "\xc3"}), 1, 3).Draw(t, "letters"), "")
	})
	check := func(t *rapid.T, v texts) {
		part, folded := part.Draw(t, "part"), rapid.Bool().Draw(t, "folded")
		var want []string
		for s := range v.want {
			if !folded && strings.Contains(s, part) || folded && strings.Contains(strings.ToLower(s), strings.ToLower(part)) {
				want = append(want, s)
			}
		}
		slices.Sort(want)
		for _, down := range []bool{false, true} {
			got := slices.Collect(func(yield func(string) bool) { v.it.With(part, folded, down, yield) })
			if !slices.Equal(got, want) {
				t.Fatalf("with %q (folded %t, down %t) are %.300q, want %.300q", part, folded, down, got, want)
			}
			slices.Reverse(want)
		}
		if v.it.Len() != len(v.want) {
			t.Fatalf("there are %d, want %d", v.it.Len(), len(v.want))
		}
		if s := text.Draw(t, "text"); v.it.Has(s) != v.want[s] {
			t.Fatalf("has %.100q: %t", s, v.it.Has(s))
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		now := texts{cow.NewTexts(), map[string]bool{}}
		var old []texts
		t.Repeat(map[string]func(*rapid.T){
			"add": func(t *rapid.T) {
				for range 20 {
					s := text.Draw(t, "text")
					now.it.Add(s)
					now.want[s] = true
				}
			},
			"remove": func(t *rapid.T) {
				s := text.Draw(t, "any") // or of those that there are, those from it on
				for _, has := range slices.Sorted(maps.Keys(now.want)) {
					if has >= s && rapid.Bool().Draw(t, "remove") {
						now.it.Remove(has)
						delete(now.want, has)
					}
				}
				now.it.Remove(s)
				delete(now.want, s)
			},
			"make anew": func(*rapid.T) {
				now.it = cow.TextsOf(slices.Values(slices.Sorted(maps.Keys(now.want))))
			},
			"copy": func(*rapid.T) {
				old = append(old, now)
				now = texts{now.it.Copy(), maps.Clone(now.want)}
			},
			"": func(t *rapid.T) { check(t, now) },
		})
		for _, v := range old {
			check(t, v)
		}
	})
}
