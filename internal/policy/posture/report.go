package posture

import (
	"maps"
	"sync"
	"time"

	"netkeep/internal/lang/kind"
)

// Reports is what the devices of identities have reported. It is safe for
// concurrent use, and its zero value is ready. Of each identity it keeps one
// report of a kind, one for each check on a program and each program that
// checks name, a few more that nobody asked for, and when each of its API sessions was woken and unlocked.
type Reports struct {
	facts  sync.Map // *Facts by identity, replaced and never changed
	ranges ranges
}

// Facts is what is known of the devices of one identity at one moment. It does
// not change any more.
type Facts struct {
	os     *osReport
	domain *domainReport
	mac    *macReport
	// processes are the reports for checks on one program, by check.
	processes map[string]*processReport
	// paths are the reports for programs that checks name, by path. Devices
	// report each once, for whichever of the checks that name it.
	paths map[string]*processReport
	// unasked are the latest reports on programs that no check looks at.
	unasked   []unaskedReport
	endpoints map[string]endpoint // by API session
}

// stamp is what every report has.
type stamp struct {
	checkID string
	at      time.Time
}

type osReport struct {
	stamp
	typ, version, build string
	release             release
}

type domainReport struct {
	stamp
	domain string
}

// macReport holds addresses as lower-case hexadecimal digits, sorted.
type macReport struct {
	stamp
	addresses []string
}

type processReport struct {
	stamp
	running bool
	hash    string
	signers []string
}

// unaskedReport is one that decides nothing.
type unaskedReport struct {
	path string
	*processReport
}

// endpoint is what happened to the device that uses an API session.
type endpoint struct{ woken, unlocked event }

// event is something after which checks may ask for a new code.
type event struct {
	last time.Time
	// first is the earliest that no code had answered when it was reported:
	// another one does not give more time for it.
	first time.Time
}

// again returns the event after it has happened once more. passed is when the
// last code was shown.
func (e event) again(passed, now time.Time) event {
	next := event{last: now, first: e.since(passed)}
	if next.first.IsZero() {
		next.first = now
	}
	if e.last.After(now) {
		next.last = e.last
	}
	return next
}

// since returns when the event first happened after a moment; zero if it did
// not.
func (e event) since(moment time.Time) time.Time {
	switch {
	case e.first.After(moment):
		return e.first
	case e.last.After(moment):
		return e.last
	}
	return time.Time{}
}

// Submit takes responses of the device that uses an API session of an
// identity. Those for checks that recs does not have, and those that Validate
// refuses, are left out.
func (r *Reports) Submit(recs kind.Reader, identityID, apiSessionID string, responses []Response, now time.Time) Outcome {
	for {
		old := r.load(identityID)
		d := draft{recs: recs, ranges: &r.ranges, apiSessionID: apiSessionID, now: now}
		if old != nil {
			d.next = *old
		}
		for i := range responses {
			d.take(&responses[i])
		}
		if !d.written || r.replace(identityID, old, &d.next) {
			return d.outcome
		}
	}
}

// load returns what is known of an identity; nil for nothing.
func (r *Reports) load(identityID string) *Facts {
	if f, ok := r.facts.Load(identityID); ok {
		return f.(*Facts)
	}
	return nil
}

// replace puts next in the place of old, which may be nil, unless something
// else is there by now.
func (r *Reports) replace(identityID string, old, next *Facts) bool {
	if old == nil {
		_, taken := r.facts.LoadOrStore(identityID, next)
		return !taken
	}
	return r.facts.CompareAndSwap(identityID, old, next)
}

// Of returns what is known of an identity, which may be nothing. It is never
// nil.
func (r *Reports) Of(identityID string) *Facts {
	if f := r.load(identityID); f != nil {
		return f
	}
	return &Facts{}
}

// Keep drops what is known of the identities, and of the API sessions of the
// others, that keep does not want. It asks for an identity as a whole with no
// API session. What is reported meanwhile may stay until the next time.
func (r *Reports) Keep(keep func(identityID, apiSessionID string) bool) {
	r.facts.Range(func(key, value any) bool {
		id, old := key.(string), value.(*Facts)
		if !keep(id, "") {
			r.facts.CompareAndDelete(id, old)
			return true
		}
		next := *old
		next.endpoints = maps.Clone(old.endpoints)
		maps.DeleteFunc(next.endpoints, func(session string, _ endpoint) bool { return !keep(id, session) })
		if len(next.endpoints) < len(old.endpoints) {
			r.facts.CompareAndSwap(id, old, &next)
		}
		return true
	})
}
