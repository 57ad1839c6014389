package server

import (
	"context"

	"netkeep.internal/internal/auth/power"
	"netkeep.internal/internal/data/state"
	"netkeep.internal/internal/model"
	"netkeep.internal/internal/ops/audit"
	"netkeep.internal/internal/policy/assertion"
	"netkeep.internal/internal/policy/validity"
)

// judges asks one judge after the other, until one refuses.
func judges(all ...state.Judge) state.Judge {
	return func(ctx context.Context, step state.Step, by state.Author) error {
		for _, judge := range all {
			if err := judge(ctx, step, by); err != nil {
				return err
			}
		}
		return nil
	}
}

// byTheClock has a judge see what there was before a write as it is by the clock: nobody
// gives out a power whose time is over, though nobody has written yet that it is.
func (s *Server) byTheClock(judge state.Judge) state.Judge {
	return func(ctx context.Context, step state.Step, by state.Author) error {
		if s.validity != nil { // else nobody is served yet
			step.Before = s.validity.View(step.Before)
		}
		return judge(ctx, step, by)
	}
}

// assertions is the judge who holds what must be, and has the audit log and the
// operator told of it.
func (s *Server) assertions() state.Judge {
	return assertion.Judge{
		Reads: func(r *state.Snapshot, by state.Author) bool {
			return power.OfAuthor(r, by).Over(model.Assertions.Name + ":read").Whole()
		},
		Ahead: func(ctx context.Context, step state.Step) ([]validity.Moment, error) {
			return validity.Ahead(ctx, s.state, step)
		},
		Refused: func(breaches []assertion.Breach, by state.Author) {
			for _, b := range breaches {
				s.recorder.Note(breached(audit.AssertionRefused, b, by, ""))
			}
		},
		Broken: func(step state.Step, breaches []assertion.Breach, by state.Author, overridden bool) {
			event, how := audit.AssertionBroken, "nobody could be refused: "
			if overridden {
				event, how = audit.AssertionOverridden, "overridden: "
			}
			for _, b := range breaches {
				// With the write, and once, however often it is tried.
				step.Tell(breached(event, b, by, how).Entry())
				s.figures.Noted(event.Name, "recorded")
				s.log.Warn("an assertion does not hold any more; see netkeep check", "assertion", b.Name, "why", b.What, "overridden", overridden, "by", by.String())
			}
		},
	}.Judge
}

func breached(event *audit.Event, b assertion.Breach, by state.Author, how string) audit.Fact {
	return audit.Fact{
		Event: event, By: by, Target: audit.Target{Kind: model.Assertions.Def.Name, ID: b.ID, Name: b.Name}, Reason: how + b.What,
	}
}
