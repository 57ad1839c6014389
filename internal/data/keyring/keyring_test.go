package keyring_test

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"netkeep.internal/internal/data/keyring"
	"netkeep.internal/internal/data/store/storetest"
)

var now = time.Date(2030, 5, 17, 12, 0, 0, 0, time.UTC)

func holder(generation int, digest string) keyring.Holder {
	return keyring.Holder{Key: []byte("key"), Proof: []byte("proof"), Generation: generation, Digest: digest}
}

// TestLacking counts who has not said that it has the keys: those on the list, and
// newcomers for a while.
func TestLacking(t *testing.T) {
	r := keyring.Ring{Generation: 2, Digest: "x", Holders: map[string]keyring.Holder{
		"has": holder(2, "x"), "behind": holder(1, "w"), "differs": holder(2, "y"), "new": holder(1, "w"), "gone": holder(1, "w"),
	}, Sealed: map[string][]byte{"has": {1}, "behind": {1}, "gone": {1}, "never": {1}}}
	for id, said := range map[string]time.Time{"new": now.Add(-time.Minute), "gone": now.Add(-time.Hour)} {
		h := r.Holders[id]
		h.Said = said
		r.Holders[id] = h
	}
	list := []string{"has", "behind", "differs", "silent"}
	if got, want := r.Lacking(list, now), []string{"behind", "differs", "silent", "new"}; !slices.Equal(got, want) {
		t.Errorf("%v lack the keys, want %v", got, want)
	}
	if !r.Tidy(list, now) || r.Tidy(list, now) {
		t.Error("it is not tidied once")
	}
	if len(r.Sealed) != 1 || r.Sealed["behind"] == nil || len(r.Holders) != 4 {
		t.Errorf("what is left is %v of %v", r.Sealed, r.Holders)
	}
	if r.Say("behind", holder(1, "w")) {
		t.Error("what was said before is news")
	}
	another := holder(1, "w")
	another.Key = []byte("another")
	if !r.Say("behind", another) || r.Sealed["behind"] != nil {
		t.Error("who has another key keeps what it cannot open")
	}
}

// TestChange has several write at once: nothing of what any says is lost.
func TestChange(t *testing.T) {
	ctx, st := t.Context(), storetest.NewMemory()
	var all sync.WaitGroup
	for i := range 5 {
		all.Go(func() {
			_, err := keyring.Change(ctx, st, now, func(r *keyring.Ring) (bool, error) {
				return r.Say(fmt.Sprint("c", i), holder(0, "")), nil
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	r, err := keyring.Read(ctx, st)
	if err != nil || len(r.Holders) != 5 || !r.Holders["c3"].Said.Equal(now) {
		t.Errorf("%+v, %v", r, err)
	}
	last, err := st.Last(ctx)
	if err != nil {
		t.Fatal(err)
	}
	nothing := errors.New("nothing")
	if _, err := keyring.Change(ctx, st, now, func(*keyring.Ring) (bool, error) { return false, nil }); err != nil {
		t.Error(err)
	}
	if _, err := keyring.Change(ctx, st, now, func(*keyring.Ring) (bool, error) { return true, nothing }); !errors.Is(err, nothing) {
		t.Error(err)
	}
	if again, err := st.Last(ctx); err != nil || again != last {
		t.Errorf("what changes nothing is written: %d, %d, %v", last, again, err)
	}
}
