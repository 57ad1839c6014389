package authn

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"

	"netkeep/internal/fault"
	"netkeep/internal/model"
)

func TestHash(t *testing.T) {
	h := NewHasher()
	for _, password := range []string{"secret", "", strings.Repeat("é", 100), "nul\x00byte"} {
		hash, err := h.Hash(t.Context(), password)
		if err != nil {
			t.Fatal(err)
		}
		if password != "" && strings.Contains(hash, password) {
			t.Errorf("the hash %s holds the password", hash)
		}
		for tried, want := range map[string]bool{password: true, password + "x": false, "other": false} {
			if got, err := h.Verify(t.Context(), hash, tried); got != want || err != nil {
				t.Errorf("%q against the hash of %q: %v, %v", tried, password, got, err)
			}
		}
		again, err := h.Hash(t.Context(), password)
		if err != nil || again == hash {
			t.Errorf("two hashes of %q are the same, or %v", password, err)
		}
	}
}

// TestVerifyNobody checks that what stands for nobody matches nothing.
func TestVerifyNobody(t *testing.T) {
	h := NewHasher()
	for _, password := range []string{"", "secret", h.dummy} {
		if ok, err := h.Verify(t.Context(), "", password); ok || err != nil {
			t.Errorf("%q: %v, %v", password, ok, err)
		}
	}
}

func TestVerifyMalformed(t *testing.T) {
	h := NewHasher()
	good, err := h.Hash(t.Context(), "secret")
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
		"secret", "$", good + "$", with(1, "argon2i"), with(2, "v=1"), with(3, "m=,t=,p="), with(3, "m=8,t=0,p=1"),
		with(3, "m=8,t=1,p=0"), with(4, "!"), with(5, "!"), with(5, "AAAA"),
	} {
		if ok, err := h.Verify(t.Context(), bad, "secret"); ok || !errors.Is(err, errHash) {
			t.Errorf("%q: %v, %v", bad, ok, err)
		}
	}
}

// TestHasherWaitsItsTurn checks that a caller who leaves is let go.
func TestHasherWaitsItsTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := NewHasher()
		for range cap(h.turns) {
			h.turns <- struct{}{}
		}
		ctx, cancel := context.WithCancel(t.Context())
		result := make(chan error)
		go func() {
			_, err := h.Hash(ctx, "secret")
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

func TestFirstAdmin(t *testing.T) {
	w := newWorld(t)
	// A second one changes nothing.
	if err := CreateAdmin(t.Context(), w.State, NewHasher(), FirstAdmin{Username: "other", Password: "another"}); err != nil {
		t.Fatal(err)
	}
	snap := w.State.Snapshot()
	if _, ok := model.Authenticators.Find(snap, "username", "other"); ok {
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
