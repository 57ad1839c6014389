package history_test

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"netkeep.internal/internal/data/state"
	"netkeep.internal/internal/data/store/storetest"
	"netkeep.internal/internal/lang/fault"
	"netkeep.internal/internal/lang/filter"
	"netkeep.internal/internal/lang/kind"
	"netkeep.internal/internal/model"
	"netkeep.internal/internal/ops/audit"
	"netkeep.internal/internal/ops/history"
	"netkeep.internal/internal/policy/access"
)

// tester is what tests and properties have in common.
type tester interface {
	Helper()
	Errorf(format string, args ...any)
	Fatal(args ...any)
	Fatalf(format string, args ...any)
}

func must(t tester, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

var ann = state.Author{Kind: "identity", ID: "ann", Name: "Ann"}

// world is a controller with a history.
type world struct {
	*state.State
	*history.History
	keeper *audit.Keeper
}

func open(t tester) *world {
	t.Helper()
	s, err := state.Open(context.Background(), storetest.NewMemory(), model.All, state.Options{Journal: audit.Journal{}, Frozen: true})
	must(t, err)
	log := &audit.Log{State: s}
	w := &world{s, history.New(log, time.Now), &audit.Keeper{Log: log, Age: time.Hour, Entries: 1_000_000, Now: time.Now}}
	w.write(t, func(tx *state.Tx) error { return model.Seed(tx) })
	return w
}

func (w *world) write(t tester, do func(*state.Tx) error) {
	t.Helper()
	must(t, w.Update(context.Background(), ann, do))
}

// last is the number of the last entry.
func (w *world) last() int64 { return audit.Head(w.Snapshot()).Last }

func (w *world) at(t tester, number int64) *state.Snapshot {
	t.Helper()
	past, err := w.At(context.Background(), "at", strconv.FormatInt(number, 10))
	must(t, err)
	return past.Snapshot
}

// TestPast writes at random, keeps every snapshot that there is, and asks for each
// later in any order: records, lists and who may use what are as they were.
func TestPast(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := open(t)
		defer w.Close()
		kept := map[int64]*state.Snapshot{w.last(): w.Snapshot()}
		for range rapid.IntRange(1, 15).Draw(t, "writes") {
			_ = w.Update(context.Background(), ann, func(tx *state.Tx) error { return change(t, tx) })
			kept[w.last()] = w.Snapshot()
		}
		var numbers []int64
		for number := range kept {
			numbers = append(numbers, number)
		}
		slices.Sort(numbers)
		for _, number := range rapid.Permutation(numbers).Draw(t, "asked") {
			same(t, number, w.at(t, number), kept[number])
		}
		for i := range numbers[1:] {
			moved(t, w, kept, numbers[i], numbers[rapid.IntRange(i+1, len(numbers)-1).Draw(t, "later")])
		}
		if first := w.at(t, 0); first.Len(model.AuthPolicies.Def) != 0 {
			t.Fatalf("before the first entry there are %d authentication policies", first.Len(model.AuthPolicies.Def))
		}
	})
}

// change is a write at random, which may be refused.
func change(t *rapid.T, tx *state.Tx) error {
	for range rapid.IntRange(1, 4).Draw(t, "changes") {
		name := rapid.SampledFrom([]string{"a", "b", "c", "d"}).Draw(t, "name")
		roles := rapid.SliceOfN(rapid.SampledFrom([]string{"x", "y", "z"}), 0, 2).Draw(t, "roles")
		switch rapid.IntRange(0, 7).Draw(t, "what") {
		case 0:
			_ = model.Services.Create(tx, &model.Service{Meta: kind.Meta{ID: name}, Name: name, TerminatorStrategy: "random", RoleAttributes: roles})
		case 1:
			_ = model.Services.Edit(tx, name, func(s *model.Service) error {
				s.RoleAttributes, s.MaxIdleTimeMillis = roles, rapid.Int64Range(0, 3).Draw(t, "idle")
				return nil
			})
		case 2:
			_ = model.Services.Delete(tx, name)
		case 3:
			_ = model.Identities.Create(tx, &model.Identity{
				Meta: kind.Meta{ID: name}, Name: name + "-device", Type: "Device", AuthPolicyID: "default", RoleAttributes: roles,
			})
		case 4:
			_ = model.Identities.Delete(tx, name)
		case 5:
			identities, services := []string{"#all"}, []string{"#all"}
			if len(roles) > 0 {
				identities, services = []string{"#" + roles[0]}, []string{"#" + roles[len(roles)-1]}
			}
			if _, ok := model.Services.Get(tx, name); ok {
				services = append(services, "@"+name)
			}
			_ = model.ServicePolicies.Create(tx, &model.ServicePolicy{
				Meta: kind.Meta{ID: name}, Name: name, Type: rapid.SampledFrom([]string{model.Dial, model.Bind}).Draw(t, "type"), Semantic: model.AnyOf,
				IdentityRoles: identities, ServiceRoles: services,
			})
		case 6:
			_ = model.ServicePolicies.Delete(tx, name)
		case 7:
			_ = model.MFAs.Create(tx, &model.MFA{Meta: kind.Meta{ID: name}, IdentityID: name, Secret: "hush", RecoveryCodes: []string{"hush"}})
		}
	}
	return nil
}

// same compares two snapshots by all that answers show.
func same(t tester, number int64, got, want *state.Snapshot) {
	t.Helper()
	for _, d := range model.All.Defs {
		if !d.Noted {
			if got.Len(d) != 0 {
				t.Fatalf("there are %d records of %s in the past", got.Len(d), d.Name)
			}
			continue
		}
		if g, w := shown(t, d, got), shown(t, d, want); g != w {
			t.Fatalf("at entry %d records of %s are\n%s\nwant\n%s", number, d.Name, g, w)
		}
		for id, right := range got.Filing(d) {
			if !right {
				t.Fatalf("at entry %d %s %s is not filed as it should be", number, d.Name, id)
			}
		}
	}
	q, err := filter.Compile(model.Services.Symbols, `name >= "b" or anyOf(roleAttributes) = "x" sort by name desc`)
	must(t, err)
	for _, d := range []*kind.Def{model.Services.Def} {
		g, total := got.Query(d, q, q.Page(nil, nil))
		w, all := want.Query(d, q, q.Page(nil, nil))
		if total != all || !slices.EqualFunc(g, w, func(a, b kind.Record) bool { return a.Base().ID == b.Base().ID }) {
			t.Fatalf("at entry %d there are %d %s, want %d", number, total, d.Path, all)
		}
	}
	if g, w := may(got), may(want); !slices.Equal(g, w) {
		t.Fatalf("at entry %d identities may %v, want %v", number, g, w)
	}
}

// shown is all that may be shown of the records of a kind.
func shown(t tester, d *kind.Def, snap *state.Snapshot) string {
	var all strings.Builder
	for rec := range snap.All(d) {
		delta, err := d.Delta(nil, rec)
		must(t, err)
		fmt.Fprintf(&all, "%s\n", delta.After)
	}
	return all.String()
}

// may is who may do what with which service.
func may(snap *state.Snapshot) (all []string) {
	for s := range model.Services.All(snap) {
		for _, typ := range []string{model.Bind, model.Dial} {
			for rec := range snap.Within(model.Identities.Def, access.WhoCan(snap, s.ID, typ)) {
				all = append(all, rec.Base().ID+" "+typ+" "+s.ID)
			}
		}
	}
	slices.Sort(all)
	return all
}

// moved compares who gained and lost what between two moments with what they may at
// each.
func moved(t tester, w *world, kept map[int64]*state.Snapshot, from, to int64) {
	t.Helper()
	span, err := w.Between(context.Background(), strconv.FormatInt(from, 10), strconv.FormatInt(to, 10))
	must(t, err)
	same(t, from, span.Before.Snapshot, kept[from])
	var got []string
	for _, p := range access.Difference(span.Before.Snapshot, span.After.Snapshot, span.Refs(), 1000).Pairs {
		sign := "-"
		if p.Gained {
			sign = "+"
		}
		got = append(got, sign+p.IdentityID+" "+p.Type+" "+p.ServiceID)
	}
	var want []string
	before, after := may(kept[from]), may(kept[to])
	for _, pair := range before {
		if !slices.Contains(after, pair) {
			want = append(want, "-"+pair)
		}
	}
	for _, pair := range after {
		if !slices.Contains(before, pair) {
			want = append(want, "+"+pair)
		}
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Fatalf("between entries %d and %d there moved\n%v\nwant\n%v", from, to, got, want)
	}
}

// services adds services, one write for each, and returns the number of the entry
// after each.
func (w *world) services(t tester, n int) (numbers []int64) {
	t.Helper()
	for i := range n {
		w.write(t, func(tx *state.Tx) error {
			name := fmt.Sprint("s", i)
			return model.Services.Create(tx, &model.Service{Meta: kind.Meta{ID: name}, Name: name, TerminatorStrategy: "random"})
		})
		numbers = append(numbers, w.last())
	}
	return numbers
}

// TestPacked asks for moments whose entries were packed, and for some of which they
// were forgotten.
func TestPacked(t *testing.T) {
	w := open(t)
	defer w.Close()
	numbers := w.services(t, 2100)
	must(t, w.keeper.Keep(t.Context()))
	for _, i := range []int{3, 499, 500, 2099} {
		if n := w.at(t, numbers[i]).Len(model.Services.Def); n != i+1 {
			t.Errorf("after %d services there were %d", i+1, n)
		}
	}
	w.keeper.Entries = 1000
	must(t, w.keeper.Keep(t.Context()))
	first, _ := w.keeper.Window()
	if first < 2 {
		t.Fatalf("the first entry is %d", first)
	}
	fresh := history.New(w.Log, time.Now)
	entry, err := w.Log.Entry(t.Context(), first)
	must(t, err)
	for _, moment := range []string{strconv.FormatInt(first-2, 10), "2001-01-01T00:00:00Z", entry.CreatedAt.Time().Add(-time.Second).Format(time.RFC3339Nano)} {
		if _, err := fresh.At(t.Context(), "at", moment); !fault.Is(err, fault.CodeInvalid) || !strings.Contains(err.Error(), strconv.FormatInt(first, 10)) {
			t.Errorf("%s is answered with %v", moment, err)
		}
	}
	if past, err := fresh.At(t.Context(), "at", strconv.FormatInt(first-1, 10)); err != nil || past.Len(model.Services.Def) != w.Snapshot().Len(model.Services.Def)-int(w.last()-first+1) {
		t.Errorf("before the first entry: %v", err)
	}
	past, err := fresh.At(t.Context(), "at", entry.CreatedAt.Time().Format(time.RFC3339Nano))
	if err != nil || past.Number != first {
		t.Errorf("the time of the first entry: %v", err)
	}
}

// TestWrong asks for moments that there are not.
func TestWrong(t *testing.T) {
	w := open(t)
	defer w.Close()
	for _, moment := range []string{"yesterday", "", "-5", strconv.FormatInt(w.last()+1, 10), time.Now().Add(time.Hour).Format(time.RFC3339)} {
		if _, err := w.At(t.Context(), "at", moment); !fault.Is(err, fault.CodeInvalid) {
			t.Errorf("%q is answered with %v", moment, err)
		}
	}
}

// TestWhole asks for an entry of a write that has several: the moment is that after
// all of them.
func TestWhole(t *testing.T) {
	w := open(t)
	defer w.Close()
	before := w.last()
	w.write(t, func(tx *state.Tx) error {
		for _, name := range []string{"a", "b", "c"} {
			if err := model.Services.Create(tx, &model.Service{Meta: kind.Meta{ID: name}, Name: name, TerminatorStrategy: "random"}); err != nil {
				return err
			}
		}
		return nil
	})
	if n := w.at(t, before+1).Len(model.Services.Def); n != 3 {
		t.Errorf("there were %d services", n)
	}
	if n := w.at(t, before).Len(model.Services.Def); n != 0 {
		t.Errorf("before there were %d services", n)
	}
}

// TestFlood has many ask for many moments at once: few snapshots are kept.
func TestFlood(t *testing.T) {
	w := open(t)
	defer w.Close()
	numbers := w.services(t, 60)
	var all sync.WaitGroup
	for i := range 1000 {
		all.Go(func() {
			n := i % len(numbers)
			past, err := w.At(context.Background(), "at", strconv.FormatInt(numbers[n], 10))
			if err != nil || past.Len(model.Services.Def) != n+1 {
				t.Errorf("after %d services: %v", n+1, err)
			}
		})
	}
	all.Wait()
	if n := w.Kept(); n > 8 {
		t.Errorf("%d snapshots are kept", n)
	}
}
