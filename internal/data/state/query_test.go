package state_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"netkeep.internal/internal/data/state"
	"netkeep.internal/internal/data/store/storetest"
	"netkeep.internal/internal/lang/filter"
	"netkeep.internal/internal/lang/kind"
)

// drawFilter draws the text of a predicate over people.
func drawFilter(t *rapid.T, depth int) string {
	some := rapid.SampledFrom([]string{"", "a", "b", "B", "c", "d", "f", "ann", "bob"})
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
		if rapid.Bool().Draw(t, "several") {
			return fmt.Sprintf("anyOf(traits) in [%q, %q]", someTrait.Draw(t, "trait"), someTrait.Draw(t, "other"))
		}
		return rapid.SampledFrom([]string{"anyOf", "allOf"}).Draw(t, "quantor") + "(traits) = " + fmt.Sprintf("%q", someTrait.Draw(t, "trait"))
	case "and":
		return "(" + drawFilter(t, depth-1) + ") and (" + drawFilter(t, depth-1) + ")"
	case "or":
		return "(" + drawFilter(t, depth-1) + ") or (" + drawFilter(t, depth-1) + ")"
	case "not":
		return "not (" + drawFilter(t, depth-1) + ")"
	}
	other := rapid.SampledFrom([]string{" != ", " < ", " >= ", " contains ", " contains ", " icontains ", " = null", " != null"}).Draw(t, "operator")
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

// sameAsNaive tests one query.
func sameAsNaive(t tester, snap *state.Snapshot, text string) (found int64) {
	t.Helper()
	q, err := filter.Compile(people.Symbols, text)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	page := q.Page(nil, nil)
	want, wantTotal := naive(snap, q, page)
	recs, total := snap.Query(people.Def, q, page)
	if got := ids(slices.Values(recs)); !slices.Equal(got, want) || total != wantTotal {
		t.Fatalf("%s: got %q of %d, want %q of %d", text, got, total, want, wantTotal)
	}
	return total
}

// Every way to find records, and every reason not to take it.
func TestQueryPlans(t *testing.T) {
	s := open(t, storetest.NewMemory(), state.Options{})
	create(t, s, places.Def, &place{Meta: kind.Meta{ID: "a"}}, &place{Meta: kind.Meta{ID: "b"}}, &place{Meta: kind.Meta{ID: "c"}})
	for i := range 12 {
		p := &person{Meta: kind.Meta{ID: fmt.Sprintf("id%02d", i*5%12)}, Name: fmt.Sprintf("n%02d", i*7%12), Home: string(rune('a' + i%3))}
		if i%2 == 0 {
			p.Badge = fmt.Sprintf("b%02d", i*11%12)
		}
		if i == 7 {
			p.Home = ""
		}
		if i%6 == 0 {
			p.Traits = []string{"rare", "common"}
		} else {
			p.Traits = []string{"common"}
		}
		create(t, s, people.Def, p)
	}
	tests := []struct {
		text  string
		total int64
	}{
		{`id = "id03"`, 1},
		{`id = "id03" and name = "nobody"`, 0},
		{`id in ["id09", "id03", "id05"]`, 3},
		{`id = "id03" or id = "id01"`, 2},
		{`name = "n03"`, 1},
		{`name in ["n05", "n01", "n09"]`, 3},
		{`name = "n03" or badge = "b00"`, 2},
		{`badge = "b04"`, 1},
		{`badge = ""`, 0},
		{`badge = null`, 6},
		{`badge in ["", "b04"]`, 1},
		{`badge != "b04"`, 11},
		{`home = "a"`, 4},
		{`home = ""`, 1},
		{`home in ["a", "b"]`, 7},
		{`home in ["c", "a"] sort by name desc limit 3`, 8},
		{`home = "a" or name = "n00" or id = "id00"`, 4},
		{`home = "a" and name = "n00"`, 1},
		{`name = "n00" and home = "b"`, 0},
		{`(home = "a" or home = "b") and (name = "n00" or name = "n01")`, 1},
		{`home = "a" or not (name = "n03")`, 12},
		{`home = "a" sort by name`, 4},
		{`home = "a" sort by badge desc skip 1 limit 2`, 4},
		{`anyOf(traits) = "rare"`, 2},
		{`anyOf(traits) = "rare" sort by name desc`, 2},
		{`anyOf(traits) = "common"`, 12},
		{`anyOf(traits) = "nobody's"`, 0},
		{`anyOf(traits) = ""`, 0},
		{`anyOf(traits) in ["rare", "nobody's"]`, 2},
		{`anyOf(traits) in ["rare", "common"] sort by home`, 12},
		{`home = "a" and anyOf(traits) = "rare"`, 2},
		{`name = "n00" or anyOf(traits) = "rare"`, 2},
		{`true`, 12},
		{`true sort by id desc skip 2 limit 3`, 12},
		{`true sort by name`, 12},
		{`true sort by name desc limit 4`, 12},
		{`true sort by badge`, 12},
		{`true sort by badge desc`, 12},
		{`true sort by home`, 12},
		{`true sort by home desc, name desc`, 12},
		{`true sort by name, id desc`, 12},
	}
	for _, test := range tests {
		if got := sameAsNaive(t, s.Snapshot(), test.text); got != test.total {
			t.Errorf("%s: finds %d, want %d", test.text, got, test.total)
		}
	}
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
		err = s.Update(t.Context(), state.Program("tester"), func(tx *state.Tx) error {
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
			sameAsNaive(rt, s.Snapshot(), drawQuery(rt))
		}
	})
}

// createSome creates people by number, of so many in all.
func createSome(t *testing.T, s *state.State, from, to, n int) {
	t.Helper()
	err := s.Update(t.Context(), state.Program("tester"), func(tx *state.Tx) error {
		for i := from; i < to; i++ {
			p := &person{Meta: kind.Meta{ID: fmt.Sprintf("id%04d", i*7%n)}, Name: fmt.Sprintf("Name-%04d", i*11%n), Home: string(rune('a' + i%2))}
			if i%100 == 0 {
				p.Badge = fmt.Sprintf("Büro %d", i)
			}
			if err := people.Create(tx, p); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// Where many are found, and pages far behind, and what is read anew from the store.
func TestQueryOfMany(t *testing.T) {
	st := storetest.NewMemory()
	s := open(t, st, state.Options{})
	const n = 6000
	create(t, s, places.Def, &place{Meta: kind.Meta{ID: "a"}}, &place{Meta: kind.Meta{ID: "b"}})
	for from := 0; from < n; from += 500 {
		createSome(t, s, from, from+500, n)
	}
	tests := []struct {
		text  string
		total int64
	}{
		{`name contains "Name"`, n},
		{`name contains "Name" skip 5990`, n},
		{`name contains "name"`, 0},
		{`name icontains "NAME" sort by id desc skip 100 limit 3`, n},
		{`name icontains "NAME" sort by name desc skip 100 limit 3`, n},
		{`name icontains "NAME" sort by name skip 7000 limit 3`, n},
		{`name icontains "NAME" sort by home desc, name skip 100 limit 3`, n},
		{`name contains "-00"`, 100},
		{`name contains "-00" sort by badge desc`, 100},
		{`name contains 42 sort by name`, 219},
		{`name contains "Name" and home = "a" sort by name`, n / 2},
		{`name contains "-00" and home = "a"`, 50},
		{`name contains "-00" and name contains "7"`, 19},
		{`name contains "-00" or name contains "-01"`, 200},
		{`not (name contains "-00")`, n - 100},
		{`badge contains "ü"`, n / 100},
		{`badge icontains "BÜRO 10" sort by badge`, 2},
		{`badge contains "" limit 3`, n / 100},
		{`true skip 5995`, n},
		{`true skip 7000`, n},
		{`true sort by id desc skip 5995`, n},
		{`true sort by name skip 5995`, n},
		{`true sort by name desc skip 17`, n},
		{`true sort by badge desc skip 17`, n},
		{`home = "b" skip 2995`, n / 2},
		{`home = "b" skip 4000`, n / 2},
		{`home = "b" and home != "a" skip 2990`, n / 2},
		{`home = "b" and name != "Name-0000" skip 2990`, n / 2},
	}
	again := open(t, st, state.Options{})
	for _, test := range tests {
		for _, s := range []*state.State{s, again} {
			if got := sameAsNaive(t, s.Snapshot(), test.text); got != test.total {
				t.Errorf("%s: finds %d, want %d", test.text, got, test.total)
			}
		}
	}
}

// Two exchange their names in one write, and one takes that of one who goes.
func TestQueryOfRenamed(t *testing.T) {
	s := open(t, storetest.NewMemory(), state.Options{})
	create(t, s, people.Def, &person{Meta: kind.Meta{ID: "1"}, Name: "anna"}, &person{Meta: kind.Meta{ID: "2"}, Name: "bert"}, &person{Meta: kind.Meta{ID: "3"}, Name: "carl"})
	err := s.Update(t.Context(), state.Program("tester"), func(tx *state.Tx) error {
		name := func(id, name string) error {
			return people.Edit(tx, id, func(p *person) error { p.Name = name; return nil })
		}
		return errors.Join(name("1", "x"), name("2", "anna"), name("1", "bert"), people.Delete(tx, "3"))
	})
	if err != nil {
		t.Fatal(err)
	}
	for text, total := range map[string]int64{`name contains "an"`: 1, `name contains "bert" sort by name`: 1, `name contains "x"`: 0, `name contains "a"`: 1} {
		if got := sameAsNaive(t, s.Snapshot(), text); got != total {
			t.Errorf("%s: finds %d, want %d", text, got, total)
		}
	}
	for id, right := range s.Snapshot().Filing(people.Def) {
		if !right {
			t.Errorf("%s is not found as it should be", id)
		}
	}
}
