package model

import (
	"bytes"
	"flag"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"netkeep.internal/internal/lang/kind"
)

var update = flag.Bool("update", false, "rewrite the golden")

// TestKinds shows every field of every kind, so that a review sees when the
// contract changes.
func TestKinds(t *testing.T) {
	var got bytes.Buffer
	if err := All.Describe(&got); err != nil {
		t.Fatal(err)
	}
	const golden = "testdata/kinds.golden"
	if *update {
		if err := os.WriteFile(golden, got.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got.String()); diff != "" {
		t.Errorf("the kinds differ from %s; if that is wanted, run `make golden`:\n%s", golden, diff)
	}
}

// TestDocs wants a sentence of every field, those that no answer shows as
// well: the next to read the struct is a colleague.
func TestDocs(t *testing.T) {
	var walk func(d *kind.Def, fields []*kind.Field)
	walk = func(d *kind.Def, fields []*kind.Field) {
		for _, f := range fields {
			if !strings.HasSuffix(f.Doc, ".") || strings.ToUpper(f.Doc[:1]) != f.Doc[:1] {
				t.Errorf("%s.%s has no sentence that says what it is, but %q; give it a doc tag", d.Name, f.Name, f.Doc)
			}
			walk(d, f.Members)
		}
	}
	for _, d := range All.Defs {
		walk(d, d.Fields)
	}
}
