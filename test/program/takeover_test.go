package program_test

import (
	"flag"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"netkeep.internal/test/zititest"
)

var (
	takeoverKills = flag.Int("takeover-kills", 8, "how often to kill a takeover")
	takeoverSeed  = flag.Uint64("takeover-seed", 0, "seed of the random moments; 0 takes one from the clock")
)

// moved is a network of somebody else's that is to be taken over.
type moved struct {
	from   string // with the files of the old controller
	before map[string]string
}

// grownBy is how many identities a network has beside those that it had: so many that they
// are written in several parts.
const grownBy = 1500

func newMoved(t *testing.T) *moved {
	t.Helper()
	m := &moved{from: zititest.Unpack(t, "1.6.20")}
	zititest.Grow(t, m.from, grownBy)
	m.before = everyFile(t, m.from)
	return m
}

// everyFile is what is in all files below a directory.
func everyFile(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		all[path] = string(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func (m *moved) args(data string) []string {
	return []string{"takeover", "--config", filepath.Join(m.from, "ctrl.yml"), "--data", data}
}

// taken takes a network over. Where others keep the disk so busy that the store does not answer
// in time it is done again, as people are told to.
func taken(t *testing.T, args []string) *process {
	t.Helper()
	for try := 0; ; try++ {
		p := launch(t, settings{args: args})
		code := p.wait()
		if code == 0 {
			return p
		}
		if said := p.stderr.String(); try == 5 || !strings.Contains(said, "etcdserver: request timed out") {
			t.Fatalf("it ended with %d: %s", code, said)
		}
	}
}

// untouched looks that the old files are as they were.
func (m *moved) untouched(t *testing.T) {
	t.Helper()
	after := everyFile(t, m.from)
	for name, text := range m.before {
		if after[name] != text {
			t.Errorf("%s is not as it was", name)
		}
	}
	if len(after) != len(m.before) {
		t.Errorf("there were %d files and are %d", len(m.before), len(after))
	}
}

// whole starts a controller on what was taken over, and looks that all is there.
func (m *moved) whole(t *testing.T, data string) {
	t.Helper()
	p := launch(t, settings{args: []string{"run", "--data", data, "--listen", "127.0.0.1:0"}})
	c := connect(t, p.ready(), filepath.Join(data, "pki", "root.crt"))
	if err := c.login("admin", zititest.FactsOf(t, "1.6.20").Facts.Passwords["admin"]); err != nil {
		t.Fatal(err)
	}
	want := float64(grownBy + len(zititest.Lists(t, "1.6.20")["identities"]))
	got := c.must(t, http.StatusOK, http.MethodGet, "identities?limit=1", nil).body["meta"].(M)["pagination"].(M)["totalCount"]
	if got != want {
		t.Errorf("there are %v identities, and were %v", got, want)
	}
	p.stop()
}

// left are the directories beside the one that was to be made.
func left(t *testing.T, parent string) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(parent)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if e.Name() != "data" {
			names = append(names, e.Name())
		}
	}
	return names
}

// TestTakeoverKilled ends takeovers at random moments. Either all is there under the name
// that it was to get or nothing is, nothing starts on what is left, the old files are as
// they were, and the same command works.
func TestTakeoverKilled(t *testing.T) {
	t.Parallel() // it waits more than it works
	seed := *takeoverSeed
	if seed == 0 {
		seed = uint64(time.Now().UnixNano())
	}
	t.Logf("repeat with -takeover-seed=%d", seed)
	moments := rand.New(rand.NewPCG(seed, 0))
	m := newMoved(t)
	usual := time.Since(taken(t, m.args(filepath.Join(t.TempDir(), "data"))).started)
	outcomes := map[string]int{}
	for range *takeoverKills {
		with := []os.Signal{syscall.SIGKILL, syscall.SIGKILL, syscall.SIGTERM}[moments.IntN(3)]
		outcomes[m.cut(t, with, time.Duration(moments.Int64N(int64(usual*11/10))))]++
	}
	t.Logf("%d takeovers: %v", *takeoverKills, outcomes)
}

// cut ends a takeover after a while, looks at what is left, and does it again.
func (m *moved) cut(t *testing.T, with os.Signal, after time.Duration) string {
	t.Helper()
	parent := t.TempDir()
	data := filepath.Join(parent, "data")
	p := launch(t, settings{args: m.args(data)})
	<-time.After(after)
	_ = p.cmd.Process.Signal(with) // which may have ended
	p.wait()
	m.untouched(t)
	if _, err := os.Stat(data); err == nil {
		m.whole(t, data)
		return "whole"
	}
	halves := left(t, parent)
	if code := p.cmd.ProcessState.ExitCode(); with == syscall.SIGTERM && (len(halves) > 0 || code >= 0 && !strings.Contains(p.stderr.String(), "was ended before")) {
		t.Errorf("it was asked to end, leaves %v and says %s", halves, p.stderr.String())
	}
	for _, name := range halves {
		half := filepath.Join(parent, name)
		_, begun := os.Stat(filepath.Join(half, "pki"))
		_, open := os.Stat(filepath.Join(half, "unfinished"))
		switch {
		case open == nil:
			m.notServed(t, half)
		case begun == nil: // all is there but the name
			m.whole(t, half)
		}
	}
	again := taken(t, m.args(data))
	for _, name := range halves {
		if !strings.Contains(again.stderr.String(), name) {
			t.Errorf("nothing is said of %s, which holds keys: %s", name, again.stderr.String())
		}
	}
	m.whole(t, data)
	return fmt.Sprintf("%d left", len(halves))
}

// TestTakeoverAsked asks takeovers to end while their store is being made, which is then
// stopped before its files are deleted.
func TestTakeoverAsked(t *testing.T) {
	t.Parallel() // it waits more than it works
	m := newMoved(t)
	for range 5 {
		parent := t.TempDir()
		p := launch(t, settings{args: m.args(filepath.Join(parent, "data"))})
		begun := filepath.Join(parent, ".data.half-*", "store", "member")
		deadline := time.Now().Add(waitTime)
		for made, _ := filepath.Glob(begun); len(made) == 0; made, _ = filepath.Glob(begun) {
			if time.Now().After(deadline) {
				t.Fatal("there is no store")
			}
			<-time.After(time.Millisecond) // a store is made in a few of them
		}
		if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
		code, said := p.wait(), p.stderr.String()
		if names := left(t, parent); code != 1 || len(names) > 0 || !strings.Contains(said, "nothing of it is left") {
			t.Errorf("it was asked to end, ended with %d, leaves %v and says %s", code, names, said)
		}
	}
	m.untouched(t)
}

// notServed looks that no controller starts on what is left of a takeover.
func (m *moved) notServed(t *testing.T, half string) {
	t.Helper()
	if !strings.HasPrefix(filepath.Base(half), ".") {
		t.Errorf("%s is left", half)
	}
	p := launch(t, settings{args: []string{"run", "--data", half, "--listen", "127.0.0.1:0"}, env: []string{"NETKEEP_ADMIN_PASSWORD=" + password}})
	if code := p.wait(); code != 1 || !strings.Contains(p.stderr.String(), "cut short") {
		t.Errorf("on what is left a controller ended with %d: %s %s", code, p.stdout.String(), p.stderr.String())
	}
}

// TestTakeoverFullDisk takes a network over where not all of it fits: it says so in a
// sentence, and nothing is left.
func TestTakeoverFullDisk(t *testing.T) {
	t.Parallel()
	m := newMoved(t)
	parent := t.TempDir()
	data := filepath.Join(parent, "data")
	for _, size := range []uint64{0, 1 << 10, 4 << 10, 64 << 10, 1 << 20, 3 << 20, 5 << 20} {
		// The limit is there from the first instruction on, which it is not for one that is
		// started and then limited.
		p := launch(t, settings{binary: "/bin/sh", args: append([]string{"-c", fmt.Sprintf(`ulimit -f %d && exec "$0" "$@"`, size/512), binary}, m.args(data)...)})
		code, said := p.wait(), p.stderr.String()
		if code != 1 || strings.Count(said, "\n") != 1 || !strings.Contains(said, "file too large") {
			t.Errorf("with files of at most %d bytes it ended with %d and said %s", size, code, said)
		}
		if names := left(t, parent); len(names) > 0 {
			t.Errorf("with files of at most %d bytes it leaves %v", size, names)
		}
		if _, err := os.Stat(data); err == nil {
			t.Errorf("with files of at most %d bytes there is a network", size)
		}
	}
	m.untouched(t)
	taken(t, m.args(data))
	m.whole(t, data)
}
