package model

import (
	"bytes"
	"flag"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
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
