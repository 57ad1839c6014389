package authn

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"netkeep.internal/internal/data/state"
	"netkeep.internal/internal/data/store/storetest"
	"netkeep.internal/internal/model"
)

// TestSeenOnceADay uses a network for three days, by a session that stays and by ten
// logins a day at two controllers. That the identity was seen is noted once a day, in
// writes that are made anyway, and known to the day when all sessions are over.
func TestSeenOnceADay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		memory := storetest.NewMemory()
		w := newController(t, memory)
		update(t, w.State, func(tx *state.Tx) error { return model.Seed(tx) })
		w.proof = w.vouched(t, w.add(t, adminName))
		other := newController(t, memory.Another())
		id := w.proof.identity.ID
		stop := run(func(ctx context.Context) { w.Flush(ctx, 90*time.Second) })
		stopOther := run(func(ctx context.Context) { other.Flush(ctx, 90*time.Second) })
		began, who, notes := time.Now(), w.open(t), 0
		steps := w.steps(t, func() {
			for i := range 3 * 24 * 6 {
				time.Sleep(10 * time.Minute)
				w.works(t, who.Token())
				if i%14 == 0 {
					brief, err := other.Open(t.Context(), state.Nobody, w.proof, Request{})
					if err != nil {
						t.Fatal(err)
					}
					synctest.Wait()
					if err := other.End(t.Context(), state.Nobody, brief.Session().ID); err != nil {
						t.Fatal(err)
					}
				}
			}
			synctest.Wait()
		})
		for _, kinds := range steps {
			if !slices.Contains(kinds, model.ClientInfos.Name) {
				continue
			}
			if notes++; !slices.Contains(kinds, model.APISessions.Name) {
				t.Errorf("a write was made for it alone: %v", kinds)
			}
		}
		if notes < 2 || notes > 3 {
			t.Errorf("it was noted %d times after the first", notes)
		}
		used := time.Now()
		stop()
		stopOther()
		if got := w.LastSeen(w.State.Snapshot(), id); used.Sub(got) > time.Minute {
			t.Errorf("who has a session was last seen at %s, want %s", got, used)
		}
		if err := w.End(t.Context(), state.Nobody, who.Session().ID); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		for _, s := range []*world{w, other} {
			info, _ := model.ClientInfos.Get(s.State.Snapshot(), id)
			if got := s.LastSeen(s.State.Snapshot(), id); got.After(used) || used.Sub(got) > model.SeenEvery+time.Hour {
				t.Errorf("who has no session was last seen at %s, want a day before %s at most", got, used)
			}
			if info.SeenSince.Sub(began).Abs() > time.Millisecond {
				t.Errorf("it was first seen at %s, want %s", info.SeenSince, began)
			}
		}
	})
}
