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

func (e *Evaluator) judge(c *model.PostureCheck) Result {
	if c.TypeID == TypeMFA {
		return e.factorResult(c, e.secondFactor(c))
	}
	return Result{e.facts.passes(c), model.NoTimeout, model.NoTimeout}
}
