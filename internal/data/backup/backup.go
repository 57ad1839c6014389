// Package backup writes snapshots of the store: files that hold everything at
// one revision and that were read back before they got their name. It owns
// their directory and how they are called: a name says of which network the
// snapshot is, since networks may share a directory. It deletes no snapshot but
// those of its own network's schedule, and knows nothing of what they hold.
package backup

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"netkeep.internal/internal/data/store"
	"netkeep.internal/internal/disk"
	"netkeep.internal/internal/lang/fault"
)

// least is the time between one snapshot and the next.
const least = time.Minute

// busy is when to ask again while another is written.
const busy = 5 * time.Second

// unfinished is what the names of snapshots begin with that are being written.
const unfinished = ".unfinished-"

// Snapshots writes snapshots into a directory, one at a time.
type Snapshots struct {
	Dir string
	// Roots are the fingerprints of the root CAs that the network has or had.
	// The first is in the names of new snapshots.
	Roots func() []string
	// Write writes a copy of everything at one revision.
	Write func(ctx context.Context, w io.Writer) error
	// Verify reads a snapshot and returns what it holds.
	Verify func(ctx context.Context, path string) (Content, error)
	// Scheduled, if set, is told of every snapshot that was taken by the clock, or
	// could not be.
	Scheduled func(name string, err error)

	Now func() time.Time
	Log *slog.Logger

	mu      sync.Mutex
	running bool
	closed  bool
	last    time.Time // when the last one was begun that came to its end
	// scheduled is when that was of the last of the schedule.
	scheduled time.Time
	// failedAt is when the last of the schedule failed; zero if it did not.
	failedAt time.Time
	checking sync.Mutex // held while one is read
	stop     context.CancelFunc
	done     sync.WaitGroup
	// roots are those that snapshots turned out to be of whose names do not say.
	roots map[string]string
}

// Content is what a snapshot holds.
type Content struct {
	Rev store.Rev
	// Root is the fingerprint of the root CA of its network; empty if it does
	// not say.
	Root string
}

// Clean removes what an interrupted snapshot of this network left behind.
func (s *Snapshots) Clean() error {
	entries, err := os.ReadDir(s.Dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("snapshots: %w", err)
	}
	for _, e := range entries {
		owner, ok := strings.CutPrefix(e.Name(), unfinished)
		if mark, _, marked := strings.Cut(owner, "-"); ok && (!marked || mark == s.mark()) {
			if err := os.Remove(filepath.Join(s.Dir, e.Name())); err != nil {
				return fmt.Errorf("snapshots: %w", err)
			}
		}
	}
	return nil
}

// Create writes a snapshot and returns its name in Dir when it is on disk and
// verified. It fails with CodeRateLimited while another is written and for a minute after.
// A snapshot that takes longer than ctx is finished nevertheless.
func (s *Snapshots) Create(ctx context.Context) (name string, err error) { return s.take(ctx, false) }

func (s *Snapshots) take(ctx context.Context, scheduled bool) (name string, err error) {
	begun := s.Now()
	own, err := s.begin(ctx, begun)
	if err != nil {
		return "", err
	}
	type outcome struct {
		name string
		err  error
	}
	result := make(chan outcome, 1)
	go func() {
		defer s.done.Done()
		name, err := s.create(own, begun, scheduled)
		switch {
		case fault.Is(err, fault.CodeSnapshot):
			s.Log.Warn("no snapshot was taken", "error", err)
		case err != nil:
			s.Log.Error("a snapshot failed", "error", err)
		}
		s.end(begun, scheduled, err)
		if scheduled && s.Scheduled != nil {
			s.Scheduled(name, err)
		}
		result <- outcome{name, err}
	}()
	select {
	case r := <-result:
		return r.name, r.err
	case <-ctx.Done():
		return "", fmt.Errorf("waiting for a snapshot, which goes on: %w", ctx.Err())
	}
}

// begin takes the right to write a snapshot.
func (s *Snapshots) begin(ctx context.Context, now time.Time) (context.Context, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.closed:
		return nil, fault.New(fault.CodeUnavailable, "the controller is stopping")
	case s.running:
		return nil, fault.Later("a snapshot is being written", busy)
	case !s.last.IsZero() && now.Sub(s.last) < least:
		return nil, fault.Later("the last snapshot was written less than a minute ago", least-max(0, now.Sub(s.last)))
	}
	own, stop := context.WithCancel(context.WithoutCancel(ctx))
	s.running, s.stop = true, stop
	s.done.Add(1)
	return own, nil
}

func (s *Snapshots) end(begun time.Time, scheduled bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stop()
	s.running = false
	if err == nil {
		s.last = begun
	}
	if err == nil && scheduled {
		s.scheduled = begun
	}
}

// Close gives up a snapshot that is being written and waits until nothing is
// left of it. No more are written after that.
func (s *Snapshots) Close() error {
	s.mu.Lock()
	s.closed = true
	if s.running {
		s.stop()
	}
	s.mu.Unlock()
	s.done.Wait()
	return nil
}

// create writes a snapshot under a name of its own, reads it back and gives it
// its name. What fails leaves nothing behind.
func (s *Snapshots) create(ctx context.Context, now time.Time, scheduled bool) (name string, err error) {
	if err := os.MkdirAll(s.Dir, 0o700); err != nil {
		return "", fmt.Errorf("snapshot: %w", err)
	}
	f, err := os.CreateTemp(s.Dir, unfinished+s.mark()+"-")
	if err != nil {
		return "", fmt.Errorf("snapshot: %w", err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(f.Name()))
		}
	}()
	err = s.Write(ctx, f)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return "", fmt.Errorf("snapshot: %w", err)
	}
	held, err := s.Verify(ctx, f.Name())
	if err != nil {
		return "", fmt.Errorf("snapshot: reading it back: %w", err)
	}
	name = nameOf(File{Time: now, Rev: held.Rev, Network: s.mark(), Scheduled: scheduled})
	path := filepath.Join(s.Dir, name)
	if err := os.Rename(f.Name(), path); err != nil {
		return "", fmt.Errorf("snapshot: %w", err)
	}
	s.Log.Info("wrote a snapshot", "file", path, "revision", held.Rev)
	if err := disk.Sync(s.Dir); err != nil {
		s.Log.Warn("the name of a snapshot may not be on disk yet", "file", path, "error", err)
	}
	return name, nil
}
