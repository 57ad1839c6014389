package posture

import (
	"slices"
	"time"

	"netkeep.internal/internal/model"
)

// Result is what came of a check.
type Result struct {
	Passing bool
	// Timeout is for how many seconds one code is enough, TimeoutRemaining for
	// how many more the check passes; model.NoTimeout for ever.
	Timeout, TimeoutRemaining int
	// WouldRefuse says that the check passes only because it refuses nobody.
	WouldRefuse bool
}

// Evaluator judges checks on one device at one moment. It judges each once and
// remembers the result. It is for one goroutine.
type Evaluator struct {
	facts   *Facts
	session Session
	now     time.Time
	found   map[*model.PostureCheck]*finding
}

// finding is what is remembered of a check.
type finding struct {
	Result
	query   []byte       // nil until it is asked for
	failure CheckFailure // nil until it is asked for
}

// NewEvaluator judges by what is known of the device that uses an API session.
func NewEvaluator(f *Facts, s Session, now time.Time) *Evaluator {
	return &Evaluator{facts: f, session: s, now: now}
}

// Check judges a check, which must not change.
func (e *Evaluator) Check(c *model.PostureCheck) Result { return e.find(c).Result }

// Passing reports whether all of the checks pass, as a policy needs. No checks
// pass.
func (e *Evaluator) Passing(checks []*model.PostureCheck) bool {
	return !slices.ContainsFunc(checks, func(c *model.PostureCheck) bool { return !e.Check(c).Passing })
}

// Meeting reports whether all of the checks would pass if each were enforced.
func (e *Evaluator) Meeting(checks []*model.PostureCheck) bool {
	return !slices.ContainsFunc(checks, func(c *model.PostureCheck) bool { return e.Check(c).failed() })
}

// failed reports whether the device is not as the check wants it.
func (r Result) failed() bool { return !r.Passing || r.WouldRefuse }

func (e *Evaluator) find(c *model.PostureCheck) *finding {
	if f := e.found[c]; f != nil {
		return f
	}
	f := &finding{Result: e.judge(c)}
	if e.found == nil {
		e.found = map[*model.PostureCheck]*finding{}
	}
	e.found[c] = f
	return f
}

// judge says of a check that only tells that it passes for ever, so that no client
// asks anybody for a code in its name.
func (e *Evaluator) judge(c *model.PostureCheck) Result {
	if c.OnlyTells() {
		return Result{true, model.NoTimeout, model.NoTimeout, !e.enforced(c).Passing}
	}
	return e.enforced(c)
}

// enforced judges a check as if it were one that refuses.
func (e *Evaluator) enforced(c *model.PostureCheck) Result {
	if c.TypeID == TypeMFA {
		return e.factorResult(c, e.secondFactor(c))
	}
	return Result{Passing: e.facts.passes(c), Timeout: model.NoTimeout, TimeoutRemaining: model.NoTimeout}
}
