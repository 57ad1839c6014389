package whereabouts_test

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"netkeep.internal/internal/data/store"
	"netkeep.internal/internal/fabric/whereabouts"
	"netkeep.internal/internal/lang/kind"
	"netkeep.internal/internal/model"
)

// site is a controller with routers.
type site struct {
	id   string
	book *whereabouts.Book

	mu      sync.Mutex
	routers map[string]*model.Presence
	lease   store.Lease
	writes  int
	notes   *whereabouts.Notes
}

// counted counts writes.
type counted struct {
	store.Lease
	at *site
}

func (c counted) Note(ctx context.Context, claims ...store.Claim) error {
	c.at.mu.Lock()
	c.at.writes++
	c.at.mu.Unlock()
	return c.Lease.Note(ctx, claims...)
}

func newSite(t *testing.T, claims store.Claims, id string) *site {
	s := &site{id: id, book: whereabouts.NewBook(claims, id), routers: map[string]*model.Presence{}}
	s.renew(t, claims)
	s.notes = whereabouts.NewNotes(whereabouts.Options{
		By: id, ID: id, Log: slog.New(slog.DiscardHandler),
		Lease: func() store.Lease { s.mu.Lock(); defer s.mu.Unlock(); return s.lease },
		Here: func(router string) (*model.Presence, bool) {
			s.mu.Lock()
			defer s.mu.Unlock()
			p, ok := s.routers[router]
			return p, ok
		},
		All: func() []string { s.mu.Lock(); defer s.mu.Unlock(); return slices.Collect(maps.Keys(s.routers)) },
	})
	go s.book.Follow(t.Context())
	go s.notes.Write(t.Context())
	return s
}

// renew gives it another lease.
func (s *site) renew(t *testing.T, claims store.Claims) {
	t.Helper()
	lease, err := claims.Lease(t.Context(), time.Second)
	if err != nil {
		t.Fatal(err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lease = counted{lease, s}
}

// come has a router connect, or say something else of itself.
func (s *site) come(router, host string) {
	now := kind.MomentOf(time.Now())
	s.mu.Lock()
	s.routers[router] = &model.Presence{Meta: kind.Meta{ID: router, CreatedAt: now, UpdatedAt: now}, Hostname: host, Online: true, ControllerID: s.id}
	s.mu.Unlock()
	s.notes.Changed(router)
}

func (s *site) leave(router string) {
	s.mu.Lock()
	delete(s.routers, router)
	s.mu.Unlock()
	s.notes.Changed(router)
}

func settle() {
	time.Sleep(3 * time.Second)
	synctest.Wait()
}

// TestBook has routers come and go at a controller: another knows, and a thousand
// that come at once are a few writes.
func TestBook(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		claims := store.NewAlone()
		a, b := newSite(t, claims, "a"), newSite(t, claims, "b")
		settle()
		const many = 1000
		for i := range many {
			a.come(fmt.Sprint("r", i), "host")
		}
		settle()
		if known := len(b.book.Routers()); known != many || len(a.book.Routers()) != 0 {
			t.Errorf("of %d routers %d are known elsewhere, and %d where they are by the book", many, known, len(a.book.Routers()))
		}
		a.mu.Lock()
		if a.writes > 5 {
			t.Errorf("%d routers took %d writes", many, a.writes)
		}
		a.mu.Unlock()
		a.leave("r0")
		a.come("r1", "another host")
		b.come("r1", "b's host")
		settle()
		if list := b.book.Of("r0"); len(list) != 0 {
			t.Errorf("a router that has left is known as %+v", list[0])
		}
		list := append(b.book.Of("r1"), a.book.Of("r1")...)
		if p, ok := whereabouts.Oldest(list); !ok || len(list) != 2 || p.ControllerID != "a" || p.Hostname != "another host" {
			t.Errorf("one at both is known as %+v", list)
		}

		// Its lease ends, and it gets another.
		a.mu.Lock()
		lease := a.lease
		a.mu.Unlock()
		if err := lease.Close(); err != nil {
			t.Fatal(err)
		}
		a.leave("r2")
		settle()
		if known := b.book.Routers(); len(known) != 0 {
			t.Errorf("%d routers are known of a controller that is gone", len(known))
		}
		a.renew(t, claims)
		settle()
		if known := len(b.book.Routers()); known != many-2 {
			t.Errorf("%d of %d routers are known after it is back", known, many-2)
		}
	})
}
