package filter

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"netkeep.internal/internal/lang/fault"
)

// addQueries seeds a fuzz target with the queries of the scripts.
func addQueries(f *testing.F) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil {
		f.Fatal(err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		for line := range strings.Lines(string(data)) {
			if text, ok := strings.CutPrefix(strings.TrimSuffix(line, "\n"), "query "); ok {
				f.Add(text)
			}
		}
	}
}

// FuzzParse checks that any text is parsed or refused with the right code, and
// that a printed tree parses to itself.
func FuzzParse(f *testing.F) {
	addQueries(f)
	f.Fuzz(func(t *testing.T, text string) {
		tree, err := Parse(text)
		if err != nil {
			if !fault.Is(err, fault.CodeFilter) || tree != nil {
				t.Fatalf("%v, %v", tree, err)
			}
			return
		}
		printed := tree.String()
		if len(printed) > MaxLength {
			return // spacing made it longer than what may be parsed
		}
		again, err := Parse(printed)
		if err != nil {
			t.Fatalf("%q was printed as %q: %v", text, printed, err)
		}
		if diff := cmp.Diff(tree, again, sameTree); diff != "" {
			t.Fatalf("%q was printed as %q:\n%s", text, printed, diff)
		}
	})
}

// FuzzCompile checks that what compiles can be run and agrees with the naive
// evaluator, and that what does not is refused with the right code.
func FuzzCompile(f *testing.F) {
	addQueries(f)
	name, cost := "abc", int64(5)
	row := &item{
		ID: "a", Name: &name, Cost: &cost, Tags: map[string]any{"k": "v", "n": 1.5},
		Roles: []string{"blue", "green"}, Ports: []int64{80}, Parts: []*part{{ID: "p1", Name: "bolt"}, {ID: "p2"}},
	}
	f.Fuzz(func(t *testing.T, text string) {
		q, err := Compile(itemSchema, text)
		if err != nil {
			if !fault.Is(err, fault.CodeFilter) || q != nil {
				t.Fatalf("%v, %v", q, err)
			}
			return
		}
		if strings.Contains(text, "label") || strings.Contains(text, "owner") {
			return // fields that the naive evaluator does not know
		}
		tree, err := Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		want := recordOf(row).matches(tree.where)
		if got := q.Match(row); got != want {
			t.Fatalf("%q: got %v, want %v", text, got, want)
		}
		if q.Compare(row, row) != 0 {
			t.Fatalf("%q: a row differs from itself", text)
		}
		if sorted, err := q.SortedBy(text); err != nil && (!fault.Is(err, fault.CodeSort) || sorted != nil) {
			t.Fatalf("%v, %v", sorted, err)
		}
	})
}
