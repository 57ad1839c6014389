package state_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"netkeep.internal/internal/data/state"
	"netkeep.internal/internal/data/state/cow"
	"netkeep.internal/internal/data/store/storetest"
	"netkeep.internal/internal/lang/kind"
)

type marble struct {
	kind.Meta
	Colors []string `json:"colors" kind:"attributes"`
}

var marbles = kind.Define(kind.Spec[marble]{Name: "marble", Path: "marbles"})

// TestWithin asks for few, for many and for all records of a table.
func TestWithin(t *testing.T) {
	ctx := context.Background()
	st, err := state.Open(ctx, storetest.NewMemory(), kind.NewCatalog(marbles.Def), state.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	// The order of ordinals is not the order of ids.
	err = st.Update(ctx, state.Program("test"), func(tx *state.Tx) error {
		for i := range 200 {
			m := &marble{Meta: kind.Meta{ID: fmt.Sprintf("%03d", i*7%200)}}
			if i%40 == 1 {
				m.Colors = append(m.Colors, "few")
			}
			if i%2 == 0 {
				m.Colors = append(m.Colors, "many")
			}
			if err := marbles.Create(tx, m); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	snap := st.Snapshot()
	beyond := snap.Tagged(marbles.Def, "few").Clone()
	beyond.Add(1000)
	tests := []struct {
		name  string
		set   *cow.Bitmap
		count int
	}{
		{"none", new(cow.Bitmap), 0},
		{"few", snap.Tagged(marbles.Def, "few"), 5},
		{"nobody's", beyond, 5},
		{"many", snap.Tagged(marbles.Def, "many"), 100},
		{"all", snap.Tagged(marbles.Def, ""), 200},
		{"a copy of all", snap.Tagged(marbles.Def, "").Clone(), 200},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got := slices.Collect(snap.Within(marbles.Def, test.set))
			want := slices.SortedFunc(snap.At(marbles.Def, test.set), func(a, b kind.Record) int {
				return strings.Compare(a.Base().ID, b.Base().ID)
			})
			if len(got) != test.count || !slices.Equal(got, want) {
				t.Errorf("got %d records, want these %d by id", len(got), test.count)
			}
			snap.Within(marbles.Def, test.set)(func(kind.Record) bool { return false }) // must not go on
		})
	}
}
