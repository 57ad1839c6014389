package authn

import (
	"net/netip"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"netkeep.internal/internal/data/state"
	"netkeep.internal/internal/lang/fault"
	"netkeep.internal/internal/model"
	"netkeep.internal/internal/ops/limit"
)

// Where passwords come from.
const here, there = 1, 2

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

func (w *world) loginFrom(t testing.TB, n byte, password string) (Proof, error) {
	return w.passwords.Check(t.Context(), state.Nobody, w.State.Snapshot(),
		Login{Username: "visitor", Password: password, From: netip.AddrFrom4([4]byte{192, 0, 2, n})})
}

func (w *world) fails(t testing.TB, from byte, times int) {
	t.Helper()
	for range times {
		if _, err := w.loginFrom(t, from, "wrong one"); !fault.Is(err, fault.CodeAuth) {
			t.Fatalf("a wrong password: %v", err)
		}
	}
}

// enters reports whether the right password works.
func (w *world) enters(t testing.TB, from byte) bool {
	t.Helper()
	_, err := w.loginFrom(t, from, adminPassword)
	if err != nil && !fault.Is(err, fault.CodeAuth) {
		t.Fatal(err)
	}
	return err == nil
}

func TestLockoutEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, _ := guarded(t, func(*model.AuthUPDB) {})
		for range 2 { // and afterwards there are as many attempts again
			w.fails(t, here, 2)
			if !w.enters(t, here) {
				t.Fatal("two wrong passwords of three are too many")
			}
			w.fails(t, here, 2)
			if !w.enters(t, here) {
				t.Fatal("the right password did not clear the wrong ones before")
			}
			w.fails(t, here, 3)
			if w.enters(t, here) {
				t.Fatal("three wrong passwords lock nobody out")
			}
			if !w.enters(t, there) {
				t.Fatal("wrong passwords here lock out somebody elsewhere")
			}
			time.Sleep(10*time.Minute - time.Second)
			if w.enters(t, here) {
				t.Fatal("the lockout ended early")
			}
			time.Sleep(time.Second)
			if !w.enters(t, here) {
				t.Fatal("the lockout does not end")
			}
		}
	})
}

// TestLockoutWithoutEnd has policies without an end, and with more minutes than
// a number of nanoseconds can hold.
func TestLockoutWithoutEnd(t *testing.T) {
	for _, minutes := range []int{0, -1, 200_000_000, 1 << 53} {
		synctest.Test(t, func(t *testing.T) {
			w, a := guarded(t, func(u *model.AuthUPDB) { u.LockoutDurationMinutes = minutes })
			w.fails(t, here, 3)
			time.Sleep(1000 * time.Hour)
			if w.enters(t, here) {
				t.Errorf("a lockout of %d minutes is over", minutes)
			}
			w.passwords.Forgive("another")
			if w.enters(t, here) {
				t.Error("to forgive another ends the lockout")
			}
			w.passwords.Forgive(a.IdentityID)
			if !w.enters(t, here) {
				t.Error("one that was forgiven is still locked out")
			}
		})
	}
}

// TestLockoutFromEverywhere has the password be wrong from many places, none of
// which is locked out for itself.
func TestLockoutFromEverywhere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, _ := guarded(t, func(*model.AuthUPDB) {})
		const home = 200
		if !w.enters(t, home) {
			t.Fatal("the owner does not get in at home")
		}
		for n := range byte(3 * everywhere / 2) {
			w.fails(t, n+10, 2)
		}
		if w.enters(t, there) {
			t.Error("wrong passwords from everywhere lock nobody out")
		}
		if !w.enters(t, home) {
			t.Error("the owner is locked out at home")
		}
		if w.enters(t, there) {
			t.Error("that the owner got in ends the lockout for others")
		}
		time.Sleep(10 * time.Minute)
		if !w.enters(t, there) {
			t.Error("the lockout does not end")
		}
	})
}

// TestRightDuringLockout gives the right password again and again while it is
// locked out: that makes no place familiar.
func TestRightDuringLockout(t *testing.T) {
	w, _ := guarded(t, func(*model.AuthUPDB) {})
	for n := range byte(everywhere) {
		w.fails(t, n+10, 3)
	}
	for range 5 {
		if w.enters(t, there) {
			t.Fatal("the right password works in the end")
		}
	}
}

// TestDefaultAdmin is locked out by a policy that knows no end.
func TestDefaultAdmin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, a := guarded(t, func(u *model.AuthUPDB) { u.LockoutDurationMinutes = 0 })
		update(t, w.State, func(tx *state.Tx) error {
			return model.Identities.Edit(tx, a.IdentityID, func(i *model.Identity) error {
				i.IsDefaultAdmin = true
				return nil
			})
		})
		for n := range byte(everywhere) {
			w.fails(t, n, 3)
		}
		if w.enters(t, here) || w.enters(t, 99) {
			t.Error("the default admin's password can be guessed without end")
		}
		time.Sleep(defaultAdminLock)
		if !w.enters(t, here) || !w.enters(t, 99) {
			t.Error("the default admin is locked out for ever")
		}
	})
}

// TestLockoutLeavesTheRest has sessions and other ways in go on.
func TestLockoutLeavesTheRest(t *testing.T) {
	w, a := guarded(t, func(*model.AuthUPDB) {})
	proof, err := w.loginFrom(t, here, adminPassword)
	if err != nil {
		t.Fatal(err)
	}
	who, err := w.Open(t.Context(), state.Nobody, proof, Request{})
	if err != nil {
		t.Fatal(err)
	}
	for n := range byte(everywhere + 1) {
		w.fails(t, n, 3)
	}
	if !w.works(t, who.Token()) {
		t.Error("wrong passwords end sessions")
	}
	if i, _ := model.Identities.Get(w.State.Snapshot(), a.IdentityID); i.Disabled(time.Now()) {
		t.Error("wrong passwords disable the identity")
	}
}

// TestParallelGuesses sends more passwords at a time than are allowed in all,
// the right one last.
func TestParallelGuesses(t *testing.T) {
	w, _ := guarded(t, func(*model.AuthUPDB) {})
	free := takeTurns(w.passwords.hasher)
	var tries sync.WaitGroup
	for range 12 {
		tries.Go(func() { _, _ = w.loginFrom(t, here, "wrong one") })
	}
	free()
	tries.Wait()
	if w.enters(t, here) {
		t.Error("the right password works after twelve wrong ones")
	}
}

// TestNothingToGuess checks that one who may not use a password cannot be
// locked out by wrong ones.
func TestNothingToGuess(t *testing.T) {
	w, _ := guarded(t, func(u *model.AuthUPDB) { u.Allowed = false })
	w.fails(t, here, 5)
	if len(w.passwords.lockouts.by) != 0 {
		t.Error("wrong passwords count where there is nothing to guess")
	}
}

func TestConfirmCounts(t *testing.T) {
	w, a := guarded(t, func(*model.AuthUPDB) {})
	for range 3 {
		if err := w.passwords.Confirm(t.Context(), a, "wrong one"); !fault.Is(err, fault.CodeUnauthorized) {
			t.Errorf("a wrong present password: %v", err)
		}
	}
	if err := w.passwords.Confirm(t.Context(), a, adminPassword); !fault.Is(err, fault.CodeUnauthorized) {
		t.Errorf("the right password after a lockout: %v", err)
	}
	if !w.enters(t, here) {
		t.Error("who took over a session can lock the owner out")
	}
}

// TestLockoutsProperty checks what holds after any attempts: a place that was
// wrong too often in a row is shut out as long as it is to be, and no other is.
func TestLockoutsProperty(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		now := time.Unix(1_000_000, 0)
		r := rule{most: rapid.IntRange(1, 4).Draw(rt, "most"), lasts: time.Duration(rapid.IntRange(0, 10).Draw(rt, "minutes")) * time.Minute}
		var l lockouts
		wrong, until := map[int]int{}, map[int]time.Time{}
		for range 100 {
			now = now.Add(time.Duration(rapid.IntRange(0, 60).Draw(rt, "seconds")) * time.Second)
			n, right := rapid.IntRange(0, 3).Draw(rt, "place"), rapid.Bool().Draw(rt, "right")
			// All places are familiar, so that each stands for itself.
			good, _ := l.judge(place{"x", partyAt(byte(n))}, true, r, right, now)
			end, locked := until[n]
			if locked && r.lasts > 0 && !now.Before(end) {
				delete(until, n)
				locked, wrong[n] = false, 0
			}
			if good != (right && !locked) {
				rt.Fatalf("place %d: right %v is good %v, locked %v", n, right, good, locked)
			}
			switch {
			case good:
				wrong[n] = 0
			case !locked:
				if wrong[n]++; wrong[n] == r.most {
					until[n] = now.Add(r.lasts)
				}
			}
		}
	})
}

// TestLockoutsForget has more places than are remembered: those that are shut
// out are the last to be forgotten.
func TestLockoutsForget(t *testing.T) {
	var l lockouts
	r, now := rule{most: 2}, time.Unix(1_000_000, 0)
	shut := place{identity: "shut out"}
	for range 2 {
		l.judge(shut, true, r, false, now)
	}
	for n := range maxPlaces + 10 {
		l.judge(place{identity: strconv.Itoa(n)}, true, r, false, now)
	}
	if len(l.by) > maxPlaces || !l.locked(shut) {
		t.Errorf("%d places are remembered, and the one that is shut out is: %v", len(l.by), l.locked(shut))
	}
}

func partyAt(n byte) limit.Party { return limit.At(netip.AddrFrom4([4]byte{192, 0, 2, n})) }
