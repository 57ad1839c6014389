package assertion_test

import (
	"context"
	"testing"
	"time"

	"netkeep.internal/internal/data/state"
	"netkeep.internal/internal/data/store/storetest"
	"netkeep.internal/internal/lang/fault"
	"netkeep.internal/internal/lang/kind"
	"netkeep.internal/internal/model"
	"netkeep.internal/internal/policy/assertion"
	"netkeep.internal/internal/policy/validity"
)

// TestTimes holds assertions against what begins and ends by itself. What must never be
// must not be written down for tomorrow, and does not stand in anybody's way when it is
// over; what must always be must be now.
func TestTimes(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	var st *state.State
	judge := assertion.Judge{Ahead: func(ctx context.Context, step state.Step) ([]validity.Moment, error) {
		return validity.Ahead(ctx, st, step)
	}}
	st, err := state.Open(t.Context(), storetest.NewMemory(), model.All, state.Options{Frozen: true, Now: func() time.Time { return now }, Judge: judge.Judge})
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	at := func(hours int) *time.Time {
		if hours == 0 {
			return nil
		}
		when := now.Add(time.Duration(hours) * time.Hour)
		return &when
	}
	put := func(what string, broken bool, do func(tx *state.Tx) error) {
		t.Helper()
		if err := st.Update(t.Context(), ann, do); fault.Is(err, fault.CodeAssertion) != broken || err != nil && !broken {
			t.Errorf("%s: %v, want it to be refused: %t", what, err, broken)
		}
	}
	policy := func(id, who string, from, until int) func(tx *state.Tx) error {
		return func(tx *state.Tx) error {
			return model.ServicePolicies.Upsert(tx, id, func(p *model.ServicePolicy) {
				p.Name, p.Type, p.Semantic, p.IdentityRoles, p.ServiceRoles = id, model.Dial, model.AnyOf, []string{who}, []string{"#money"}
				p.ValidFrom, p.ValidUntil = at(from), at(until)
			})
		}
	}
	grant := func(id, who string, from, until int) func(tx *state.Tx) error {
		return func(tx *state.Tx) error {
			return model.Grants.Create(tx, &model.Grant{Meta: kind.Meta{ID: id}, IdentityID: who, Attribute: "finance", Reason: "r", ValidFrom: at(from), ValidUntil: *at(until)})
		}
	}
	put("a network", false, func(tx *state.Tx) error {
		if err := model.Seed(tx); err != nil {
			return err
		}
		for id, attribute := range map[string]string{"eve": "contractors", "bob": "staff"} {
			if err := model.Identities.Upsert(tx, id, func(i *model.Identity) {
				i.Name, i.Type, i.AuthPolicyID, i.RoleAttributes = id, "User", model.DefaultAuthPolicy, []string{attribute}
			}); err != nil {
				return err
			}
		}
		if err := model.Services.Upsert(tx, "pay", func(s *model.Service) { s.Name, s.RoleAttributes = "pay", []string{"money"} }); err != nil {
			return err
		}
		if err := policy("finance", "#finance", 0, 0)(tx); err != nil {
			return err
		}
		return model.Assertions.Upsert(tx, "out", func(a *model.Assertion) {
			a.Name, a.Expect, a.Type, a.Semantic, a.IdentityRoles, a.ServiceRoles = "out", model.Never, model.Dial, model.AnyOf, []string{"#contractors"}, []string{"#money"}
		})
	})
	put("a policy now", true, policy("p", "@eve", 0, 5))
	put("a policy for tomorrow", true, policy("p", "@eve", 24, 0))
	put("a grant now", true, grant("g", "eve", 0, 5))
	put("a grant for tomorrow", true, grant("g", "eve", 24, 48))
	put("a grant of somebody else for tomorrow", false, grant("h", "bob", 24, 48))

	put("a policy of somebody else", false, policy("p", "@bob", 0, 5))
	now = now.Add(6 * time.Hour)
	put("its end", false, func(tx *state.Tx) error { return model.ServicePolicies.Edit(tx, "p", nothing) })
	put("what is over, for the other", false, func(tx *state.Tx) error {
		return model.ServicePolicies.Edit(tx, "p", func(p *model.ServicePolicy) error { p.IdentityRoles = []string{"@eve"}; return nil })
	})
	for _, f := range assertion.Check(st.Snapshot()) {
		if f.Breach != nil {
			t.Errorf("what is over breaks %s", f.Name)
		}
	}
	put("the same again, tomorrow", true, policy("p", "@eve", 24, 0))
	put("the same again, at once", true, policy("p", "@eve", 0, 0))

	put("that no policy names one of them", false, func(tx *state.Tx) error {
		return model.Assertions.Upsert(tx, "none", func(a *model.Assertion) {
			a.Name, a.Expect, a.Type, a.Semantic, a.IdentityRoles, a.ServiceRoles = "none", model.NoPolicy, model.Dial, model.AnyOf, []string{"#staff"}, []string{"#money"}
		})
	})
	put("one for tomorrow", true, policy("q", "#staff", 24, 0))
	put("one that is over", false, func(tx *state.Tx) error {
		return model.ServicePolicies.Edit(tx, "p", func(p *model.ServicePolicy) error { p.IdentityRoles = []string{"#staff"}; return nil })
	})
	put("which begins again", true, policy("p", "#staff", 24, 0))
}

// TestAhead has a grant wait for tomorrow that breaks nothing, and then writes after which
// it would: they are refused today. What is over by then is in nobody's way.
func TestAhead(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	at := func(hours int) *time.Time { when := now.Add(time.Duration(hours) * time.Hour); return &when }
	for name, test := range map[string]struct {
		write  func(tx *state.Tx) error
		broken bool
	}{
		"a policy that finds the attribute": {policyFor("p", nil, nil, "#finance"), true},
		"one that begins before the grant":  {policyFor("p", at(10), nil, "#finance"), true},
		"one that begins while it lasts":    {policyFor("p", at(30), nil, "#finance"), true},
		"one that is over by then":          {policyFor("p", nil, at(10), "#finance"), false},
		"one that finds another attribute":  {policyFor("p", nil, nil, "#other"), false},
		"an assertion": {func(tx *state.Tx) error {
			if err := model.Assertions.Delete(tx, "out"); err != nil {
				return err
			}
			if err := policyFor("p", nil, nil, "#finance")(tx); err != nil {
				return err
			}
			return model.Assertions.Upsert(tx, "again", func(a *model.Assertion) {
				a.Name, a.Expect, a.Type, a.Semantic, a.IdentityRoles, a.ServiceRoles = "again", model.Never, model.Dial, model.AnyOf, []string{"#contractors"}, []string{"#money"}
			})
		}, true},
		"a service": {func(tx *state.Tx) error {
			return model.Services.Edit(tx, "shop", func(s *model.Service) error { s.RoleAttributes = []string{"money", "web"}; return nil })
		}, true},
		"an identity": {func(tx *state.Tx) error {
			return model.Identities.Edit(tx, "bob", func(i *model.Identity) error { i.RoleAttributes = []string{"contractors"}; return nil })
		}, true},
		"the end of the grant": {func(tx *state.Tx) error {
			return model.Grants.Edit(tx, "g", func(g *model.Grant) error { g.ValidFrom, g.ValidUntil = at(1), *at(2); return nil })
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			var st *state.State
			judge := assertion.Judge{Ahead: func(ctx context.Context, step state.Step) ([]validity.Moment, error) {
				return validity.Ahead(ctx, st, step)
			}}
			st, err := state.Open(t.Context(), storetest.NewMemory(), model.All, state.Options{Frozen: true, Now: func() time.Time { return now }, Judge: judge.Judge})
			if err != nil {
				t.Fatal(err)
			}
			defer st.Close()
			must(t, st.Update(t.Context(), ann, func(tx *state.Tx) error {
				if err := model.Seed(tx); err != nil {
					return err
				}
				for id, attribute := range map[string]string{"eve": "contractors", "bob": "staff"} {
					if err := model.Identities.Upsert(tx, id, func(i *model.Identity) {
						i.Name, i.Type, i.AuthPolicyID, i.RoleAttributes = id, "User", model.DefaultAuthPolicy, []string{attribute}
					}); err != nil {
						return err
					}
				}
				for id, attribute := range map[string]string{"pay": "money", "shop": "web"} {
					if err := model.Services.Upsert(tx, id, func(s *model.Service) { s.Name, s.RoleAttributes = id, []string{attribute} }); err != nil {
						return err
					}
				}
				if err := model.ServicePolicies.Upsert(tx, "web", func(p *model.ServicePolicy) {
					p.Name, p.Type, p.Semantic, p.IdentityRoles, p.ServiceRoles = "web", model.Dial, model.AnyOf, []string{"#finance", "#auditors"}, []string{"#web"}
				}); err != nil {
					return err
				}
				if err := policyFor("audits", nil, nil, "#auditors")(tx); err != nil {
					return err
				}
				for id, g := range map[string]*model.Grant{"g": {IdentityID: "eve", Attribute: "finance"}, "h": {IdentityID: "bob", Attribute: "auditors"}} {
					g.ID, g.Reason, g.ValidFrom, g.ValidUntil = id, "r", at(24), *at(48)
					if err := model.Grants.Create(tx, g); err != nil {
						return err
					}
				}
				return model.Assertions.Upsert(tx, "out", func(a *model.Assertion) {
					a.Name, a.Expect, a.Type, a.Semantic, a.IdentityRoles, a.ServiceRoles = "out", model.Never, model.Dial, model.AnyOf, []string{"#contractors"}, []string{"#money"}
				})
			}))
			if err := st.Update(t.Context(), ann, test.write); fault.Is(err, fault.CodeAssertion) != test.broken || err != nil && !test.broken {
				t.Errorf("%v, want it to be refused: %t", err, test.broken)
			}
		})
	}
}

// policyFor writes a policy that lets those with a role dial what is about money.
func policyFor(id string, from, until *time.Time, role string) func(tx *state.Tx) error {
	return func(tx *state.Tx) error {
		return model.ServicePolicies.Upsert(tx, id, func(p *model.ServicePolicy) {
			p.Name, p.Type, p.Semantic, p.IdentityRoles, p.ServiceRoles = id, model.Dial, model.AnyOf, []string{role}, []string{"#money"}
			p.ValidFrom, p.ValidUntil = from, until
		})
	}
}

func nothing(*model.ServicePolicy) error { return nil }
