package server

import (
	"log/slog"
	"testing"
	"time"

	"netkeep.internal/internal/auth/power"
	"netkeep.internal/internal/data/state"
	"netkeep.internal/internal/data/store/storetest"
	"netkeep.internal/internal/lang/fault"
	"netkeep.internal/internal/model"
	"netkeep.internal/internal/policy/validity"
)

// TestPowerUntilThen has somebody give a power to others whom a grant gives it for an
// hour: nobody has written that the hour is over, and they cannot.
func TestPowerUntilThen(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	clock := func() time.Time { return now }
	s := new(Server)
	st, err := state.Open(t.Context(), storetest.NewMemory(), model.All, state.Options{Frozen: true, Now: clock, Judge: s.byTheClock(power.Judge)})
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	s.validity = &validity.Keeper{State: st, Now: clock, Log: slog.New(slog.DiscardHandler)}
	err = st.Update(t.Context(), state.Program("test"), func(tx *state.Tx) error {
		if err := model.Seed(tx); err != nil {
			return err
		}
		for _, id := range []string{"ann", "bob", "cat"} {
			if err := model.Identities.Upsert(tx, id, func(i *model.Identity) { i.Name, i.Type = id, "User" }); err != nil {
				return err
			}
		}
		role := &model.AdminRole{Name: "lookers", Allows: []string{"service:read"}}
		if err := model.AdminRoles.Create(tx, role); err != nil {
			return err
		}
		if err := model.RoleBindings.Create(tx, &model.RoleBinding{Name: "duty", RoleID: role.ID, Semantic: model.AnyOf, IdentityRoles: []string{"#duty"}}); err != nil {
			return err
		}
		return model.Grants.Create(tx, &model.Grant{IdentityID: "ann", Attribute: "duty", Reason: "on call", ValidUntil: now.Add(time.Hour)})
	})
	if err != nil {
		t.Fatal(err)
	}
	ann := state.Author{Kind: model.Identities.Name, ID: "ann", Name: "ann"}
	pass := func(to string) error {
		return st.Update(t.Context(), ann, func(tx *state.Tx) error {
			return model.Identities.Edit(tx, to, func(i *model.Identity) error { i.RoleAttributes = []string{"duty"}; return nil })
		})
	}
	if err := pass("bob"); err != nil {
		t.Fatal(err)
	}
	now = now.Add(time.Hour)
	if err := pass("cat"); !fault.Is(err, fault.CodeUnauthorized) {
		t.Errorf("giving a power on that one has had: %v", err)
	}
}
