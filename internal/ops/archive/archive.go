// Package archive keeps entries of the audit log that leave the store in files of
// one controller. It owns the form of the files, when they are begun, ended and
// deleted, what becomes of one that was cut short, and the check that they are what
// the store had. Which entries leave, and when the store may forget them, is for
// ops/audit to say. It imports that, disk and nothing that serves.
package archive

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"netkeep.internal/internal/disk"
	"netkeep.internal/internal/ops/audit"
)

const (
	// fullBytes is how large a file becomes before another one is begun, and fullAge
	// how old.
	fullBytes = 16 << 20
	fullAge   = 24 * time.Hour
	// batchBytes is about how many bytes of entries are compressed together and
	// brought to the disk at once.
	batchBytes = 1 << 20
)

// Archive is the files of one controller.
type Archive struct {
	Dir        string
	Network    string        // what the network is called by its root
	Controller string        // id of the controller whose files these are
	Age        time.Duration // how long files are kept; 0 for any time
	Bytes      int64         // how many bytes of them
	Patience   time.Duration // how long it may fail before that is the controller's failure
	Now        func() time.Time
	Log        *slog.Logger

	mu     sync.Mutex
	at     place     // of the last entry that is on disk
	opened bool      // whether it is known
	since  time.Time // when it began to fail; zero while it does not
	reason error     // why it last did

	part *part // the file that is written; of one goroutine
}

// place is that of an entry: its number and digest, empty if that is not known.
type place struct {
	number int64
	digest string
}

// Run archives what leaves the store at every interval until ctx ends. What fails is
// tried again.
func (a *Archive) Run(ctx context.Context, from *audit.Keeper, every time.Duration) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	defer a.close()
	for {
		a.note(ctx, a.Keep(ctx, from))
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// note remembers whether it fails, and says so once in a while.
func (a *Archive) note(ctx context.Context, err error) {
	if ctx.Err() != nil {
		return // we are stopping
	}
	now := a.Now()
	a.mu.Lock()
	before := a.since
	switch a.reason = err; {
	case err == nil:
		a.since = time.Time{}
	case before.IsZero():
		a.since = now
	}
	a.mu.Unlock()
	switch {
	case err != nil:
		a.Log.Error("the audit log cannot be archived; its entries stay in the store, for a while", "directory", a.Dir, "error", err, "for", now.Sub(cmp.Or(before, now)).Truncate(time.Second).String())
	case !before.IsZero():
		a.Log.Info("the audit log is archived again", "after", now.Sub(before).Truncate(time.Second).String())
	}
}

// Failing says why the controller should not be relied on, if the archive has failed
// for too long; it is for those who watch it.
func (a *Archive) Failing() string {
	if since := a.FailingFor(); since > a.Patience {
		return fmt.Sprintf("the audit log could not be archived for %s; the log of the controller says why", since.Truncate(time.Second))
	}
	return ""
}

// FailingFor is for how long it has not worked; 0 if it does.
func (a *Archive) FailingFor() time.Duration {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.since.IsZero() {
		return 0
	}
	return max(a.Now().Sub(a.since), 1)
}

// Last is the number of the last entry that is archived, 0 if none is; not ok while
// that is not known.
func (a *Archive) Last() (number int64, ok bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.at.number, a.opened
}

func (a *Archive) place() place {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.at
}

func (a *Archive) setPlace(at place) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.at, a.opened = at, true
}

// errForked says that the store does not follow what was archived.
var errForked = errors.New("archive: the log of the store is not the one that was archived")

// Keep archives what is to leave the store now.
func (a *Archive) Keep(ctx context.Context, from *audit.Keeper) error {
	if _, ok := a.Last(); !ok {
		if err := a.open(); err != nil {
			return err
		}
	}
	err := a.follow(ctx, from)
	if errors.Is(err, errForked) {
		if err = a.setAside(); err == nil {
			err = a.follow(ctx, from)
		}
	}
	if err != nil {
		a.close() // what is on disk is looked at again
		return err
	}
	return a.retain()
}

// follow adds to the archive what comes after it.
func (a *Archive) follow(ctx context.Context, from *audit.Keeper) error {
	head := audit.Head(from.State.Snapshot())
	at := a.place()
	first := audit.First(head)
	switch {
	case at.number > head.Last: // nothing is archived that is the last entry
		return errForked
	case at.number < first-1:
		if at.number > 0 {
			a.Log.Error("audit entries left the store before this controller could archive them", "from", at.number+1, "to", first-1)
			if err := a.finish(); err != nil {
				return err
			}
		}
		a.setPlace(place{number: first - 1})
	}
	b := batch{archive: a}
	for leaf, err := range from.Leaving(ctx, a.place().number) {
		if err == nil {
			err = b.add(leaf)
		}
		if err != nil {
			return err
		}
	}
	return b.flush()
}

// batch is entries that are brought to the disk together.
type batch struct {
	archive *Archive
	leaves  []audit.Leaf
	bytes   int
}

func (b *batch) add(leaf audit.Leaf) error {
	first := leaf.Lines[0]
	before := b.archive.place()
	if len(b.leaves) == 0 && before.digest != "" && first.Number == before.number+1 { // others the check of the files compares
		if entry, err := first.Entry(); err == nil && entry.Previous != before.digest {
			return errForked
		}
	}
	b.leaves = append(b.leaves, leaf)
	for _, l := range leaf.Lines {
		b.bytes += len(l.Text)
	}
	if b.bytes < batchBytes {
		return nil
	}
	return b.flush()
}

func (b *batch) flush() error {
	if len(b.leaves) == 0 {
		return nil
	}
	err := b.archive.write(b.leaves)
	b.leaves, b.bytes = nil, 0
	return err
}

// setAside moves all files to a directory of their own, where nothing deletes them:
// a store that was restored from a snapshot goes on from where that was, with other
// entries under the same numbers.
func (a *Archive) setAside() error {
	a.close()
	names, err := a.list()
	if err != nil {
		return err
	}
	into := filepath.Join(a.Dir, "aside-"+a.Now().UTC().Format("20060102T150405Z"))
	if err := os.MkdirAll(into, 0o700); err != nil {
		return err
	}
	for _, n := range names {
		if err := os.Rename(filepath.Join(a.Dir, n.String()), filepath.Join(into, n.String())); err != nil {
			return err
		}
	}
	if err := errors.Join(disk.Sync(into), disk.Sync(a.Dir)); err != nil {
		return err
	}
	a.Log.Error("the audit log of the store is not the one that was archived, as after a restore; what was archived is set aside and a new archive is begun", "directory", into)
	a.setPlace(place{})
	return nil
}
