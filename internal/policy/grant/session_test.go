package grant_test

import (
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"netkeep.internal/internal/data/state"
	"netkeep.internal/internal/data/store/storetest"
	"netkeep.internal/internal/lang/kind"
	"netkeep.internal/internal/model"
	"netkeep.internal/internal/policy/access"
	"netkeep.internal/internal/policy/grant"
	"netkeep.internal/internal/policy/posture"
)

// controller is what of one takes sessions back and tells clients to look
// again.
type controller struct {
	st       *state.State
	changes  access.LastChange
	sessions *grant.Grants
}

func open(t *testing.T, memory *storetest.Memory) *controller {
	t.Helper()
	st, err := state.Open(t.Context(), memory, model.All, state.Options{Frozen: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(st.Close)
	c := &controller{st: st}
	c.sessions = &grant.Grants{
		State: st, Usable: func(kind.Reader, *model.APISession) bool { return true }, Failures: new(posture.Failures), Changes: &c.changes,
		Now: time.Now, Log: slog.New(slog.DiscardHandler),
	}
	st.Attend(c.applied)
	return c
}

func (c *controller) applied(before, after *state.Snapshot, changed []state.Ref) {
	if before == nil {
		c.changes.Reset(after.Time)
		c.sessions.Applied(nil, after, nil, nil)
		return
	}
	c.sessions.Applied(before, after, changed, c.changes.Apply(before, after, changed))
}

const people, things, rules = 4, 4, 3

var roles = []string{"red", "green", "blue"}

// change makes one random change of the network.
func change(r *rand.Rand, tx *state.Tx) error {
	some := func(prefix string) []string {
		list := []string{}
		for _, i := range slices.Sorted(slices.Values(r.Perm(len(roles))[:r.IntN(3)])) {
			list = append(list, prefix+roles[i])
		}
		return list
	}
	person, thing, rule := fmt.Sprint("person", r.IntN(people)), fmt.Sprint("thing", r.IntN(things)), fmt.Sprint("rule", r.IntN(rules))
	switch r.IntN(6) {
	case 0, 1:
		return put(tx, model.Identities, person, func(i *model.Identity) {
			i.Name, i.Type = i.ID, "User"
			i.RoleAttributes, i.IsAdmin = some(""), r.IntN(6) == 0
		})
	case 2:
		return put(tx, model.Services, thing, func(s *model.Service) {
			s.Name, s.RoleAttributes = s.ID, some("")
		})
	case 3, 4:
		return put(tx, model.ServicePolicies, rule, func(p *model.ServicePolicy) {
			p.Name, p.Type, p.Semantic = p.ID, []string{model.Dial, model.Bind}[r.IntN(2)], []string{model.AnyOf, model.AllOf}[r.IntN(2)]
			p.IdentityRoles, p.ServiceRoles = some("#"), some("#")
		})
	}
	switch {
	case r.IntN(2) == 0 && has(tx, model.ServicePolicies.Def, rule):
		return model.ServicePolicies.Delete(tx, rule)
	case r.IntN(2) == 0 && has(tx, model.Services.Def, thing):
		return model.Services.Delete(tx, thing)
	case has(tx, model.Identities.Def, person):
		return model.Identities.Delete(tx, person)
	}
	return nil
}

func has(r kind.Reader, d *kind.Def, id string) bool {
	_, ok := r.Lookup(d, id)
	return ok
}

func put[T any](tx *state.Tx, k *kind.Kind[T], id string, change func(*T)) error {
	if has(tx, k.Def, id) {
		return k.Edit(tx, id, func(rec *T) error { change(rec); return nil })
	}
	rec := k.New()
	any(rec).(kind.Record).Base().ID = id
	change(rec)
	return k.Create(tx, rec)
}

// hold gives every person an API session, and it a session for every service
// that it may use.
func (c *controller) hold(t *testing.T) {
	err := c.st.UpdateSessions(t.Context(), state.Program("test"), func(tx *state.Tx) error {
		for i := range model.Identities.All(tx) {
			id := "api-" + i.ID
			if !has(tx, model.APISessions.Def, id) {
				api := &model.APISession{Meta: kind.Meta{ID: id}, IdentityID: i.ID, AuthenticatorID: "some", TokenHash: id, LastActivityAt: kind.MomentOf(tx.Now())}
				if err := model.APISessions.Create(tx, api); err != nil {
					return err
				}
			}
			for s := range model.Services.All(tx) {
				for _, typ := range []string{model.Dial, model.Bind} {
					held := &model.Session{APISessionID: id, IdentityID: i.ID, ServiceID: s.ID, Type: typ, Key: model.SessionKey(id, typ, s.ID)}
					if _, there := model.Sessions.Find(tx, "key", held.Key); there || !c.sessions.Live(tx.Snapshot, held) {
						continue
					}
					if err := model.Sessions.Create(tx, held); err != nil {
						return err
					}
				}
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func (c *controller) held() map[string]*model.Session {
	all := map[string]*model.Session{}
	for s := range model.Sessions.All(c.st.Snapshot()) {
		all[s.ID] = s
	}
	return all
}

// TestControllersAgree changes a network through two controllers. Each change
// takes exactly the sessions that have lost what they rest on, and both tell
// every client the same time, another one whenever it has lost or gained
// something.
func TestControllersAgree(t *testing.T) {
	for seed := range uint64(40) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { controllersAgree(t, rand.New(rand.NewPCG(seed, 1))) })
		})
	}
}

func controllersAgree(t *testing.T, r *rand.Rand) {
	memory := storetest.NewMemory()
	one := open(t, memory)
	if err := one.st.Update(t.Context(), state.Program("test"), func(tx *state.Tx) error { return model.Seed(tx) }); err != nil {
		t.Fatal(err)
	}
	two := open(t, memory)
	go one.sessions.Enforce(t.Context())
	go two.sessions.Enforce(t.Context())
	both := []*controller{one, two}
	for range 40 {
		by := both[r.IntN(2)]
		want, past := by.held(), by.st.Snapshot()
		told := map[string]time.Time{}
		for i := range model.Identities.All(past) {
			told[i.ID] = by.changes.Of(past, i.ID)
		}
		if err := by.st.Update(t.Context(), state.Program("test"), func(tx *state.Tx) error { return change(r, tx) }); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		now := by.st.Snapshot()
		maps.DeleteFunc(want, func(_ string, s *model.Session) bool { return !by.sessions.Live(now, s) })
		for i, c := range both {
			if got := c.held(); !maps.EqualFunc(got, want, func(a, b *model.Session) bool { return a.Key == b.Key }) {
				t.Fatalf("controller %d keeps %v, want %v", i, slices.Sorted(maps.Keys(got)), slices.Sorted(maps.Keys(want)))
			}
		}
		agree(t, one, two)
		for id, at := range told {
			if has(now, model.Identities.Def, id) && by.changes.Of(now, id).Equal(at) && sees(past, id) != sees(now, id) {
				t.Fatalf("%s sees other services at the same time", id)
			}
		}
		by.hold(t)
		synctest.Wait()
	}
}

// agree compares what two controllers tell everyone.
func agree(t *testing.T, one, two *controller) {
	snap := one.st.Snapshot()
	for i := range model.Identities.All(snap) {
		a, b := one.changes.Of(snap, i.ID), two.changes.Of(two.st.Snapshot(), i.ID)
		// Each starts with what it loaded; from there on they are alike.
		if !a.Equal(b) && (a.After(start(one)) || b.After(start(two))) {
			t.Fatalf("%s is told %v here and %v there", i.ID, a, b)
		}
	}
}

// start is what a controller tells those of whom it knows nothing.
func start(c *controller) time.Time { return c.changes.Of(c.st.Snapshot(), "nobody") }

// sees is the services of an identity, with what it may do to them.
func sees(snap *state.Snapshot, id string) string {
	g := access.ServicesWithAdmin(snap, id)
	text := ""
	for rec := range snap.Within(model.Services.Def, g.Visible()) {
		ord, _ := snap.Ordinal(model.Services.Def, rec.Base().ID)
		text += fmt.Sprint(rec.Base().ID, g.Dial.Contains(ord), g.Bind.Contains(ord), " ")
	}
	return text
}

// TestChecksRunOut has a second factor that is good for a minute.
func TestChecksRunOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := open(t, storetest.NewMemory())
		go c.sessions.Enforce(t.Context())
		err := c.st.Update(t.Context(), state.Program("test"), func(tx *state.Tx) error {
			if err := model.Seed(tx); err != nil {
				return err
			}
			check := &model.PostureCheck{Meta: kind.Meta{ID: "factor"}, Name: "factor", TypeID: "MFA", TimeoutSeconds: 60}
			if err := model.PostureChecks.Create(tx, check); err != nil {
				return err
			}
			if err := put(tx, model.Identities, "person0", func(i *model.Identity) {
				i.Name, i.Type = i.ID, "User"
			}); err != nil {
				return err
			}
			if err := model.MFAs.Create(tx, &model.MFA{IdentityID: "person0", IsVerified: true}); err != nil {
				return err
			}
			if err := put(tx, model.Services, "thing0", func(s *model.Service) { s.Name = s.ID }); err != nil {
				return err
			}
			return put(tx, model.ServicePolicies, "rule0", func(p *model.ServicePolicy) {
				p.Name, p.Type, p.Semantic = p.ID, model.Dial, model.AnyOf
				p.IdentityRoles, p.ServiceRoles, p.PostureCheckRoles = []string{"@person0"}, []string{"@thing0"}, []string{"@factor"}
			})
		})
		if err != nil {
			t.Fatal(err)
		}
		c.hold(t)
		if n := len(c.held()); n != 0 {
			t.Fatalf("there are %d sessions before the factor is shown", n)
		}
		before := c.changes.Of(c.st.Snapshot(), "person0")
		err = c.st.UpdateSessions(t.Context(), state.Program("test"), func(tx *state.Tx) error {
			return model.APISessions.Edit(tx, "api-person0", func(s *model.APISession) error {
				s.ShowFactor(tx)
				return nil
			})
		})
		if err != nil {
			t.Fatal(err)
		}
		c.hold(t)
		shown := c.changes.Of(c.st.Snapshot(), "person0")
		if n := len(c.held()); n != 1 || !shown.After(before) {
			t.Fatalf("after the factor is shown there are %d sessions, and clients are told %v after %v", n, shown, before)
		}
		<-time.After(59 * time.Second)
		synctest.Wait()
		if n := len(c.held()); n != 1 {
			t.Errorf("a second before its time the session is gone")
		}
		<-time.After(7 * time.Second)
		synctest.Wait()
		if n := len(c.held()); n != 0 {
			t.Errorf("the session outlives what it rests on")
		}
		if after := c.changes.Of(c.st.Snapshot(), "person0"); !after.After(shown) {
			t.Error("clients are not told to look again")
		}
	})
}
