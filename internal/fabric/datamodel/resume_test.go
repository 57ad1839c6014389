package datamodel

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"netkeep.internal/internal/data/state"
	"netkeep.internal/internal/model"
	"netkeep.internal/internal/wire"
	"netkeep.internal/internal/wire/message"
)

// tunneler is a network with a router that may host a service.
func tunneler(t *testing.T) (*world, *router) {
	t.Helper()
	w := newWorld(t.Fatal)
	t.Cleanup(w.stop)
	w.do(t, func(tx *state.Tx) error {
		if err := model.ConfigTypes.Upsert(tx, "t0", func(c *model.ConfigType) { c.Name = "some.v1" }); err != nil {
			return err
		}
		if err := model.EdgeRouters.Upsert(tx, "r0", func(e *model.EdgeRouter) { e.Name, e.IsTunnelerEnabled = "r0", true }); err != nil {
			return err
		}
		return model.ServicePolicies.Upsert(tx, "p0", func(p *model.ServicePolicy) {
			p.Name, p.Type, p.Semantic, p.IdentityRoles, p.ServiceRoles = "p0", model.Bind, model.AnyOf, []string{"@r0"}, []string{"#all"}
		})
	})
	w.service(t, "s0", "one")
	r := &router{id: "r0"}
	r.ask(w.models, false)
	r.want(t, "at first", 1, 1, "s0")
	return w, r
}

func (w *world) do(t *testing.T, fn func(tx *state.Tx) error) {
	t.Helper()
	if err := w.write(fn); err != nil {
		t.Fatal(err)
	}
	synctest.Wait()
}

// service makes or changes a service with a config.
func (w *world) service(t *testing.T, id, text string) {
	t.Helper()
	w.do(t, func(tx *state.Tx) error {
		err := model.Configs.Upsert(tx, "c-"+id, func(c *model.Config) { c.Name, c.ConfigTypeID, c.Data = "c-"+id, "t0", data(text) })
		if err != nil {
			return err
		}
		return model.Services.Upsert(tx, id, func(s *model.Service) { s.Name, s.Configs = id, []string{"c-" + id} })
	})
}

// want fails unless the router was told everything so often, got so many frames
// in all, and knows these services.
func (r *router) want(t *testing.T, what string, states, frames int, services ...string) {
	t.Helper()
	r.read()
	if r.fault != nil {
		t.Fatalf("%s: %v", what, r.fault)
	}
	if r.States != states || r.frames != frames || len(r.Services) != len(services) {
		t.Fatalf("%s: told everything %d times, %d frames, knows %v; want %d, %d and %v", what, r.States, r.frames, r.Services, states, frames, services)
	}
	for _, id := range services {
		if _, ok := r.Services[id]; !ok {
			t.Fatalf("%s: it does not know %s", what, id)
		}
	}
}

// TestResume has a router that knows most be told the rest alone.
func TestResume(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, r := tunneler(t)
		r.ask(w.models, true)
		r.want(t, "renewed", 1, 1, "s0")

		w.do(t, func(tx *state.Tx) error {
			return model.Identities.Upsert(tx, "stranger", func(i *model.Identity) { i.Name, i.Type = "stranger", "User" })
		})
		r.want(t, "nothing to it", 1, 1, "s0")
		w.service(t, "s1", "two")
		r.want(t, "a change", 1, 2, "s0", "s1")

		r.lose = 2
		w.service(t, "s2", "three")
		w.service(t, "s3", "four")
		w.models.leave(r.id, r)
		r.read()
		w.service(t, "s4", "five")
		r.want(t, "away", 1, 4, "s0", "s1")
		r.ask(w.models, false)
		r.want(t, "back", 1, 7, "s0", "s1", "s2", "s3", "s4") // two that were lost, one for what came meanwhile

		r.Timeline = "another"
		r.ask(w.models, false)
		r.want(t, "on another time line", 2, 8, "s0", "s1", "s2", "s3", "s4")
		r.Index = 0
		r.ask(w.models, true)
		r.want(t, "that knows nothing", 3, 9, "s0", "s1", "s2", "s3", "s4")

		w.models.leave(r.id, r)
		time.Sleep(keepAway + time.Second)
		r.ask(w.models, false)
		r.want(t, "away for a while", 3, 9, "s0", "s1", "s2", "s3", "s4")
		w.models.leave("nobody", r)
		w.models.leave(r.id, r)
		time.Sleep(keepAway + time.Second)
		w.models.leave("nobody", r)
		if len(w.models.routers) != 0 {
			t.Errorf("%d routers are remembered", len(w.models.routers))
		}
	})
}

// TestLongLost has a router lose more than is kept for it.
func TestLongLost(t *testing.T) {
	for _, test := range []struct {
		name    string
		changes int
		size    int
		states  int
	}{
		{"few", maxLog, 10, 1}, {"many", maxLog + 1, 10, 2}, {"large", 3, maxLogged / 2, 2},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w, r := tunneler(t)
				r.lose = test.changes
				for n := range test.changes {
					w.service(t, "s0", fmt.Sprint(n, strings.Repeat("x", test.size)))
				}
				r.ask(w.models, true)
				if r.fault != nil || r.States != test.states || !strings.Contains(string(r.Configs["c-s0"].Data), fmt.Sprint(test.changes-1)) {
					t.Errorf("told everything %d times, want %d; knows %v (%v)", r.States, test.states, r.Configs, r.fault)
				}
			})
		})
	}
}

// TestTooMuch lets a router use more than fits into a frame, and less again.
func TestTooMuch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, r := tunneler(t)
		for n := range 9 {
			w.service(t, fmt.Sprint("large", n), strings.Repeat("x", 1<<20))
		}
		r.read()
		if r.fault != nil || len(r.Services) != 0 || len(r.Identities) != 0 || len(r.Policies) != 0 || len(r.Keys) != 1 {
			t.Fatalf("with too much it knows %d services and %d keys (%v)", len(r.Services), len(r.Keys), r.fault)
		}
		frames := r.frames
		w.service(t, "large0", strings.Repeat("y", 1<<20))
		if r.read(); r.frames != frames {
			t.Error("it is told again that there is too much")
		}
		w.do(t, func(tx *state.Tx) error { return model.Services.Delete(tx, "large0") })
		w.do(t, func(tx *state.Tx) error { return model.Services.Delete(tx, "large1") })
		if r.read(); r.fault != nil || len(r.Services) != 8 {
			t.Errorf("with less it knows %d services, want 8 (%v)", len(r.Services), r.fault)
		}
	})
}

// TestTurns disables a router's identity for some minutes: it knows when they
// are over, though nothing is written then.
func TestTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, r := tunneler(t)
		w.do(t, func(tx *state.Tx) error {
			return model.Identities.Edit(tx, "r0", func(i *model.Identity) error {
				i.Disable(time.Now(), 2)
				return nil
			})
		})
		r.want(t, "disabled", 1, 2)
		if r.read(); !r.Identities["r0"].Disabled {
			t.Error("it does not know that it is disabled")
		}
		time.Sleep(2*time.Minute - time.Second)
		r.want(t, "still disabled", 1, 2)
		time.Sleep(2 * time.Second)
		r.want(t, "enabled", 1, 3, "s0")
	})
}

// slow is a router that does not take what it is told until it is let.
type slow struct {
	router
	gate chan struct{}
}

func (s *slow) Judges() bool { return true }

func (s *slow) Send(f *wire.Frame) error {
	<-s.gate
	return s.router.Send(f)
}

// TestFlood has a router ask much faster than it is answered: it is told
// everything once more, and others are told meanwhile what they ask for as soon
// as it is their turn.
func TestFlood(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, r := tunneler(t)
		s := &slow{router: router{id: "r1"}, gate: make(chan struct{})}
		for range 1000 {
			w.models.subscribe("r1", s, &message.SubscribeToDataModel{Subscription: strings.Repeat("long", 100)})
			synctest.Wait()
		}
		w.models.subscribe(r.id, r, &message.SubscribeToDataModel{Subscription: r.name})
		close(s.gate)
		s.read()
		if s.frames != 2 || s.fault != nil {
			t.Errorf("it was told %d times, want 2 (%v)", s.frames, s.fault)
		}
		r.want(t, "another one", 2, 2, "s0")
	})
}
