package authn

import (
	"context"
	"sync"
	"time"

	"netkeep/internal/data/state"
	"netkeep/internal/lang/fault"
	"netkeep/internal/model"
)

// failures counts wrong passwords since the last right one. It is kept in
// memory: a restart forgives.
type failures struct {
	mu    sync.Mutex
	tally map[string]int // by authenticator
}

// add counts one more failure and returns how many there are.
func (f *failures) add(id string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.tally == nil {
		f.tally = map[string]int{}
	}
	f.tally[id]++
	return f.tally[id]
}

// forgive forgets the failures of somebody who now gave the right password,
// unless there are already too many.
func (f *failures) forgive(id string, most int) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.tally[id] >= most {
		return false
	}
	delete(f.tally, id)
	return true
}

func (f *failures) reset(id string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.tally, id)
}

// lockTime is how long writing down a lockout may take.
const lockTime = 10 * time.Second

// judge decides on an attempt, and locks the identity out when its policy says
// so. A right password is no good once there were too many wrong ones: those
// sent at the same time are judged like those sent one after the other.
func (p *Passwords) judge(ctx context.Context, by state.Author, a *model.Authenticator, rules model.AuthUPDB, right bool) (good bool, err error) {
	if rules.MaxAttempts <= 0 {
		return right, nil
	}
	if right && p.failures.forgive(a.ID, rules.MaxAttempts) {
		return true, nil
	}
	if p.failures.add(a.ID) < rules.MaxAttempts {
		return false, nil
	}
	// Somebody who hangs up is locked out all the same.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lockTime)
	defer cancel()
	by = state.Program("lockout").On(by)
	if err := p.lock(ctx, by, a.IdentityID, rules); err != nil && !fault.Is(err, fault.CodeNotFound) {
		return false, err
	}
	// Not before the lock is there to be seen: until then the tally refuses.
	p.failures.reset(a.ID)
	return false, p.sessions.EndAll(ctx, by, "identityId", a.IdentityID)
}

// lock disables an identity for as long as its policy says. One that is
// disabled stays so as long as it was to.
func (p *Passwords) lock(ctx context.Context, by state.Author, identityID string, rules model.AuthUPDB) error {
	return p.sessions.State.Update(ctx, by, func(tx *state.Tx) error {
		return model.Identities.Edit(tx, identityID, func(i *model.Identity) error {
			now := tx.Now()
			if i.Disabled(now) {
				return nil
			}
			i.Disable(now, rules.LockoutDurationMinutes)
			return nil
		})
	})
}
