package servertest

import (
	"context"
	"fmt"
	"time"

	"netkeep.internal/internal/data/store"
)

// authors watches who writes, for as long as the controller runs.
type authors struct {
	writes []store.Write
	stop   context.CancelFunc
	ended  chan struct{} // closed when writes is whole
}

// watchAuthors follows the log from its beginning. What older versions wrote
// before the controller started may have no author.
func watchAuthors(st store.Store, started time.Time) *authors {
	ctx, stop := context.WithCancel(context.Background())
	a := &authors{stop: stop, ended: make(chan struct{})}
	go func() {
		defer close(a.ended)
		_ = st.Follow(ctx, 0, func(b store.Batch) error {
			if b.Head.Time.Before(started) {
				return nil
			}
			if len(b.Head.Writes) == 0 {
				a.writes = append(a.writes, store.Write{Ops: len(b.Ops)})
			}
			a.writes = append(a.writes, b.Head.Writes...)
			return nil
		})
	}()
	return a
}

// faults ends the watch and returns the writes that do not say who made them,
// or, of those that a request made, on what occasion.
func (a *authors) faults() (faults []error) {
	a.stop()
	<-a.ended
	for _, w := range a.writes {
		by, byRequest := w.Author, w.Author.Kind != store.Program
		asked := by.Operation != "" && by.Request != "" && by.Source != ""
		named := by.Kind != store.Anonymous && by.ID+by.Name != ""
		if by.Kind == "" || w.Ops <= 0 || byRequest && !(asked && named) {
			faults = append(faults, fmt.Errorf("a write of %d records has the author %+v", w.Ops, by))
		}
	}
	return faults
}
