package archive_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"netkeep.internal/internal/data/state"
	"netkeep.internal/internal/data/store"
	"netkeep.internal/internal/data/store/storetest"
	"netkeep.internal/internal/model"
	"netkeep.internal/internal/ops/archive"
	"netkeep.internal/internal/ops/audit"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// controller is one that archives what leaves its store.
type controller struct {
	*audit.Keeper
	archive *archive.Archive
	log     bytes.Buffer
	clock   time.Time
}

func open(t *testing.T, memory *storetest.Memory, dir string) *controller {
	t.Helper()
	s, err := state.Open(context.Background(), memory.Another(), model.All, state.Options{Journal: audit.Journal{}, Frozen: true})
	must(t, err)
	t.Cleanup(s.Close)
	c := &controller{clock: time.Now()}
	now := func() time.Time { return c.clock }
	c.Keeper = &audit.Keeper{Log: &audit.Log{State: s}, Age: time.Hour, Entries: 1000, Now: now}
	c.again(dir)
	c.Archived = func() (int64, string) { n, _ := c.archive.Last(); return n, "this one" }
	return c
}

// again is a new start of the same controller.
func (c *controller) again(dir string) {
	c.archive = &archive.Archive{
		Dir: dir, Network: "net", Controller: "one", Bytes: 1 << 30, Patience: 10 * time.Minute, Now: c.Now, Log: slog.New(slog.NewTextHandler(&c.log, nil)),
	}
}

// write makes so many changes, twenty at a time.
func (c *controller) write(t *testing.T, changes int) {
	t.Helper()
	const together = 20
	for i := range changes / together {
		must(t, c.State.Update(t.Context(), state.Program("tester"), func(tx *state.Tx) error {
			for n := range together {
				id := fmt.Sprint("web", n)
				if err := model.Services.Upsert(tx, id, func(v *model.Service) {
					v.Name, v.TerminatorStrategy, v.MaxIdleTimeMillis = id, "random", c.last()+int64(i)+1
				}); err != nil {
					return err
				}
			}
			return nil
		}))
	}
}

func (c *controller) last() int64 { return audit.Head(c.State.Snapshot()).Last }

// keep has the controller do what it does every few seconds.
func (c *controller) keep(t *testing.T) {
	t.Helper()
	must(t, c.archive.Keep(t.Context(), c.Keeper))
	must(t, c.Keep(t.Context()))
}

func (c *controller) first() int64 { return audit.First(audit.Head(c.State.Snapshot())) }

// whole fails unless the files hold the entries from one to another, as written.
func whole(t *testing.T, dir string, first, last int64) {
	t.Helper()
	v, err := archive.Verify(dir, last)
	must(t, err)
	if len(v.Flaws) > 0 || len(v.Unreadable) > 0 || v.First != first || v.Last != last || v.Found != last-first+1 || v.At == "" || v.Digest != v.At {
		t.Errorf("the archive is %+v, want %d to %d", v, first, last)
	}
}

func names(t *testing.T, dir string) (all []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	must(t, err)
	for _, e := range entries {
		all = append(all, e.Name())
	}
	return all
}

// TestArchive has entries leave the store by number, by size and by age: all of them
// are in files before, and what is left follows them.
func TestArchive(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "audit")
	c := open(t, storetest.NewMemory(), dir)
	c.write(t, 1600)
	must(t, c.Keep(t.Context()))
	if c.first() != 1 {
		t.Fatalf("entries left before they were archived: the first is %d", c.first())
	}
	c.keep(t)
	n, _ := c.archive.Last()
	if n == 0 || c.first() != n+1 {
		t.Fatalf("%d entries are archived, and the first that is left is %d", n, c.first())
	}
	whole(t, dir, 1, n)
	entry, ok, err := c.Lookup(t.Context(), audit.ID(n+1))
	if v, _ := archive.Verify(dir, n); err != nil || !ok || entry.(*model.AuditEntry).Previous != v.At {
		t.Errorf("the first entry that is left follows another than the last that is archived")
	}

	c.write(t, 600)
	must(t, c.Keep(t.Context())) // which packs others
	c.Bytes = audit.Head(c.State.Snapshot()).Bytes - 1
	c.keep(t)
	if by, _ := c.archive.Last(); by <= n || c.first() != by+1 {
		t.Errorf("with a byte too many %d are archived, and the first is %d", by, c.first())
	}
	c.Bytes = 0
	c.clock = c.clock.Add(2 * time.Hour)
	c.again(dir) // after a start it goes on in the same file
	c.keep(t)
	if n, _ = c.archive.Last(); n != 2180 || c.first() != 2181 {
		t.Errorf("hours later %d are archived, and the first is %d", n, c.first())
	}
	whole(t, dir, 1, 2180)
	if got := names(t, dir); len(got) != 1 {
		t.Errorf("there are %q", got)
	}
	c.clock = c.clock.Add(25 * time.Hour)
	c.keep(t)
	if got := names(t, dir); len(got) != 1 || got[0] != "audit-000000000001-000000002180.jsonl.gz" {
		t.Errorf("a day later there are %q", got)
	}
	c.archive.Age = time.Hour
	must(t, os.Chtimes(filepath.Join(dir, names(t, dir)[0]), c.clock, c.clock.Add(-2*time.Hour)))
	c.keep(t)
	if got := names(t, dir); len(got) != 0 {
		t.Errorf("what is too old is kept: %q", got)
	}
	c.again(dir)
	c.keep(t)
	if n, ok := c.archive.Last(); !ok || n != 2180 {
		t.Errorf("an archive without files begins behind %d", n)
	}
}

// TestCutShort ends a file at places of its last piece and before, as a machine does that
// loses its power: what was whole stays, and the rest comes from the store again.
func TestCutShort(t *testing.T) {
	memory := storetest.NewMemory()
	dir := filepath.Join(t.TempDir(), "audit")
	c := open(t, memory, dir)
	c.Archived = func() (int64, string) { return 0, "nobody" } // so that the store keeps all
	c.write(t, 1080)
	must(t, c.archive.Keep(t.Context(), c.Keeper))
	path := filepath.Join(dir, names(t, dir)[0])
	before, err := os.ReadFile(path)
	must(t, err)
	c.write(t, 100)
	must(t, c.archive.Keep(t.Context(), c.Keeper))
	after, err := os.ReadFile(path)
	must(t, err)
	last, _ := c.archive.Last()
	random := rand.New(rand.NewPCG(1, 2))
	cuts := []int{0, 1, 9, 10, 11, len(before) - 1, len(before), len(before) + 1, len(before) + 10, len(after) - 8, len(after) - 1, len(after)}
	for range 10 {
		cuts = append(cuts, random.IntN(len(after)))
	}
	for _, n := range cuts {
		must(t, os.WriteFile(path, after[:n], 0o600))
		c.again(dir)
		must(t, c.archive.Keep(t.Context(), c.Keeper))
		whole(t, dir, 1, last)
		if t.Failed() {
			t.Fatalf("after a cut at byte %d of %d", n, len(after))
		}
	}
	written, err := unpacked(after)
	must(t, err)
	for range 50 { // whatever a file is, the check ends, and does not call it whole
		spoilt := bytes.Clone(after)
		at := random.IntN(len(after))
		spoilt[at] ^= byte(1 + random.IntN(255))
		if text, err := unpacked(spoilt); err == nil && bytes.Equal(text, written) {
			continue // some bits say nothing of what is packed: a time, those that fill a byte up
		}
		where := t.TempDir()
		must(t, os.WriteFile(filepath.Join(where, fmt.Sprintf("audit-000000000001-%012d.jsonl.gz", last)), spoilt, 0o600))
		v, err := archive.Verify(where, 0)
		must(t, err)
		if len(v.Flaws) == 0 && len(v.Unreadable) == 0 && v.Found == last {
			t.Errorf("a file with another byte %d is whole: %+v", at, v)
		}
	}
}

// unpacked is what a file holds.
func unpacked(file []byte) ([]byte, error) {
	r, err := gzip.NewReader(bytes.NewReader(file))
	if err != nil {
		return nil, err
	}
	return io.ReadAll(r)
}

// TestUnwritable has a directory that cannot be written: the store keeps its entries,
// the controller says so and is not to be relied on after a while, and all is as it was
// when it can be written again. In the end the store has to forget, and says what.
func TestUnwritable(t *testing.T) {
	parent := t.TempDir()
	dir := filepath.Join(parent, "audit")
	must(t, os.WriteFile(dir, nil, 0o600)) // a file is no directory, for root neither
	c := open(t, storetest.NewMemory(), dir)
	run := func(fails bool) {
		t.Helper()
		ctx, cancel := context.WithCancel(t.Context())
		ran := make(chan struct{})
		go func() { c.archive.Run(ctx, c.Keeper, time.Hour); close(ran) }()
		for (c.archive.FailingFor() > 0) != fails {
			<-time.After(time.Millisecond)
		}
		cancel()
		<-ran
	}
	c.write(t, 1600)
	run(true)
	must(t, c.Keep(t.Context()))
	if c.first() != 1 || c.archive.Failing() != "" {
		t.Errorf("the first entry is %d, and it fails with %q", c.first(), c.archive.Failing())
	}
	c.clock = c.clock.Add(11 * time.Minute)
	if why := c.archive.Failing(); !strings.Contains(why, "could not be archived for 11m") {
		t.Errorf("after its patience it fails with %q", why)
	}
	must(t, os.Remove(dir))
	run(false)
	must(t, c.Keep(t.Context()))
	n, _ := c.archive.Last()
	if c.first() != n+1 || n == 0 || c.archive.Failing() != "" {
		t.Errorf("%d are archived, and the first is %d", n, c.first())
	}
	whole(t, dir, 1, n)

	must(t, os.RemoveAll(dir))
	must(t, os.WriteFile(dir, nil, 0o600))
	c.again(dir)
	c.write(t, 2000)
	if err := c.archive.Keep(t.Context(), c.Keeper); err == nil {
		t.Fatal("a file was taken for a directory")
	}
	must(t, c.Keep(t.Context()))
	if first := c.first(); first <= n+1 || first > 1601 {
		t.Errorf("the store keeps twice as many entries as it should, from %d", first)
	}
	must(t, os.Remove(dir))
	must(t, c.archive.Keep(t.Context(), c.Keeper))
	must(t, c.Keep(t.Context()))
	if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
		t.Error("there is no archive")
	}
}

// TestAnother has a controller that was away while entries left: its archive has a gap
// that the check tells of. Then the store is another one, as after a restore: what was
// archived is set aside.
func TestAnother(t *testing.T) {
	memory := storetest.NewMemory()
	dir := filepath.Join(t.TempDir(), "audit")
	c := open(t, memory, dir)
	c.write(t, 1600)
	c.keep(t)
	n, _ := c.archive.Last()
	c.write(t, 1500)
	archived := c.Archived
	c.Archived = nil
	must(t, c.Keep(t.Context()))
	c.Archived = archived
	first := c.first()
	c.write(t, 1500)
	c.keep(t)
	v, err := archive.Verify(dir, 0)
	must(t, err)
	if want := []audit.Flaw{{From: n + 1, To: first - 1, What: "missing"}}; !slices.Equal(v.Flaws, want) || v.Files != 2 {
		t.Errorf("the archive is %+v, want %+v", v, want)
	}
	if !strings.Contains(c.log.String(), "left the store before") {
		t.Error("nobody was told of the gap")
	}

	other := open(t, storetest.NewMemory(), dir)
	other.write(t, 1600)
	other.keep(t)
	last, _ := other.archive.Last()
	whole(t, dir, 1, last)
	if got := names(t, dir); len(got) != 2 || !strings.HasPrefix(got[0], "aside-") || len(names(t, filepath.Join(dir, got[0]))) != 2 {
		t.Errorf("there are %q", got)
	}
	third := open(t, storetest.NewMemory(), dir)
	third.write(t, 2100) // more than were archived of the other
	third.clock = third.clock.Add(time.Second)
	third.keep(t)
	last, _ = third.archive.Last()
	whole(t, dir, 1, last)
}

// TestRead reads what was archived, across files.
func TestRead(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "audit")
	c := open(t, storetest.NewMemory(), dir)
	for range 3 {
		c.write(t, 1600)
		c.keep(t)
		c.clock = c.clock.Add(25 * time.Hour)
		c.keep(t)
	}
	last, _ := c.archive.Last()
	if len(names(t, dir)) < 3 {
		t.Fatalf("there are %q", names(t, dir))
	}
	next := int64(5)
	for next <= last {
		before := next
		for l, err := range c.archive.Read(next, last) {
			must(t, err)
			if l.Number != next {
				t.Fatalf("%d follows %d", l.Number, next-1)
			}
			next++
		}
		if next == before {
			t.Fatalf("after %d there is nothing", next-1)
		}
	}
}

// TestPackedByOthers has something behind what is packed in a block of the store, which
// nobody reads there: in a file it would be taken for the next piece, and all that
// follows would be lost.
func TestPackedByOthers(t *testing.T) {
	memory := storetest.NewMemory()
	dir := filepath.Join(t.TempDir(), "audit")
	c := open(t, memory, dir)
	c.Archived = func() (int64, string) { return 0, "nobody" }
	c.write(t, 1600)
	must(t, c.Keep(t.Context()))
	key := "+audit-block/" + audit.ID(1)
	recs, _, err := memory.Range(t.Context(), key, key+"0", 1, false)
	must(t, err)
	rec, err := model.AuditBlocks.Decode(recs[0].Value)
	must(t, err)
	block := rec.(*model.AuditBlock)
	if len(block.Deflated) == 0 {
		t.Fatal("the first block is not packed")
	}
	block.Deflated = append(block.Deflated, "more"...)
	value, err := model.AuditBlocks.Encode(block)
	must(t, err)
	_, err = memory.Put(t.Context(), store.Head{}, []store.Op{{Key: key, Value: value, Prev: store.Any}})
	must(t, err)
	must(t, c.archive.Keep(t.Context(), c.Keeper))
	c.clock = c.clock.Add(2 * time.Hour) // those leave too that are not packed
	must(t, c.archive.Keep(t.Context(), c.Keeper))
	last, _ := c.archive.Last()
	if last < 1500 {
		t.Errorf("%d are archived", last)
	}
	whole(t, dir, 1, last)
}
