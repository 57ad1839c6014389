package seam_test

import (
	"slices"
	"sync"
	"testing"
	"testing/synctest"

	"netkeep.internal/internal/data/state"
	"netkeep.internal/internal/data/store/storetest"
	"netkeep.internal/internal/fabric/seam"
	"netkeep.internal/internal/lang/kind"
	"netkeep.internal/internal/model"
)

// dropped notes what is dropped.
type dropped struct {
	seam.Routers // nothing else is asked of them
	mu           sync.Mutex
	list         []string
}

func (d *dropped) Drop(id, except string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.list = append(d.list, id+" "+except)
}

// want compares with what was dropped since the last time.
func (d *dropped) want(t *testing.T, what string, list ...string) {
	t.Helper()
	synctest.Wait()
	d.mu.Lock()
	defer d.mu.Unlock()
	if slices.Sort(d.list); !slices.Equal(d.list, list) {
		t.Errorf("%s: %q were dropped, want %q", what, d.list, list)
	}
	d.list = nil
}

// TestDropLost shuts routers out, here and on another controller, and while
// nothing is heard of that one.
func TestDropLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		memory := storetest.NewMemory()
		faults := storetest.NewFaulty(memory.Another())
		open := func(st *storetest.Faulty) *state.State {
			s, err := state.Open(t.Context(), st, model.All, state.Options{Frozen: true})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(s.Close)
			return s
		}
		here, there := open(faults), open(storetest.NewFaulty(memory))
		write := func(s *state.State, fn func(tx *state.Tx) error) {
			t.Helper()
			if err := s.Update(t.Context(), state.Program("test"), fn); err != nil {
				t.Fatal(err)
			}
		}
		edit := func(s *state.State, id string, change func(*model.Router)) {
			t.Helper()
			write(s, func(tx *state.Tx) error {
				return model.Routers.Edit(tx, id, func(r *model.Router) error { change(r); return nil })
			})
		}
		remove := func(s *state.State, id string) {
			t.Helper()
			write(s, func(tx *state.Tx) error { return model.Routers.Delete(tx, id) })
		}
		for _, id := range []string{"a", "b", "c", "d", "e", "f"} {
			write(here, func(tx *state.Tx) error {
				return model.Routers.Create(tx, &model.Router{Meta: kind.Meta{ID: id}, Name: id})
			})
		}
		routers := &dropped{}
		go seam.DropLost(t.Context(), here, routers)
		routers.want(t, "at first")
		for _, id := range []string{"a", "b", "c", "d", "e"} {
			edit(here, id, func(r *model.Router) { r.Fingerprint = id + "1" })
		}
		routers.want(t, "a first certificate")
		edit(here, "a", func(r *model.Router) { r.Cost = 7 })
		routers.want(t, "a change of something else")
		edit(there, "a", func(r *model.Router) { r.Fingerprint = "a2" })
		routers.want(t, "another certificate", "a a2")
		edit(here, "b", func(r *model.Router) { r.Disabled = true })
		remove(here, "f")
		remove(there, "c")
		routers.want(t, "disabled and deleted", "b ", "c ")

		gate := faults.HoldNext()
		remove(there, "d")
		edit(there, "e", func(r *model.Router) { r.Disabled = true })
		edit(there, "a", func(r *model.Router) { r.Cost = 8 })
		routers.want(t, "unheard of")
		if err := here.Reload(t.Context()); err != nil {
			t.Fatal(err)
		}
		routers.want(t, "after a load", "d ", "e ")
		gate.Open()
		routers.want(t, "what the feed says later")
	})
}
