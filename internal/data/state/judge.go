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

// overriding is the key of whether a write says that it means what it does.
type overriding struct{}

// Overriding returns a context in which writes say that they mean to do what a judge
// would refuse. Whether their author may say so is decided before.
func Overriding(ctx context.Context) context.Context {
	return context.WithValue(ctx, overriding{}, true)
}

// Overrides reports whether a write says so.
func Overrides(ctx context.Context) bool { return ctx.Value(overriding{}) != nil }

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
	step := tx.Step()
	step.Tell = tx.Tell
	return s.opt.Judge(ctx, step, by)
}
