package takeover_test

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"netkeep.internal/internal/run/server"
	"netkeep.internal/test/zititest"
)

// processor is the processor time that this process has had.
func processor(t testing.TB) time.Duration {
	t.Helper()
	var use syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &use); err != nil {
		t.Fatal(err)
	}
	return time.Duration(use.Utime.Nano() + use.Stime.Nano())
}

// takeMany takes over a network with many identities, which have a certificate each, and
// returns the processor time of that.
func takeMany(t testing.TB, dir, data string, n int, progress func(done, all int)) time.Duration {
	t.Helper()
	before := processor(t)
	report, err := server.TakeOver(t.Context(), server.Takeover{
		Config: filepath.Join(dir, "ctrl.yml"), Data: data, Progress: progress, Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	took := processor(t) - before
	for _, k := range report.Kinds {
		if (k.Kind == "identities" || k.Kind == "authenticators") && k.Taken < n {
			t.Errorf("%d %s were taken", k.Taken, k.Kind)
		}
	}
	return took
}

// BenchmarkTakeover takes over a network of 100,000 identities with a certificate each.
func BenchmarkTakeover(b *testing.B) {
	dir := zititest.Unpack(b, "1.6.20")
	const n = 100_000
	zititest.Grow(b, dir, n)
	var took time.Duration
	b.ResetTimer()
	for i := range b.N {
		data := filepath.Join(b.TempDir(), fmt.Sprint(i))
		took += takeMany(b, dir, data, n, nil)
		if err := os.RemoveAll(data); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(took.Seconds()/float64(b.N), "cpu-s/op")
}

// TestMany takes over as many identities as are written in several parts, tells how far it is,
// and takes no more than its share of time for twice as many.
func TestMany(t *testing.T) {
	took := map[int]time.Duration{}
	for _, n := range []int{3000, 6000} {
		dir := zititest.Unpack(t, "1.6.20")
		zititest.Grow(t, dir, n)
		var told [][2]int
		took[n] = takeMany(t, dir, filepath.Join(t.TempDir(), "data"), n, func(done, all int) { told = append(told, [2]int{done, all}) })
		for i, at := range told {
			if at[0] > at[1] || at[1] < 2*n || i > 0 && at[0] <= told[i-1][0] {
				t.Errorf("it tells %v", told)
			}
		}
		if len(told) < 3 || told[len(told)-1][0] != told[len(told)-1][1] {
			t.Errorf("it tells %v", told)
		}
	}
	// Twice as many, and as much again for a machine that has other things to do.
	if took[6000] > 4*took[3000] {
		t.Errorf("it took %v of processor time, and %v for twice as many", took[3000], took[6000])
	}
	t.Logf("processor time: %v", took)
}
