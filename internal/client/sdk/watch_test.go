package sdk

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"testing"
	"time"
)

// TestWatch makes connections to some places one after the other, and has what
// became of them noted in any order that there may be: whoever looks, and however
// seldom, ends up with how the last connection to each place stands.
func TestWatch(t *testing.T) {
	for seed := range uint64(5000) {
		draw := rand.New(rand.NewPCG(seed, 1))
		w := newWatch()
		var notes []Event
		want := map[string]State{}
		for place := range 1 + draw.IntN(3) {
			address := fmt.Sprint(place)
			for range 1 + draw.IntN(4) {
				turn := w.turn()
				lasts, fails := draw.IntN(3) == 0, draw.IntN(4) == 0
				if lasts || !fails {
					notes = append(notes, Event{State: Connected, Address: address, turn: turn})
					want[address] = Connected
				}
				if !lasts {
					notes = append(notes, Event{State: Away, Address: address, Err: errors.New("gone"), turn: turn})
					want[address] = Away
				}
			}
		}
		draw.Shuffle(len(notes), func(i, j int) { notes[i], notes[j] = notes[j], notes[i] })
		seen, last := map[string]State{}, uint64(0)
		look := func() {
			news, _ := w.look(last)
			for _, s := range news {
				if s.number <= last {
					t.Errorf("seed %d: %+v is told twice", seed, s)
				}
				seen[s.Address], last = s.State, s.number
			}
		}
		for _, e := range notes {
			_, more := w.look(last)
			before := w.last
			w.note(e)
			if isClosed(more) != (w.last > before) {
				t.Errorf("seed %d: who waits is woken: %v, for %d news", seed, isClosed(more), w.last-before)
			}
			if draw.IntN(2) == 0 {
				look()
			}
		}
		if look(); !maps.Equal(seen, want) {
			t.Errorf("seed %d: %v, want %v after %+v", seed, seen, want, notes)
		}
		w.end(time.Now())
		w.note(Event{State: Connected, Address: "0", turn: w.turn()})
		look()
		for address := range want {
			if seen[address] != Over {
				t.Errorf("seed %d: %s is %v in the end", seed, address, seen[address])
			}
		}
	}
}
