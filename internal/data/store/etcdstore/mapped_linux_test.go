package etcdstore

import (
	"bufio"
	"fmt"
	"os"
	"strings"
	"testing"

	"netkeep.internal/internal/data/store"
)

// held is how many kilobytes of a file this process has in its memory.
func held(t *testing.T, file string) (kilobytes int) {
	t.Helper()
	maps, err := os.Open("/proc/self/smaps")
	if err != nil {
		t.Fatal(err)
	}
	defer maps.Close()
	found, in := false, false
	for lines := bufio.NewScanner(maps); lines.Scan(); {
		line := lines.Text()
		if strings.Contains(line, "-") && strings.Contains(line, " ") && !strings.Contains(strings.Fields(line)[0], ":") {
			in = strings.HasSuffix(line, " "+file)
			found = found || in
		}
		var n int
		if _, err := fmt.Sscanf(line, "Rss: %d kB", &n); in && err == nil {
			kilobytes += n
		}
	}
	if !found {
		t.Fatalf("%s is nowhere in memory", file)
	}
	return kilobytes
}

// A database is not kept in memory beside what is made of it: not after a load, and not
// after history was forgotten. What is in it can be read all the same.
func TestRelax(t *testing.T) {
	dir := t.TempDir()
	open := func() *Store {
		s, err := Open(t.Context(), Options{Dir: dir})
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	s := open()
	const records, size = 64, 64 << 10
	for i := range records {
		op := store.Op{Key: fmt.Sprintf("thing/%02d", i), Value: []byte(strings.Repeat("x", size))}
		if _, err := s.Put(t.Context(), store.Head{}, []store.Op{op}); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = open()
	defer s.Close()
	all := func() {
		t.Helper()
		n := 0
		_, err := s.Load(t.Context(), func(rec store.Record) error {
			n += len(rec.Value)
			return nil
		})
		if err != nil || n != records*size {
			t.Fatalf("%d bytes were read, %v", n, err)
		}
	}
	file, whole := s.member.mapped.file, records*size>>10
	all()
	if kb := held(t, file); kb > whole/4 {
		t.Errorf("%d kB of %d are in memory after a load", kb, whole)
	}
	last, err := s.Last(t.Context())
	if err == nil {
		err = s.Compact(t.Context(), last)
	}
	if err != nil {
		t.Fatal(err)
	}
	if kb := held(t, file); kb > whole/4 {
		t.Errorf("%d kB of %d are in memory after history was forgotten", kb, whole)
	}
	all()
}
