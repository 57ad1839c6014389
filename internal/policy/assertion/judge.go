package assertion

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"netkeep.internal/internal/data/state"
	"netkeep.internal/internal/data/store"
	"netkeep.internal/internal/lang/fault"
	"netkeep.internal/internal/model"
	"netkeep.internal/internal/policy/validity"
)

// Judge refuses writes that break assertions. It is the state's judge, or one of
// several.
type Judge struct {
	// Refused, if set, is told of what was refused, and Broken of what was not, since
	// the write says so (overridden) or since it is the program's own, such as the end
	// of what was given for a time. Broken may tell the step; a write that is judged
	// again is told of again.
	Refused func(breaches []Breach, by state.Author)
	Broken  func(step state.Step, breaches []Breach, by state.Author, overridden bool)
	// Reads, if set, says whether an author may read what assertions say, and so who may
	// use what. Others are told no more than that one is in the way.
	Reads func(r *state.Snapshot, by state.Author) bool
	// Ahead, if set, is a write as it will be at moments to come at which what it has to do
	// with changes by itself: what must never be must not be given for tomorrow.
	Ahead func(ctx context.Context, step state.Step) ([]validity.Moment, error)
}

// Judge judges a write.
func (j Judge) Judge(ctx context.Context, step state.Step, by state.Author) error {
	breaches, err := j.breaches(ctx, step)
	if err != nil || len(breaches) == 0 {
		return err
	}
	if h, ok := ctx.Value(hearing{}).(*Hearing); ok {
		h.Breaches = breaches
		return nil
	}
	own, overridden := by.Kind == store.Program, state.Overrides(ctx)
	if !own && !overridden {
		if j.Refused != nil {
			j.Refused(breaches, by)
		}
		if breaches[0].field == "" && j.Reads != nil && !j.Reads(step.Before, by) {
			return fault.New(fault.CodeAssertion, "it would break an assertion of those who run the network; they find in the audit log which")
		}
		return refusal(breaches)
	}
	if j.Broken != nil {
		j.Broken(step, breaches, by, overridden)
	}
	return nil
}

// breaches are those of a write, or else of what it gives later.
func (j Judge) breaches(ctx context.Context, step state.Step) ([]Breach, error) {
	found := Breaches(step)
	if len(found) > 0 || j.Ahead == nil || step.After.Len(model.Assertions.Def) == 0 || !slices.ContainsFunc(step.Changed, gives) {
		return found, nil
	}
	moments, err := j.Ahead(ctx, step)
	if err != nil {
		return nil, err
	}
	for _, m := range moments {
		later := slices.DeleteFunc(Breaches(m.Step), func(b Breach) bool {
			a, there := model.Assertions.Get(step.After, b.ID)
			return !there || a.Expect != model.Never || b.field != ""
		})
		for i := range later {
			later[i].What += ", from " + m.At.UTC().Format(time.RFC3339) + " on"
		}
		if len(later) > 0 {
			return later, nil
		}
	}
	return nil, nil
}

// gives reports whether a change of such a record can break an assertion later.
func gives(ref state.Ref) bool { return concerns(ref) || ref.Def == model.Grants.Def }

// Hearing is what a judge found out about a trial that nobody is refused for.
type Hearing struct{ Breaches []Breach }

type hearing struct{}

// Heard returns a context in which nothing is refused for an assertion, for trials that
// only look, and where it then says what would be broken.
func Heard(ctx context.Context) (context.Context, *Hearing) {
	h := new(Hearing)
	return context.WithValue(ctx, hearing{}, h), h
}

// refusal says which assertion is in the way, and why.
func refusal(breaches []Breach) error {
	b := breaches[0]
	if b.field != "" {
		return fault.Invalid(b.field, "of the assertion "+strconv.Quote(b.Name)+" "+b.reason, b.value)
	}
	reason := strconv.Quote(b.Name) + " would not hold: " + b.What
	if more := len(breaches) - 1; more == 1 {
		reason += "; and " + strconv.Quote(breaches[1].Name) + " would not hold either"
	} else if more > 1 {
		reason += fmt.Sprintf("; and %d other assertions would not hold either", more)
	}
	return fault.On(fault.CodeAssertion, "assertion", reason, b.Name)
}
