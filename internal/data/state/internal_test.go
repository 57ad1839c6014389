package state

import (
	"fmt"
	"testing"
	"testing/synctest"

	"netkeep/internal/data/store/storetest"
	"netkeep/internal/lang/kind"
)

type pass struct {
	kind.Meta
	Holder string `json:"holder"`
}

// What the owner remembers of its own Puts is gone when the feed has them.
func TestAheadIsForgotten(t *testing.T) {
	passes := kind.Define(kind.Spec[pass]{Name: "pass", Path: "passes", Doc: "A pass.", Lane: kind.Session})
	synctest.Test(t, func(t *testing.T) {
		s, err := Open(t.Context(), storetest.NewMemory(), kind.NewSet(passes.Def), Options{})
		if err != nil {
			t.Fatal(err)
		}
		for i := range 10 {
			id := fmt.Sprint(i % 7)
			err := s.UpdateSessions(t.Context(), Program("tester"), func(tx *Tx) error {
				if _, ok := passes.Get(tx, id); ok {
					return passes.Delete(tx, id)
				}
				return passes.Create(tx, &pass{Meta: kind.Meta{ID: id}})
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		synctest.Wait()
		s.Close()
		if len(s.ahead) > 0 || s.Snapshot().Len(passes.Def) != 4 {
			t.Errorf("still ahead in %v, with %d passes", s.ahead, s.Snapshot().Len(passes.Def))
		}
	})
}
