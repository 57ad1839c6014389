package storetest

import (
	"context"
	"errors"
	"maps"
	"slices"
	"testing"
	"time"

	"netkeep.internal/internal/data/store"
)

// Claims tests claims of a store that has none.
func Claims(t *testing.T, claims store.Claims) {
	first, second := newLease(t, claims), newLease(t, claims)
	ctx := t.Context()
	mine, err := first.Claim(ctx, "id/a", []byte("first"), 0)
	if err != nil {
		t.Fatal(err)
	}
	other, err := second.Claim(ctx, "id/a", []byte("second"), 0)
	if !errors.Is(err, store.ErrHeld) || string(other.Value) != "first" || other.Rev != mine.Rev {
		t.Errorf("a second claim got %v and %+v, want ErrHeld and %+v", err, other, mine)
	}
	if _, err := first.Claim(ctx, "id/a", []byte("again"), 0); err != nil {
		t.Errorf("who has a claim cannot change it: %v", err)
	}
	if _, err := second.Claim(ctx, "id/a", []byte("second"), mine.Rev); !errors.Is(err, store.ErrHeld) {
		t.Errorf("a claim was taken over that has changed since: %v", err)
	}
	seen := followClaims(t, claims, "id/")
	seen.want(t, map[string]string{"id/a": "again"})
	if err := second.Note(ctx, store.Claim{Name: "at/x", Value: []byte("1")}, store.Claim{Name: "id/b", Value: []byte("2")}); err != nil {
		t.Fatal(err)
	}
	seen.want(t, map[string]string{"id/a": "again", "id/b": "2"})
	if err := second.Note(ctx, store.Claim{Name: "id/b"}); err != nil {
		t.Fatal(err)
	}
	seen.want(t, map[string]string{"id/a": "again"})
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	seen.want(t, map[string]string{})
	select {
	case <-first.Lost():
	default:
		t.Error("a lease that was closed does not say that it is over")
	}
	if _, err := first.Claim(ctx, "id/a", nil, 0); !errors.Is(err, store.ErrLost) {
		t.Errorf("a lease that is over claims: %v", err)
	}
	if err := first.Note(ctx, store.Claim{Name: "id/c", Value: []byte("3")}); !errors.Is(err, store.ErrLost) {
		t.Errorf("a lease that is over notes: %v", err)
	}
	taken, err := second.Claim(ctx, "id/a", []byte("second"), 0)
	if err != nil || taken.Rev <= mine.Rev {
		t.Errorf("what was free was not claimed: %v, %+v", err, taken)
	}
	third := newLease(t, claims)
	if _, err := third.Claim(ctx, "id/a", []byte("third"), taken.Rev); err != nil {
		t.Errorf("a claim of somebody who is known to be gone was not taken over: %v", err)
	}
	if err := second.Close(); err != nil {
		t.Fatal(err)
	}
	seen.want(t, map[string]string{"id/a": "third"})
}

func newLease(t *testing.T, claims store.Claims) store.Lease {
	t.Helper()
	l, err := claims.Lease(t.Context(), time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l
}

// view is what somebody sees of claims.
type view chan map[string]string

func followClaims(t *testing.T, claims store.Claims, prefix string) view {
	v := make(view, 100)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	t.Cleanup(func() { cancel(); <-ended })
	go func() {
		defer close(ended)
		now := map[string]string{}
		_ = claims.FollowClaims(ctx, prefix, func(some []store.Claim, whole bool) error {
			if whole {
				clear(now)
			}
			for _, c := range some {
				if c.Value == nil {
					delete(now, c.Name)
				} else {
					now[c.Name] = string(c.Value)
				}
			}
			v <- maps.Clone(now)
			return nil
		})
	}()
	return v
}

// want waits until exactly these claims are seen.
func (v view) want(t *testing.T, want map[string]string) {
	t.Helper()
	late := time.After(30 * time.Second)
	var last map[string]string
	for {
		select {
		case last = <-v:
			if maps.Equal(last, want) {
				return
			}
		case <-late:
			t.Fatalf("claims %v are seen, want %v", slices.Sorted(maps.Keys(last)), want)
		}
	}
}
