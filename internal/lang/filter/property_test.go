package filter

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func sorted(list []string) []string {
	slices.Sort(list)
	return list
}

// sameTree compares trees without the places where their parts were found.
var sameTree = cmp.Options{
	cmp.AllowUnexported(Tree{}, clause{}, sortField{}, logic{}, negation{}, flag{}, emptiness{},
		comparison{}, operand{}, setExpr{}, literal{}),
	cmp.Comparer(func(a, b name) bool { return a.text == b.text }),
	cmp.Comparer(func(a, b Value) bool { return a == b }),
	cmp.FilterPath(func(p cmp.Path) bool { return p.Last().String() == ".at" }, cmp.Ignore()),
}

// TestAgainstNaive draws queries and rows, and holds the compiled query and
// the printed text against the naive evaluator and the drawn tree.
func TestAgainstNaive(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		tree := &Tree{where: newPlanner(t).node(3)}
		text := tree.String()
		parsed, err := Parse(text)
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		if diff := cmp.Diff(tree, parsed, sameTree); diff != "" {
			t.Fatalf("%s: drawn and parsed differ:\n%s", text, diff)
		}
		q, err := Compile(itemSchema, text)
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		for i := range 4 {
			row := drawRow(t, someTexts.Draw(t, "id"))
			want := recordOf(row).matches(tree.where)
			if got := q.Match(row); got != want {
				t.Fatalf("%s\nrow %d: got %v, want %v", text, i, got, want)
			}
			checkNeeds(t, q, row, want)
			checkParts(t, q, row, want)
			if got := judged(t, q.Predicate(), row, q.Match(row)); got != want {
				t.Fatalf("%s\nrow %d: its tree says %v, want %v", text, i, got, want)
			}
		}
	})
}

// checkNeeds fails if a row that matches does not satisfy a choice of Needs.
func checkNeeds(t *rapid.T, q *Query[*item], row *item, matches bool) {
	if q.All() && !matches {
		t.Fatalf("the query says that it selects all rows, and does not")
	}
	for _, choice := range q.Needs() {
		if matches && !slices.ContainsFunc(choice, func(term Term[*item]) bool { return found(term, row) }) {
			t.Fatalf("a row matches that %v would not find", choice)
		}
	}
}

// checkParts fails if a row does not have what the query is known to ask for, or has all of
// it and does not match.
func checkParts(t *rapid.T, q *Query[*item], row *item, matches bool) {
	for _, part := range q.Parts() {
		text, has := part.Symbol.One(row).String(), false
		if part.Folded {
			has = strings.Contains(strings.ToLower(text), strings.ToLower(part.Text))
		} else {
			has = strings.Contains(text, part.Text)
		}
		if matches && !has || part.Whole && matches != has {
			t.Fatalf("matches: %t, though %q has %q: %t", matches, text, part.Text, has)
		}
	}
}

// judged evaluates a tree, with what Match says in place of parts that have nothing
// to go by, and holds what it says of comparisons against their tests.
func judged(t *rapid.T, p Predicate[*item], row *item, match bool) bool {
	switch p.Form {
	case Known:
		return p.Outcome
	case Not:
		if open(p) {
			return match
		}
		return !judged(t, p.Terms[0], row, match)
	case Every, Any:
		if open(p) {
			return match
		}
		outcome := p.Form == Every
		for _, term := range p.Terms {
			if judged(t, term, row, match) != outcome {
				return !outcome
			}
		}
		return outcome
	case Comparison:
		v := p.Symbol.One(row)
		if v.Type() == Float && v.Float() == 0 {
			v = FloatValue(0)
		}
		outcome := p.Test(v)
		if p.Equality && (slices.Contains(p.Values, v) != p.Negated) != outcome {
			t.Fatalf("%v of %v and %v (negated: %v) is %v", v, p.Values, p.Symbol.Name, p.Negated, outcome)
		}
		return outcome
	}
	return match
}

// open tells whether only Match can judge a part of a tree.
func open(p Predicate[*item]) bool { return p.Form == Other || slices.ContainsFunc(p.Terms, open) }

// TestBetween draws comparisons and three values: what is said to be the same for two
// and all between them is.
func TestBetween(t *testing.T) {
	settled := map[bool]int{}
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.SampledFrom([]string{
			"cost = 1", "cost != 1", "cost > 0", "cost not between -1 and 2", "cost between -1 and 2", "cost <= 2.5", "cost in [1, 2]",
			"cost contains 1", `name < "a"`, `name != "a"`, `id >= "ab"`, "load > 0.5", "cost = null", "cost = 1.5",
			"madeAt >= datetime(2023-04-26T10:11:12.345Z)",
		}).Draw(t, "text")
		q, err := Compile(itemSchema, text)
		if err != nil {
			t.Fatal(err)
		}
		p := q.Predicate()
		var values []Value
		for range 3 {
			values = append(values, p.Symbol.One(drawRow(t, someTexts.Draw(t, "id"))))
		}
		slices.SortFunc(values, compareForSort)
		outcome, same := p.Between(values[0], values[2])
		if same {
			settled[outcome]++
		}
		for _, v := range values {
			if same && p.Test(v) != outcome {
				t.Fatalf("%s is %v between %v and %v, and not for %v", text, outcome, values[0], values[2], v)
			}
		}
	})
	if settled[true] == 0 || settled[false] == 0 {
		t.Errorf("it settled %v", settled)
	}
}

// found tells whether an index over the term's symbol would find the row.
func found(term Term[*item], row *item) bool {
	hit := false
	look := func(v Value) bool {
		if v.Type() == Float && v.Float() == 0 {
			v = FloatValue(0) // an index that orders floats has one zero
		}
		hit = hit || slices.Contains(term.Values, v)
		return true
	}
	if term.Symbol.Set {
		term.Symbol.Many(row, look)
	} else {
		look(term.Symbol.One(row))
	}
	return hit
}

// TestSelectAgainstSort draws rows, an order and a page, and holds Select
// against sorting everything and cutting the page out.
func TestSelectAgainstSort(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(0, 40).Draw(t, "rows")
		rows := make([]*item, n)
		for i := range rows {
			rows[i] = &item{
				ID:    fmt.Sprintf("r%02d", i),
				Name:  maybe(t, someTexts, "name"),
				Cost:  maybe(t, rapid.Int64Range(0, 3), "cost"),
				Admin: maybe(t, rapid.Bool(), "admin"),
			}
		}
		shuffle := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		shuffle.Shuffle(n, func(i, j int) { rows[i], rows[j] = rows[j], rows[i] })

		var fields []string
		for range rapid.IntRange(1, 3).Draw(t, "fields") {
			fields = append(fields, pick(t, "field", "name", "cost", "admin", "id")+pick(t, "direction", "", " asc", " desc"))
		}
		text := pick(t, "predicate", "true", "cost > 0", "cost = 9", "admin") + " sort by " + strings.Join(fields, ", ")
		q, err := Compile(itemSchema, text)
		if err != nil {
			t.Fatal(err)
		}
		page := Page{
			Limit:     rapid.Int64Range(0, 45).Draw(t, "limit"),
			Offset:    rapid.Int64Range(0, 45).Draw(t, "offset"),
			Unlimited: pick(t, "unlimited", false, false, true),
		}

		var matched []*item
		for _, row := range rows {
			if q.Match(row) {
				matched = append(matched, row)
			}
		}
		ordered := slices.Clone(matched)
		slices.SortStableFunc(ordered, func(a, b *item) int { return strings.Compare(a.ID, b.ID) })
		for _, f := range slices.Backward(fields) {
			slices.SortStableFunc(ordered, func(a, b *item) int { return naiveFieldOrder(f, a, b) })
		}
		want := ordered[min(page.Offset, int64(len(ordered))):]
		if !page.Unlimited {
			want = want[:min(page.Limit, int64(len(want)))]
		}

		for label, given := range map[string]Rows[*item]{
			"all":     {Seq: slices.Values(rows)},
			"matched": {Seq: slices.Values(matched), Matched: true},
			"ordered": {Seq: slices.Values(ordered), Ordered: true},
			"both":    {Seq: slices.Values(ordered), Matched: true, Ordered: true},
			"counted": {Seq: slices.Values(ordered), Matched: true, Ordered: true, Count: int64(len(ordered))},
			"unsure":  {Seq: slices.Values(rows), Count: int64(len(rows))},
		} {
			got, total := q.Select(given, page)
			if got == nil || total != int64(len(matched)) || !slices.Equal(ids(got), ids(want)) {
				t.Fatalf("%s %+v, rows %s: got %v of %d, want %v of %d",
					text, page, label, ids(got), total, ids(want), len(matched))
			}
		}
	})
}

// naiveFieldOrder orders rows by one field of a sort clause.
func naiveFieldOrder(clause string, a, b *item) int {
	name, direction, _ := strings.Cut(clause, " ")
	x, y := recordOf(a).fields[name], recordOf(b).fields[name]
	sign := 1
	if direction == "desc" {
		sign = -1
	}
	switch {
	case x == nil && y == nil:
		return 0
	case x == nil:
		return -sign
	case y == nil:
		return sign
	}
	if p, ok := x.(bool); ok {
		switch {
		case p == y:
			return 0
		case p:
			return sign
		}
		return -sign
	}
	order, _ := naiveOrder(x, y)
	return sign * order
}

// TestFoldedAgainstLower holds the search without regard to case against
// lower case and strings.Contains. Few letters make texts that repeat
// themselves, which is where such a search goes wrong.
func TestFoldedAgainstLower(t *testing.T) {
	few := rapid.SampledFrom([]rune{'a', 'A', 'b'})
	many := rapid.SampledFrom([]rune{'a', 'A', 'b', 'B', '-', 'É', 'é', 'İ', '\u212a', 'k'})
	rapid.Check(t, func(t *rapid.T) {
		letters := few
		if rapid.Bool().Draw(t, "many letters") {
			letters = many
		}
		text := string(rapid.SliceOfN(letters, 0, 20).Draw(t, "text"))
		needle := string(rapid.SliceOfN(letters, 0, 5).Draw(t, "needle"))
		checkFolded(t, text, needle)
	})
	for _, pair := range [][2]string{{"aaab", "aab"}, {"ababac", "ABAC"}, {"aabaaabaaac", "aabaaac"}, {"x", ""}, {"", "x"}} {
		checkFolded(t, pair[0], pair[1])
	}
}

func checkFolded(t rapid.TB, text, needle string) {
	want := strings.Contains(strings.ToLower(text), strings.ToLower(needle))
	if got := newFolded(needle).in(text); got != want {
		t.Fatalf("%q in %q: got %v, want %v", needle, text, got, want)
	}
}

// TestCompareNumbersExact holds the order of integers and floats against
// exact arithmetic.
func TestCompareNumbersExact(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		i := rapid.OneOf(rapid.Int64(), someInts).Draw(t, "int")
		f := rapid.OneOf(rapid.Float64(), rapid.Just(float64(i)), rapid.Just(float64(i)+0.5)).Draw(t, "float")
		want, _ := naiveOrder(i, f)
		if got := compareNumbers(IntValue(i), FloatValue(f)); got != want {
			t.Fatalf("%d and %v: got %d, want %d", i, f, got, want)
		}
		if got := compareNumbers(FloatValue(f), IntValue(i)); got != -want {
			t.Fatalf("%v and %d: got %d, want %d", f, i, got, -want)
		}
		equal := FloatValue(f).canonical() == IntValue(i).canonical()
		if equal != (want == 0) {
			t.Fatalf("%d and %v: canonical forms equal is %v", i, f, equal)
		}
	})
}
