package state

import (
	"context"
	"fmt"
	"runtime/debug"
)

// Judge decides whether what a write has come to may be, whatever led there: it
// sees every record before and after, and who wrote. Rules of a kind look at a
// record; a judge holds what only the whole shows, such as who gains which power.
// It is asked while somebody writes, also for plans, so it must be quick, must not
// write, and must look at what the write concerns alone. A refusal leaves no trace.
type Judge func(ctx context.Context, step Step, by Author) error

// judge asks the judge about a write that has run. A panic in it must not take
// the owner down, and is no consent.
func (s *State) judge(ctx context.Context, tx *Tx, by Author) (err error) {
	if s.opt.Judge == nil || tx.count == 0 {
		return nil
	}
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic in the judge of a write: %v\n%s", p, debug.Stack())
		}
	}()
	return s.opt.Judge(ctx, tx.Step(), by)
}
