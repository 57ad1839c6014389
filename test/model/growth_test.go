package model_test

import (
	"fmt"
	"runtime"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"netkeep.internal/internal/data/state"
	"netkeep.internal/internal/data/store/storetest"
	"netkeep.internal/internal/model"
)

// The last of many terminators took far longer to make than the first: openziti/ziti
// 3318. Here the last of 10,000 cost what the first did.
func TestZiti3318(t *testing.T) {
	st, err := state.Open(t.Context(), storetest.NewMemory(), model.All, state.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(st.Close)
	service, router := &model.Service{Name: "hosted"}, &model.EdgeRouter{Name: "router"}
	write(t, st, func(tx *state.Tx) error {
		if err := model.Services.Create(tx, service); err != nil {
			return err
		}
		return model.EdgeRouters.Create(tx, router)
	})
	const batches, each = 50, 200
	var cpu [batches]time.Duration
	var bytes [batches]uint64
	for b := range batches {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		began := used(t)
		write(t, st, func(tx *state.Tx) error {
			for i := range each {
				err := model.Terminators.Create(tx, &model.Terminator{
					ServiceID: service.ID, RouterID: router.ID, Binding: "transport", Address: fmt.Sprintf("tcp:10.%d.%d.1:80", b, i), Precedence: model.PrecedenceDefault,
				})
				if err != nil {
					return err
				}
			}
			return nil
		})
		cpu[b] = used(t) - began
		runtime.ReadMemStats(&after)
		bytes[b] = after.TotalAlloc - before.TotalAlloc
	}
	// A tree of none costs nothing: the beginning is that of the first thousands. And the least of several is what they cost: the rest is what else went on.
	if first, last := slices.Min(bytes[10:20]), slices.Min(bytes[40:]); last > first*3/2 { // of a tree that is a level deeper
		t.Errorf("%d terminators take %d bytes in the beginning and %d in the end", each, first, last)
	}
	if first, last := slices.Min(cpu[10:20]), slices.Min(cpu[40:]); last > 2*first+10*time.Millisecond { // and what a clock of a processor shared with others is off by
		t.Errorf("%d terminators take %s in the beginning and %s in the end", each, first, last)
	}
}

func write(t *testing.T, st *state.State, fn func(*state.Tx) error) {
	t.Helper()
	if err := st.Update(t.Context(), state.Program("test"), fn); err != nil {
		t.Fatal(err)
	}
}

// used is how long processors have worked for this process.
func used(t *testing.T) time.Duration {
	t.Helper()
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		t.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
