package authn

import (
	"sync"
	"time"

	"netkeep.internal/internal/model"
	"netkeep.internal/internal/ops/limit"
)

// lockouts counts wrong passwords of identities since the last right one, and
// shuts out the password of those whose policy says so: from where it was wrong
// too often, and if it was from many places, from everywhere that is not
// familiar. Sessions go on, and so do other ways to authenticate: whoever knows
// a name must not be able to take more from its owner than that. It is kept in
// memory: a restart forgives.
type lockouts struct {
	mu sync.Mutex
	by map[place]*tally
}

// place is an identity and where its password comes from; everywhere if that is
// nowhere.
type place struct {
	identity string
	from     limit.Party
}

// tally is the wrong passwords of a place.
type tally struct {
	count  int
	locked bool
	until  time.Time // zero for no end
}

const (
	// everywhere is how many times as many wrong passwords shut an identity's
	// out from everywhere.
	everywhere = 10
	// maxPlaces bounds the memory for places. When there are more, some start
	// afresh.
	maxPlaces = 1 << 16
)

// rule is how many wrong passwords are too many, and what follows.
type rule struct {
	most  int // any number if it is not positive
	lasts time.Duration
}

// defaultAdminLock is how long the default admin is shut out where the policy
// says that there is no end to it. There may be nobody else to end it.
const defaultAdminLock = 15 * time.Minute

// ruleFor is what the policy of an identity says.
func ruleFor(i *model.Identity, rules model.AuthUPDB) rule {
	r := rule{most: rules.MaxAttempts, lasts: model.Minutes(rules.LockoutDurationMinutes)}
	if i.IsDefaultAdmin && r.lasts == 0 {
		r.lasts = defaultAdminLock
	}
	return r
}

// judge decides on an attempt, and reports whether it is the one that shuts
// others out. A right password is no good once there were too many wrong ones:
// those sent at the same time are judged like those sent one after the other.
func (l *lockouts) judge(at place, familiar bool, r rule, right bool, now time.Time) (good, locks bool) {
	if r.most <= 0 {
		return right, false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	all := place{identity: at.identity}
	l.expire(at, now)
	l.expire(all, now)
	if right && !l.locked(at) && (familiar || !l.locked(all)) {
		delete(l.by, at)
		if !l.locked(all) {
			delete(l.by, all)
		}
		return true, false
	}
	locks = l.strike(at, 1, r, now)
	if !familiar && l.strike(all, everywhere, r, now) {
		locks = true
	}
	return false, locks
}

// strike counts a wrong password, and reports whether it is one too many: a
// place may have so many times what the rule says.
func (l *lockouts) strike(at place, times int, r rule, now time.Time) bool {
	t := l.by[at]
	if t == nil {
		t = new(tally)
		l.add(at, t)
	}
	if t.locked {
		return false
	}
	t.count++
	t.locked = t.count/times >= r.most
	if t.locked && r.lasts > 0 {
		t.until = now.Add(r.lasts)
	}
	return t.locked
}

func (l *lockouts) locked(at place) bool { return l.by[at] != nil && l.by[at].locked }

// expire forgets a lockout that is over.
func (l *lockouts) expire(at place, now time.Time) {
	if t := l.by[at]; t != nil && t.locked && !t.until.IsZero() && !now.Before(t.until) {
		delete(l.by, at)
	}
}

func (l *lockouts) add(at place, t *tally) {
	if l.by == nil {
		l.by = map[place]*tally{}
	}
	if len(l.by) >= maxPlaces {
		l.makeRoom()
	}
	l.by[at] = t
}

// makeRoom forgets places, those that are shut out last.
func (l *lockouts) makeRoom() {
	for _, locked := range []bool{false, true} {
		for at, t := range l.by {
			if t.locked == locked && len(l.by) > maxPlaces/2 {
				delete(l.by, at)
			}
		}
	}
}

// Locked reports whether the password of an identity is shut out from anywhere.
func (p *Passwords) Locked(identityID string) bool { return p.lockouts.any(identityID, p.now()) }

func (l *lockouts) any(identityID string, now time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for at := range l.by {
		if at.identity != identityID {
			continue
		}
		if l.expire(at, now); l.locked(at) {
			return true
		}
	}
	return false
}

// Forgive forgets the wrong passwords of an identity.
func (p *Passwords) Forgive(identityID string) { p.lockouts.forgive(identityID) }

func (l *lockouts) forgive(identityID string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for at := range l.by {
		if at.identity == identityID {
			delete(l.by, at)
		}
	}
}

// judge decides on an attempt at the password of an identity.
func (p *Passwords) judge(who Proof, try attempt, right bool) bool {
	at := place{who.identity.ID, try.from}
	good, locks := p.lockouts.judge(at, p.guard.familiar.has(try), ruleFor(who.identity, who.policy.Primary.UPDB), right, p.now())
	if locks {
		p.sessions.Log.Warn("a password was wrong too often and does not work for now; enable the identity to have it work",
			"identity", who.identity.ID, "from", try.from.String())
		if p.LockedOut != nil {
			p.LockedOut(who.identity, try.from.String())
		}
	}
	return good
}
