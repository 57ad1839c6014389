package terminator

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"math"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"netkeep.internal/internal/data/state"
	"netkeep.internal/internal/data/store/storetest"
	"netkeep.internal/internal/lang/kind"
	"netkeep.internal/internal/model"
)

// field is a network in memory with one service, and what it costs to get to
// its routers.
type field struct {
	*Hosts
	now   time.Time
	paths map[string]int64
}

func newField(t rapid.TB) *field {
	st, err := state.Open(context.Background(), storetest.NewMemory(), model.All, state.Options{Frozen: true})
	if err != nil {
		t.Fatal(err)
	}
	f := &field{now: time.Unix(1e9, 0), paths: map[string]int64{}}
	f.Hosts = New(Options{State: st, Now: func() time.Time { return f.now }, Log: slog.New(slog.DiscardHandler)})
	f.write(t, func(tx *state.Tx) error {
		for _, id := range []string{"service", "other"} {
			if err := model.Services.Create(tx, &model.Service{Meta: kind.Meta{ID: id}, Name: id}); err != nil {
				return err
			}
		}
		return nil
	})
	return f
}

func (f *field) write(t rapid.TB, fn func(tx *state.Tx) error) {
	t.Helper()
	if err := f.State.Update(context.Background(), state.Program("test"), fn); err != nil {
		t.Fatal(err)
	}
}

// router adds one that a path leads to, unless it costs less than nothing.
func (f *field) router(t rapid.TB, path int64, quiesced bool) string {
	id := fmt.Sprintf("r%03d", len(f.paths))
	f.paths[id] = path
	f.write(t, func(tx *state.Tx) error {
		return model.Routers.Create(tx, &model.Router{Meta: kind.Meta{ID: id}, Name: id, Quiesced: quiesced})
	})
	return id
}

func (f *field) path(routerID string) (int64, bool) {
	cost := f.paths[routerID]
	return cost, cost >= 0
}

// terminator returns a record of the service.
func terminator(id, routerID, precedence string, cost int) *model.Terminator {
	return &model.Terminator{
		Meta: kind.Meta{ID: id}, ServiceID: "service", RouterID: routerID, Binding: BindingEdge, Address: id, Precedence: precedence, Cost: cost,
	}
}

func (f *field) want(strategy string) Want {
	return Want{Service: &model.Service{Meta: kind.Meta{ID: "service"}, TerminatorStrategy: strategy}, Path: f.path}
}

// all returns what there is to choose from, found by a look at everything.
func (f *field) all(w Want) []Candidate {
	among := Offered(f.State.Snapshot(), nil, w.Service, w.Path, w.Host)
	among = slices.DeleteFunc(among, func(c Candidate) bool { return w.Tried[c.ID] })
	for i := range among {
		among[i].Dynamic = f.DynamicCost(among[i].Terminator)
	}
	return among
}

// fill puts terminators of all sorts into the field.
func (f *field) fill(t *rapid.T) (ids []string) {
	var routers []string
	for range rapid.IntRange(1, 5).Draw(t, "routers") {
		path := rapid.SampledFrom([]int64{-1, 0, 0, 1, 10, 500}).Draw(t, "path")
		routers = append(routers, f.router(t, path, rapid.IntRange(0, 4).Draw(t, "quiesced") == 0))
	}
	f.write(t, func(tx *state.Tx) error {
		for i := range rapid.IntRange(0, 60).Draw(t, "terminators") {
			r := terminator(fmt.Sprintf("t%02d", i), rapid.SampledFrom(routers).Draw(t, "router"),
				rapid.SampledFrom([]string{"required", "default", "default", "failed"}).Draw(t, "precedence"),
				rapid.SampledFrom([]int{0, 0, 1, 2, 40, 1000, 65535}).Draw(t, "cost"))
			r.ServiceID = rapid.SampledFrom([]string{"service", "service", "other"}).Draw(t, "service")
			r.Identity = rapid.SampledFrom([]string{"", "", "name", "name\x00default\x00"}).Draw(t, "name")
			r.SessionID = rapid.SampledFrom([]string{"", "", "", "over"}).Draw(t, "session")
			if err := model.Terminators.Create(tx, r); err != nil {
				return err
			}
			ids = append(ids, r.ID)
			for range rapid.SampledFrom([]int{0, 0, 0, 1, 3}).Draw(t, "failures") {
				f.Failed(r)
			}
		}
		return nil
	})
	return ids
}

// TestChooseProperty has terminators of all sorts, some of which failed, were
// tried already or are of no use any more: what is chosen is always one that a
// look at everything would choose too.
func TestChooseProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := newField(t)
		defer f.State.Close()
		ids := f.fill(t)
		f.now = f.now.Add(time.Duration(rapid.IntRange(0, 120).Draw(t, "seconds")) * time.Second)
		w := f.want(rapid.SampledFrom([]string{SmartRouting, Weighted, Random, Sticky, ""}).Draw(t, "strategy"))
		w.Host = rapid.SampledFrom([]string{"", "name", "nobody"}).Draw(t, "host")
		w.Tried = map[string]bool{}
		for _, id := range ids {
			if rapid.IntRange(0, 5).Draw(t, "tried") == 0 {
				w.Tried[id] = true
			}
		}
		if len(ids) > 0 {
			w.Sticky = rapid.SampledFrom(ids).Draw(t, "sticky")
		}
		best := first(f.State.Snapshot(), f.all(w)) // by a look at everything
		if len(best) > 0 && w.Service.TerminatorStrategy != Random && w.Service.TerminatorStrategy != Weighted {
			best = keepCheapest(best, w)
		}
		snap := f.State.Snapshot()
		looked := newSearch(snap, w, f.ledger.of(w.Service.ID, f.now)) // at all, for those of no use
		looked.exceptAll(func(t *model.Terminator) bool { return !usable(snap, nil, w.Service, t) })
		for i := range 20 {
			got, ok := f.Choose(snap, w)
			if i%2 == 1 {
				got, ok = looked.choose()
			}
			if ok != (len(best) > 0) {
				t.Fatalf("chose %v (%t) among %v", got, ok, best)
			}
			if ok && !slices.Contains(best, got) {
				t.Fatalf("chose %+v, want one of %+v", got, best)
			}
		}
	})
}

// keepCheapest returns those that cost least, or the one that is wanted again.
func keepCheapest(among []Candidate, w Want) []Candidate {
	least := math.MaxInt
	for _, c := range among {
		if w.Service.TerminatorStrategy == Sticky && c.ID == w.Sticky {
			return []Candidate{c}
		}
		least = min(least, c.cost())
	}
	return slices.DeleteFunc(slices.Clone(among), func(c Candidate) bool { return c.cost() > least })
}

// TestShares chooses many times: every terminator is chosen as often as if all
// had been looked at.
func TestShares(t *testing.T) {
	f := newField(t)
	defer f.State.Close()
	routers := []string{f.router(t, 0, false), f.router(t, 2, false), f.router(t, 7, false)}
	f.write(t, func(tx *state.Tx) error {
		for i := range 30 {
			r := terminator(fmt.Sprintf("t%02d", i), routers[i%3], model.PrecedenceDefault, []int{9, 7, 2, 3, 30}[i%5])
			if err := model.Terminators.Create(tx, r); err != nil {
				return err
			}
			if i%7 == 0 {
				f.Failed(r)
			}
		}
		return nil
	})
	const times = 30_000
	for _, strategy := range []string{SmartRouting, Random, Weighted} {
		w := f.want(strategy)
		w.Tried = map[string]bool{"t03": true}
		all, snap := f.all(w), f.State.Snapshot()
		got, want := map[string]float64{}, map[string]float64{}
		for range times {
			c, _ := f.Choose(snap, w)
			got[c.ID]++
			c, _ = chooseOf(snap, strategy, all, "")
			want[c.ID]++
		}
		for _, id := range slices.Sorted(maps.Keys(want)) {
			// Five standard deviations of the difference of two counts.
			if off := math.Abs(got[id] - want[id]); off > 5*math.Sqrt(2*want[id])+5 {
				t.Errorf("%s chose %s %v times, want about %v", strategy, id, got[id], want[id])
			}
			delete(got, id)
		}
		if len(got) > 0 {
			t.Errorf("%s also chose %v", strategy, got)
		}
	}
}

// TestStaleHosts has more hosts that may host no more than a choice looks at one
// by one: the one that still may is found.
func TestStaleHosts(t *testing.T) {
	f := newField(t)
	defer f.State.Close()
	routerID := f.router(t, 0, false)
	f.write(t, func(tx *state.Tx) error {
		for i := range 3 * maxStale {
			r := terminator(fmt.Sprintf("t%02d", i), routerID, model.PrecedenceRequired, i)
			r.SessionID = "over"
			if err := model.Terminators.Create(tx, r); err != nil {
				return err
			}
		}
		return model.Terminators.Create(tx, terminator("good", routerID, model.PrecedenceFailed, 65535))
	})
	for _, strategy := range []string{SmartRouting, Random, Weighted, Sticky} {
		if c, ok := f.Choose(f.State.Snapshot(), f.want(strategy)); !ok || c.ID != "good" {
			t.Errorf("%s chose %+v, %t", strategy, c, ok)
		}
	}
}

// TestDynamicCost has a terminator fail and recover.
func TestDynamicCost(t *testing.T) {
	f := newField(t)
	defer f.State.Close()
	x := terminator("x", "r", model.PrecedenceDefault, 0)
	wants := func(what string, want int) {
		t.Helper()
		if got := f.DynamicCost(x); got != want {
			t.Errorf("%s it costs %d more, want %d", what, got, want)
		}
	}
	wants("at first", 0)
	f.Succeeded(x)
	wants("after a success", 0)
	f.Failed(x)
	wants("after a failure", 64)
	f.Failed(x)
	wants("after two", 128)
	f.now = f.now.Add(halfLife)
	wants("a while later", 64)
	f.Succeeded(x)
	wants("after another success", 32)
	for range 30 {
		f.Failed(x)
	}
	wants("after many", 65535)
	f.now = f.now.Add(17 * halfLife)
	wants("long after", 0)
	if f.ledger.tidy(f.now); len(f.ledger.marks) > 0 {
		t.Errorf("%v is kept of what is over", f.ledger.marks)
	}
	f.Failed(x)
	f.Gone(x)
	wants("when it is gone", 0)
	for i := range 3 * maxMarks {
		f.Failed(terminator(fmt.Sprint(i), "r", model.PrecedenceDefault, 0))
	}
	if n := len(f.ledger.marks["service"]); n != maxMarks {
		t.Errorf("%d marks are kept, want %d", n, maxMarks)
	}
}
