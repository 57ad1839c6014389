package authn

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"netkeep.internal/internal/data/state"
	"netkeep.internal/internal/lang/fault"
	"netkeep.internal/internal/lang/kind"
	"netkeep.internal/internal/model"
)

// addRouter creates an edge router that has enrolled and may be a client.
func (w *world) addRouter(t testing.TB, id string) {
	t.Helper()
	update(t, w.State, func(tx *state.Tx) error {
		return model.EdgeRouters.Create(tx, &model.EdgeRouter{
			Meta: kind.Meta{ID: id}, Name: id, IsTunnelerEnabled: true, IsVerified: true, Fingerprint: "of " + id,
		})
	})
}

func (w *world) editRouter(t testing.TB, id string, change func(*model.EdgeRouter)) {
	t.Helper()
	update(t, w.State, func(tx *state.Tx) error {
		return model.EdgeRouters.Edit(tx, id, func(e *model.EdgeRouter) error { change(e); return nil })
	})
}

// TestOfRouter has many parts of a router ask at once, and the router come back
// later: it has one session.
func TestOfRouter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.addRouter(t, "r1")
		var (
			all sync.WaitGroup
			mu  sync.Mutex
			ids = map[string]bool{}
		)
		for range 20 {
			all.Go(func() {
				who, err := w.OfRouter(t.Context(), state.Nobody, "r1", Request{})
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				defer mu.Unlock()
				ids[who.Session().ID] = true
			})
		}
		all.Wait()
		if len(ids) != 1 {
			t.Fatalf("it has %d sessions", len(ids))
		}
		time.Sleep(20 * time.Minute)
		who, err := w.OfRouter(t.Context(), state.Nobody, "r1", Request{SDKInfo: &model.SDKInfo{Type: "router"}})
		if err != nil || !ids[who.Session().ID] || !who.Complete() {
			t.Errorf("it comes back as %+v, %v", who, err)
		}
		if _, sdk := model.ClientInfoOf(w.State.Snapshot(), "r1"); sdk.Type != "router" {
			t.Errorf("it said that it is %v", sdk)
		}
		if types := who.Session().ConfigTypes; len(types) != 1 || types[0] != model.AllConfigTypes {
			t.Errorf("who does not say gets config types %q", types)
		}
		who, err = w.OfRouter(t.Context(), state.Nobody, "r1", Request{ConfigTypes: []string{"host.v1", "none"}})
		if err != nil || !ids[who.Session().ID] || len(who.Session().ConfigTypes) != 1 || who.Session().ConfigTypes[0] == model.AllConfigTypes {
			t.Errorf("who says gets %+v, %v", who.Session(), err)
		}
		if _, err := w.OfRouter(t.Context(), state.Nobody, w.proof.identity.ID, Request{}); !fault.Is(err, fault.CodeAuth) {
			t.Errorf("somebody who is no router: %v", err)
		}
		time.Sleep(31 * time.Minute) // unused for too long
		if who, err = w.OfRouter(t.Context(), state.Nobody, "r1", Request{}); err != nil || ids[who.Session().ID] {
			t.Errorf("much later it is %+v, %v", who, err)
		}
	})
}

// TestRouterTakenAway ends the session of a router with what it rests on.
func TestRouterTakenAway(t *testing.T) {
	for name, take := range map[string]func(t *testing.T, w *world){
		"disabled": func(t *testing.T, w *world) { w.editRouter(t, "r1", func(e *model.EdgeRouter) { e.Disabled = true }) },
		"not a client": func(t *testing.T, w *world) {
			w.editRouter(t, "r1", func(e *model.EdgeRouter) { e.IsTunnelerEnabled = false })
		},
		"enrolls again": func(t *testing.T, w *world) {
			w.editRouter(t, "r1", func(e *model.EdgeRouter) { e.IsVerified = false })
		},
		"deleted": func(t *testing.T, w *world) { remove(t, w.State, model.EdgeRouters.Def, "r1") },
		"identity disabled": func(t *testing.T, w *world) {
			update(t, w.State, func(tx *state.Tx) error {
				return model.Identities.Edit(tx, "r1", func(i *model.Identity) error { i.Disable(time.Now(), 0); return nil })
			})
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				w.addRouter(t, "r1")
				w.addRouter(t, "r2")
				defer run(func(ctx context.Context) { w.Enforce(ctx) })()
				synctest.Wait()
				who, err := w.OfRouter(t.Context(), state.Nobody, "r1", Request{})
				if err != nil {
					t.Fatal(err)
				}
				other, err := w.OfRouter(t.Context(), state.Nobody, "r2", Request{})
				if err != nil {
					t.Fatal(err)
				}
				w.editRouter(t, "r1", func(e *model.EdgeRouter) { e.Cost = 7 })
				synctest.Wait()
				if !w.stored(who) {
					t.Fatal("it ended for another reason")
				}
				take(t, w)
				synctest.Wait()
				if w.stored(who) || !w.stored(other) {
					t.Errorf("its session is stored: %v; that of another router: %v", w.stored(who), w.stored(other))
				}
				if _, err := w.OfRouter(t.Context(), state.Nobody, "r1", Request{}); !fault.Is(err, fault.CodeAuth) {
					t.Errorf("it gets another: %v", err)
				}
			})
		})
	}
}
