package validity_test

import (
	"fmt"
	"log/slog"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"netkeep.internal/internal/data/state"
	"netkeep.internal/internal/data/store/storetest"
	"netkeep.internal/internal/lang/fault"
	"netkeep.internal/internal/lang/kind"
	"netkeep.internal/internal/model"
	"netkeep.internal/internal/policy/access"
	"netkeep.internal/internal/policy/validity"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var begin = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// span is a time in which something counts, in seconds since the beginning; 0
// is none.
type span struct{ from, until int }

func (s span) holds(now int) bool {
	return (s.from == 0 || now >= s.from) && (s.until == 0 || now < s.until)
}

func at(second int) *time.Time {
	if second == 0 {
		return nil
	}
	t := begin.Add(time.Duration(second) * time.Second)
	return &t
}

// naive is what a network is to somebody who goes through all of it each time.
type naive struct {
	own      map[string][]string // attributes by identity
	grants   map[string]given
	policies map[string]rule
}

type given struct {
	span
	identity, attribute string
}

type rule struct {
	span
	attribute string
}

// mayDial reports whether an identity may dial the only service.
func (n *naive) mayDial(identity string, now int) bool {
	has := slices.Clone(n.own[identity])
	for _, g := range n.grants {
		if g.identity == identity && g.holds(now) {
			has = append(has, g.attribute)
		}
	}
	for _, p := range n.policies {
		if p.holds(now) && slices.Contains(has, p.attribute) {
			return true
		}
	}
	return false
}

// machine is a network, and what somebody naive makes of it.
type machine struct {
	naive
	st     *state.State
	keeper *validity.Keeper
	now    int
}

var people, words = []string{"ann", "bob", "cid"}, []string{"red", "blue"}

func newMachine(rt *rapid.T) *machine {
	m := &machine{naive: naive{map[string][]string{}, map[string]given{}, map[string]rule{}}, now: 1}
	clock := func() time.Time { return *at(m.now) }
	st, err := state.Open(rt.Context(), storetest.NewMemory(), model.All, state.Options{Frozen: true, Now: clock})
	if err != nil {
		rt.Fatal(err)
	}
	rt.Cleanup(st.Close)
	m.st, m.keeper = st, &validity.Keeper{State: st, Now: clock, Log: slog.New(slog.DiscardHandler)}
	m.write(rt, func(tx *state.Tx) error {
		if err := model.Seed(tx); err != nil {
			return err
		}
		for _, id := range people {
			if err := model.Identities.Upsert(tx, id, func(i *model.Identity) { i.Name, i.Type = id, "User" }); err != nil {
				return err
			}
		}
		return model.Services.Upsert(tx, "pay", func(s *model.Service) { s.Name = "pay" })
	})
	return m
}

func (m *machine) write(rt *rapid.T, fn func(*state.Tx) error) {
	if err := m.st.Update(rt.Context(), state.Program("test"), fn); err != nil {
		rt.Fatal(err)
	}
}

// draw returns a span that a record may begin with now.
func (m *machine) draw(rt *rapid.T, ends bool) span {
	s := span{until: m.now + rapid.IntRange(1, 20).Draw(rt, "lasts")}
	if !ends && rapid.Bool().Draw(rt, "for ever") {
		s.until = 0
	}
	if rapid.Bool().Draw(rt, "later") {
		s.from = m.now + rapid.IntRange(0, 10).Draw(rt, "in")
		if s.until != 0 {
			s.until = max(s.until, s.from+1)
		}
	}
	return s
}

func (m *machine) SetOwn(rt *rapid.T) {
	who, list := rapid.SampledFrom(people).Draw(rt, "who"), rapid.SliceOfDistinct(rapid.SampledFrom(words), func(s string) string { return s }).Draw(rt, "own")
	before, _ := model.Identities.Get(m.st.Snapshot(), who)
	m.write(rt, func(tx *state.Tx) error {
		return model.Identities.Edit(tx, who, func(i *model.Identity) error { i.RoleAttributes = list; return nil })
	})
	// What is lent is not made somebody's own by writing it back.
	m.own[who] = slices.DeleteFunc(slices.Clone(list), func(a string) bool { return slices.Contains(before.GrantedAttributes, a) })
}

func (m *machine) PutGrant(rt *rapid.T) {
	id := rapid.SampledFrom([]string{"g1", "g2", "g3", "g4"}).Draw(rt, "grant")
	g, there := m.grants[id]
	if !there {
		g.identity, g.attribute = rapid.SampledFrom(people).Draw(rt, "who"), rapid.SampledFrom(words).Draw(rt, "what")
	}
	g.span = m.draw(rt, true)
	m.grants[id] = g
	m.write(rt, func(tx *state.Tx) error {
		return model.Grants.Upsert(tx, id, func(rec *model.Grant) {
			rec.IdentityID, rec.Attribute, rec.Reason = g.identity, g.attribute, "test"
			rec.ValidFrom, rec.ValidUntil = at(g.from), *at(g.until)
		})
	})
}

func (m *machine) PutPolicy(rt *rapid.T) {
	id := rapid.SampledFrom([]string{"p1", "p2"}).Draw(rt, "policy")
	p := rule{m.draw(rt, false), rapid.SampledFrom(words).Draw(rt, "role")}
	m.policies[id] = p
	m.write(rt, func(tx *state.Tx) error {
		return model.ServicePolicies.Upsert(tx, id, func(rec *model.ServicePolicy) {
			rec.Name, rec.Type, rec.Semantic = id, model.Dial, model.AnyOf
			rec.IdentityRoles, rec.ServiceRoles = []string{"#" + p.attribute}, []string{"#all"}
			rec.ValidFrom, rec.ValidUntil = at(p.from), at(p.until)
		})
	})
}

func (m *machine) Remove(rt *rapid.T) {
	id := rapid.SampledFrom([]string{"g1", "g2", "g3", "g4", "p1", "p2"}).Draw(rt, "what")
	def := model.Grants.Def
	if id[0] == 'p' {
		def = model.ServicePolicies.Def
	}
	if _, there := m.st.Snapshot().Lookup(def, id); !there {
		return
	}
	delete(m.grants, id)
	delete(m.policies, id)
	if err := m.st.Delete(rt.Context(), state.Program("test"), def, id); err != nil {
		rt.Fatal(err)
	}
}

func (m *machine) Pass(rt *rapid.T) { m.now += rapid.IntRange(1, 12).Draw(rt, "seconds") }

func (m *machine) Settle(rt *rapid.T) {
	if err := m.keeper.Settle(rt.Context()); err != nil {
		rt.Fatal(err)
	}
	m.compare(rt, "what is stored", m.st.Snapshot(), m.now)
}

// Check looks at now by the clock, and at a moment to come.
func (m *machine) Check(rt *rapid.T) {
	m.compare(rt, "now", m.keeper.View(m.st.Snapshot()), m.now)
	later := m.now + rapid.IntRange(0, 30).Draw(rt, "later")
	will, _, err := validity.At(rt.Context(), m.st, m.st.Snapshot(), *at(later))
	if err != nil {
		rt.Fatal(err)
	}
	m.compare(rt, "later", will, later)
}

func (m *machine) compare(rt *rapid.T, what string, snap *state.Snapshot, now int) {
	for _, who := range people {
		if got, want := access.MayDial(snap, who, "pay"), m.mayDial(who, now); got != want {
			rt.Fatalf("%s, at %d, %s may dial: %v, want %v\n%+v", what, now, who, got, want, m.naive)
		}
		i, _ := model.Identities.Get(snap, who)
		if own := i.Own(); !slices.Equal(slices.Sorted(slices.Values(own)), slices.Sorted(slices.Values(m.own[who]))) {
			rt.Fatalf("%s, at %d, %s has %v of its own, want %v", what, now, who, own, m.own[who])
		}
	}
}

// TestNaively compares a network of which parts begin and end with one that is gone
// through at every question: now, whether what time has changed is written or not,
// and at moments to come.
func TestNaively(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) { rt.Repeat(rapid.StateMachineActions(newMachine(rt))) })
}

// brief is a network in which ann may dial for an hour, by a policy and by a grant.
func brief(t *testing.T, st *state.State) {
	t.Helper()
	until := time.Now().Add(time.Hour)
	err := st.Update(t.Context(), state.Program("test"), func(tx *state.Tx) error {
		if err := model.Seed(tx); err != nil {
			return err
		}
		for _, id := range []string{"ann", "bob"} {
			if err := model.Identities.Upsert(tx, id, func(i *model.Identity) { i.Name, i.Type = id, "User" }); err != nil {
				return err
			}
		}
		if err := model.Services.Upsert(tx, "pay", func(s *model.Service) { s.Name = "pay" }); err != nil {
			return err
		}
		for id, role := range map[string]string{"lasting": "#finance", "brief": "@ann"} {
			err := model.ServicePolicies.Upsert(tx, id, func(p *model.ServicePolicy) {
				p.Name, p.Type, p.Semantic, p.IdentityRoles, p.ServiceRoles = id, model.Dial, model.AnyOf, []string{role}, []string{"#all"}
				if id == "brief" {
					p.ValidUntil = &until
				}
			})
			if err != nil {
				return err
			}
		}
		return model.Grants.Create(tx, &model.Grant{IdentityID: "bob", Attribute: "finance", Reason: "quarter end", ValidUntil: until})
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestControllersEnd has two controllers wait for the end: it is written once, by
// the program.
func TestControllersEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		memory := storetest.NewMemory()
		var keepers []*validity.Keeper
		for i := range 2 {
			st, err := state.Open(t.Context(), memory, model.All, state.Options{Frozen: true})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(st.Close)
			if i == 0 {
				brief(t, st)
			}
			k := &validity.Keeper{State: st, Now: time.Now, Log: slog.New(slog.DiscardHandler)}
			keepers = append(keepers, k)
			go k.Run(t.Context())
		}
		synctest.Wait()
		writes := keepers[0].State.Subscribe(validity.Kinds...)
		if _, err := writes.Next(t.Context()); err != nil { // what there is
			t.Fatal(err)
		}
		<-time.After(time.Hour - time.Millisecond)
		synctest.Wait()
		for i, k := range keepers {
			if snap := k.State.Snapshot(); !access.MayDial(snap, "ann", "pay") || !access.MayDial(snap, "bob", "pay") {
				t.Errorf("controller %d has ended what is not over", i)
			}
		}
		<-time.After(2 * time.Millisecond)
		synctest.Wait()
		for i, k := range keepers {
			if snap := k.State.Snapshot(); access.MayDial(snap, "ann", "pay") || access.MayDial(snap, "bob", "pay") {
				t.Errorf("controller %d has not ended what is over", i)
			}
		}
		ev, err := writes.Next(t.Context())
		if err != nil || len(ev.Writes) != 1 || ev.Writes[0].Author.Name != "validity" || len(ev.Writes[0].Changes) != 3 {
			t.Errorf("the end was written as %+v (%v), want the policy, the grant and the identity, once", ev.Writes, err)
		}
	})
}

// TestForgotten has a grant be kept for a while when it is over, and no longer.
func TestForgotten(t *testing.T) {
	now := time.Now()
	clock := func() time.Time { return now }
	st, err := state.Open(t.Context(), storetest.NewMemory(), model.All, state.Options{Frozen: true, Now: clock})
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	brief(t, st)
	k := &validity.Keeper{State: st, Now: clock, Log: slog.New(slog.DiscardHandler)}
	for _, step := range []struct {
		passes time.Duration
		kept   int
	}{{2 * time.Hour, 1}, {model.GrantsKept - 2*time.Hour, 1}, {2 * time.Hour, 0}} {
		now = now.Add(step.passes)
		if err := k.Settle(t.Context()); err != nil {
			t.Fatal(err)
		}
		if n := st.Snapshot().Len(model.Grants.Def); n != step.kept {
			t.Errorf("%s later %d grants are kept, want %d", step.passes, n, step.kept)
		}
		if access.MayDial(st.Snapshot(), "bob", "pay") {
			t.Error("a grant that is over counts")
		}
	}
}

// TestStoreAway has the end come while nothing can be written: this controller
// sees it, and tells those who end what rests on it.
func TestStoreAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := storetest.NewFaulty(storetest.NewMemory())
		st, err := state.Open(t.Context(), store, model.All, state.Options{Frozen: true})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(st.Close)
		brief(t, st)
		late := make(chan *state.Snapshot, 10)
		k := &validity.Keeper{
			State: st, Now: time.Now, Log: slog.New(slog.DiscardHandler),
			Late: func(_, would *state.Snapshot, _ []state.Ref) { late <- would },
		}
		gate := store.BlockNext(storetest.Commit)
		go k.Run(t.Context())
		<-time.After(time.Hour)
		if view := k.View(st.Snapshot()); access.MayDial(view, "ann", "pay") || access.MayDial(view, "bob", "pay") {
			t.Error("what is over counts as long as nobody has written that it is")
		}
		<-time.After(2 * time.Second)
		synctest.Wait()
		select {
		case would := <-late:
			if access.MayDial(would, "ann", "pay") {
				t.Error("what is told is not what would be")
			}
		default:
			t.Error("two seconds after the end nobody is told of it")
		}
		gate.Open()
		synctest.Wait()
		<-time.After(time.Second)
		synctest.Wait()
		if access.MayDial(st.Snapshot(), "ann", "pay") {
			t.Error("the end was not written when it could be")
		}
	})
}

// TestTimesThatCannotBe are refused with the field.
func TestTimesThatCannotBe(t *testing.T) {
	st, err := state.Open(t.Context(), storetest.NewMemory(), model.All, state.Options{Frozen: true, Now: func() time.Time { return begin }})
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	for i, times := range []span{{10, 10}, {10, 5}, {0, -1}, {-5, -1}} {
		p := &model.EdgeRouterPolicy{Meta: kind.Meta{ID: fmt.Sprint(i)}, Name: fmt.Sprint(i), Semantic: model.AnyOf}
		p.ValidFrom, p.ValidUntil = at(times.from), at(times.until)
		err := st.Update(t.Context(), state.Program("test"), func(tx *state.Tx) error {
			fresh := *p
			return model.EdgeRouterPolicies.Create(tx, &fresh)
		})
		if e, ok := err.(*fault.Error); !ok || e.Field != "validUntil" {
			t.Errorf("%+v: %v", times, err)
		}
	}
}

// TestWrittenMeanwhile has a write look at itself by the clock, before and after it has
// given something itself.
func TestWrittenMeanwhile(t *testing.T) {
	now := time.Now()
	clock := func() time.Time { return now }
	st, err := state.Open(t.Context(), storetest.NewMemory(), model.All, state.Options{Frozen: true, Now: clock})
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	brief(t, st)
	k := &validity.Keeper{State: st, Now: clock, Log: slog.New(slog.DiscardHandler)}
	now = now.Add(2 * time.Hour)
	err = st.Update(t.Context(), state.Program("test"), func(tx *state.Tx) error {
		for i := range 2 {
			for _, who := range []string{"ann", "bob"} {
				if want := i > 0 && who == "bob"; access.MayDial(k.View(tx.Snapshot), who, "pay") != want {
					t.Errorf("in step %d of the write %s may dial: %v", i, who, !want)
				}
			}
			if err := model.ServicePolicies.Edit(tx, "lasting", func(p *model.ServicePolicy) error { p.IdentityRoles = []string{"@bob"}; return nil }); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
