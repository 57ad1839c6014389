package state_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/anishathalye/porcupine"

	"netkeep.internal/internal/data/state"
	"netkeep.internal/internal/data/store/storetest"
	"netkeep.internal/internal/lang/kind"
)

// action is a read of the register through one State's Snapshot, or an Update
// there that reads it and writes a value nobody else writes. An Update is two: it
// is stored at one moment, and seen through its State from another moment on,
// before it returns.
type action struct {
	state int
	write byte // 0 for a read
	seen  bool
}

// result is the value that was read, and whether it is not known if the Update
// was stored.
type result struct {
	read    byte
	unknown bool
}

// register is what has been written, in order, and for each State how much of
// it was seen there.
type register struct {
	log  string
	seen [3]int
}

// registerModel is what Update and Snapshot promise. Updates read what the one
// before wrote, wherever that was. A Snapshot may be behind, but shows at least
// what was seen or written through the same State before.
var registerModel = (&porcupine.NondeterministicModel{
	Init: func() []any { return []any{register{log: "\x00"}} },
	Step: func(before, input, output any) []any {
		r, in, out := before.(register), input.(action), output.(result)
		switch {
		case in.seen:
			at := strings.IndexByte(r.log, in.write)
			if at < 0 {
				return nil // it is stored first
			}
			r.seen[in.state] = max(r.seen[in.state], at)
			return []any{r}
		case in.write == 0:
			at := strings.IndexByte(r.log, out.read)
			if at < r.seen[in.state] {
				return nil
			}
			r.seen[in.state] = at
			return []any{r}
		case out.read != r.log[len(r.log)-1]:
			if out.unknown {
				return []any{r}
			}
			return nil
		case out.unknown:
			return []any{r, register{r.log + string(rune(in.write)), r.seen}}
		}
		r.log += string(rune(in.write))
		return []any{r}
	},
}).ToModel()

// The model itself must be able to say no.
func TestRegisterModel(t *testing.T) {
	at := func(begin int64, a action, r result) porcupine.Operation {
		return porcupine.Operation{ClientId: int(begin), Input: a, Output: r, Call: begin, Return: begin + 1}
	}
	seen := func(op porcupine.Operation) porcupine.Operation {
		in := op.Input.(action)
		in.seen = true
		op.Input = in
		return op
	}
	long := at(1, action{state: 0, write: 1}, result{})
	long.Return = 10
	tests := []struct {
		name    string
		history []porcupine.Operation
		want    bool
	}{
		{"another State is behind", []porcupine.Operation{
			at(1, action{0, 1, false}, result{}), at(1, action{0, 1, true}, result{}), at(3, action{1, 0, false}, result{}),
		}, true},
		{"the same State is behind", []porcupine.Operation{
			at(1, action{0, 1, false}, result{}), at(1, action{0, 1, true}, result{}), at(3, action{0, 0, false}, result{}),
		}, false},
		{"the same State is behind while it writes", []porcupine.Operation{
			long, seen(long), at(3, action{1, 2, false}, result{read: 1}), at(5, action{0, 0, false}, result{}),
		}, true},
		{"the same State goes back while it writes", []porcupine.Operation{
			long, seen(long), at(3, action{0, 0, false}, result{read: 1}), at(5, action{0, 0, false}, result{}),
		}, false},
		{"a State goes back", []porcupine.Operation{
			at(1, action{0, 1, false}, result{}), at(3, action{1, 0, false}, result{read: 1}), at(5, action{1, 0, false}, result{}),
		}, false},
		{"an update is lost", []porcupine.Operation{at(1, action{0, 1, false}, result{}), at(3, action{1, 2, false}, result{})}, false},
		{"an update may be lost", []porcupine.Operation{at(1, action{0, 1, false}, result{unknown: true}), at(3, action{1, 2, false}, result{})}, true},
		{"a write from nowhere", []porcupine.Operation{at(1, action{0, 0, false}, result{read: 7})}, false},
	}
	for _, test := range tests {
		if got := porcupine.CheckOperations(registerModel, test.history); got != test.want {
			t.Errorf("%s: %t, want %t", test.name, got, test.want)
		}
	}
}

func TestLinearizable(t *testing.T) {
	for seed := range uint64(15) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			var history []porcupine.Operation
			synctest.Test(t, func(t *testing.T) { history = drive(t, seed) })
			if got := porcupine.CheckOperationsTimeout(registerModel, history, time.Minute); got != porcupine.Ok {
				t.Errorf("%s: no order explains %+v", got, history)
			}
		})
	}
}

// drive has two clients of each of three States use one register at the same
// time, while some commits fail and some answers are lost.
func drive(t *testing.T, seed uint64) (history []porcupine.Operation) {
	const clients, each = 6, 6
	memory := storetest.NewMemory()
	var states [3]*state.State
	rnd := rand.New(rand.NewPCG(seed, 0))
	for i := range states {
		faults := storetest.NewFaulty(memory.Another())
		states[i] = open(t, faults, state.Options{})
		if i == 0 {
			create(t, states[0], places.Def, &place{Meta: kind.Meta{ID: "hall"}})
		}
		for range each {
			switch rnd.IntN(6) {
			case 0:
				faults.LoseNext(storetest.Commit, storetest.ErrInjected)
			case 1:
				faults.FailNext(storetest.Commit, storetest.ErrInjected)
			default:
				faults.BlockNext(storetest.Commit).Open() // passes
			}
		}
	}
	synctest.Wait()

	var clock atomic.Int64
	histories := make([][]porcupine.Operation, clients)
	var wg sync.WaitGroup
	for c := range clients {
		rnd := rand.New(rand.NewPCG(seed, uint64(c)+1))
		wg.Go(func() {
			for i := range each {
				a := action{state: c % len(states)}
				if rnd.IntN(2) == 0 {
					a.write = byte(1 + c*each + i)
				}
				op := porcupine.Operation{ClientId: c, Input: a, Call: clock.Add(1)}
				r := act(t, states[a.state], a)
				op.Output, op.Return = r, clock.Add(1)
				if r.unknown {
					op.Return = math.MaxInt64 // it may still happen
					op.ClientId = 1000 + c*each + i
				}
				histories[c] = append(histories[c], op)
				if a.write != 0 && !r.unknown {
					a.seen, op.ClientId = true, 2000+c*each+i
					op.Input = a
					histories[c] = append(histories[c], op)
				}
			}
		})
	}
	wg.Wait()
	return slices.Concat(histories...)
}

// act does one action on the register, a place's count.
func act(t *testing.T, s *state.State, a action) (r result) {
	if a.write == 0 {
		hall, _ := places.Get(s.Snapshot(), "hall")
		return result{read: byte(hall.Count)}
	}
	err := s.Update(t.Context(), state.Program("tester"), func(tx *state.Tx) error {
		return places.Edit(tx, "hall", func(p *place) error {
			r.read, p.Count = byte(p.Count), int(a.write)
			return nil
		})
	})
	if err != nil {
		unavailable(t, err)
		r.unknown = true
	}
	return r
}
