package authn

import (
	"net/netip"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"netkeep.internal/internal/data/state"
	"netkeep.internal/internal/lang/fault"
	"netkeep.internal/internal/model"
)

const maxWrong = 20

// watched is a world where wrong passwords are counted, and a way into it.
func watched(t *testing.T) (*world, func(n byte, name, password string) error) {
	t.Helper()
	w := newWorld(t)
	h := NewHasher()
	// What stands for nobody is hashed often here, and need not take long.
	h.dummy = encodeHash(cost{memory: 8, time: 1, threads: 1}, random(saltLen), random(keyLen))
	w.passwords = NewPasswords(h, w.APISessions, time.Now, maxWrong)
	return w, func(n byte, name, password string) error {
		_, err := w.passwords.Check(t.Context(), state.Nobody, w.State.Snapshot(),
			Login{Username: name, Password: password, From: netip.AddrFrom4([4]byte{192, 0, 2, n})})
		return err
	}
}

// expect checks with which code something failed; none if it is empty.
func expect(t *testing.T, what string, err error, code fault.Code) {
	t.Helper()
	if code == "" && err != nil || code != "" && !fault.Is(err, code) {
		t.Errorf("%s: %v, want %q", what, err, code)
	}
}

// TestGuessesOfAnAddress is wrong about ever new names from one address.
func TestGuessesOfAnAddress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, login := watched(t)
		expect(t, "the first time here", login(1, adminName, adminPassword), "")
		for range 2 {
			for n := range maxWrong {
				expect(t, "a wrong password", login(1, "nobody"+string(rune('a'+n)), "wrong one"), fault.CodeAuth)
			}
			expect(t, "one more", login(1, "nobody", "wrong one"), fault.CodeRateLimited)
			expect(t, "the right one from elsewhere", login(2, adminName, adminPassword), "")
			expect(t, "the right one of somebody who was here before", login(1, adminName, adminPassword), "")
			time.Sleep(time.Minute)
		}
	})
}

// TestStrangerAmongGuessers has somebody come for the first time to an address
// that was wrong too often.
func TestStrangerAmongGuessers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, login := watched(t)
		for n := range 4 * maxWrong {
			_ = login(1, "nobody"+string(rune('a'+n%3)), "wrong one")
		}
		expect(t, "of those who guess", login(1, "nobodya", "wrong one"), fault.CodeRateLimited)
		expect(t, "a name that nobody guesses at", login(1, "somebody", "wrong one"), fault.CodeAuth)
		for n := range maxWrong {
			_ = login(1, "nobody"+string(rune('d'+n)), "wrong one")
		}
		err := login(1, adminName, adminPassword)
		expect(t, "the right one", err, fault.CodeRateLimited)
		f, _ := err.(*fault.Error)
		if f == nil || f.Wait <= 0 || f.Wait > time.Minute {
			t.Fatalf("it has to wait as %v says", err)
		}
		time.Sleep(f.Wait)
		expect(t, "after the time that it was told", login(1, adminName, adminPassword), "")
	})
}

// TestGuessesAtAName is wrong about one name from many addresses.
func TestGuessesAtAName(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, login := watched(t)
		expect(t, "the owner at home", login(200, adminName, adminPassword), "")
		expect(t, "a slip of the owner's", login(200, adminName, "wrong one"), fault.CodeAuth)
		for n := range byte(maxWrong) {
			expect(t, "a guess", login(n, adminName, "wrong one"), fault.CodeAuth)
		}
		for n := range byte(maxWrong) {
			expect(t, "another guess from there", login(n, adminName, "wrong one"), fault.CodeRateLimited)
		}
		expect(t, "the owner at home", login(200, adminName, adminPassword), "")
		expect(t, "the owner elsewhere", login(201, adminName, adminPassword), "")
		expect(t, "somebody else", login(1, "nobody", "wrong one"), fault.CodeAuth)
	})
}

// TestGuessesAtOneNameFromOneAddress tells nothing about whether a name exists.
func TestGuessesAtOneNameFromOneAddress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, login := watched(t)
		for i, name := range []string{adminName, "nobody"} {
			for range triesAMinute {
				expect(t, name, login(byte(i), name, "wrong one"), fault.CodeAuth)
			}
			expect(t, name+" once more", login(byte(i), name, "wrong one"), fault.CodeRateLimited)
		}
	})
}

// TestGuessesInTheQueue has many wait for their turn: those that are too many
// when it comes are not hashed.
func TestGuessesInTheQueue(t *testing.T) {
	w, login := watched(t)
	free := takeTurns(w.passwords.hasher)
	var all sync.WaitGroup
	var mu sync.Mutex
	judged := 0
	for range 100 {
		all.Go(func() {
			if err := login(1, "nobody", "wrong one"); fault.Is(err, fault.CodeAuth) {
				mu.Lock()
				defer mu.Unlock()
				judged++
			}
		})
	}
	free()
	all.Wait()
	if most := triesAMinute + w.passwords.hasher.turns.Max; judged > most {
		t.Errorf("%d were judged, want at most %d", judged, most)
	}
}

// TestGuessesOfOneself tries what one's own password is.
func TestGuessesOfOneself(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, login := watched(t)
		own, _ := model.Authenticators.Get(w.State.Snapshot(), w.proof.session.AuthenticatorID)
		confirm := func(password string) error {
			return w.passwords.Confirm(t.Context(), own, password)
		}
		expect(t, "the right one", confirm(adminPassword), "")
		for range triesAMinute {
			expect(t, "a wrong one", confirm("wrong one"), fault.CodeUnauthorized)
		}
		expect(t, "one more", confirm("wrong one"), fault.CodeRateLimited)
		expect(t, "the right one", confirm(adminPassword), fault.CodeRateLimited)
		expect(t, "a login", login(1, adminName, adminPassword), "")
		time.Sleep(time.Minute / triesAMinute)
		expect(t, "the right one after a while", confirm(adminPassword), "")
	})
}

// TestFamiliarPlaces has more places than are remembered, and old ones.
func TestFamiliarPlaces(t *testing.T) {
	now := time.Unix(1_000_000, 0)
	f := familiar{now: func() time.Time { return now }}
	place := func(n int) attempt { return attempt{name: string(rune(n))} }
	for n := range maxFamiliar + 10 {
		f.note(place(n))
		if !f.has(place(n)) {
			t.Fatalf("place %d is forgotten at once", n)
		}
	}
	if n := len(f.last); n > maxFamiliar {
		t.Errorf("%d places are remembered", n)
	}
	f.note(place(1))
	now = now.Add(familiarFor)
	if f.has(place(1)) {
		t.Error("a place is familiar for ever")
	}
}
