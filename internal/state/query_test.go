package state_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"netkeep/internal/filter"
	"netkeep/internal/kind"
	"netkeep/internal/state"
	"netkeep/internal/store/storetest"
)

// drawFilter draws the text of a predicate over people.
func drawFilter(t *rapid.T, depth int) string {
	some := rapid.SampledFrom([]string{"", "a", "b", "c", "d", "f", "ann", "bob"})
	value := func() string { return fmt.Sprintf("%q", some.Draw(t, "value")) }
	kinds := []string{"equal", "equal", "in", "other", "set"}
	if depth > 0 {
		kinds = append(kinds, "and", "or", "not", "and", "or")
	}
	field := rapid.SampledFrom([]string{"id", "name", "badge", "home", "boss"})
	switch rapid.SampledFrom(kinds).Draw(t, "predicate") {
	case "equal":
		return field.Draw(t, "field") + " = " + value()
	case "in":
		values := make([]string, rapid.IntRange(1, 3).Draw(t, "values"))
		for i := range values {
			values[i] = value()
		}
		return field.Draw(t, "field") + " in [" + strings.Join(values, ", ") + "]"
	case "set":
		return rapid.SampledFrom([]string{"anyOf", "allOf"}).Draw(t, "quantor") + "(traits) = " + fmt.Sprintf("%q", someTrait.Draw(t, "trait"))
	case "and":
		return "(" + drawFilter(t, depth-1) + ") and (" + drawFilter(t, depth-1) + ")"
	case "or":
		return "(" + drawFilter(t, depth-1) + ") or (" + drawFilter(t, depth-1) + ")"
	case "not":
		return "not (" + drawFilter(t, depth-1) + ")"
	}
	other := rapid.SampledFrom([]string{" != ", " < ", " >= ", " contains ", " = null", " != null"}).Draw(t, "operator")
	if strings.HasSuffix(other, "null") {
		return field.Draw(t, "field") + other
	}
	return field.Draw(t, "field") + other + value()
}

// drawQuery draws a whole text: which people, in which order, which part.
func drawQuery(t *rapid.T) string {
	text := "true"
	if rapid.IntRange(0, 4).Draw(t, "all") > 0 {
		text = drawFilter(t, rapid.IntRange(0, 3).Draw(t, "depth"))
	}
	sort := rapid.SliceOfN(rapid.SampledFrom([]string{
		"id", "id desc", "name", "name desc", "badge", "badge desc", "home", "home desc", "boss",
	}), 0, 2).Draw(t, "sort")
	if len(sort) > 0 {
		text += " sort by " + strings.Join(sort, ", ")
	}
	if rapid.IntRange(0, 3).Draw(t, "skip") == 0 {
		text += fmt.Sprintf(" skip %d", rapid.IntRange(0, 5).Draw(t, "skipped"))
	}
	return text + rapid.SampledFrom([]string{"", "", " limit 1", " limit 3", " limit none"}).Draw(t, "limit")
}

// naive answers a query by looking at everyone.
func naive(snap *state.Snapshot, q *filter.Query[kind.Record], p filter.Page) (page []string, total int64) {
	var matching []kind.Record
	for rec := range snap.All(people.Def) {
		if q.Match(rec) {
			matching = append(matching, rec)
		}
	}
	slices.SortFunc(matching, q.Compare)
	for i, rec := range matching {
		if int64(i) >= p.Offset && (p.Unlimited || int64(i) < p.Offset+p.Limit) {
			page = append(page, rec.Base().ID)
		}
	}
	return page, int64(len(matching))
}

func TestQueryIsNaive(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		s, err := state.Open(t.Context(), storetest.NewMemory(), kinds, state.Options{})
		if err != nil {
			rt.Fatal(err)
		}
		defer s.Close()
		w := newWorld()
		full := rapid.Bool().Draw(rt, "all have names") // so that an index has the order
		err = s.Update(t.Context(), "tester", func(tx *state.Tx) error {
			for _, id := range []string{"a", "b", "c"} {
				if err := places.Create(tx, &place{Meta: kind.Meta{ID: id}}); err != nil {
					return err
				}
				w.create(places.Def, &place{Meta: kind.Meta{ID: id}})
			}
			for i := range rapid.IntRange(0, 12).Draw(rt, "people") {
				rec := drawRecord(rt, people.Def).(*person)
				rec.ID = string(rune('a' + (i*5)%12))
				if full || rapid.Bool().Draw(rt, "named") {
					rec.Name = string(rune('a' + (i*7)%12))
				}
				if w.create(people.Def, people.Clone(rec)) == none {
					if err := people.Create(tx, rec); err != nil {
						return err
					}
				}
			}
			return nil
		})
		if err != nil {
			rt.Fatal(err)
		}
		for range 40 {
			text := drawQuery(rt)
			q, err := filter.Compile(people.Symbols, text)
			if err != nil {
				rt.Fatalf("%s: %v", text, err)
			}
			page := q.Page(nil, nil)
			want, wantTotal := naive(s.Snapshot(), q, page)
			recs, total := s.Snapshot().Query(people.Def, q, page)
			if got := ids(slices.Values(recs)); !slices.Equal(got, want) || total != wantTotal {
				rt.Fatalf("%s: got %q of %d, want %q of %d", text, got, total, want, wantTotal)
			}
		}
	})
}
