package invite_test

import (
	"bytes"
	"errors"
	"sync"
	"testing"
	"time"

	"netkeep.internal/internal/data/invite"
	"netkeep.internal/internal/data/store/storetest"
)

var now = time.Date(2030, 5, 17, 12, 0, 0, 0, time.UTC)

func TestInvitation(t *testing.T) {
	ctx, st := t.Context(), storetest.NewMemory()
	inv, err := invite.Make(ctx, st, now)
	if err != nil {
		t.Fatal(err)
	}
	rec, _, err := st.Get(ctx, invite.Key)
	if err != nil || bytes.Contains(rec.Value, []byte(inv.Secret)) || !bytes.Contains(rec.Value, []byte(inv.ID)) {
		t.Errorf("the store holds %s, %v", rec.Value, err)
	}
	for name, try := range map[string]struct {
		id, secret string
		at         time.Time
		want       error
	}{
		"another id":      {"x", inv.Secret, now, invite.ErrUnknown},
		"another secret":  {inv.ID, inv.Secret[1:] + "0", now, invite.ErrUnknown},
		"no secret":       {inv.ID, "", now, invite.ErrUnknown},
		"when it is over": {inv.ID, inv.Secret, now.Add(invite.Life), invite.ErrExpired},
	} {
		if err := invite.Take(ctx, st, try.id, try.secret, try.at); !errors.Is(err, try.want) {
			t.Errorf("with %s: %v", name, err)
		}
	}
	// Of several at the same time one is first.
	var mu sync.Mutex
	var all sync.WaitGroup
	taken := 0
	for range 5 {
		all.Go(func() {
			err := invite.Take(ctx, st, inv.ID, inv.Secret, now)
			mu.Lock()
			defer mu.Unlock()
			if err == nil {
				taken++
			} else if !errors.Is(err, invite.ErrUsed) {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if taken != 1 {
		t.Errorf("%d have taken it", taken)
	}
	if err := invite.Return(ctx, st, inv.ID, now); err != nil {
		t.Error(err)
	}
	if err := invite.Take(ctx, st, inv.ID, inv.Secret, now); err != nil {
		t.Errorf("one that was given back: %v", err)
	}
}

func TestInvitationsAreBounded(t *testing.T) {
	ctx, st := t.Context(), storetest.NewMemory()
	for err := error(nil); err == nil; {
		if _, err = invite.Make(ctx, st, now); err != nil && !errors.Is(err, invite.ErrMany) {
			t.Fatal(err)
		}
	}
	if _, err := invite.Make(ctx, st, now.Add(48*time.Hour)); err != nil {
		t.Error(err)
	}
	if rec, _, _ := st.Get(ctx, invite.Key); len(rec.Value) > 500 {
		t.Errorf("those of before are still there: %d bytes", len(rec.Value))
	}
}
