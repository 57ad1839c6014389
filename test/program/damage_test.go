package program_test

import (
	"bytes"
	"flag"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"netkeep.internal/test/servertest"
)

var (
	damages    = flag.Int("damages", 8, "how often to damage the data directory")
	damageSeed = flag.Uint64("damage-seed", 0, "seed of the random damages; 0 takes one from the clock")
)

// TestDamages damages one file of a data directory at random, again and again: the
// controller says what is wrong and ends, starts and says what it misses, or starts and
// has all. It never has anything else without a word, and never panics.
func TestDamages(t *testing.T) {
	t.Parallel() // it waits more than it works
	seed := *damageSeed
	if seed == 0 {
		seed = uint64(time.Now().UnixNano())
	}
	t.Logf("repeat with -damage-seed=%d", seed)
	d := &damaged{Rand: rand.New(rand.NewPCG(seed, 0)), whole: filepath.Join(t.TempDir(), "data"), older: filepath.Join(t.TempDir(), "older")}
	d.prepare(t)
	outcomes := map[string]int{}
	for range *damages {
		outcomes[d.round(t)]++
	}
	t.Logf("%d damages: %v", *damages, outcomes)
}

// damaged is a data directory that is damaged in copies.
type damaged struct {
	*rand.Rand

	whole, older string
	want         map[string]map[string]M
}

// checkpoints have starts begin with what memory had, however little that is.
var checkpoints = []string{"--store-checkpoint", "1"}

// prepare makes the directory, and keeps how it was in the middle.
func (d *damaged) prepare(t *testing.T) {
	add := func(c *client, from, to int) {
		for i := from; i < to; i++ {
			c.must(t, 201, http.MethodPost, "identities", M{"name": fmt.Sprintf("device-%d", i), "type": "User", "isAdmin": false, "roleAttributes": []string{"kept"}})
			c.must(t, 201, http.MethodPost, "services", M{"name": fmt.Sprintf("service-%d", i), "encryptionRequired": true})
		}
	}
	p := controller(t, d.whole, checkpoints...)
	add(p.client(d.whole), 0, 20)
	servertest.Eventually(t, waitTime, "a checkpoint", func() bool {
		_, err := os.Stat(filepath.Join(d.whole, "checkpoint"))
		return err == nil
	})
	p.stop()
	copyTree(t, d.whole, d.older)
	p = controller(t, d.whole, checkpoints...)
	c := p.client(d.whole)
	add(c, 20, 60)
	for id, rec := range c.list(t, "identities") {
		if name := rec["name"].(string); strings.HasSuffix(name, "5") {
			c.must(t, 200, http.MethodDelete, "identities/"+id, nil)
		} else if strings.HasSuffix(name, "7") {
			c.must(t, 200, http.MethodPatch, "identities/"+id, M{"name": name + "-changed"})
		}
	}
	d.want = d.everything(t, c)
	p.stop()
}

// everything is what there is, as one who looks finds it who was not here before.
func (d *damaged) everything(t *testing.T, c *client) map[string]map[string]M {
	t.Helper()
	there := c.everything(t)
	for _, identity := range there["identities"] {
		delete(identity, "lastSeenAt")
		delete(identity, "hasApiSession")
	}
	return there
}

// round damages a copy, and looks at what a controller makes of it.
func (d *damaged) round(t *testing.T) (outcome string) {
	data := filepath.Join(t.TempDir(), "data")
	copyTree(t, d.whole, data)
	defer os.RemoveAll(data)
	what := d.damage(t, data)
	p := launch(t, settings{args: append([]string{"run", "--data", data, "--listen", "127.0.0.1:0"}, checkpoints...)})
	defer p.kill(0)
	if !p.startsOrEnds(what) {
		text := p.stderr.String()
		if code := p.cmd.ProcessState.ExitCode(); code != 1 || strings.Contains(text, "goroutine ") {
			t.Errorf("%s: it ends with code %d", what, code)
		}
		p.complains(complaints(text))
		return "refused"
	}
	c := connect(t, p.ready(), filepath.Join(data, "pki", "root.crt"))
	told := strings.Contains(p.stderr.String(), `"level":"ERROR"`)
	if err := c.login("admin", password); err != nil {
		if !told {
			t.Errorf("%s: nobody gets in, and nothing is said: %v", what, err)
		}
		return "told"
	}
	diff := cmp.Diff(d.want, d.everything(t, c))
	log := c.must(t, 200, http.MethodGet, "audit-verification", nil).body["data"].(M)
	switch {
	case diff == "" && log["intact"] == true:
		return "whole"
	case diff == "" && len(log["flaws"].([]any)) > 0: // of the log, which says which entries
		return "told"
	case told && d.names(c.everything(t), p.stderr.String()):
		return "told"
	}
	t.Errorf("%s: it starts without a word, and has (-before +now):\n%s", what, diff)
	return "wrong"
}

// names reports whether a log names every record that is another than it was.
func (d *damaged) names(there map[string]map[string]M, log string) bool {
	for path, recs := range d.want {
		for id, rec := range recs {
			if !cmp.Equal(rec, there[path][id]) && !strings.Contains(log, id) {
				return false
			}
		}
	}
	return true
}

// startsOrEnds waits for either, and reports whether it started.
func (p *process) startsOrEnds(what string) bool {
	p.t.Helper()
	timeout := time.NewTimer(2 * waitTime)
	defer timeout.Stop()
	for {
		text, more := p.stdout.look()
		if welcomed.MatchString(text) {
			return true
		}
		select {
		case <-more:
		case <-p.ended:
			return false
		case <-timeout.C:
			p.t.Fatalf("%s: it neither starts nor ends:\n%s", what, tail(p.stderr.String(), 4000))
		}
	}
}

// damage changes one file, and says how.
func (d *damaged) damage(t *testing.T, data string) string {
	t.Helper()
	var files []string
	err := filepath.WalkDir(data, func(path string, entry fs.DirEntry, err error) error {
		if info, bad := entry.Info(); err == nil && bad == nil && info.Mode().IsRegular() && info.Size() > 0 {
			files = append(files, path)
			if strings.Contains(path, "member") { // most of what matters is there
				files = append(files, path, path, path)
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	path := files[d.IntN(len(files))]
	name, _ := filepath.Rel(data, path)
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	used := len(bytes.TrimRight(content, "\x00")) // a log has room that nobody has written to
	at := d.IntN(max(1, used))
	how := fmt.Sprintf("cut at %d", at)
	switch d.IntN(4) {
	case 0:
		content = content[:at]
	case 1:
		bits := 1 + d.IntN(8)
		how = fmt.Sprintf("%d bits flipped about %d", bits, at)
		for range bits {
			content[min(len(content)-1, at+d.IntN(64))] ^= 1 << d.IntN(8)
		}
	case 2:
		n := 1 + d.IntN(8192)
		how = fmt.Sprintf("%d zeroes at %d", n, at)
		clear(content[at:min(len(content), at+n)])
	case 3:
		old, err := os.ReadFile(filepath.Join(d.older, name))
		if err != nil {
			return d.damage(t, data) // there was none
		}
		how, content = "swapped with an older one", old
	}
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	return name + ", " + how
}

func copyTree(t *testing.T, from, to string) {
	t.Helper()
	if err := os.CopyFS(to, os.DirFS(from)); err != nil {
		t.Fatal(err)
	}
	err := filepath.WalkDir(to, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		original, err := os.Stat(filepath.Join(from, strings.TrimPrefix(path, to)))
		if err != nil {
			return err
		}
		return os.Chmod(path, original.Mode().Perm())
	})
	if err != nil {
		t.Fatal(err)
	}
}
