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
	judge := assertion.Judge{Ahead: func(ctx context.Context, step state.Step) (state.Step, error) { return validity.Begun(ctx, st, step) }}
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

func nothing(*model.ServicePolicy) error { return nil }
