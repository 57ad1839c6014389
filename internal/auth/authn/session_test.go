package authn

import (
	"context"
	"log/slog"
	"regexp"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"netkeep.internal/internal/data/state"
	"netkeep.internal/internal/data/store"
	"netkeep.internal/internal/data/store/storetest"
	"netkeep.internal/internal/lang/fault"
	"netkeep.internal/internal/lang/kind"
	"netkeep.internal/internal/model"
)

// world is a network with an identity and what authenticates on it.
type world struct {
	*APISessions
	passwords *Passwords
	proof     Proof // of the first identity
}

// The first identity of every world.
const (
	adminName     = "admin"
	adminPassword = "secret"
)

func newWorld(t testing.TB) *world {
	t.Helper()
	w := newController(t, storetest.NewMemory())
	update(t, w.State, func(tx *state.Tx) error { return model.Seed(tx) })
	w.proof = w.vouched(t, w.add(t, adminName))
	return w
}

// newController opens what is in a store.
func newController(t testing.TB, memory store.Store) *world {
	t.Helper()
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
	s := &APISessions{State: st, Keys: func() [][]byte { return [][]byte{[]byte("a key for tests")} }, Timeout: 30 * time.Minute, Now: time.Now, Log: slog.New(slog.DiscardHandler)}
	return &world{APISessions: s, passwords: NewPasswords(NewHasher(), s, time.Now, 0)}
}

func update(t testing.TB, st *state.State, fn func(tx *state.Tx) error) {
	t.Helper()
	if err := st.Update(t.Context(), state.Program("test"), fn); err != nil {
		t.Fatal(err)
	}
}

func remove(t testing.TB, st *state.State, d *kind.Def, id string) {
	t.Helper()
	if err := st.Delete(t.Context(), state.Program("test"), d, id); err != nil {
		t.Fatal(err)
	}
}

// add creates an identity that has yet to get credentials.
func (w *world) add(t testing.TB, name string) *model.Identity {
	t.Helper()
	var i *model.Identity
	update(t, w.State, func(tx *state.Tx) error {
		i = model.Identities.New()
		i.Name, i.Type, i.ExternalID = name, "User", "external-"+name
		return model.Identities.Create(tx, i)
	})
	return i
}

// passwordHash is the hash of the password that everybody has: hashing takes
// its time.
var passwordHash = sync.OnceValues(func() (string, error) { return NewHasher().Hash(context.Background(), Claim{}, adminPassword) })

// vouched gives an identity the password and returns the proof of it.
func (w *world) vouched(t testing.TB, i *model.Identity) Proof {
	t.Helper()
	hash, err := passwordHash()
	if err != nil {
		t.Fatal(err)
	}
	a := model.NewPassword(i.ID, i.Name, hash)
	update(t, w.State, func(tx *state.Tx) error {
		fresh := model.Authenticators.Clone(a).(*model.Authenticator)
		err := model.Authenticators.Create(tx, fresh)
		a.ID = fresh.ID
		return err
	})
	proof, err := prove(w.State.Snapshot(), i.ID, a.ID, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	return proof
}

func (w *world) login(t testing.TB, username, password string) (Proof, error) {
	t.Helper()
	return w.passwords.Check(t.Context(), state.Nobody, w.State.Snapshot(), Login{Username: username, Password: password})
}

func (w *world) open(t testing.TB) *Caller {
	t.Helper()
	who, err := w.Open(t.Context(), state.Author{Kind: state.Nobody.Kind, Source: "192.0.2.1"}, w.proof, Request{})
	if err != nil {
		t.Fatal(err)
	}
	return who
}

// works uses a session and reports whether it is alive.
func (w *world) works(t testing.TB, token string) bool {
	t.Helper()
	_, err := w.Verify(t.Context(), w.State.Snapshot(), Credentials{Token: token})
	if err != nil && !fault.Is(err, fault.CodeUnauthorized) {
		t.Errorf("a dead session fails with %v", err)
	}
	return err == nil
}

// stored reports whether the record of a session exists.
func (w *world) stored(who *Caller) bool {
	_, ok := model.APISessions.Get(w.State.Snapshot(), who.Session().ID)
	return ok
}

// written is when a session was last used by what the store says.
func (w *world) written(t testing.TB, who *Caller) time.Time {
	t.Helper()
	session, ok := model.APISessions.Get(w.State.Snapshot(), who.Session().ID)
	if !ok {
		t.Fatal("the session is gone")
	}
	return session.LastActivityAt.Time()
}

// run starts a job and returns what stops it.
func run(job func(ctx context.Context)) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		job(ctx)
	}()
	return func() {
		cancel()
		<-done
	}
}

func TestSessionExpires(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		token := w.open(t).Token()
		for i := range 5 { // use keeps it alive, for longer than the timeout
			time.Sleep(w.Timeout - time.Second)
			if !w.works(t, token) {
				t.Fatalf("use %d came in time and found the session dead", i)
			}
		}
		time.Sleep(w.Timeout + time.Millisecond)
		if w.works(t, token) {
			t.Error("a session that was idle for too long is alive")
		}
		if w.works(t, token) {
			t.Error("asking for a dead session revived it")
		}
	})
}

func TestSessionTellsItsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		who := w.open(t)
		time.Sleep(7 * time.Minute)
		again, err := w.Verify(t.Context(), w.State.Snapshot(), Credentials{Token: who.Token()})
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
		stop := run(func(ctx context.Context) { w.Sweep(ctx, 5*time.Second) })
		idle, busy := w.open(t), w.open(t)
		for range 4 {
			time.Sleep(w.Timeout / 3)
			if !w.works(t, busy.Token()) {
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
		stop()
	})
}

// TestSweepForgets checks that nothing is kept of sessions that are gone, not
// even of those that ended elsewhere.
func TestSweepForgets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		here, elsewhere, left := w.open(t), w.open(t), w.open(t)
		if err := w.End(t.Context(), state.Program("test"), here.Session().ID); err != nil {
			t.Fatal(err)
		}
		remove(t, w.State, model.APISessions.Def, elsewhere.Session().ID)
		w.touch(here.Session().ID, time.Now()) // a request that was under way
		if err := w.sweep(t.Context()); err != nil {
			t.Fatal(err)
		}
		var kept []string
		w.active.Range(func(id, _ any) bool { kept = append(kept, id.(string)); return true })
		if len(kept) != 1 || kept[0] != left.Session().ID {
			t.Errorf("the activity of %v is kept, want that of %s alone", kept, left.Session().ID)
		}
	})
}

func TestEnforceRemovesSessionsOfNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		visitor := w.add(t, "visitor")
		who, err := w.Open(t.Context(), state.Nobody, w.vouched(t, visitor), Request{})
		if err != nil {
			t.Fatal(err)
		}
		go w.Enforce(t.Context())
		remove(t, w.State, model.Identities.Def, visitor.ID)
		if w.works(t, who.Token()) {
			t.Error("the session outlives its identity")
		}
		synctest.Wait()
		if w.stored(who) {
			t.Error("the session of a deleted identity is still stored")
		}
	})
}

// TestSeveralControllers uses a session on one controller only: the other must
// neither end it nor think that it ended.
func TestSeveralControllers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		memory := storetest.NewMemory()
		here := newController(t, memory.Another())
		there := newController(t, memory)
		update(t, here.State, func(tx *state.Tx) error { return model.Seed(tx) })
		here.proof = here.vouched(t, here.add(t, "visitor"))
		who := here.open(t)
		stop := run(func(ctx context.Context) { here.Sweep(ctx, 5*time.Second) })
		stopFlush := run(func(ctx context.Context) { there.Flush(ctx, 90*time.Second) })
		for range 200 { // almost seven hours
			time.Sleep(2 * time.Minute)
			if !there.works(t, who.Token()) {
				t.Fatal("the session was ended by a controller that did not know of its use")
			}
		}
		synctest.Wait()
		if !here.works(t, who.Token()) {
			t.Error("the session is unknown to the controller that opened it")
		}
		stopFlush()
		// Used nowhere, it ends.
		time.Sleep(here.Timeout + unwritten + 5*time.Second)
		synctest.Wait()
		if here.stored(who) {
			t.Error("an idle session is still stored")
		}
		stop()
	})
}

func TestFlushAtIntervals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		who := w.open(t)
		stop := run(func(ctx context.Context) { w.Flush(ctx, 90*time.Second) })
		opened := w.written(t, who)
		time.Sleep(time.Minute)
		if !w.works(t, who.Token()) {
			t.Fatal("the session is dead")
		}
		used := time.Now()
		time.Sleep(29 * time.Second)
		synctest.Wait()
		if got := w.written(t, who); !got.Equal(opened) {
			t.Errorf("a use was written down at once: %s", got)
		}
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if got := w.written(t, who); got.Sub(used).Abs() > time.Millisecond {
			t.Errorf("the last use is stored as %s, want %s", got, used)
		}
		rev := w.State.Snapshot().Rev
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		if w.State.Snapshot().Rev != rev {
			t.Error("sessions that nobody used were written")
		}
		stop()
	})
}

// TestFlushGathers uses sessions in several intervals: each costs one write, and
// what is used for a moment after it began costs none.
func TestFlushGathers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		var all []*Caller
		for range 300 {
			all = append(all, w.open(t))
		}
		brief, used := all[0], all[1:]
		stop := run(func(ctx context.Context) { w.Flush(ctx, 90*time.Second) })
		time.Sleep(20 * time.Second)
		w.works(t, brief.Token())
		began := w.written(t, brief)
		for i := range 3 {
			steps := w.steps(t, func() {
				for range 10 {
					time.Sleep(9 * time.Second)
					for _, who := range used {
						w.works(t, who.Token())
					}
				}
				synctest.Wait()
			})
			if len(steps) != 1 || len(steps[0]) != len(used) {
				t.Fatalf("interval %d took %d writes", i, len(steps))
			}
		}
		if got := w.written(t, brief); !got.Equal(began) {
			t.Errorf("a use shortly after it began was written down as %s", got)
		}
		stop()
		if got := w.written(t, brief); !got.After(began) {
			t.Error("what was left unsaid is not written down at the end")
		}
	})
}

// TestFlushOnStop uses more sessions than one write takes and stops.
func TestFlushOnStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		var all []*Caller
		for range 2*flushBatch + 10 {
			all = append(all, w.open(t))
		}
		stop := run(func(ctx context.Context) { w.Flush(ctx, 90*time.Second) })
		time.Sleep(time.Minute)
		for _, who := range all {
			w.works(t, who.Token())
		}
		used := time.Now()
		stop()
		for _, who := range all {
			if got := w.written(t, who); got.Sub(used).Abs() > time.Millisecond {
				t.Fatalf("the last use is stored as %s, want %s", got, used)
			}
		}
	})
}

// TestFlushLeavesOutWhoIsGone deletes an identity whose session has yet to be
// swept: the activity of others is written down all the same.
func TestFlushLeavesOutWhoIsGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		who, visitor := w.open(t), w.add(t, "visitor")
		if _, err := w.Open(t.Context(), state.Nobody, w.vouched(t, visitor), Request{}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		w.works(t, who.Token())
		for session := range model.APISessions.All(w.State.Snapshot()) {
			w.touch(session.ID, time.Now())
		}
		remove(t, w.State, model.Identities.Def, visitor.ID)
		w.flush(t.Context(), 0)
		if got := w.written(t, who); time.Since(got) > time.Millisecond {
			t.Errorf("the last use is stored as %s, want %s", got, time.Now())
		}
	})
}

func TestEnd(t *testing.T) {
	w := newWorld(t)
	one, other := w.open(t), w.open(t)
	if err := w.End(t.Context(), state.Program("test"), one.Session().ID); err != nil {
		t.Fatal(err)
	}
	if w.works(t, one.Token()) || !w.works(t, other.Token()) {
		t.Error("ending one session did not end it alone")
	}
	if err := w.End(t.Context(), state.Program("test"), one.Session().ID); !fault.Is(err, fault.CodeNotFound) {
		t.Errorf("ending it again: %v", err)
	}
}

// TestOpenRefusesTheShutOut shuts an identity out between its credential and
// its session.
func TestOpenRefusesTheShutOut(t *testing.T) {
	for name, shut := range map[string]func(t *testing.T, w *world, i *model.Identity){
		"disabled": func(t *testing.T, w *world, i *model.Identity) {
			update(t, w.State, func(tx *state.Tx) error {
				return model.Identities.Edit(tx, i.ID, func(i *model.Identity) error {
					now := tx.Now()
					i.DisabledAt = &now
					return nil
				})
			})
		},
		"deleted": func(t *testing.T, w *world, i *model.Identity) { remove(t, w.State, model.Identities.Def, i.ID) },
		"without authenticator": func(t *testing.T, w *world, i *model.Identity) {
			a, _ := model.Authenticators.Find(w.State.Snapshot(), "identityId", i.ID)
			remove(t, w.State, model.Authenticators.Def, a.ID)
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			visitor := w.add(t, "visitor")
			proof := w.vouched(t, visitor)
			shut(t, w, visitor)
			for _, req := range []Request{{}, {SDKInfo: &model.SDKInfo{Type: "x"}}} {
				if _, err := w.Open(t.Context(), state.Nobody, proof, req); !fault.Is(err, fault.CodeAuth) {
					t.Errorf("error %v", err)
				}
			}
			if n := w.State.Snapshot().Len(model.APISessions.Def); n != 0 {
				t.Errorf("%d sessions are stored", n)
			}
		})
	}
	w := newWorld(t)
	if _, err := w.Open(t.Context(), state.Nobody, Proof{}, Request{}); !fault.Is(err, fault.CodeAuth) {
		t.Errorf("nobody's proof: %v", err)
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
	other := &APISessions{State: w.State, Keys: func() [][]byte { return [][]byte{[]byte("another key")} }, Timeout: w.Timeout, Now: time.Now, Log: w.Log}
	if token := other.Token(who.Session()); token == who.Token() || w.works(t, token) {
		t.Error("a token of another key works")
	}
	if w.works(t, who.Session().TokenHash) || w.works(t, who.Session().ID) {
		t.Error("what is stored of a session opens it")
	}
}
