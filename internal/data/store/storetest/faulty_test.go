package storetest

import (
	"context"
	"errors"
	"io"
	"slices"
	"testing"

	"netkeep.internal/internal/data/store"
)

// TestFaultyPasses runs the contract on a wrapper without faults.
func TestFaultyPasses(t *testing.T) {
	Run(t, func(*testing.T) Opener {
		o := memoryOpener(NewMemory())
		return Opener{
			Open:    func(t testing.TB) store.Store { return NewFaulty(o.Open(t)) },
			Restore: o.Restore,
		}
	})
}

func TestFaultyCalls(t *testing.T) {
	for _, lose := range []bool{false, true} {
		m := NewMemory()
		f := NewFaulty(m)
		for method, call := range calls(t.Context(), f, 0) {
			if method == Follow && lose {
				continue // it has no answer to lose until it ends
			}
			ready := f.FailNext
			if lose {
				ready = f.LoseNext
			}
			ready(method, ErrInjected)
			err := call()
			if method == Put && lose {
				// The call has a guard that fails: the answer is no success.
				if !errors.Is(err, store.ErrConflict) {
					t.Errorf("%s: %v", method, err)
				}
			} else if err != ErrInjected {
				t.Errorf("%s: %v, want the fault", method, err)
			}
		}
		// A lost Commit has happened, a failed one has not.
		if _, ok, err := m.Get(t.Context(), "k/late"); ok != lose || err != nil {
			t.Errorf("lose %v: written %v, %v", lose, ok, err)
		}
	}
}

// TestFaultyLine shows that faults wait in line and do not come again.
func TestFaultyLine(t *testing.T) {
	f := NewFaulty(NewMemory())
	other := errors.New("other")
	f.FailNext(Get, ErrInjected)
	f.FailNext(Get, other)
	f.FailNext(Load, other)
	var got []error
	for range 3 {
		_, _, err := f.Get(t.Context(), "k")
		got = append(got, err)
	}
	if !slices.Equal(got, []error{ErrInjected, other, nil}) {
		t.Errorf("errors are %v", got)
	}
}

func TestFaultyBlock(t *testing.T) {
	m := NewMemory()
	f := NewFaulty(m)
	gate := f.BlockNext(Put)
	wrote := make(chan error, 1)
	go func() {
		_, err := f.Put(t.Context(), store.Head{}, []store.Op{set("k/1", "v")})
		wrote <- err
	}()
	<-gate.Reached()
	if _, ok, err := m.Get(t.Context(), "k/1"); ok || err != nil {
		t.Errorf("written through a closed gate: %v, %v", ok, err)
	}
	gate.Open()
	gate.Open()
	if err := <-wrote; err != nil {
		t.Error(err)
	}
	if _, ok, err := m.Get(t.Context(), "k/1"); !ok || err != nil {
		t.Errorf("not written through an open gate: %v, %v", ok, err)
	}

	ctx, cancel := context.WithCancel(t.Context())
	gate = f.BlockNext(Snapshot)
	cancel()
	if err := f.Snapshot(ctx, io.Discard); !errors.Is(err, context.Canceled) {
		t.Errorf("Snapshot at a gate with an ended context: %v", err)
	}
	<-gate.Reached()
}

func TestFaultyFeed(t *testing.T) {
	tests := []struct {
		name string
		set  func(*Faulty)
		want string // values in the order of the feed
		ends error
	}{
		{"whole", func(*Faulty) {}, "abcd", errEnough},
		{"dropped", (*Faulty).DropNext, "bcd", errEnough},
		{"repeated", (*Faulty).RepeatNext, "aabcd", errEnough},
		{"ended", func(f *Faulty) { f.RepeatNext(); f.EndNext(store.ErrCompacted) }, "aa", store.ErrCompacted},
		{"all", func(f *Faulty) { f.DropNext(); f.RepeatNext(); f.DropNext() }, "bbd", errEnough},
		{"held", func(f *Faulty) { f.DropNext(); f.HoldNext().Open() }, "bcd", errEnough},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f := NewFaulty(NewMemory())
			for _, v := range "abcd" {
				if _, err := f.Put(t.Context(), store.Head{}, []store.Op{expecting(store.Any, set("k/1", string(v)))}); err != nil {
					t.Fatal(err)
				}
			}
			tt.set(f)
			got := ""
			err := f.Follow(t.Context(), 0, func(b store.Batch) error {
				got += string(b.Ops[0].Value)
				if b.Ops[0].Value[0] == 'd' {
					return errEnough
				}
				return nil
			})
			if got != tt.want || !errors.Is(err, tt.ends) {
				t.Errorf("followed %q until %v, want %q until %v", got, err, tt.want, tt.ends)
			}
		})
	}
}

// TestFaultyHold shows that a held batch holds those behind it.
func TestFaultyHold(t *testing.T) {
	f := NewFaulty(NewMemory())
	gate := f.HoldNext()
	seen, ended := make(chan string, 2), make(chan error, 1)
	go func() {
		ended <- f.Follow(t.Context(), 0, func(b store.Batch) error {
			seen <- string(b.Ops[0].Value)
			if len(seen) == 2 {
				return errEnough
			}
			return nil
		})
	}()
	for _, v := range []string{"a", "b"} {
		if _, err := f.Put(t.Context(), store.Head{}, []store.Op{expecting(store.Any, set("k/1", v))}); err != nil {
			t.Fatal(err)
		}
	}
	<-gate.Reached()
	if len(seen) > 0 {
		t.Errorf("delivered %q through a closed gate", <-seen)
	}
	gate.Open()
	if err := <-ended; err != errEnough {
		t.Error(err)
	}
	if a, b := <-seen, <-seen; a != "a" || b != "b" {
		t.Errorf("delivered %q and %q", a, b)
	}
}
