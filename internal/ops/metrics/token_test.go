package metrics_test

import (
	"testing"
	"time"

	"netkeep.internal/internal/data/state"
	"netkeep.internal/internal/model"
	"netkeep.internal/internal/ops/metrics"
)

// TestTokensEnding counts the tokens of machines that end within two weeks, and not
// those that have ended.
func TestTokensEnding(t *testing.T) {
	m := metrics.New(time.Now)
	st := full(t, m)
	wants(t, scrape(t, m), "netkeep_tokens_ending 0")
	err := st.Update(t.Context(), state.Program("test"), func(tx *state.Tx) error {
		if err := model.Seed(tx); err != nil {
			return err
		}
		owner := &model.Identity{Name: "owner of tokens", Type: "User"}
		if err := model.Identities.Create(tx, owner); err != nil {
			return err
		}
		role, _ := model.AdminRoles.Find(tx, "name", "viewer")
		for name, days := range map[string]int{"a": 3, "b": 13, "c": 15} {
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
	wants(t, scrape(t, m), "netkeep_tokens_ending 2")
}
