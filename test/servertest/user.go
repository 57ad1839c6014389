package servertest

import (
	"crypto/rand"
	"testing"
	"time"

	"netkeep.internal/internal/auth/authn"
	"netkeep.internal/internal/data/state"
	"netkeep.internal/internal/model"
)

// User is somebody who can log in.
type User struct{ ID, Username, Password string }

// AddUser adds an identity with a password, straight to the model.
func (s *Server) AddUser(t testing.TB, admin bool) User {
	t.Helper()
	u := User{Username: Unique("user"), Password: rand.Text()}
	hash, err := authn.NewHasher().Hash(t.Context(), authn.Claim{}, u.Password)
	if err != nil {
		t.Fatal(err)
	}
	err = s.State().Update(t.Context(), state.Program("test"), func(tx *state.Tx) error {
		identity := model.Identities.New()
		identity.Name, identity.Type, identity.IsAdmin = u.Username, "User", admin
		if err := model.Identities.Create(tx, identity); err != nil {
			return err
		}
		u.ID = identity.ID
		return model.Authenticators.Create(tx, model.NewPassword(u.ID, u.Username, hash))
	})
	if err != nil {
		t.Fatal(err)
	}
	return u
}

// Unique returns a name that nothing else has.
func Unique(prefix string) string { return prefix + "-" + rand.Text()[:12] }

// patience is how long anything may take at least: a machine may be slow, and
// have other things to do.
const patience = time.Minute

// Eventually fails the test unless what it waits for happens in time. That is
// for what never happens, not for what is late.
func Eventually(t testing.TB, within time.Duration, what string, happened func() bool) {
	t.Helper()
	within = max(within, patience)
	timeout := time.NewTimer(within)
	defer timeout.Stop()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for !happened() {
		select {
		case <-tick.C:
		case <-timeout.C:
			t.Fatalf("%s did not happen within %s", what, within)
		}
	}
}
