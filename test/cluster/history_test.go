package cluster_test

import (
	"fmt"
	"math"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
)

// register is a record of which one value is written and read, at all controllers.
type register struct {
	id string

	mu      sync.Mutex
	last    byte // of the values that were made up
	history []event
}

// maxValues is how many values a register gets. To find an order for many takes long.
const maxValues = 60

// orderTime is how long may be looked for one.
const orderTime = 10 * time.Second

// event is a write or a read of a register at one controller.
type event struct {
	at         int // which controller
	value      byte
	write      bool
	unknown    bool // whether it is not known if it was written
	read       bool // whether it was, since somebody has read it
	call, back time.Time
}

// next makes up a value that nobody has written; ok is false if there were enough.
func (r *register) next() (value byte, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.last == maxValues {
		return 0, false
	}
	r.last++
	return r.last, true
}

func (r *register) add(e event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.history = append(r.history, e)
}

// step is an event as the model has it. A write is two: it is stored at one moment,
// and seen at its controller from another moment on, before it is answered.
type step struct {
	event
	seen bool
}

// written is the values of a register in the order in which they were written, and
// how many of them each controller has seen.
type written struct {
	log  string
	seen [3]int
}

// historyModel is what controllers promise: all writes are in one order, and what one
// controller has shown or written it never goes back behind.
var historyModel = (&porcupine.NondeterministicModel{
	Init: func() []any { return []any{written{log: "\x00"}} },
	Step: func(before, input, _ any) []any {
		w, s := before.(written), input.(step)
		at := strings.IndexByte(w.log, s.value)
		switch {
		case s.write && !s.seen:
			after := written{w.log + string([]byte{s.value}), w.seen}
			if s.unknown && !s.read {
				return []any{w, after}
			}
			return []any{after}
		case at < 0, !s.write && at < w.seen[s.at]:
			return nil
		}
		w.seen[s.at] = max(w.seen[s.at], at)
		return []any{w}
	},
}).ToModel()

// operations is a history as the checker takes it.
func operations(history []event) (ops []porcupine.Operation) {
	for i, e := range history {
		op := porcupine.Operation{ClientId: i, Input: step{event: e}, Call: e.call.UnixNano(), Return: e.back.UnixNano()}
		if e.write && e.unknown && !e.read {
			op.Return = math.MaxInt64 // it may still happen
		}
		ops = append(ops, op)
		if e.write && !e.unknown {
			op.ClientId, op.Input = len(history)+i, step{event: e, seen: true}
			ops = append(ops, op)
		}
	}
	return ops
}

// check fails the test if no order explains what was read and written, or if
// something was read that had been overwritten for longer than it may be.
func (r *register) check(t *testing.T, bound time.Duration) {
	t.Helper()
	history := settled(r.history)
	switch porcupine.CheckOperationsTimeout(historyModel, operations(history), orderTime) {
	case porcupine.Illegal:
		t.Errorf("no order explains %s", told(history))
	case porcupine.Unknown:
		t.Logf("there was no time to find an order for %d events", len(history))
	}
	if old := stale(history, bound); old != "" {
		t.Error(old)
	}
}

// settled is a history without doubt: what may have been written was, before somebody
// read it, and if nobody did it explains nothing.
func settled(history []event) (out []event) {
	read := map[byte]time.Time{}
	for _, e := range history {
		if first, is := read[e.value]; !e.write && (!is || e.back.Before(first)) {
			read[e.value] = e.back
		}
	}
	for _, e := range history {
		first, is := read[e.value]
		if e.unknown && !is {
			continue
		}
		if e.unknown {
			e.read, e.back = true, first
		}
		out = append(out, e)
	}
	return out
}

// stale finds a read of something that another value had followed for longer than
// a controller may be behind.
func stale(history []event, bound time.Duration) string {
	for _, v := range history {
		if !v.write || v.unknown {
			continue
		}
		for _, w := range history {
			if !w.write || w.unknown || !w.call.After(v.back) {
				continue
			}
			for _, r := range history {
				if behind := r.call.Sub(w.back); !r.write && r.value == v.value && behind > bound {
					return fmt.Sprintf("controller %d showed %d %s after %d had followed it", r.at, r.value, behind, w.value)
				}
			}
		}
	}
	return ""
}

func told(history []event) string {
	var out strings.Builder
	for _, e := range history {
		fmt.Fprintf(&out, "\n%d write=%t %d unknown=%t %s..%s", e.at, e.write, e.value, e.unknown, e.call.Format("05.000"), e.back.Format("05.000"))
	}
	return out.String()
}

// The model itself must be able to say no.
func TestHistoryModel(t *testing.T) {
	t.Parallel()
	begin := time.Now()
	at := func(s float64) time.Time { return begin.Add(time.Duration(s * float64(time.Second))) }
	write := func(ctrl int, value byte, from, to float64) event {
		return event{at: ctrl, value: value, write: true, call: at(from), back: at(to)}
	}
	read := func(ctrl int, value byte, from float64) event {
		return event{at: ctrl, value: value, call: at(from), back: at(from + 0.1)}
	}
	lost := write(0, 2, 2, 3)
	lost.unknown = true
	for name, test := range map[string]struct {
		history []event
		ok      bool
	}{
		"another is behind":              {[]event{write(0, 1, 0, 1), read(1, 0, 2)}, true},
		"one goes back":                  {[]event{write(0, 1, 0, 1), read(1, 1, 2), read(1, 0, 3)}, false},
		"one does not know its own":      {[]event{write(0, 1, 0, 1), read(0, 0, 2)}, false},
		"what nobody wrote":              {[]event{read(0, 7, 2)}, false},
		"one that may be lost is":        {[]event{write(0, 1, 0, 1), lost, read(0, 1, 5)}, true},
		"one that may be lost is not":    {[]event{write(0, 1, 0, 1), lost, read(0, 2, 5)}, true},
		"one that may be lost goes back": {[]event{write(0, 1, 0, 1), lost, read(0, 2, 5), read(0, 1, 6)}, false},
		"two orders":                     {[]event{write(0, 1, 0, 5), write(1, 2, 0, 5), read(2, 1, 6), read(2, 2, 7), read(0, 2, 6), read(0, 1, 7)}, false},
	} {
		if got := porcupine.CheckOperations(historyModel, operations(test.history)); got != test.ok {
			t.Errorf("%s: %t, want %t", name, got, test.ok)
		}
	}
	history := []event{write(0, 1, 0, 1), write(0, 2, 2, 3), read(1, 1, 10)}
	if stale(history, 5*time.Second) == "" || stale(history, 8*time.Second) != "" {
		t.Error("what is too old is not found, or what is not")
	}
}
