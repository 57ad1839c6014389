package authn

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"netkeep.internal/internal/data/state"
	"netkeep.internal/internal/data/store"
	"netkeep.internal/internal/data/store/storetest"
	"netkeep.internal/internal/lang/kind"
	"netkeep.internal/internal/model"
)

// steps calls what with a world and returns what it wrote, commit by commit: the
// kinds of the records that changed.
func (w *world) steps(t testing.TB, what func()) (all [][]string) {
	t.Helper()
	sub := w.State.Subscribe()
	if _, err := sub.Next(t.Context()); err != nil { // where it begins
		t.Fatal(err)
	}
	what()
	end := w.State.Snapshot().Rev
	for last := store.Rev(0); last < end; {
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		ev, err := sub.Next(ctx)
		if cancel(); err != nil {
			t.Fatal(err)
		}
		var kinds []string
		for _, by := range ev.Writes {
			for _, c := range by.Changes {
				kinds = append(kinds, c.Def.Name)
			}
		}
		all, last = append(all, kinds), ev.Rev
	}
	return all
}

// TestOneWriteALogin has a login write once, whatever the client says of itself,
// and nothing of the identity. That it was seen is noted in the same write, the first of
// the day.
func TestOneWriteALogin(t *testing.T) {
	w := newWorld(t)
	id := w.proof.identity.ID
	env, sdk := &model.EnvInfo{OS: "linux"}, &model.SDKInfo{Type: "go", Version: "1"}
	before := w.State.Snapshot().RevOf(model.Identities.Def, id)
	for _, test := range []struct {
		says string
		env  *model.EnvInfo
		sdk  *model.SDKInfo
		want int // records that are written
	}{
		{"nothing, and is seen for the first time", nil, nil, 2},
		{"nothing", nil, nil, 1},
		{"something", env, sdk, 2},
		{"the same", env, sdk, 1},
		{"nothing again", nil, nil, 1},
		{"something else", nil, &model.SDKInfo{Type: "c"}, 2},
		{"that there is nothing to say", &model.EnvInfo{}, &model.SDKInfo{}, 2},
	} {
		steps := w.steps(t, func() {
			if _, err := w.Open(t.Context(), state.Nobody, w.proof, Request{EnvInfo: test.env, SDKInfo: test.sdk}); err != nil {
				t.Fatal(err)
			}
		})
		if len(steps) != 1 || len(steps[0]) != test.want {
			t.Errorf("who says %s writes %v", test.says, steps)
		}
		gotEnv, gotSDK := model.ClientInfoOf(w.State.Snapshot(), id)
		if test.env != nil && gotEnv != *test.env || test.sdk != nil && gotSDK != *test.sdk {
			t.Errorf("who says %s is remembered with %v, %v", test.says, gotEnv, gotSDK)
		}
	}
	if after := w.State.Snapshot().RevOf(model.Identities.Def, id); after != before {
		t.Errorf("logins wrote the identity, at %d", after)
	}
}

// TestInfoGoesWithIdentity takes what a client said along with its identity, in
// one commit, and leaves that of others.
func TestInfoGoesWithIdentity(t *testing.T) {
	w := newWorld(t)
	other := w.vouched(t, w.add(t, "other"))
	for _, p := range []Proof{w.proof, other} {
		if _, err := w.Open(t.Context(), state.Nobody, p, Request{SDKInfo: &model.SDKInfo{Type: "go"}}); err != nil {
			t.Fatal(err)
		}
	}
	id := w.proof.identity.ID
	steps := w.steps(t, func() { remove(t, w.State, model.Identities.Def, id) })
	if len(steps) != 1 {
		t.Errorf("deleting it writes %v", steps)
	}
	snap := w.State.Snapshot()
	if _, there := model.ClientInfos.Get(snap, id); there {
		t.Error("what its client said is still there")
	}
	if _, there := model.ClientInfos.Get(snap, other.identity.ID); !there {
		t.Error("what the other's client said is gone")
	}
}

// TestStrayInfo has another controller remember what a client said whose identity
// is being deleted here.
func TestStrayInfo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		memory := storetest.NewMemory()
		w := newController(t, memory)
		update(t, w.State, func(tx *state.Tx) error { return model.Seed(tx) })
		w.proof = w.vouched(t, w.add(t, adminName))
		put := func(id string) {
			t.Helper()
			info := &model.ClientInfo{Meta: kind.Meta{ID: id, CreatedAt: kind.MomentOf(time.Now()), UpdatedAt: kind.MomentOf(time.Now())}, IdentityID: id}
			value, err := w.State.Encode(model.ClientInfos.Def, info)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := memory.Put(t.Context(), store.Head{}, []store.Op{{Key: "client-info/" + id, Value: value}}); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
		}
		has := func(id string) bool {
			_, there := model.ClientInfos.Get(w.State.Snapshot(), id)
			return there
		}
		put("gone before")
		if !has("gone before") {
			t.Fatal("it is not followed")
		}
		defer run(func(ctx context.Context) { w.Enforce(ctx) })()
		synctest.Wait()
		put("gone since")
		put(w.proof.identity.ID)
		if has("gone before") || has("gone since") || !has(w.proof.identity.ID) {
			t.Errorf("of those without identities are left: %v, %v; with: %v", has("gone before"), has("gone since"), has(w.proof.identity.ID))
		}
	})
}
