package power_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"netkeep.internal/internal/auth/power"
	"netkeep.internal/internal/data/state"
	"netkeep.internal/internal/data/store/storetest"
	"netkeep.internal/internal/lang/fault"
	"netkeep.internal/internal/lang/kind"
	"netkeep.internal/internal/model"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// world is a network in memory whose writes are judged.
type world struct {
	t  *testing.T
	st *state.State
}

func newWorld(t *testing.T) *world {
	t.Helper()
	st, err := state.Open(t.Context(), storetest.NewMemory(), model.All, state.Options{Frozen: true, Judge: power.Judge})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(st.Close)
	w := &world{t, st}
	w.give(func(tx *state.Tx) error { return model.Seed(tx) })
	return w
}

// give writes what nobody judges.
func (w *world) give(fn func(*state.Tx) error) {
	w.t.Helper()
	if err := w.st.Update(context.Background(), state.Program("test"), fn); err != nil {
		w.t.Fatal(err)
	}
}

// as is the author that an identity is.
func as(id string) state.Author { return state.Author{Kind: model.Identities.Name, ID: id, Name: id} }

// identity is one with roles of its own.
func identity(id string, roles ...string) *model.Identity {
	return &model.Identity{Meta: kind.Meta{ID: id}, Name: id, Type: "User", AuthPolicyID: model.DefaultAuthPolicy, SeldomIdentity: &model.SeldomIdentity{AdminRoles: roles}}
}

func with(i *model.Identity, change func(*model.Identity)) *model.Identity {
	change(i)
	return i
}

// some are limits and powers that random roles are made of: few, so that they meet.
var (
	someWords = []string{"service:read", "service:update", "identity:read", "link:read", "*:read", "service:*", "*"}
	someAttrs = []string{"web", "db"}
)

func drawRole(t *rapid.T) *model.AdminRole {
	return &model.AdminRole{
		Allows:         rapid.SliceOfN(rapid.SampledFrom(someWords), 1, 3).Draw(t, "allows"),
		OnlyAttributes: rapid.SliceOfNDistinct(rapid.SampledFrom(someAttrs), 0, 2, rapid.ID).Draw(t, "attributes"),
		OnlyTags:       rapid.MapOfN(rapid.SampledFrom([]string{"team"}), rapid.SampledFrom([]string{"a", "b"}), 0, 1).Draw(t, "tags"),
	}
}

// samples are records that differ in all that limits look at.
var samples = func() (all []*model.Service) {
	for _, attrs := range [][]string{nil, {"web"}, {"db"}, {"db", "web"}, {"db", "other", "web"}} {
		for _, tags := range []map[string]any{nil, {"team": "a"}, {"team": "b"}, {"team": "a", "more": "x"}} {
			all = append(all, &model.Service{Meta: kind.Meta{Tags: tags}, RoleAttributes: attrs})
		}
	}
	return all
}()

// naive says of every power and record whether any of the roles allows it, the long
// way round.
func naive(roles []*model.AdminRole) map[string]bool {
	may := map[string]bool{}
	for _, role := range roles {
		for _, p := range model.Powers {
			allowed := slices.ContainsFunc(role.Allows, func(entry string) bool {
				what, verb, _ := strings.Cut(entry, ":")
				w, v, _ := strings.Cut(p, ":")
				return entry == "*" || (what == "*" || what == w) && (verb == "*" || verb == v)
			})
			for i, rec := range samples {
				about := true
				for _, a := range role.OnlyAttributes {
					about = about && slices.Contains(rec.RoleAttributes, a)
				}
				for name, text := range role.OnlyTags {
					about = about && rec.Tags[name] == text
				}
				if allowed && about {
					may[fmt.Sprint(p, " ", i)] = true
				}
			}
		}
	}
	return may
}

// has says the same by the set itself.
func has(s power.Set) map[string]bool {
	may := map[string]bool{}
	for _, p := range model.Powers {
		over := s.Over(p)
		for i, rec := range samples {
			if over.Has(model.Services.Def, rec) {
				may[fmt.Sprint(p, " ", i)] = true
			}
		}
	}
	return may
}

// TestSets compares what sets say with what the roles that they are made of do.
func TestSets(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		draw := rapid.SliceOfN(rapid.Custom(drawRole), 0, 3)
		ours, theirs := draw.Draw(t, "ours"), draw.Draw(t, "theirs")
		a, b := power.OfRoles(ours...), power.OfRoles(theirs...)
		mayA, mayB := naive(ours), naive(theirs)
		if got := has(a); !maps.Equal(got, mayA) {
			t.Fatalf("it says %v, and the roles allow %v", got, mayA)
		}
		both := map[string]bool{}
		beyond := ""
		for may := range mayB {
			if mayA[may] {
				both[may] = true
			} else {
				beyond = may
			}
		}
		if got := has(a.And(b)); !maps.Equal(got, both) {
			t.Fatalf("both is %v, and should be %v", got, both)
		}
		// Roles that only together are about all that another one is about are not
		// added up, so that it may say no too often and never yes.
		if a.Covers(b) && beyond != "" {
			t.Fatalf("it covers what it has not: %s", beyond)
		}
		if !slices.ContainsFunc(ours, (*model.AdminRole).Limited) && a.Covers(b) != (beyond == "") {
			t.Fatalf("it covers: %v, though beyond it is %q", a.Covers(b), beyond)
		}
		lacks := a.Lacks(b)
		if (lacks == "") != a.Covers(b) {
			t.Fatalf("it lacks %q, and covers: %v", lacks, a.Covers(b))
		}
		if lacks != "" && b.Over(lacks).None() {
			t.Fatalf("it lacks %q, which the other has not", lacks)
		}
		if !a.Covers(a) || !a.Covers(a.And(b)) || !b.Covers(a.And(b)) || !power.Whole().Covers(a) || !a.Covers(power.Set{}) {
			t.Fatal("it does not cover itself, a part of it, or nothing")
		}
		if a.None() != (len(mayA) == 0) {
			t.Fatalf("it is none: %v", a.None())
		}
	})
}

// TestRolesOf has roles reach identities in every way there is.
func TestRolesOf(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	binding := func(name, role, semantic string, roles ...string) *model.RoleBinding {
		return &model.RoleBinding{Name: name, RoleID: role, Semantic: semantic, IdentityRoles: roles}
	}
	w.give(func(tx *state.Tx) error {
		for _, i := range []*model.Identity{
			identity("own", "viewer"), identity("named"), identity("plain"),
			with(identity("root"), func(i *model.Identity) { i.IsAdmin = true }),
			with(identity("one"), func(i *model.Identity) { i.RoleAttributes = []string{"ops"} }),
			with(identity("two"), func(i *model.Identity) { i.RoleAttributes = []string{"ops", "night"} }),
			with(identity("twice", "operator"), func(i *model.Identity) { i.RoleAttributes = []string{"ops", "night"} }),
		} {
			if err := model.Identities.Create(tx, i); err != nil {
				return err
			}
		}
		for _, b := range []*model.RoleBinding{
			binding("any", "helpdesk", model.AnyOf, "#ops", "#other"), binding("each", "operator", model.AllOf, "#ops", "#night"),
			binding("name", "policy-author", model.AllOf, "@named", "#nobody"), binding("none", "auditor", model.AnyOf),
		} {
			if err := model.RoleBindings.Create(tx, b); err != nil {
				return err
			}
		}
		return nil
	})
	for id, want := range map[string]string{
		"own": "viewer", "named": "policy-author", "plain": "", "root": "admin", "one": "helpdesk",
		"two": "helpdesk, operator", "twice": "helpdesk, operator",
	} {
		snap := w.st.Snapshot()
		i, _ := model.Identities.Get(snap, id)
		if got := strings.Join(power.Names(snap, i), ", "); got != want {
			t.Errorf("%s has %q, not %q", id, got, want)
		}
		if power.Holds(snap, i) != (want != "") || power.Of(snap, i).None() != (want == "") {
			t.Errorf("whether %s holds any power is wrong", id)
		}
	}
	w.give(func(tx *state.Tx) error {
		return model.RoleBindings.Create(tx, binding("everybody", "viewer", model.AllOf, "#all"))
	})
	if snap := w.st.Snapshot(); power.OfID(snap, "plain").Over("service:read").None() || !power.OfID(snap, "nobody").None() {
		t.Error("a binding for all is none for somebody, or one for nobody")
	}
	holders := 0
	for i := range power.Holders(w.st.Snapshot()) {
		if holders++; holders == 1 && i.ID != "root" {
			t.Error("admins are not the first")
		}
	}
	if holders != 7 {
		t.Errorf("%d hold power", holders)
	}
}

func refused(err error) bool { return fault.Is(err, fault.CodeUnauthorized) }
