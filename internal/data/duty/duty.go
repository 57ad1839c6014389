// Package duty divides work among the controllers that share a store: what one of
// them has to do, and not each. Who has a duty claims it for as long as it is
// there; when it is gone another takes over. It must not import state.
package duty

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"time"

	"netkeep.internal/internal/data/store"
)

const (
	// leaseLife is how long a duty stays with a controller that nobody hears of. It
	// is longer than the store is without a leader, as a rule.
	leaseLife = 5 * time.Second
	// againAfter is how long to wait before the store is asked again.
	againAfter = 200 * time.Millisecond
	// prefix is what the names of claims of duties begin with.
	prefix = "duty/"
)

// Duties are those of one controller.
type Duties struct {
	claims store.Claims
	who    string
	names  []string
	log    *slog.Logger

	mu      sync.Mutex
	lease   store.Lease // nil for none
	mine    map[string]bool
	changed chan struct{} // closed at the next change
	working sync.WaitGroup
}

// New returns the duties of a controller that others may have too. It has none
// before Run.
func New(claims store.Claims, who string, log *slog.Logger, names ...string) *Duties {
	return &Duties{claims: claims, who: who, names: names, log: log, mine: map[string]bool{}, changed: make(chan struct{})}
}

// Mine reports whether a duty is this controller's, and nobody else's.
func (d *Duties) Mine(name string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.lease == nil || !d.mine[name] {
		return false
	}
	select {
	case <-d.lease.Lost():
		return false
	default:
		return true
	}
}

// Do has work run whenever a duty is this controller's, until ctx ends. The context
// of the work ends when it is not any more.
func (d *Duties) Do(ctx context.Context, name string, work func(context.Context)) {
	for ctx.Err() == nil {
		d.mu.Lock()
		lease, has, changed := d.lease, d.mine[name], d.changed
		if has = has && lease != nil; has {
			d.working.Add(1)
		}
		d.mu.Unlock()
		if has {
			d.while(ctx, lease, work)
		}
		select {
		case <-changed:
		case <-ctx.Done():
		}
	}
}

// while runs work until the lease is over.
func (d *Duties) while(ctx context.Context, lease store.Lease, work func(context.Context)) {
	defer d.working.Done()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		select {
		case <-lease.Lost():
			cancel()
		case <-ctx.Done():
		}
	}()
	work(ctx)
}

// Run takes duties up that nobody has, until ctx ends. Then it gives them back, once
// the work has ended.
func (d *Duties) Run(ctx context.Context) {
	for ctx.Err() == nil {
		lease, err := d.claims.Lease(ctx, leaseLife)
		if err == nil {
			d.set(func() { d.lease = lease })
			d.hold(ctx, lease)
			d.set(func() { d.lease, d.mine = nil, map[string]bool{} })
			d.working.Wait()
			err = lease.Close()
		}
		if err != nil && ctx.Err() == nil {
			d.log.Debug("duties cannot be claimed; trying again", "error", err)
		}
		pause(ctx)
	}
}

func pause(ctx context.Context) {
	select {
	case <-time.After(againAfter):
	case <-ctx.Done():
	}
}

// set changes what the duties are and tells those who wait.
func (d *Duties) set(change func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	change()
	close(d.changed)
	d.changed = make(chan struct{})
}

// hold claims what is free until the lease is over.
func (d *Duties) hold(ctx context.Context, lease store.Lease) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		select {
		case <-lease.Lost():
			cancel()
		case <-ctx.Done():
		}
	}()
	for ctx.Err() == nil {
		taken := map[string]bool{}
		_ = d.claims.FollowClaims(ctx, prefix, func(claims []store.Claim, whole bool) error {
			if whole {
				clear(taken)
			}
			for _, c := range claims {
				taken[strings.TrimPrefix(c.Name, prefix)] = c.Value != nil
			}
			return d.take(ctx, lease, taken)
		})
		pause(ctx)
	}
}

// take claims the duties that nobody has. What fails is tried again from the
// beginning.
func (d *Duties) take(ctx context.Context, lease store.Lease, taken map[string]bool) error {
	for _, name := range d.names {
		d.mu.Lock()
		mine := d.mine[name]
		d.mu.Unlock()
		if mine || taken[name] {
			continue
		}
		_, err := lease.Claim(ctx, prefix+name, []byte(d.who), 0)
		switch {
		case err == nil:
			d.log.Debug("this controller has a duty now", "duty", name)
			d.set(func() { d.mine[name] = true })
		case !errors.Is(err, store.ErrHeld):
			return err
		}
	}
	return nil
}
