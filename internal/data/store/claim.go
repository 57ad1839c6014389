package store

import (
	"context"
	"errors"
	"strings"
	"sync"
	"time"
)

// Claim is a value under a name that lies outside of the log and goes when who
// made it does.
type Claim struct {
	Name  string
	Value []byte // nil for one that is gone
	Rev   Rev    // when it was written, or went
}

// ErrHeld says that somebody else has a claim.
var ErrHeld = errors.New("store: claimed by another")

// ErrLost says that a lease is over, and what was claimed under it is gone.
var ErrLost = errors.New("store: the lease is over")

// Claims is what those who share a store say of themselves for as long as they
// are there.
type Claims interface {
	// Lease begins to be there. Who stops to renew it, by dying or by losing the
	// store, is gone for the others after so long.
	Lease(ctx context.Context, life time.Duration) (Lease, error)

	// FollowClaims calls fn with the claims whose names begin with prefix, all at
	// first and when that is the simplest, or else those that have changed,
	// until ctx ends or fn fails.
	FollowClaims(ctx context.Context, prefix string, fn func(claims []Claim, whole bool) error) error
}

// Lease is what claims hang on.
type Lease interface {
	// Claim writes a claim if there is none, if it is of this lease, or if it is
	// still of the revision over, which somebody had that is known to be gone.
	// If not, the error is ErrHeld, and what is in the way is returned.
	Claim(ctx context.Context, name string, value []byte, over Rev) (Claim, error)

	// Note writes claims of names that nobody else claims, and takes back those
	// without a value.
	Note(ctx context.Context, claims ...Claim) error

	// Lost is closed when it is over. That is before anybody else can claim.
	Lost() <-chan struct{}

	// Close ends it: the claims are gone at once.
	Close() error
}

// Alone is the Claims of a process that has a store to itself.
type Alone struct {
	mu      sync.Mutex
	rev     Rev
	claims  map[string]aloneClaim
	changed chan struct{} // closed at the next change
}

type aloneClaim struct {
	Claim
	by *aloneLease
}

// NewAlone returns claims of which there are none.
func NewAlone() *Alone {
	return &Alone{claims: map[string]aloneClaim{}, changed: make(chan struct{})}
}

// Lease never ends by itself: there is nobody who could claim.
func (a *Alone) Lease(context.Context, time.Duration) (Lease, error) {
	return &aloneLease{of: a, lost: make(chan struct{})}, nil
}

// FollowClaims is for [Claims]; it always has all of them.
func (a *Alone) FollowClaims(ctx context.Context, prefix string, fn func([]Claim, bool) error) error {
	for {
		a.mu.Lock()
		var all []Claim
		for name, c := range a.claims {
			if strings.HasPrefix(name, prefix) {
				all = append(all, c.Claim)
			}
		}
		changed := a.changed
		a.mu.Unlock()
		if err := fn(all, true); err != nil {
			return err
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// change runs f, which changes claims.
func (a *Alone) change(f func() error) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.rev++
	if err := f(); err != nil {
		return err
	}
	close(a.changed)
	a.changed = make(chan struct{})
	return nil
}

type aloneLease struct {
	of   *Alone
	lost chan struct{}
	over bool // under the lock of what it is of
}

func (l *aloneLease) Claim(_ context.Context, name string, value []byte, over Rev) (c Claim, err error) {
	err = l.of.change(func() error {
		if l.over {
			return ErrLost
		}
		if is, there := l.of.claims[name]; there && is.by != l && is.Rev != over {
			c = is.Claim
			return ErrHeld
		}
		c = Claim{name, value, l.of.rev}
		l.of.claims[name] = aloneClaim{c, l}
		return nil
	})
	return c, err
}

func (l *aloneLease) Note(_ context.Context, claims ...Claim) error {
	return l.of.change(func() error {
		if l.over {
			return ErrLost
		}
		for _, c := range claims {
			if c.Value == nil {
				delete(l.of.claims, c.Name)
				continue
			}
			l.of.claims[c.Name] = aloneClaim{Claim{c.Name, c.Value, l.of.rev}, l}
		}
		return nil
	})
}

func (l *aloneLease) Lost() <-chan struct{} { return l.lost }

func (l *aloneLease) Close() error {
	return l.of.change(func() error {
		if l.over {
			return nil
		}
		l.over = true
		close(l.lost)
		for name, c := range l.of.claims {
			if c.by == l {
				delete(l.of.claims, name)
			}
		}
		return nil
	})
}
