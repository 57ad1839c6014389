package authn

import (
	"testing"
	"testing/synctest"
	"time"

	"netkeep.internal/internal/data/state"
	"netkeep.internal/internal/model"
)

// TestLeftToAnother has sessions end where it is another controller that has to
// remove them, and that does not.
func TestLeftToAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		visitor := w.add(t, "visitor")
		who, err := w.Open(t.Context(), state.Nobody, w.vouched(t, visitor), Request{})
		if err != nil {
			t.Fatal(err)
		}
		mine := false
		w.Mine = func() bool { return mine }
		go w.Enforce(t.Context())
		remove(t, w.State, model.Identities.Def, visitor.ID)
		synctest.Wait()
		if w.works(t, who.Token()) || !w.stored(who) {
			t.Error("the session works, or is gone that another should remove")
		}
		<-time.After(time.Second)
		synctest.Wait()
		if w.stored(who) {
			t.Error("a session is left that nobody removes")
		}

		idle, err := w.Open(t.Context(), state.Nobody, w.vouched(t, w.add(t, "idle")), Request{})
		if err != nil {
			t.Fatal(err)
		}
		<-time.After(w.Timeout + unwritten + time.Minute)
		for _, mine = range []bool{false, true} {
			if err := w.sweep(t.Context()); err != nil {
				t.Fatal(err)
			}
			if w.stored(idle) == mine {
				t.Errorf("a session that was idle is stored: %t, when it is this controller that sweeps: %t", !mine, mine)
			}
		}
	})
}
