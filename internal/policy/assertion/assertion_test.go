package assertion_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"netkeep.internal/internal/data/state"
	"netkeep.internal/internal/data/store/storetest"
	"netkeep.internal/internal/lang/fault"
	"netkeep.internal/internal/lang/kind"
	"netkeep.internal/internal/model"
	"netkeep.internal/internal/policy/assertion"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(tests{m}) }

// tests closes what benchmarks share before leaks are looked for.
type tests struct{ *testing.M }

func (t tests) Run() int {
	defer closeNetworks()
	return t.M.Run()
}

// cleaner is what *testing.T and *rapid.T have in common here.
type cleaner interface {
	Fatal(args ...any)
	Cleanup(func())
}

// open returns a network with nobody in it but what every network has.
func open(t cleaner, judge state.Judge) *state.State {
	st, err := state.Open(context.Background(), storetest.NewMemory(), model.All, state.Options{Frozen: true, Judge: judge})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(st.Close)
	if err := st.Update(context.Background(), state.Program("test"), func(tx *state.Tx) error { return model.Seed(tx) }); err != nil {
		t.Fatal(err)
	}
	return st
}

// ids of what there may be, by kind.
var ids = map[*kind.Def][]string{
	model.Identities.Def:      {"i0", "i1", "i2", "i3", "i4"},
	model.Services.Def:        {"s0", "s1", "s2", "s3"},
	model.ServicePolicies.Def: {"p0", "p1", "p2", "p3"},
	model.Assertions.Def:      {"a0", "a1", "a2"},
}

var (
	attribute  = rapid.SampledFrom([]string{"a", "b", "c"})
	attributes = rapid.SliceOfNDistinct(attribute, 0, 2, rapid.ID)
	semantic   = rapid.SampledFrom([]string{model.AllOf, model.AnyOf})
	typ        = rapid.SampledFrom([]string{model.Dial, model.Bind})
	expect     = rapid.SampledFrom([]string{model.Never, model.Always, model.Somebody, model.NoPolicy})
)

// roles draws a list over a kind.
func roles(t *rapid.T, d *kind.Def) []string {
	role := rapid.OneOf(
		rapid.Map(attribute, func(a string) string { return "#" + a }),
		rapid.Map(rapid.SampledFrom(ids[d]), func(id string) string { return "@" + id }),
		rapid.Just("#all"),
	)
	return rapid.SliceOfNDistinct(role, 0, 3, rapid.ID).Draw(t, d.Path+" roles")
}

// existing leaves out what would be refused for other reasons.
func existing(r kind.Reader, d *kind.Def, list []string) []string {
	if slices.Contains(list, "#all") {
		return []string{"#all"}
	}
	return slices.DeleteFunc(slices.Clone(list), func(role string) bool { return role[0] == '@' && !has(r, d, role[1:]) })
}

// drawChange draws a change of one record.
func drawChange(t *rapid.T) func(tx *state.Tx) error {
	d := rapid.SampledFrom([]*kind.Def{model.Identities.Def, model.Services.Def, model.ServicePolicies.Def, model.ServicePolicies.Def, model.Assertions.Def}).Draw(t, "kind")
	id := rapid.SampledFrom(ids[d]).Draw(t, "id")
	if rapid.IntRange(0, 4).Draw(t, "delete") == 0 {
		return func(tx *state.Tx) error {
			if !has(tx, d, id) {
				return nil
			}
			return tx.Delete(d, id)
		}
	}
	own, sem, ty := attributes.Draw(t, "attributes"), semantic.Draw(t, "semantic"), typ.Draw(t, "type")
	ex, who, what := expect.Draw(t, "expect"), roles(t, model.Identities.Def), roles(t, model.Services.Def)
	return func(tx *state.Tx) error {
		who, what := existing(tx, model.Identities.Def, who), existing(tx, model.Services.Def, what)
		switch d {
		case model.Identities.Def:
			return model.Identities.Upsert(tx, id, func(i *model.Identity) {
				i.Name, i.Type, i.AuthPolicyID, i.RoleAttributes = id, "User", model.DefaultAuthPolicy, own
			})
		case model.Services.Def:
			return model.Services.Upsert(tx, id, func(s *model.Service) {
				s.Name, s.TerminatorStrategy, s.RoleAttributes = id, "smartrouting", own
			})
		case model.ServicePolicies.Def:
			return model.ServicePolicies.Upsert(tx, id, func(p *model.ServicePolicy) {
				p.Name, p.Type, p.Semantic, p.IdentityRoles, p.ServiceRoles = id, ty, sem, who, what
			})
		}
		return model.Assertions.Upsert(tx, id, func(a *model.Assertion) {
			a.Name, a.Expect, a.Type, a.Semantic, a.IdentityRoles, a.ServiceRoles = id, ex, ty, sem, who, what
		})
	}
}

func drawWrite(t *rapid.T, most int) func(tx *state.Tx) error {
	var all []func(tx *state.Tx) error
	for range rapid.IntRange(1, most).Draw(t, "changes") {
		all = append(all, drawChange(t))
	}
	return func(tx *state.Tx) error {
		for _, change := range all {
			if err := change(tx); err != nil {
				return err
			}
		}
		return nil
	}
}

// TestBreaches changes networks at random and compares what is said of each step with
// what comes of trying everybody with everything, with room for few blocks and for
// many.
func TestBreaches(t *testing.T) {
	for _, bound := range [][3]int{{1, 0, 1}, {2, 3, 4}, {64, 1000, 100}} {
		t.Run(fmt.Sprint(bound), func(t *testing.T) {
			assertion.Bound(t, bound[0], bound[1], bound[2])
			rapid.Check(t, func(t *rapid.T) {
				var wrong error
				st := open(t, func(_ context.Context, step state.Step, _ state.Author) error {
					if err := compare(step); err != nil {
						wrong = err
					}
					return nil
				})
				write := func(most int) {
					if err := st.Update(t.Context(), state.Program("test"), drawWrite(t, most)); err != nil {
						t.Fatal(err)
					}
					if wrong != nil {
						t.Fatal(wrong)
					}
				}
				write(20)
				for range rapid.IntRange(1, 8).Draw(t, "writes") {
					write(3)
				}
				if err := compareCheck(st.Snapshot()); err != nil {
					t.Fatal(err)
				}
			})
		})
	}
}

// compare compares what is said of a step.
func compare(step state.Step) error {
	want, got := verdict(step), map[string]int{}
	for _, b := range assertion.Breaches(step) {
		got[b.ID] = b.Count
		switch {
		case b.What == "":
			return fmt.Errorf("nothing is said of %s", b.ID)
		case len(b.Listed) == 0:
			got[b.ID] = -1
		case b.Count == 0: // nobody counted
			if got[b.ID] = want[b.ID]; len(b.Listed) > want[b.ID] {
				return fmt.Errorf("%d are listed of %d who break %s", len(b.Listed), want[b.ID], b.ID)
			}
		}
	}
	if len(got) == 0 && len(want) == 0 {
		return nil
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		return fmt.Errorf("%v break assertions, want %v", got, want)
	}
	return nil
}

// compareCheck compares what is said of a whole network.
func compareCheck(snap *state.Snapshot) error {
	for _, f := range assertion.Check(snap) {
		want := broken(snap, f.Assertion)
		if holds := f.Breach == nil; holds != (len(want) == 0) {
			return fmt.Errorf("%s holds: %v, and %d break it", f.ID, holds, len(want))
		}
		if f.Breach != nil && f.Breach.Count != 0 && f.Breach.Count != len(want) {
			return fmt.Errorf("%d break %s, want %d", f.Breach.Count, f.ID, len(want))
		}
	}
	return nil
}

// small is a network in which eve is a contractor and payroll is finance's.
func small(t *testing.T, j assertion.Judge) *state.State {
	j.Reads = func(_ *state.Snapshot, by state.Author) bool { return by == ann }
	st := open(t, j.Judge)
	must(t, st.Update(t.Context(), state.Program("test"), func(tx *state.Tx) error {
		return errors.Join(
			model.Identities.Upsert(tx, "eve", func(i *model.Identity) {
				i.Name, i.Type, i.AuthPolicyID, i.RoleAttributes = "eve", "User", model.DefaultAuthPolicy, []string{"contractors"}
			}),
			model.Identities.Upsert(tx, "alice", func(i *model.Identity) {
				i.Name, i.Type, i.AuthPolicyID, i.RoleAttributes = "alice", "User", model.DefaultAuthPolicy, []string{"staff"}
			}),
			model.Services.Upsert(tx, "payroll", func(s *model.Service) {
				s.Name, s.TerminatorStrategy, s.RoleAttributes = "payroll", "smartrouting", []string{"finance"}
			}),
			policy(tx, "staff", model.Dial, "#staff", "#finance"),
			policy(tx, "hosts", model.Bind, "#staff", "#finance"),
			claim(tx, "stay out", model.Never, "#contractors", "#finance"),
			claim(tx, "pays", model.Always, "@alice", "@payroll"),
			claim(tx, "reached", model.Somebody, "#all", "#all"),
			claim(tx, "no any", model.NoPolicy, "#all", "#all"),
		)
	}))
	return st
}

func policy(tx *state.Tx, name, typ, who, what string) error {
	return model.ServicePolicies.Upsert(tx, name, func(p *model.ServicePolicy) {
		p.Name, p.Type, p.Semantic, p.IdentityRoles, p.ServiceRoles = name, typ, model.AnyOf, []string{who}, []string{what}
	})
}

func claim(tx *state.Tx, name, expect, who, what string) error {
	return model.Assertions.Upsert(tx, name, func(a *model.Assertion) {
		a.Name, a.Expect, a.Type, a.Semantic, a.IdentityRoles, a.ServiceRoles = name, expect, model.Dial, model.AnyOf, []string{who}, []string{what}
	})
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

var ann = state.Author{Kind: "identity", ID: "ann", Name: "ann"}

// TestRefusal makes changes that break assertions: each is refused with who gains or
// loses what, and leaves no trace.
func TestRefusal(t *testing.T) {
	var noted []string
	st := small(t, assertion.Judge{Refused: func(breaches []assertion.Breach, by state.Author) {
		noted = append(noted, by.Name+" "+breaches[0].Name)
	}})
	before := st.Snapshot().Rev
	for _, c := range []struct {
		name   string
		change func(tx *state.Tx) error
		code   fault.Code
		field  string
		reason string
	}{
		{
			"a policy", func(tx *state.Tx) error { return policy(tx, "wide", model.Dial, "#contractors", "#all") },
			fault.CodeAssertion, "assertion", `"stay out" would not hold: eve may dial payroll by the policy "wide"`,
		},
		{
			"an attribute", func(tx *state.Tx) error {
				return model.Identities.Upsert(tx, "eve", func(i *model.Identity) { i.RoleAttributes = []string{"contractors", "staff"} })
			},
			fault.CodeAssertion, "assertion", `"stay out" would not hold: eve may dial payroll by the policy "staff"`,
		},
		{
			"a delete", func(tx *state.Tx) error { return model.ServicePolicies.Delete(tx, "staff") },
			fault.CodeAssertion, "assertion", `"pays" would not hold: alice may not dial payroll; and "reached" would not hold either`,
		},
		{
			"everything for everybody", func(tx *state.Tx) error { return policy(tx, "any", model.Dial, "#all", "#all") },
			fault.CodeAssertion, "assertion", `"no any" would not hold: the policy "any" says just that; and "stay out" would not hold either`,
		},
		{
			"a delete of whom it is about", func(tx *state.Tx) error { return model.Identities.Delete(tx, "alice") },
			fault.CodeAssertion, "assertion", `"pays" would not hold: it would be about no identity any more; change or delete the assertion as well`,
		},
		{
			"one that does not hold", func(tx *state.Tx) error { return claim(tx, "new", model.Always, "#contractors", "@payroll") },
			fault.CodeAssertion, "assertion", `"new" would not hold: eve may not dial payroll`,
		},
		{
			"one about nobody", func(tx *state.Tx) error { return claim(tx, "new", model.Never, "#contractor", "#finance") },
			fault.CodeInvalid, "identityRoles", `of the assertion "new" has #contractor, which no identity has as an attribute; did you mean #contractors?`,
		},
		{
			"one about nothing", func(tx *state.Tx) error { return claim(tx, "new", model.Never, "#contractors", "#sales") },
			fault.CodeInvalid, "serviceRoles", `of the assertion "new" has #sales, which no service has as an attribute`,
		},
	} {
		err := st.Update(t.Context(), ann, c.change)
		f, _ := errors.AsType[*fault.Error](err)
		if f == nil || f.Code != c.code || f.Field != c.field || f.Reason != c.reason {
			t.Errorf("%s: %v (%+v)", c.name, err, f)
		}
	}
	for _, by := range []state.Author{{Kind: "ext-jwt-signer", ID: "idp", Name: "idp"}, {Kind: "identity", ID: "alice", Name: "alice"}} {
		err := st.Update(t.Context(), by, func(tx *state.Tx) error {
			return model.Identities.Upsert(tx, "eve", func(i *model.Identity) { i.RoleAttributes = []string{"contractors", "staff"} })
		})
		if !fault.Is(err, fault.CodeAssertion) || strings.Contains(err.Error(), "payroll") || strings.Contains(err.Error(), "stay out") {
			t.Errorf("%s, who may read no assertions, is told: %v", by.Name, err)
		}
	}
	if st.Snapshot().Rev != before || len(noted) != 10 || noted[0] != "ann stay out" {
		t.Errorf("what was refused left a trace, or is not told of: %q", noted)
	}
	must(t, st.Update(t.Context(), ann, func(tx *state.Tx) error { return policy(tx, "more", model.Dial, "#staff", "#all") }))
}

// TestOverride breaks assertions on purpose, and by what no person does. Who looks
// only is refused nothing.
func TestOverride(t *testing.T) {
	var told []string
	st := small(t, assertion.Judge{Broken: func(step state.Step, breaches []assertion.Breach, by state.Author, overridden bool) {
		for _, b := range breaches {
			told = append(told, fmt.Sprint(by.Name, " ", b.Name, " ", overridden, " ", step.Tell != nil))
		}
	}})
	wide := func(tx *state.Tx) error { return policy(tx, "wide", model.Dial, "#contractors", "#all") }
	ctx, heard := assertion.Heard(t.Context())
	if _, err := st.Try(ctx, ann, st.Snapshot(), wide); err != nil || len(heard.Breaches) != 1 || heard.Breaches[0].Name != "stay out" {
		t.Errorf("a trial hears %v: %v", heard.Breaches, err)
	}
	must(t, st.Update(state.Overriding(t.Context()), ann, wide))
	// What is broken stands in nobody's way who makes it no worse.
	must(t, st.Update(t.Context(), ann, func(tx *state.Tx) error { return policy(tx, "wider", model.Dial, "#contractors", "#finance") }))
	must(t, st.Update(t.Context(), ann, func(tx *state.Tx) error { return policy(tx, "wide", model.Dial, "#contractors", "@payroll") }))
	err := st.Update(t.Context(), ann, func(tx *state.Tx) error {
		return model.Identities.Upsert(tx, "alice", func(i *model.Identity) { i.RoleAttributes = []string{"staff", "contractors"} })
	})
	if !fault.Is(err, fault.CodeAssertion) || !strings.Contains(err.Error(), "alice may dial payroll") {
		t.Errorf("one more is let in: %v", err)
	}
	must(t, st.Update(t.Context(), state.Program("validity"), func(tx *state.Tx) error { return model.ServicePolicies.Delete(tx, "staff") }))
	if want := []string{"ann stay out true true", "validity pays false true"}; !slices.Equal(told, want) {
		t.Errorf("told %q, want %q", told, want)
	}
}
