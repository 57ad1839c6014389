package authn

import (
	"context"
	"crypto/x509"
	"errors"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/crypto/argon2"

	"netkeep.internal/internal/data/state"
	"netkeep.internal/internal/lang/fault"
	"netkeep.internal/internal/model"
	"netkeep.internal/internal/ops/limit"
)

func TestHash(t *testing.T) {
	h := NewHasher()
	for _, password := range []string{"", strings.Repeat("é", 100), "nul\x00byte"} {
		hash, err := h.Hash(t.Context(), Claim{}, password)
		if err != nil {
			t.Fatal(err)
		}
		if password != "" && strings.Contains(hash, password) {
			t.Errorf("the hash %s holds the password", hash)
		}
		for tried, want := range map[string]bool{password: true, password + "x": false} {
			if got, err := h.Verify(t.Context(), Claim{}, hash, tried); got != want || err != nil {
				t.Errorf("%q against the hash of %q: %v, %v", tried, password, got, err)
			}
		}
		again, err := h.Hash(t.Context(), Claim{}, password)
		if err != nil || again == hash {
			t.Errorf("two hashes of %q are the same, or %v", password, err)
		}
	}
}

// TestVerifyNobody checks that what stands for nobody matches nothing.
func TestVerifyNobody(t *testing.T) {
	h := NewHasher()
	for _, password := range []string{"", "secret", h.dummy} {
		if ok, err := h.Verify(t.Context(), Claim{}, "", password); ok || err != nil {
			t.Errorf("%q: %v, %v", password, ok, err)
		}
	}
}

func TestVerifyMalformed(t *testing.T) {
	h := NewHasher()
	good, err := h.Hash(t.Context(), Claim{}, "secret")
	if err != nil {
		t.Fatal(err)
	}
	parts := strings.Split(good, "$")
	with := func(i int, part string) string {
		changed := append([]string(nil), parts...)
		changed[i] = part
		return strings.Join(changed, "$")
	}
	for _, bad := range []string{
		"secret", "$", good + "$", "x" + good, with(1, "argon2i"), with(2, "v=1"), with(3, "m=,t=,p="), with(3, "m=8,t=0,p=1"),
		with(3, "m=8,t=1,p=0"), with(3, "m=8,t=1,p=256"), with(3, "m=4294967295,t=1,p=1"), with(3, "m=8,t=4294967295,p=1"),
		with(3, "m=8,t=1,p=1 "), with(3, "m=8,t=1,p=1x"), with(3, "m=08,t=1,p=1"), with(4, "!"), with(5, "!"), with(5, "AAAA"),
		with(5, parts[5]+"\n"),
	} {
		if ok, err := h.Verify(t.Context(), Claim{}, bad, "secret"); ok || !errors.Is(err, errHash) {
			t.Errorf("%q: %v, %v", bad, ok, err)
		}
	}
}

// takeTurns makes a hasher busy and returns what frees it.
func takeTurns(h *Hasher) (free func()) {
	var all []func()
	for range h.turns.Max {
		done, err := h.turns.Wait(context.Background(), limit.Party{ID: "test"})
		if err != nil {
			panic(err)
		}
		all = append(all, done)
	}
	return func() {
		for _, done := range all {
			done()
		}
	}
}

// TestHasherTellsOfWaits counts who waits, whether they get their turn or leave.
func TestHasherTellsOfWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := NewHasher()
		waiting, over := 0, 0
		h.Queued = func() func() {
			waiting++
			return func() { over++ }
		}
		giveBack := takeTurns(h)
		ctx, cancel := context.WithCancel(t.Context())
		result := make(chan error)
		hash := func(ctx context.Context) {
			_, err := h.Hash(ctx, Claim{}, "secret")
			result <- err
		}
		go hash(ctx)
		synctest.Wait()
		go hash(t.Context())
		synctest.Wait()
		if waiting != 2 || over != 0 {
			t.Errorf("%d wait and %d have waited, want 2 and 0", waiting, over)
		}
		cancel()
		if err := <-result; !errors.Is(err, context.Canceled) {
			t.Errorf("error %v", err)
		}
		giveBack()
		if err := <-result; err != nil {
			t.Error(err)
		}
		if waiting != 2 || over != 2 {
			t.Errorf("%d waited and %d waits are over, want 2 and 2", waiting, over)
		}
	})
}

// TestHasherWaitsItsTurn checks that a caller who leaves is let go.
func TestHasherWaitsItsTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := NewHasher()
		takeTurns(h)
		ctx, cancel := context.WithCancel(t.Context())
		result := make(chan error)
		go func() {
			_, err := h.Hash(ctx, Claim{}, "secret")
			result <- err
		}()
		synctest.Wait() // it waits, since all turns are taken
		select {
		case err := <-result:
			t.Fatalf("it did not wait: %v", err)
		default:
		}
		cancel()
		if err := <-result; !errors.Is(err, context.Canceled) {
			t.Errorf("error %v", err)
		}
	})
}

// TestZiti4420 floods the controller with passwords: only a few are hashed at
// a time, on one thread each, some wait and the rest are refused, and whoever
// brings something else is served meanwhile.
func TestZiti4420(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		h := w.passwords.hasher
		if most := max(1, runtime.GOMAXPROCS(0)/2); h.turns.Max > most {
			t.Errorf("%d passwords are hashed at a time, want at most %d", h.turns.Max, most)
		}
		if hashCost.threads != 1 {
			t.Errorf("a password takes %d threads", hashCost.threads)
		}
		certs, leaf := w.certified(t)
		session := w.open(t)
		takeTurns(h)
		ctx, leave := context.WithCancel(t.Context())
		var flood sync.WaitGroup
		var waited, refused atomic.Int64
		for i := range 1000 {
			flood.Go(func() {
				name := []string{adminName, "nobody"}[i%2]
				_, err := w.passwords.Check(ctx, state.Nobody, w.State.Snapshot(), Login{Username: name, Password: "wrong one"})
				switch {
				case errors.Is(err, context.Canceled):
					waited.Add(1)
				case fault.Is(err, fault.CodeUnavailable):
					refused.Add(1)
				default:
					t.Errorf("a password is judged out of turn: %v", err)
				}
			})
		}
		synctest.Wait() // all of the flood waits
		if _, err := certs.Check(w.State.Snapshot(), []*x509.Certificate{leaf}); err != nil {
			t.Errorf("a certificate during the flood: %v", err)
		}
		if !w.works(t, session.Token()) {
			t.Error("a session does not work during the flood")
		}
		w.open(t)
		leave()
		flood.Wait()
		if waited.Load() != maxQueue || refused.Load() != 1000-maxQueue {
			t.Errorf("%d waited and %d were refused, want %d and the rest", waited.Load(), refused.Load(), maxQueue)
		}
	})
}

// BenchmarkCertificateLogin shows what a flood of passwords costs others.
func BenchmarkCertificateLogin(b *testing.B) {
	w := newWorld(b)
	certs, leaf := w.certified(b)
	for _, flooders := range []int{0, 64} {
		b.Run(map[int]string{0: "quiet", 64: "flood"}[flooders], func(b *testing.B) {
			ctx, cancel := context.WithCancel(b.Context())
			var flood sync.WaitGroup
			for range flooders {
				flood.Go(func() {
					for ctx.Err() == nil {
						_, _ = w.passwords.Check(ctx, state.Nobody, w.State.Snapshot(), Login{Username: "nobody", Password: "wrong one"})
					}
				})
			}
			for b.Loop() {
				proof, err := certs.Check(w.State.Snapshot(), []*x509.Certificate{leaf})
				if err == nil {
					_, err = w.Open(b.Context(), state.Nobody, proof, Request{})
				}
				if err != nil {
					b.Fatal(err)
				}
			}
			cancel()
			flood.Wait()
		})
	}
}

// TestUnknownNamesTakeAsLong compares the work that a login makes for a name
// that exists and one that does not, by the memory that hashing fills: time
// would depend on who else is busy.
func TestUnknownNamesTakeAsLong(t *testing.T) {
	w := newWorld(t)
	work := func(name string) float64 {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		if _, err := w.login(t, name, "wrong one"); !fault.Is(err, fault.CodeAuth) {
			t.Fatalf("%s: %v", name, err)
		}
		runtime.ReadMemStats(&after)
		return float64(after.TotalAlloc - before.TotalAlloc)
	}
	known, unknown := work(adminName), work("nobody")
	if known < float64(hashCost.memory)*1024 || unknown < float64(hashCost.memory)*1024 {
		t.Errorf("a known name takes %.0f bytes of work and an unknown one %.0f: one is not hashed", known, unknown)
	}
	if ratio := known / unknown; ratio < 0.8 || ratio > 1.25 {
		t.Errorf("a known name takes %.2f times the work of an unknown one", ratio)
	}
	c, salt, _, err := decodeHash(w.passwords.hasher.dummy)
	if err != nil || c != hashCost || len(salt) != saltLen {
		t.Errorf("what stands for nobody is hashed with %+v and %d bytes of salt, %v", c, len(salt), err)
	}
}

// TestUpgrade logs in with a hash of an earlier strength.
func TestUpgrade(t *testing.T) {
	w := newWorld(t)
	weak := cost{memory: 3072, time: 1, threads: 4}
	salt := random(saltLen)
	old := encodeHash(weak, salt, argon2.IDKey([]byte(adminPassword), salt, weak.time, weak.memory, weak.threads, keyLen))
	id := w.proof.session.AuthenticatorID
	stored := func() string {
		a, _ := model.Authenticators.Get(w.State.Snapshot(), id)
		return a.PasswordHash
	}
	update(t, w.State, func(tx *state.Tx) error {
		return model.Authenticators.Edit(tx, id, func(a *model.Authenticator) error {
			a.PasswordHash = old
			return nil
		})
	})
	if _, err := w.login(t, adminName, "wrong one"); !fault.Is(err, fault.CodeAuth) {
		t.Errorf("a wrong password: %v", err)
	}
	if stored() != old {
		t.Error("a wrong password changed the hash")
	}
	if _, err := w.login(t, adminName, adminPassword); err != nil {
		t.Fatal(err)
	}
	fresh := stored()
	if fresh == old || w.passwords.hasher.Outdated(fresh) {
		t.Errorf("the hash is still %s", fresh)
	}
	if _, err := w.login(t, adminName, adminPassword); err != nil {
		t.Errorf("the upgraded hash does not work: %v", err)
	}
	if stored() != fresh {
		t.Error("a hash of today's strength was made again")
	}
	// A change of the password that came first stays.
	lost := model.NewPassword("", "", old)
	lost.ID = id
	w.passwords.upgrade(t.Context(), state.Nobody, lost, adminPassword)
	if stored() != fresh {
		t.Error("an upgrade replaced a newer password")
	}
}

func TestSetAppliesTheRules(t *testing.T) {
	w := newWorld(t)
	update(t, w.State, func(tx *state.Tx) error {
		return model.AuthPolicies.Edit(tx, model.DefaultAuthPolicy, func(p *model.AuthPolicy) error {
			p.Primary.UPDB.RequireNumberChar = true
			return nil
		})
	})
	id := w.proof.identity.ID
	if _, err := w.passwords.Set(t.Context(), limit.Party{}, w.State.Snapshot(), id, "no digit"); !fault.Is(err, fault.CodeInvalid) {
		t.Errorf("error %v", err)
	}
	hash, err := w.passwords.Set(t.Context(), limit.Party{}, w.State.Snapshot(), id, "1 digit")
	if err != nil {
		t.Fatal(err)
	}
	if ok, err := w.passwords.hasher.Verify(t.Context(), Claim{}, hash, "1 digit"); !ok || err != nil {
		t.Errorf("%v, %v", ok, err)
	}
	if _, err := w.passwords.Set(t.Context(), limit.Party{}, w.State.Snapshot(), "nobody", "1 digit"); !fault.Is(err, fault.CodeNotFound) {
		t.Errorf("error %v", err)
	}
}

func TestFirstAdmin(t *testing.T) {
	w := newWorld(t)
	// A second one changes nothing.
	for _, name := range []string{"first", "other"} {
		if err := CreateAdmin(t.Context(), w.State, NewHasher(), FirstAdmin{Username: name, Password: "secret of " + name}); err != nil {
			t.Fatal(err)
		}
	}
	proof, err := w.login(t, "first", "secret of first")
	if err != nil || !proof.identity.Admin() || !proof.identity.IsDefaultAdmin {
		t.Errorf("the first admin is %v, %v", proof.identity, err)
	}
	if _, ok := model.Authenticators.Find(w.State.Snapshot(), "username", "other"); ok {
		t.Error("there is a second admin")
	}
	for _, bad := range []FirstAdmin{
		{"abc", "long enough"}, {strings.Repeat("x", 101), "long enough"}, {"admin", "abcd"}, {"admin", strings.Repeat("x", 101)},
	} {
		if err := CreateAdmin(t.Context(), w.State, NewHasher(), bad); !fault.Is(err, fault.CodeInvalid) {
			t.Errorf("%v: %v", bad, err)
		}
	}
}

// TestSlowLogin checks that a login that waited for its turn is judged by how
// things are then.
func TestSlowLogin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		visitor := w.add(t, "visitor")
		w.vouched(t, visitor)
		free := takeTurns(w.passwords.hasher)
		result := make(chan error)
		go func() {
			_, err := w.login(t, "visitor", adminPassword)
			result <- err
		}()
		synctest.Wait()
		update(t, w.State, func(tx *state.Tx) error {
			return model.Identities.Edit(tx, visitor.ID, func(i *model.Identity) error {
				now := time.Now()
				i.DisabledAt = &now
				return nil
			})
		})
		free()
		if err := <-result; !fault.Is(err, fault.CodeAuth) {
			t.Errorf("an identity that was disabled meanwhile: %v", err)
		}
	})
}

// TestHashQueue has more passwords wait than may: the others are told at once.
func TestHashQueue(t *testing.T) {
	h := NewHasher()
	takeTurns(h)
	ctx, cancel := context.WithCancel(t.Context())
	refused := make(chan error)
	for range maxQueue + 5 {
		go func() {
			_, err := h.Verify(ctx, Claim{}, "", "x")
			refused <- err
		}()
	}
	for range 5 {
		if err := <-refused; !fault.Is(err, fault.CodeUnavailable) {
			t.Errorf("one too many gets %v", err)
		}
	}
	cancel()
	for range maxQueue {
		if err := <-refused; !errors.Is(err, context.Canceled) {
			t.Errorf("one that waits gets %v", err)
		}
	}
}
