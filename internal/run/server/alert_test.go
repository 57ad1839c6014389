package server

import (
	"testing"
	"time"

	"netkeep.internal/internal/data/state"
	"netkeep.internal/internal/data/store/storetest"
	"netkeep.internal/internal/model"
)

// TestEndingTokens has alerts tell of tokens that end soon, and of no others.
func TestEndingTokens(t *testing.T) {
	st, err := state.Open(t.Context(), storetest.NewMemory(), model.All, state.Options{Frozen: true})
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	err = st.Update(t.Context(), state.Program("test"), func(tx *state.Tx) error {
		if err := model.Seed(tx); err != nil {
			return err
		}
		owner := &model.Identity{Name: "ann", Type: "User"}
		if err := model.Identities.Create(tx, owner); err != nil {
			return err
		}
		role, _ := model.AdminRoles.Find(tx, "name", "viewer")
		for name, days := range map[string]int{"soon": 13, "later": 15} {
			err := model.Tokens.Create(tx, &model.Token{Name: name, RoleID: role.ID, OwnerID: owner.ID, Digest: name, ExpiresAt: time.Now().AddDate(0, 0, days)})
			if err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	told := new(Server).endings(st.Snapshot())
	if len(told) != 1 || told[0].Target.Kind != model.Tokens.Name || told[0].Target.Name != "soon" {
		t.Errorf("told of %+v", told)
	}
}
