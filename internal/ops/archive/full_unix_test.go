//go:build unix

package archive_test

import (
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"netkeep.internal/internal/data/store/storetest"
)

// TestFullDisk has files end in the middle of what is written: the archive says that it
// fails, keeps what it had, and goes on when there is room.
func TestFullDisk(t *testing.T) {
	signal.Ignore(syscall.SIGXFSZ)
	defer signal.Reset(syscall.SIGXFSZ)
	var usual unix.Rlimit
	must(t, unix.Getrlimit(unix.RLIMIT_FSIZE, &usual))
	limit := func(bytes uint64) {
		t.Helper()
		must(t, unix.Setrlimit(unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: bytes, Max: usual.Max}))
	}
	defer limit(usual.Cur)
	dir := filepath.Join(t.TempDir(), "audit")
	c := open(t, storetest.NewMemory(), dir)
	for range 3 {
		c.write(t, 1600)
		path := ""
		if had, err := os.ReadDir(dir); err == nil {
			path = filepath.Join(dir, had[0].Name())
		}
		before, _ := os.ReadFile(path) // none at first
		n, _ := c.archive.Last()
		limit(uint64(len(before)) + 100)
		err := c.archive.Keep(t.Context(), c.Keeper)
		limit(usual.Cur)
		if err == nil {
			t.Fatal("a disk without room took entries")
		}
		if now, _ := c.archive.Last(); now != n {
			t.Errorf("%d are said to be archived, after %d", now, n)
		}
		c.keep(t)
		now, _ := c.archive.Last()
		if now <= n {
			t.Errorf("with room again %d are archived", now)
		}
		whole(t, dir, 1, now)
	}
}
