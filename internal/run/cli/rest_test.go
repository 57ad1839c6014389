package cli

import (
	"runtime"
	"runtime/debug"
	"testing"
)

// TestRest shows when memory is given back, and that it is not done again and again where
// nothing comes of it.
func TestRest(t *testing.T) {
	const mib = 1 << 20
	for _, step := range []struct {
		name  string
		looks []usage
		want  []bool
	}{
		{"little was done", []usage{{10 * mib, 60 * mib, 40 * mib}, {12 * mib, 62 * mib, 40 * mib}}, []bool{false, false}},
		{"much is being done", []usage{{1000 * mib, 900 * mib, 400 * mib}, {2000 * mib, 900 * mib, 400 * mib}}, []bool{false, false}},
		{"much was done", []usage{{1000 * mib, 900 * mib, 400 * mib}, {1001 * mib, 900 * mib, 400 * mib}}, []bool{false, true}},
		{"what is alive has room to grow", []usage{{0, 550 * mib, 400 * mib}, {0, 560 * mib, 400 * mib}}, []bool{false, false}},
		{"there are holes in what is held", []usage{{1, 900 * mib, 400 * mib}, {2, 800 * mib, 400 * mib}, {3, 850 * mib, 400 * mib}, {4, 900 * mib, 400 * mib}}, []bool{true, false, false, true}},
	} {
		t.Run(step.name, func(t *testing.T) {
			r := new(rest)
			for i, now := range step.looks {
				if got := r.due(now); got != step.want[i] {
					t.Fatalf("look %d: %t, want %t", i, got, step.want[i])
				}
			}
		})
	}
}

// TestRestOfProcess shows that what is read of this process says that there is something to give back,
// and that it is then gone.
func TestRestOfProcess(t *testing.T) {
	debug.FreeOSMemory()
	begin := used()
	garbage := make([][]byte, 200)
	for i := range garbage {
		garbage[i] = make([]byte, 1<<20)
	}
	made := used()
	if made.made < begin.made+200<<20 || made.held < begin.held+150<<20 {
		t.Fatalf("with 200 MiB more: %+v after %+v", made, begin)
	}
	clear(garbage)
	runtime.GC()
	r := &rest{before: made}
	if !r.due(used()) {
		t.Fatalf("nothing is to be given back of %+v", used())
	}
	debug.FreeOSMemory()
	if end := used(); end.held > begin.held+100<<20 || r.due(end) {
		t.Fatalf("%+v are left of %+v", end, made)
	}
}
