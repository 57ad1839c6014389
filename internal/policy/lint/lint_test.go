package lint_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"netkeep.internal/internal/data/state"
	"netkeep.internal/internal/data/store/storetest"
	"netkeep.internal/internal/lang/kind"
	"netkeep.internal/internal/model"
	"netkeep.internal/internal/policy/lint"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(tests{m}) }

// tests closes what benchmarks share before leaks are looked for.
type tests struct{ *testing.M }

func (t tests) Run() int {
	defer closeNetwork()
	return t.M.Run()
}

// cleaner is what *testing.T and *rapid.T have in common here.
type cleaner interface {
	Fatal(args ...any)
	Cleanup(func())
}

func open(t cleaner) *state.State {
	st, err := state.Open(context.Background(), storetest.NewMemory(), model.All, state.Options{Frozen: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(st.Close)
	update(t, st, func(tx *state.Tx) error { return model.Seed(tx) })
	return st
}

func update(t cleaner, st *state.State, change func(tx *state.Tx) error) {
	if err := st.Update(context.Background(), state.Program("test"), change); err != nil {
		t.Fatal(err)
	}
}

// found is the names of the records in the findings, by check.
func found(all []lint.Check) map[string][]string {
	out := map[string][]string{}
	for _, c := range all {
		for _, f := range c.Listed {
			out[c.Name] = append(out[c.Name], f.Name)
		}
	}
	return out
}

// drawn is a network with few attributes, so that much meets.
type drawn struct {
	identities, services map[string][]string // attributes by id
	checks               map[string][]string
	policies             []*model.ServicePolicy
}

func draw(t *rapid.T) drawn {
	attribute := rapid.SampledFrom([]string{"a", "b", "c"})
	members := func(prefix string) map[string][]string {
		out := map[string][]string{}
		for i := range rapid.IntRange(0, 4).Draw(t, prefix) {
			out[fmt.Sprint(prefix, i)] = rapid.SliceOfNDistinct(attribute, 0, 2, rapid.ID).Draw(t, "attributes")
		}
		return out
	}
	d := drawn{identities: members("i"), services: members("s"), checks: members("c")}
	roles := func(of map[string][]string) []string {
		one := []*rapid.Generator[string]{rapid.Map(attribute, func(a string) string { return "#" + a })}
		if ids := slices.Sorted(maps.Keys(of)); len(ids) > 0 {
			one = append(one, rapid.Map(rapid.SampledFrom(ids), func(id string) string { return "@" + id }))
		}
		if rapid.IntRange(0, 5).Draw(t, "all") == 0 {
			return []string{"#all"}
		}
		return rapid.SliceOfNDistinct(rapid.OneOf(one...), 0, 3, rapid.ID).Draw(t, "roles")
	}
	now := time.Now().Truncate(time.Second) // no finer than what is stored
	for i := range rapid.IntRange(0, 6).Draw(t, "policies") {
		p := &model.ServicePolicy{Meta: kind.Meta{ID: fmt.Sprint("p", i)}, Name: fmt.Sprint("p", i)}
		p.Semantic = rapid.SampledFrom([]string{model.AllOf, model.AnyOf}).Draw(t, "semantic")
		p.Type = rapid.SampledFrom([]string{model.Dial, model.Bind}).Draw(t, "type")
		p.IdentityRoles, p.ServiceRoles = roles(d.identities), roles(d.services)
		if rapid.Bool().Draw(t, "checked") {
			p.PostureCheckRoles = roles(d.checks)
		}
		if days := rapid.IntRange(0, 3).Draw(t, "days"); days > 0 {
			end := now.AddDate(1, 0, days)
			p.ValidUntil = &end
		}
		d.policies = append(d.policies, p)
	}
	return d
}

func (d drawn) write(tx *state.Tx) error {
	for id, own := range d.identities {
		if err := model.Identities.Create(tx, &model.Identity{Meta: kind.Meta{ID: id}, Name: id, Type: "User", RoleAttributes: own}); err != nil {
			return err
		}
	}
	for id, own := range d.services {
		if err := model.Services.Create(tx, &model.Service{Meta: kind.Meta{ID: id}, Name: id, EncryptionRequired: true, RoleAttributes: own}); err != nil {
			return err
		}
	}
	for id, own := range d.checks {
		c := &model.PostureCheck{Meta: kind.Meta{ID: id}, Name: id, TypeID: "MFA", RoleAttributes: own}
		if err := model.PostureChecks.Create(tx, c); err != nil {
			return err
		}
	}
	for _, p := range d.policies {
		fresh := *p
		if err := model.ServicePolicies.Create(tx, &fresh); err != nil {
			return err
		}
	}
	return nil
}

// selects is the rule of role lists.
func selects(roles []string, semantic string, of map[string][]string) map[string]bool {
	out := map[string]bool{}
	for id, own := range of {
		wanted, has := 0, 0
		for _, role := range roles {
			if name, ok := strings.CutPrefix(role, "#"); ok {
				wanted++
				if slices.Contains(own, name) {
					has++
				}
			}
		}
		if slices.Contains(roles, "#all") || slices.Contains(roles, "@"+id) || semantic == model.AnyOf && has > 0 || semantic == model.AllOf && wanted > 0 && wanted == has {
			out[id] = true
		}
	}
	return out
}

func within(some, all map[string]bool) bool {
	for id := range some {
		if !all[id] {
			return false
		}
	}
	return true
}

// naive tries everything with everything.
func (d drawn) naive() map[string][]string {
	out := map[string][]string{}
	dialed, hosted := map[string]bool{}, map[string]bool{}
	less := func(p, q *model.ServicePolicy) bool {
		return p.Type == q.Type && (q.ValidUntil == nil || p.ValidUntil != nil && !p.ValidUntil.After(*q.ValidUntil)) &&
			within(selects(p.IdentityRoles, p.Semantic, d.identities), selects(q.IdentityRoles, q.Semantic, d.identities)) &&
			within(selects(p.ServiceRoles, p.Semantic, d.services), selects(q.ServiceRoles, q.Semantic, d.services)) &&
			within(selects(q.PostureCheckRoles, q.Semantic, d.checks), selects(p.PostureCheckRoles, p.Semantic, d.checks))
	}
	for _, p := range d.policies {
		who, what := selects(p.IdentityRoles, p.Semantic, d.identities), selects(p.ServiceRoles, p.Semantic, d.services)
		if len(who) == 0 || len(what) == 0 {
			out["policy-idle"] = append(out["policy-idle"], p.Name)
			continue
		}
		given := dialed
		if p.Type == model.Bind {
			given = hosted
		}
		maps.Copy(given, what)
		for _, side := range []struct {
			roles []string
			of    map[string][]string
		}{{p.IdentityRoles, d.identities}, {p.ServiceRoles, d.services}, {p.PostureCheckRoles, d.checks}} {
			if slices.ContainsFunc(side.roles, func(role string) bool {
				return role[0] == '#' && role != "#all" && len(selects([]string{role}, model.AnyOf, side.of)) == 0
			}) {
				out["role-unknown"] = append(out["role-unknown"], p.Name)
			}
		}
		if slices.ContainsFunc(d.policies, func(q *model.ServicePolicy) bool {
			return q != p && less(p, q) && (!less(q, p) || q.CreatedAt.Before(p.CreatedAt) || q.CreatedAt.Equal(p.CreatedAt) && q.ID < p.ID)
		}) {
			out["policy-shadowed"] = append(out["policy-shadowed"], p.Name)
		}
	}
	out["policy-overlapping"] = d.overlapping(out["policy-shadowed"], less)
	for _, id := range slices.Sorted(maps.Keys(d.services)) {
		if !dialed[id] {
			out["service-not-dialed"] = append(out["service-not-dialed"], id)
		}
		if !hosted[id] {
			out["service-not-hosted"] = append(out["service-not-hosted"], id)
		}
	}
	return out
}

// overlapping compares all pairs that each two policies give.
func (d drawn) overlapping(shadowed []string, less func(p, q *model.ServicePolicy) bool) (names []string) {
	older := func(p, q *model.ServicePolicy) bool {
		return p.CreatedAt.Before(q.CreatedAt) || p.CreatedAt.Equal(q.CreatedAt) && p.ID < q.ID
	}
	most := map[*model.ServicePolicy]*model.ServicePolicy{}
	for _, p := range d.policies {
		own, best := gives(d, p), 0
		for _, q := range d.policies {
			if p == q || slices.Contains(shadowed, p.Name) || slices.Contains(shadowed, q.Name) || less(p, q) || less(q, p) || len(own) == 0 {
				continue
			}
			both := 0
			for pair := range gives(d, q) {
				if own[pair] {
					both++
				}
			}
			if 2*both >= len(own) && (both > best || both == best && older(q, most[p])) {
				most[p], best = q, both
			}
		}
	}
	for _, p := range d.policies {
		if q := most[p]; q != nil && most[q] != p {
			names = append(names, p.Name)
		} else if q != nil && older(p, q) {
			names = append(names, p.Name+" or "+q.Name) // each tells all
		}
	}
	return names
}

// sameButFor reports whether names are those that are wanted, or of a pair one of both.
func sameButFor(got, want []string) bool {
	left := slices.Clone(got)
	for _, name := range want {
		one, other, _ := strings.Cut(name, " or ")
		i := slices.IndexFunc(left, func(n string) bool { return n == one || n == other })
		if i < 0 {
			return false
		}
		left = slices.Delete(left, i, i+1)
	}
	return len(left) == 0
}

// TestAgainstNaive compares what is found in random networks with what somebody finds
// who tries everything.
func TestAgainstNaive(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := draw(t)
		st := open(t)
		update(t, st, d.write)
		got, want := found(lint.Run(st.Snapshot(), time.Now())), d.naive()
		for _, name := range []string{"policy-idle", "role-unknown", "policy-shadowed", "policy-overlapping", "service-not-dialed", "service-not-hosted"} {
			if name == "policy-overlapping" && sameButFor(got[name], want[name]) {
				continue
			}
			if !slices.Equal(got[name], want[name]) {
				t.Fatalf("%s: found %v, want %v", name, got[name], want[name])
			}
		}
	})
}

// TestMended does at once what all findings about policies ask for: who may use what
// stays as it was, and nothing of the kind is found again. What is left of policies that
// overlapped may be within another, which the next look tells.
func TestMended(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := draw(t)
		st := open(t)
		update(t, st, d.write)
		before := d.gives()
		all := lint.Run(st.Snapshot(), time.Now())
		mended := d.mend(all)
		if after := mended.gives(); !maps.Equal(before, after) {
			t.Fatalf("who may use what was %v and is %v", before, after)
		}
		left := d.mend(slices.DeleteFunc(all, func(c lint.Check) bool { return c.Name == "policy-overlapping" })).naive()
		for _, name := range []string{"policy-idle", "role-unknown", "policy-shadowed"} {
			if len(left[name]) > 0 {
				t.Fatalf("%s finds %v again", name, left[name])
			}
		}
	})
}

// mend is the network after the commands of findings about policies.
func (d drawn) mend(all []lint.Check) drawn {
	var policies []*model.ServicePolicy
	for _, p := range d.policies {
		fresh := *p
		policies = append(policies, &fresh)
	}
	d.policies = policies
	for _, c := range all {
		for _, f := range c.Listed {
			i := slices.IndexFunc(d.policies, func(p *model.ServicePolicy) bool { return p.ID == f.ID })
			switch {
			case f.Def != model.ServicePolicies.Def || i < 0:
			case strings.HasPrefix(f.Command, "netkeep delete"):
				d.policies = slices.Delete(d.policies, i, i+1)
			default:
				p := d.policies[i]
				for flag, list := range map[string]*[]string{"identity": &p.IdentityRoles, "service": &p.ServiceRoles, "posture-check": &p.PostureCheckRoles} {
					if _, out, ok := strings.Cut(f.Command, " --remove-"+flag+"-role "); ok {
						gone := strings.Split(strings.Trim(out, "'"), ",")
						*list = slices.DeleteFunc(slices.Clone(*list), func(role string) bool { return slices.Contains(gone, role) })
					}
				}
			}
		}
	}
	return d
}

// gives is who may dial and host what.
func (d drawn) gives() map[string]bool { return gives(d, d.policies...) }

func gives(d drawn, policies ...*model.ServicePolicy) map[string]bool {
	out := map[string]bool{}
	for _, p := range policies {
		for who := range selects(p.IdentityRoles, p.Semantic, d.identities) {
			for what := range selects(p.ServiceRoles, p.Semantic, d.services) {
				out[p.Type+" "+who+" "+what] = true
			}
		}
	}
	return out
}
