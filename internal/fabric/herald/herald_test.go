package herald

import (
	"strconv"
	"sync"
	"testing"
	"time"

	"netkeep.internal/internal/data/state"
	"netkeep.internal/internal/model"
)

func circuit(n int) Event {
	return Event{Ref: state.Ref{Def: model.Circuits.Def, ID: strconv.Itoa(n)}, At: time.Unix(int64(n), 0)}
}

// TestMissed has somebody look too slowly: it is told how much it missed, and of the
// rest each once and in order.
func TestMissed(t *testing.T) {
	var h Herald
	wake := make(chan struct{}, 1)
	h.Tell(circuit(-1)) // for which nobody looks
	l := h.Listen(wake, model.Circuits.Def, model.Links.Def)
	const all = 3*kept + 7
	for n := range all {
		h.Tell(circuit(n))
	}
	link := Event{Ref: state.Ref{Def: model.Links.Def, ID: "link"}, At: time.Unix(-1, 0)}
	h.Tell(link)
	<-wake
	e, missed, ok := l.Take()
	if !ok || e.Ref.ID != "link" || missed != all-kept {
		t.Fatalf("told %v after %d that are missed", e.Ref.ID, missed)
	}
	for n := all - kept; n < all; n++ {
		if e, missed, ok = l.Take(); !ok || e.Ref.ID != strconv.Itoa(n) || missed != 0 {
			t.Fatalf("told %s after %d that are missed, want %d", e.Ref.ID, missed, n)
		}
	}
	if _, _, ok = l.Take(); ok || !h.Wanted(model.Links.Def) {
		t.Error("there is more than was told")
	}
	l.Close()
	if h.Wanted(model.Links.Def) || len(h.rings) > 0 {
		t.Error("something is kept that nobody looks for")
	}
}

// TestAtOnce has many tell and look at once.
func TestAtOnce(t *testing.T) {
	var h Herald
	var all, lookers sync.WaitGroup
	over := make(chan struct{})
	for range 4 {
		wake := make(chan struct{}, 1)
		l := h.Listen(wake, model.Circuits.Def)
		lookers.Go(func() {
			defer l.Close()
			seen := uint64(0)
			for seen < 4000 {
				_, missed, ok := l.Take()
				if seen += missed; ok {
					seen++
					continue
				}
				select {
				case <-wake:
				case <-over:
				}
			}
		})
	}
	for n := range 4 {
		all.Go(func() {
			for i := range 1000 {
				h.Tell(circuit(1000*n + i))
			}
		})
	}
	all.Wait()
	close(over)
	lookers.Wait()
}

// TestNobody is a controller where nobody can look.
func TestNobody(t *testing.T) {
	var h *Herald
	if h.Tell(circuit(1)); h.Wanted(model.Circuits.Def) {
		t.Error("nobody looks")
	}
}
