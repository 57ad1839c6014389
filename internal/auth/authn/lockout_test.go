package authn

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"netkeep/internal/data/state"
	"netkeep/internal/lang/fault"
	"netkeep/internal/model"
)

// guarded returns a world with a visitor whose policy has these rules.
func guarded(t *testing.T, change func(*model.AuthUPDB)) (*world, *model.Authenticator) {
	t.Helper()
	w := newWorld(t)
	proof := w.vouched(t, w.add(t, "visitor"))
	update(t, w.State, func(tx *state.Tx) error {
		p := &model.AuthPolicy{Name: "guarded", Primary: model.AuthPrimary{UPDB: model.AuthUPDB{
			Allowed: true, MinPasswordLength: 5, MaxAttempts: 3, LockoutDurationMinutes: 10,
		}}}
		change(&p.Primary.UPDB)
		if err := model.AuthPolicies.Create(tx, p); err != nil {
			return err
		}
		return model.Identities.Edit(tx, proof.identity.ID, func(i *model.Identity) error {
			i.AuthPolicyID = p.ID
			return nil
		})
	})
	a, _ := model.Authenticators.Get(w.State.Snapshot(), proof.session.AuthenticatorID)
	return w, a
}

func (w *world) fails(t testing.TB, n int) {
	t.Helper()
	for range n {
		if _, err := w.login(t, "visitor", "wrong one"); !fault.Is(err, fault.CodeAuth) {
			t.Fatalf("a wrong password: %v", err)
		}
	}
}

// enters reports whether the right password works.
func (w *world) enters(t testing.TB) bool {
	t.Helper()
	proof, err := w.login(t, "visitor", adminPassword)
	if err == nil {
		_, err = w.Open(t.Context(), state.Nobody, proof, Request{})
	}
	if err != nil && !fault.Is(err, fault.CodeAuth) {
		t.Fatal(err)
	}
	return err == nil
}

func (w *world) disabled(id string) bool {
	i, _ := model.Identities.Get(w.State.Snapshot(), id)
	return i.Disabled(time.Now())
}

func TestLockoutEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, a := guarded(t, func(*model.AuthUPDB) {})
		for range 2 { // and afterwards there are as many attempts again
			w.fails(t, 2)
			if !w.enters(t) {
				t.Fatal("two wrong passwords of three are too many")
			}
			w.fails(t, 2)
			if !w.enters(t) {
				t.Fatal("the right password did not clear the wrong ones before")
			}
			w.fails(t, 3)
			if !w.disabled(a.IdentityID) || w.enters(t) {
				t.Fatal("three wrong passwords lock nobody out")
			}
			time.Sleep(10*time.Minute - time.Second)
			if w.enters(t) {
				t.Fatal("the lockout ended early")
			}
			time.Sleep(time.Second)
			if !w.enters(t) {
				t.Fatal("the lockout does not end")
			}
		}
	})
}

func TestLockoutWithoutEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, a := guarded(t, func(u *model.AuthUPDB) { u.LockoutDurationMinutes = 0 })
		w.fails(t, 3)
		time.Sleep(1000 * time.Hour)
		if !w.disabled(a.IdentityID) || w.enters(t) {
			t.Error("a lockout without an end ended")
		}
	})
}

// TestLockoutOfCenturies has a policy whose minutes, as nanoseconds, are more
// than a number can hold.
func TestLockoutOfCenturies(t *testing.T) {
	for _, minutes := range []int{200_000_000, 1 << 53} {
		synctest.Test(t, func(t *testing.T) {
			w, a := guarded(t, func(u *model.AuthUPDB) { u.LockoutDurationMinutes = minutes })
			w.fails(t, 3)
			time.Sleep(1000 * time.Hour)
			if !w.disabled(a.IdentityID) || w.enters(t) {
				t.Errorf("a lockout of %d minutes is over", minutes)
			}
		})
	}
}

func TestLockoutEndsSessions(t *testing.T) {
	w, _ := guarded(t, func(*model.AuthUPDB) {})
	proof, err := w.login(t, "visitor", adminPassword)
	if err != nil {
		t.Fatal(err)
	}
	who, err := w.Open(t.Context(), state.Nobody, proof, Request{})
	if err != nil {
		t.Fatal(err)
	}
	other := w.open(t)
	w.fails(t, 3)
	if w.stored(who) || !w.stored(other) {
		t.Error("the lockout did not end the sessions of the one it is for, or of others too")
	}
}

// TestLockoutOutlivesTheRequest hangs up before the lockout is written.
func TestLockoutOutlivesTheRequest(t *testing.T) {
	w, a := guarded(t, func(*model.AuthUPDB) {})
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	rules := model.AuthUPDB{MaxAttempts: 3, LockoutDurationMinutes: 10}
	for range 3 {
		if good, err := w.passwords.judge(gone, state.Nobody, a, rules, false); good || err != nil {
			t.Fatalf("%v, %v", good, err)
		}
	}
	if !w.disabled(a.IdentityID) {
		t.Error("who hangs up in time is not locked out")
	}
}

// TestParallelGuesses sends more passwords at a time than are allowed in all,
// the right one last.
func TestParallelGuesses(t *testing.T) {
	w, a := guarded(t, func(*model.AuthUPDB) {})
	free := takeTurns(w.passwords.hasher)
	var tries sync.WaitGroup
	for range 12 {
		tries.Go(func() { _, _ = w.login(t, "visitor", "wrong one") })
	}
	free()
	tries.Wait()
	if !w.disabled(a.IdentityID) {
		t.Error("twelve wrong passwords at a time lock nobody out")
	}
	if w.enters(t) {
		t.Error("the right password works after twelve wrong ones")
	}
}

// TestTooLate has the right password arrive when there were too many wrong
// ones, but the lockout is not written yet.
func TestTooLate(t *testing.T) {
	w, a := guarded(t, func(*model.AuthUPDB) {})
	for range 3 {
		w.passwords.failures.add(a.ID)
	}
	if w.enters(t) {
		t.Error("the right password came too late and works")
	}
	if !w.disabled(a.IdentityID) {
		t.Error("the lockout was never written")
	}
}

// TestLockoutShortensNothing locks out an identity that an admin disabled.
func TestLockoutShortensNothing(t *testing.T) {
	w, a := guarded(t, func(*model.AuthUPDB) {})
	update(t, w.State, func(tx *state.Tx) error {
		return model.Identities.Edit(tx, a.IdentityID, func(i *model.Identity) error {
			now := tx.Now()
			i.DisabledAt = &now
			return nil
		})
	})
	if err := w.passwords.lock(t.Context(), state.Nobody, a.IdentityID, model.AuthUPDB{LockoutDurationMinutes: 1}); err != nil {
		t.Fatal(err)
	}
	if i, _ := model.Identities.Get(w.State.Snapshot(), a.IdentityID); i.DisabledUntil != nil {
		t.Errorf("the identity is disabled until %s only", i.DisabledUntil)
	}
}

// TestNothingToGuess checks that one who may not use a password cannot be
// locked out by wrong ones.
func TestNothingToGuess(t *testing.T) {
	w, a := guarded(t, func(u *model.AuthUPDB) { u.Allowed = false })
	w.fails(t, 5)
	if w.disabled(a.IdentityID) {
		t.Error("strangers can lock out an identity that has no use for a password")
	}
}

func TestConfirmCounts(t *testing.T) {
	w, a := guarded(t, func(*model.AuthUPDB) {})
	for range 3 {
		if err := w.passwords.Confirm(t.Context(), state.Nobody, a, "wrong one"); !fault.Is(err, fault.CodeUnauthorized) {
			t.Errorf("a wrong present password: %v", err)
		}
	}
	if !w.disabled(a.IdentityID) {
		t.Error("the present password can be guessed without end")
	}
	if err := w.passwords.Confirm(t.Context(), state.Nobody, a, adminPassword); !fault.Is(err, fault.CodeUnauthorized) {
		t.Errorf("the right password after a lockout: %v", err)
	}
}
