package authn

import (
	"context"
	"log/slog"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"netkeep/internal/fault"
	"netkeep/internal/model"
	"netkeep/internal/state"
	"netkeep/internal/store/storetest"
)

// world is a network with its first admin and the sessions on it.
type world struct {
	*Sessions
	proof Proof // of the admin
}

func newWorld(t *testing.T) world {
	t.Helper()
	memory := storetest.NewMemory()
	st, err := state.Open(t.Context(), memory, model.All, state.Options{Frozen: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		st.Close()
		if err := memory.Close(); err != nil {
			t.Error(err)
		}
	})
	if err := st.Update(t.Context(), "test", func(tx *state.Tx) error { return model.Seed(tx) }); err != nil {
		t.Fatal(err)
	}
	hasher := NewHasher()
	if err := CreateAdmin(t.Context(), st, hasher, FirstAdmin{Username: "admin", Password: "secret"}); err != nil {
		t.Fatal(err)
	}
	passwords := &Passwords{Hasher: hasher, Now: time.Now}
	proof, err := passwords.Check(t.Context(), st.Snapshot(), "admin", "secret")
	if err != nil {
		t.Fatal(err)
	}
	return world{&Sessions{
		State: st, Key: []byte("a key for tests"), Timeout: 30 * time.Minute, Now: time.Now, Log: slog.New(slog.DiscardHandler),
	}, proof}
}

func (w world) open(t *testing.T) *Caller {
	t.Helper()
	who, err := w.Open(t.Context(), w.proof, Request{IPAddress: "192.0.2.1"})
	if err != nil {
		t.Fatal(err)
	}
	return who
}

// alive uses a session and reports whether it works.
func (w world) alive(t *testing.T, token string) bool {
	t.Helper()
	_, err := w.Verify(w.State.Snapshot(), token)
	if err != nil && !fault.Is(err, fault.CodeUnauthorized) {
		t.Errorf("a dead session fails with %v", err)
	}
	return err == nil
}

// stored reports whether the record of a session exists.
func (w world) stored(who *Caller) bool {
	_, ok := model.APISessions.Get(w.State.Snapshot(), who.Session().ID)
	return ok
}

func TestSessionExpires(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		token := w.open(t).Token()
		for i := range 5 { // use keeps it alive, for longer than the timeout
			time.Sleep(w.Timeout - time.Second)
			if !w.alive(t, token) {
				t.Fatalf("use %d came in time and found the session dead", i)
			}
		}
		time.Sleep(w.Timeout + time.Millisecond)
		if w.alive(t, token) {
			t.Error("a session that was idle for too long is alive")
		}
		if w.alive(t, token) {
			t.Error("asking for a dead session revived it")
		}
	})
}

func TestSessionTellsItsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		who := w.open(t)
		time.Sleep(7 * time.Minute)
		again, err := w.Verify(w.State.Snapshot(), who.Token())
		if err != nil {
			t.Fatal(err)
		}
		if got := again.Expires().Sub(who.Expires()); got != 7*time.Minute {
			t.Errorf("the end moved by %s, want 7m", got)
		}
		if got := time.Until(again.Expires()); got != w.Timeout {
			t.Errorf("the end is in %s, want %s", got, w.Timeout)
		}
		if got := w.LastActivity(again.Session()); !got.Equal(time.Now().Truncate(time.Millisecond)) {
			t.Errorf("the last activity is %s, not now", got)
		}
	})
}

func TestSweepRemovesIdleSessions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() {
			defer close(done)
			w.Sweep(ctx, 5*time.Second)
		}()
		idle, busy := w.open(t), w.open(t)
		for range 4 {
			time.Sleep(w.Timeout / 3)
			if !w.alive(t, busy.Token()) {
				t.Fatal("a session in use is dead")
			}
		}
		synctest.Wait()
		if w.stored(idle) {
			t.Error("the idle session is still stored")
		}
		if !w.stored(busy) {
			t.Error("the session in use was removed")
		}
		cancel()
		<-done
	})
}

func TestSweepRemovesSessionsOfNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		var visitor string
		err := w.State.Update(t.Context(), "test", func(tx *state.Tx) error {
			i := &model.Identity{Name: "visitor", Type: "User", AuthPolicyID: model.DefaultAuthPolicy, DefaultHostingPrecedence: "default"}
			err := model.Identities.Create(tx, i)
			visitor = i.ID
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		who, err := w.Open(t.Context(), Proof{identity: visitor}, Request{})
		if err != nil {
			t.Fatal(err)
		}
		if err := w.State.Delete(t.Context(), "test", model.Identities.Def, visitor); err != nil {
			t.Fatal(err)
		}
		if w.alive(t, who.Token()) {
			t.Error("the session outlives its identity")
		}
		if err := w.sweep(t.Context()); err != nil {
			t.Fatal(err)
		}
		if w.stored(who) {
			t.Error("the session of a deleted identity is still stored")
		}
	})
}

func TestEnd(t *testing.T) {
	w := newWorld(t)
	one, other := w.open(t), w.open(t)
	if err := w.End(t.Context(), "test", one.Session().ID); err != nil {
		t.Fatal(err)
	}
	if w.alive(t, one.Token()) || !w.alive(t, other.Token()) {
		t.Error("ending one session did not end it alone")
	}
	if err := w.End(t.Context(), "test", one.Session().ID); !fault.Is(err, fault.CodeNotFound) {
		t.Errorf("ending it again: %v", err)
	}
}

func TestTokens(t *testing.T) {
	w := newWorld(t)
	who := w.open(t)
	if !regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`).MatchString(who.Token()) {
		t.Errorf("token %q has no UUID's shape", who.Token())
	}
	if w.open(t).Token() == who.Token() {
		t.Error("two sessions have one token")
	}
	stored, err := model.APISessions.Encode(who.Session())
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(stored), who.Token()) {
		t.Errorf("the token is stored: %s", stored)
	}
	// Without the key the store opens no session.
	other := &Sessions{State: w.State, Key: []byte("another key"), Timeout: w.Timeout, Now: time.Now, Log: w.Log}
	if token := other.Token(who.Session().ID); token == who.Token() || w.alive(t, token) {
		t.Error("a token of another key works")
	}
}
