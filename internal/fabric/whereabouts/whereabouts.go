// Package whereabouts is which controllers routers are connected to. Each
// controller notes for the others who is at it, one claim for each router, which
// goes when the controller does. So a router that comes or goes is one small
// value, whatever else is there, and a thousand that come at once are a few
// writes of many. It must not import rest or api.
package whereabouts

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-json-experiment/json"

	"netkeep.internal/internal/data/store"
	"netkeep.internal/internal/model"
)

// prefix is what the names of claims begin with. Behind it are the controller that
// notes, the id that it answers under, which may be that of another in whose place
// it is, and the router.
const prefix = "at/"

// againAfter is how long to wait before the store is asked again.
const againAfter = 200 * time.Millisecond

// Book is what other controllers have noted.
type Book struct {
	claims store.Claims
	own    string // what the names of this controller's own notes begin with

	mu       sync.RWMutex
	byRouter map[string]map[string]*model.Presence // by the names of claims
}

// NewBook returns a book in which nothing is, for the controller with an id. What
// that notes itself it knows better.
func NewBook(claims store.Claims, id string) *Book {
	return &Book{claims: claims, own: prefix + id + "/", byRouter: map[string]map[string]*model.Presence{}}
}

// Follow reads what others note, until ctx ends.
func (b *Book) Follow(ctx context.Context) {
	for ctx.Err() == nil {
		_ = b.claims.FollowClaims(ctx, prefix, func(claims []store.Claim, whole bool) error {
			b.read(claims, whole)
			return nil
		})
		select {
		case <-time.After(againAfter):
		case <-ctx.Done():
		}
	}
}

func (b *Book) read(claims []store.Claim, whole bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if whole {
		clear(b.byRouter)
	}
	for _, c := range claims {
		router := c.Name[strings.LastIndexByte(c.Name, '/')+1:]
		if strings.HasPrefix(c.Name, b.own) {
			continue
		}
		var p model.Presence
		if c.Value == nil || json.Unmarshal(c.Value, &p) != nil || p.ID != router {
			if delete(b.byRouter[router], c.Name); len(b.byRouter[router]) == 0 {
				delete(b.byRouter, router)
			}
			continue
		}
		if b.byRouter[router] == nil {
			b.byRouter[router] = map[string]*model.Presence{}
		}
		b.byRouter[router][c.Name] = &p
	}
}

// Of are the presences of a router at other controllers.
func (b *Book) Of(routerID string) []*model.Presence {
	b.mu.RLock()
	defer b.mu.RUnlock()
	return slices.Collect(maps.Values(b.byRouter[routerID]))
}

// Routers are those that are at other controllers, in no order.
func (b *Book) Routers() []string {
	b.mu.RLock()
	defer b.mu.RUnlock()
	return slices.Collect(maps.Keys(b.byRouter))
}

// Oldest is the presence that is shown of a router at several controllers: all show
// the same.
func Oldest(all []*model.Presence) (*model.Presence, bool) {
	if len(all) == 0 {
		return nil, false
	}
	return slices.MinFunc(all, func(a, b *model.Presence) int {
		if c := a.CreatedAt.Compare(b.CreatedAt); c != 0 {
			return c
		}
		return strings.Compare(a.ControllerID, b.ControllerID)
	}), true
}
