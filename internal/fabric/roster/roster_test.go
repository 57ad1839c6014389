package roster_test

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"netkeep.internal/internal/data/state"
	"netkeep.internal/internal/data/store"
	"netkeep.internal/internal/data/store/storetest"
	"netkeep.internal/internal/fabric/roster"
	"netkeep.internal/internal/model"
)

// shared are claims that several processes have, though they are in one.
type shared struct{ *store.Alone }

// world is controllers on one store.
type world struct {
	t      *testing.T
	memory *storetest.Memory
	claims store.Claims

	mu    sync.Mutex
	place map[string]string // who answers in whose place, by the id of the one that is gone
}

func newWorld(t *testing.T) *world {
	return &world{t: t, memory: storetest.NewMemory(), claims: shared{store.NewAlone()}, place: map[string]string{}}
}

// node is a controller.
type node struct {
	*roster.Roster
	st   *state.State
	stop func() // as a process that ends
}

// id is that of a controller by its number.
func id(n int) string { return fmt.Sprintf("netkeep-%012x", n) }

// start runs a controller.
func (w *world) start(n int, reserve bool) *node {
	w.t.Helper()
	st, err := state.Open(w.t.Context(), w.memory.Another(), model.All, state.Options{Frozen: true})
	if err != nil {
		w.t.Fatal(err)
	}
	self := model.Controller{Name: id(n), Address: fmt.Sprint("tls:first:", n), Client: fmt.Sprint("first:", n)}
	if reserve {
		self.Reserve = fmt.Sprint("tls:reserve:", n)
	}
	r, err := roster.Open(w.t.Context(), id(n), roster.Options{
		Removed: func() {},
		State:   st, Claims: w.claims, Self: func() model.Controller { return self },
		Lost: func() {}, Found: func() {}, Changed: func() {},
		StandIn: func(of string, _ store.Lease) roster.StandIn {
			return roster.StandIn{Routers: func() int { return 1 }, Stop: w.answer(of, id(n))}
		},
		Asked: func(what string) bool { return what == "are you "+id(n) },
		Now:   time.Now, Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		w.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var run sync.WaitGroup
	run.Go(func() { r.Run(ctx) })
	stop := sync.OnceFunc(func() {
		cancel()
		run.Wait()
		_ = r.Close()
		st.Close()
	})
	w.t.Cleanup(stop)
	return &node{r, st, stop}
}

// answer has a controller answer in the place of another: nobody else does.
func (w *world) answer(of, by string) (stop func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if other := w.place[of]; other != "" {
		w.t.Errorf("%s and %s answer in the place of %s", other, by, of)
	}
	w.place[of] = by
	return func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		delete(w.place, of)
	}
}

// standIn is who answers in the place of a controller, after a while.
func (w *world) standIn(of string) string {
	time.Sleep(4 * time.Second)
	synctest.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.place[of]
}

// at is where routers are told that controllers are.
func (n *node) at() (all []string) {
	synctest.Wait()
	list, _ := roster.List(n.st.Snapshot())
	for _, c := range list {
		all = append(all, c.At())
	}
	slices.Sort(all)
	return all
}

func (w *world) want(what string, got []string, want ...string) {
	w.t.Helper()
	if !slices.Equal(got, want) {
		w.t.Errorf("%s: %q, want %q", what, got, want)
	}
}

// TestStandIn has controllers go: one of those that are left answers in the place
// of one at a time, until that is back.
func TestStandIn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		nodes := map[string]*node{id(1): w.start(1, true), id(2): w.start(2, true), id(3): w.start(3, false)}
		reserve := map[string]string{id(1): "tls:reserve:1", id(2): "tls:reserve:2"}
		if by := w.standIn(id(3)); by != "" {
			t.Fatalf("%s answers in the place of one that is there", by)
		}
		router := "" // one that the third tells
		for i := 0; router == ""; i++ {
			if nodes[id(3)].Tells(id(3), fmt.Sprint("r", i)) {
				router = fmt.Sprint("r", i)
			}
		}
		nodes[id(3)].stop()
		by := w.standIn(id(3))
		if by != id(1) && by != id(2) {
			t.Fatalf("%q answers in the place of one that is gone", by)
		}
		other := id(1)
		if by == other {
			other = id(2)
		}
		w.want("one is led elsewhere", nodes[other].at(), "tls:first:1", "tls:first:2", reserve[by])
		if !nodes[by].Tells(id(3), router) || nodes[by].Tells(by, router) || nodes[other].Tells(other, router) {
			t.Error("what was told under the id is told under others")
		}
		for i := range 100 { // none is forgotten, and none is done twice
			if what := fmt.Sprint("task", i); nodes[by].Mine(what) == nodes[other].Mine(what) {
				t.Errorf("%s is seen to by both, or none", what)
			}
		}
		if nodes[other].Online(id(3)) {
			t.Error("one that is gone is said to be there")
		}

		nodes[by].stop()
		if first, second := w.standIn(id(3)), w.standIn(by); first+second != other {
			t.Fatalf("%q and %q answer for the two that are gone, and can for one", first, second)
		}

		// It may be the place of this one that was taken, and who is there stays a while for
		// routers that do not leave.
		back := w.start(3, false)
		time.Sleep(10 * time.Second)
		if !slices.Contains(back.at(), "tls:first:3") {
			t.Errorf("one that is back is not where it was: %q", back.at())
		}
		if by := w.standIn(id(3)); by != "" {
			t.Errorf("%s answers in the place of one that is back", by)
		}
		// Its place is free for the next.
		if again := w.standIn(by); again != other {
			t.Errorf("%q answers for the second that is gone", again)
		}
		if err := nodes[other].Remove(t.Context(), by); err != nil {
			t.Fatal(err)
		}
		if by := w.standIn(by); by != "" {
			t.Errorf("%s answers in the place of one that was removed", by)
		}
	})
}

// TestLeaveOut has a controller go in whose place nobody can be: after a minute
// routers hear of it no more, until it is back.
func TestLeaveOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		a, b := w.start(1, false), w.start(2, false)
		b.stop()
		if by := w.standIn(id(2)); by != "" {
			t.Errorf("%s answers without a place for that", by)
		}
		if !a.Tells(id(1), "r") || !a.Tells(id(1), "s") {
			t.Error("somebody is told nothing")
		}
		time.Sleep(50 * time.Second)
		w.want("for a while", a.at(), "tls:first:1", "tls:first:2")
		_, before := roster.List(a.st.Snapshot())
		time.Sleep(10 * time.Second)
		w.want("after a minute", a.at(), "", "tls:first:1")
		_, after := roster.List(a.st.Snapshot())
		if after <= before {
			t.Errorf("the number of the list was %d and is %d", before, after)
		}
		w.want("it is back", w.start(2, false).at(), "tls:first:1", "tls:first:2")
	})
}

// TestAsk asks all other controllers.
func TestAsk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		a, b := w.start(1, false), w.start(2, false)
		w.start(3, false)
		synctest.Wait()
		for n, want := range map[int]bool{2: true, 3: true, 4: false} {
			if yes, err := a.Ask(t.Context(), "are you "+id(n)); err != nil || yes != want {
				t.Errorf("whether %d is there: %v, %v", n, yes, err)
			}
		}
		b.stop()
		synctest.Wait()
		if yes, err := a.Ask(t.Context(), "are you "+id(2)); err != nil || yes {
			t.Errorf("one that is gone says %v, %v", yes, err)
		}
	})
}
