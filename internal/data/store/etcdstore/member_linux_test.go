package etcdstore

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"netkeep.internal/internal/data/store"
)

// sockets returns this process' sockets that listen or are bound, by inode.
func sockets(t *testing.T) map[string]string {
	t.Helper()
	fds, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	own := make(map[string]bool)
	for _, fd := range fds {
		link, err := os.Readlink("/proc/self/fd/" + fd.Name())
		if inode, ok := strings.CutPrefix(link, "socket:["); err == nil && ok {
			own[strings.TrimSuffix(inode, "]")] = true
		}
	}
	found := make(map[string]string)
	// The columns of the inode and of the local address.
	for file, column := range map[string][2]int{
		"tcp": {9, 1}, "tcp6": {9, 1}, "udp": {9, 1}, "udp6": {9, 1}, "unix": {6, 7},
	} {
		f, err := os.Open("/proc/self/net/" + file)
		if errors.Is(err, os.ErrNotExist) {
			continue // no IPv6 here
		}
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		lines := bufio.NewScanner(f)
		for lines.Scan() {
			cols := strings.Fields(lines.Text())
			if len(cols) > column[0] && len(cols) > column[1] && own[cols[column[0]]] {
				found[cols[column[0]]] = file + " " + cols[column[1]]
			}
		}
		if err := lines.Err(); err != nil {
			t.Fatal(err)
		}
	}
	return found
}

func TestOpenListensNowhere(t *testing.T) {
	before := sockets(t)
	o := directory(t)
	s := o.Open(t)
	defer s.Close()
	if _, err := s.Put(t.Context(), store.Head{}, set("k/1", 10)); err != nil {
		t.Fatal(err)
	}
	after := sockets(t)
	maps.DeleteFunc(after, func(inode, _ string) bool { return before[inode] != "" })
	if len(after) > 0 {
		t.Errorf("the member has sockets: %v", after)
	}

	// The same look must find a server that does listen.
	m := startTest(t, silent, listening)
	if found := sockets(t); len(found) <= len(before) {
		t.Errorf("the server at %s was not found among %v", m.address(), found)
	}
}

// noRaceSleep spares the second that a process with the race detector takes to
// end.
const noRaceSleep = "GORACE=atexit_sleep_ms=0"

// TestDiskFull runs a member in another process that may not let files grow,
// at its start or later.
func TestDiskFull(t *testing.T) {
	if how := os.Getenv("ETCDSTORE_DISK_FULL"); how != "" {
		runOutOfDisk(how, os.Getenv("ETCDSTORE_DIR"))
		return
	}
	for how, want := range map[string]string{
		"at start": "open: the store failed",
		"later":    "put: the store failed",
	} {
		t.Run(how, func(t *testing.T) {
			cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestDiskFull$")
			cmd.Env = append(os.Environ(), noRaceSleep, "ETCDSTORE_DISK_FULL="+how, "ETCDSTORE_DIR="+filepath.Join(t.TempDir(), "data"))
			out, err := cmd.CombinedOutput()
			if err != nil || !strings.Contains(string(out), want) || !strings.Contains(string(out), "file too large") {
				t.Errorf("%v, said %s", err, out)
			}
		})
	}
}

func runOutOfDisk(how, dir string) {
	shrink := func() {
		if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: 1 << 10, Max: 1 << 40}); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
	}
	ctx, o := context.Background(), Options{Dir: dir, Logger: silent}
	if how == "at start" {
		shrink()
	}
	s, err := Open(ctx, o)
	if err != nil {
		fmt.Println("open:", strings.ReplaceAll(err.Error(), "open "+dir+": ", ""))
		return
	}
	shrink()
	for err == nil {
		_, err = s.Put(ctx, store.Head{}, []store.Op{{Key: "k/1", Value: make([]byte, 1<<10), Prev: store.Any}})
	}
	fmt.Println("put:", err)
	fmt.Println("close:", s.Close())
}

// TestKilled kills a process while it writes. What it was told is written must
// be there.
func TestKilled(t *testing.T) {
	if dir := os.Getenv("ETCDSTORE_KILLED"); dir != "" {
		writeUntilKilled(dir)
		return
	}
	dir := filepath.Join(t.TempDir(), "data")
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestKilled$")
	cmd.Env = append(os.Environ(), "ETCDSTORE_KILLED="+dir)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	wrote := make(map[string]store.Rev)
	var last store.Rev
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		var key string
		if _, err := fmt.Sscan(lines.Text(), &key, &last); err != nil {
			t.Fatalf("%v: %s", err, lines.Text())
		}
		wrote[key] = last
		if len(wrote) == 3*snapshotCount/2 {
			if err := cmd.Process.Kill(); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // it was killed

	s, err := Open(t.Context(), Options{Dir: dir, Logger: testLogger(t)})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	mark, err := s.Load(t.Context(), func(r store.Record) error {
		if rev, ok := wrote[r.Key]; ok && rev != r.Rev {
			t.Errorf("%s has revision %d, was written at %d", r.Key, r.Rev, rev)
		}
		delete(wrote, r.Key)
		return nil
	})
	if err != nil || len(wrote) > 0 || mark.Head < last {
		t.Errorf("lost %v; head is %d, the last write was %d; %v", wrote, mark.Head, last, err)
	}
}

func writeUntilKilled(dir string) {
	s, err := Open(context.Background(), Options{Dir: dir, Logger: silent})
	var last store.Written
	for n := 0; err == nil; n++ {
		key := fmt.Sprintf("k/%d", n)
		if last, err = s.Commit(context.Background(), last.Rev, store.Head{}, set(key, 100)); err == nil {
			fmt.Println(key, last.Rev)
		}
	}
	fmt.Println(err)
}
