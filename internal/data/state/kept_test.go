package state_test

import (
	"fmt"
	"testing"

	"netkeep.internal/internal/data/state"
	"netkeep.internal/internal/data/store/storetest"
	"netkeep.internal/internal/lang/kind"
)

// lamp keeps apart what few lamps have.
type lamp struct {
	kind.Meta
	_ kind.Uncopied `json:"-"`

	Name string `json:"name"`
	*Shade
}

// Shade is what few lamps have.
type Shade struct {
	Colour string   `json:"colour" kind:"default=white"`
	Holes  []string `json:"holes"`
}

var lamps = kind.Define(kind.Spec[lamp]{Name: "lamp", Path: "lamps", Doc: "A lamp."})

// TestKept shows that records in memory share what they say nothing in, however they came
// there, and that a write to one of them leaves the others as they are.
func TestKept(t *testing.T) {
	memory := storetest.NewMemory()
	set := kind.NewCatalog(lamps.Def)
	s := openSet(t, memory, set)
	follower := openSet(t, memory.Another(), set)
	must(t, s.Update(t.Context(), state.Program("tester"), func(tx *state.Tx) error {
		for i := range 3 {
			rec := lamps.New()
			rec.ID = fmt.Sprint(i)
			if err := lamps.Create(tx, rec); err != nil {
				return err
			}
			rec.Colour = "of who made it" // who must not, but it is the record of nobody else
		}
		return nil
	}))
	must(t, s.Update(t.Context(), state.Program("tester"), func(tx *state.Tx) error {
		return lamps.Edit(tx, "0", func(l *lamp) error {
			l.Colour, l.Holes = "red", []string{"top"}
			return nil
		})
	}))
	must(t, s.Update(t.Context(), state.Program("tester"), func(tx *state.Tx) error {
		return lamps.Edit(tx, "1", func(l *lamp) error { l.Name = "one"; return nil })
	}))
	followed, err := follower.Since(t.Context(), s.Snapshot().Rev)
	must(t, err)
	for what, snap := range map[string]*state.Snapshot{
		"written": s.Snapshot(), "followed": followed, "loaded": openSet(t, memory.Another(), set).Snapshot(),
	} {
		var all []*lamp
		for l := range lamps.All(snap) {
			all = append(all, l)
		}
		if len(all) != 3 || all[0].Colour != "red" || all[1].Colour != "white" || all[1].Name != "one" || len(all[2].Holes) > 0 {
			t.Fatalf("%s: got %d lamps, %+v", what, len(all), all[0].Shade)
		}
		if all[0].Shade == all[1].Shade || all[1].Shade != all[2].Shade {
			t.Errorf("%s: what the others lack is not in common", what)
		}
	}
}

func openSet(t *testing.T, st *storetest.Memory, set *kind.Catalog) *state.State {
	t.Helper()
	s, err := state.Open(t.Context(), st, set, state.Options{Frozen: true})
	must(t, err)
	t.Cleanup(s.Close)
	return s
}
