package posture

import (
	"strings"
	"time"

	"netkeep.internal/internal/model"
)

// grace is how long after a wake or an unlock a check still passes without a
// new code.
const grace = 5 * 60

// secondFactor is what a check on a second factor found.
type secondFactor struct {
	passed   bool // a code was shown, whenever that was
	timedOut bool
	onWake   bool // no wake asks in vain for a new code
	onUnlock bool
	left     int // seconds for which it still passes; model.NoTimeout for ever
}

// passing reports whether the check passes.
func (s secondFactor) passing() bool { return s.passed && !s.timedOut && s.onWake && s.onUnlock }

// secondFactor judges a check on a second factor.
func (e *Evaluator) secondFactor(c *model.PostureCheck) secondFactor {
	if e.session.MFAPassedAt == nil {
		return secondFactor{}
	}
	s := secondFactor{passed: true, onWake: true, onUnlock: true, left: model.NoTimeout}
	passed := *e.session.MFAPassedAt
	if c.TimeoutSeconds > 0 {
		s.timedOut = !s.limit(remaining(passed, c.TimeoutSeconds, e.now))
	}
	if since := e.facts.woken.since(passed); c.PromptOnWake && !since.IsZero() {
		s.onWake = s.limit(remaining(since, grace, e.now))
	}
	if since := e.facts.unlocked.since(passed); c.PromptOnUnlock && !since.IsZero() {
		s.onUnlock = s.limit(remaining(since, grace, e.now))
	}
	return s
}

// limit lowers what is left, and reports whether that is anything.
func (s *secondFactor) limit(left int) bool {
	if s.left == model.NoTimeout || left < s.left {
		s.left = left
	}
	return left > 0
}

// remaining returns how much is left of some seconds since a moment. It rounds
// up, so that 0 means that they are over.
func remaining(since time.Time, seconds int, now time.Time) int {
	return max(0, seconds-int(max(0, now.Sub(since))/time.Second))
}

// factorResult is what came of a check on a second factor. Clients that are too old to know about
// timeouts are not told how much is left, if the check wants that.
func (e *Evaluator) factorResult(c *model.PostureCheck, s secondFactor) Result {
	r := Result{Passing: s.passing(), Timeout: model.NoTimeout, TimeoutRemaining: s.left}
	if c.TimeoutSeconds > 0 {
		r.Timeout = c.TimeoutSeconds
	}
	if c.IgnoreLegacyEndpoints && !knowsTimeouts(e.session.SDK) {
		r.TimeoutRemaining = model.NoTimeout
	}
	return r
}

// firstTimeouts is the version of the C library that began to ask for codes in
// time.
var firstTimeouts = parseVersion("0.25.0")

// knowsTimeouts reports whether a client is known to ask for codes in time.
func knowsTimeouts(sdk model.SDKInfo) bool {
	v := parseVersion(sdk.Version)
	return strings.HasSuffix(sdk.Type, "sdk-c") && v != nil && !v.LessThan(firstTimeouts)
}
