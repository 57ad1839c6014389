package backup_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"netkeep.internal/internal/data/backup"
	"netkeep.internal/internal/data/store/storetest"
	"netkeep.internal/internal/lang/fault"
)

// root is the fingerprint of the root CA of the network that the tests copy.
const root = "0123456789abcdef0123456789abcdef"

// snapshots returns a writer of snapshots that hold one text.
func snapshots(dir string) *backup.Snapshots {
	return &backup.Snapshots{
		Dir: filepath.Join(dir, "snapshots"), Now: time.Now, Log: slog.New(slog.DiscardHandler),
		Roots: func() []string { return []string{root} },
		Write: func(_ context.Context, w io.Writer) error {
			_, err := io.WriteString(w, "everything")
			return err
		},
		Verify: func(_ context.Context, path string) (backup.Content, error) {
			text, err := os.ReadFile(path)
			what, whose, _ := strings.Cut(string(text), " of ")
			if err == nil && what != "everything" {
				err = fmt.Errorf("it holds %q", text)
			}
			return backup.Content{Rev: 7, Root: whose}, err
		},
	}
}

// names lists what is in the directory, hidden files too.
func names(t *testing.T, s *backup.Snapshots) (all []string) {
	t.Helper()
	entries, err := os.ReadDir(s.Dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		all = append(all, e.Name())
	}
	return all
}

func TestCreate(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		s := snapshots(dir)
		for range 2 {
			if _, err := s.Create(t.Context()); err != nil {
				t.Fatal(err)
			}
			<-time.After(42 * time.Second)
			_, err := s.Create(t.Context())
			if f, ok := errors.AsType[*fault.Error](err); !ok || f.Code != fault.CodeRateLimited || f.Wait != 18*time.Second {
				t.Errorf("within a minute: %v", err)
			}
			<-time.After(18 * time.Second)
		}
		want := "[20000101T000000Z-r7-n0123456789abcdef.db 20000101T000100Z-r7-n0123456789abcdef.db]"
		if got := fmt.Sprint(names(t, s)); got != want {
			t.Errorf("there is %s, want %s", got, want)
		}
		for _, name := range names(t, s) {
			info, err := os.Stat(filepath.Join(s.Dir, name))
			if err != nil || info.Mode().Perm() != 0o600 {
				t.Errorf("%s has mode %v: %v", name, info.Mode(), err)
			}
		}
	})
}

// TestFailures has a step fail. Nothing is left behind, and the next snapshot
// need not wait.
func TestFailures(t *testing.T) {
	for name, spoil := range map[string]func(*backup.Snapshots){
		"write": func(s *backup.Snapshots) {
			s.Write = func(_ context.Context, w io.Writer) error {
				_, err := io.WriteString(w, "every")
				return errors.Join(err, storetest.ErrInjected)
			}
		},
		"verify": func(s *backup.Snapshots) {
			s.Verify = func(context.Context, string) (backup.Content, error) { return backup.Content{}, storetest.ErrInjected }
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := snapshots(t.TempDir())
			write, verify := s.Write, s.Verify
			spoil(s)
			if _, err := s.Create(t.Context()); !errors.Is(err, storetest.ErrInjected) {
				t.Errorf("it fails with %v", err)
			}
			if left := names(t, s); len(left) > 0 {
				t.Errorf("there is %q", left)
			}
			s.Write, s.Verify = write, verify
			if _, err := s.Create(t.Context()); err != nil || len(names(t, s)) != 1 {
				t.Errorf("then there is %q: %v", names(t, s), err)
			}
		})
	}
}

// TestOneAtATime starts a second one while the first is written, and leaves
// the first before it is finished.
func TestOneAtATime(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		s := snapshots(dir)
		write, release := s.Write, make(chan struct{})
		s.Write = func(ctx context.Context, w io.Writer) error {
			<-release
			return write(ctx, w)
		}
		ctx, leave := context.WithCancel(t.Context())
		left := make(chan error)
		go func() {
			_, err := s.Create(ctx)
			left <- err
		}()
		synctest.Wait()
		if _, err := s.Create(t.Context()); !fault.Is(err, fault.CodeRateLimited) {
			t.Errorf("a second one: %v", err)
		}
		leave()
		if err := <-left; !errors.Is(err, context.Canceled) {
			t.Errorf("who leaves is told %v", err)
		}
		close(release)
		synctest.Wait()
		if got := names(t, s); len(got) != 1 || got[0] != "20000101T000000Z-r7-n0123456789abcdef.db" {
			t.Errorf("there is %q", got)
		}
	})
}

// TestClose stops in the middle of a snapshot. Nothing is left of it.
func TestClose(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		s := snapshots(dir)
		s.Write = func(ctx context.Context, _ io.Writer) error {
			<-ctx.Done()
			return ctx.Err()
		}
		failed := make(chan error)
		go func() {
			_, err := s.Create(t.Context())
			failed <- err
		}()
		synctest.Wait()
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		if err := <-failed; !errors.Is(err, context.Canceled) {
			t.Errorf("it ended with %v", err)
		}
		if left := names(t, s); len(left) > 0 {
			t.Errorf("there is %q", left)
		}
		if _, err := s.Create(t.Context()); !fault.Is(err, fault.CodeUnavailable) {
			t.Errorf("after Close: %v", err)
		}
	})
}

// TestClean removes what a killed process left, and nothing else: what another
// network is writing is not ours.
func TestClean(t *testing.T) {
	s := snapshots(t.TempDir())
	if err := s.Clean(); err != nil {
		t.Errorf("without a directory: %v", err)
	}
	if err := os.MkdirAll(s.Dir, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{".unfinished-1234", ".unfinished-0123456789abcdef-1234", ".unfinished-fedcba9876543210-1234", "20000101T000000Z-r7.db", "mine"} {
		if err := os.WriteFile(filepath.Join(s.Dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Clean(); err != nil {
		t.Error(err)
	}
	if got := fmt.Sprint(names(t, s)); got != "[.unfinished-fedcba9876543210-1234 20000101T000000Z-r7.db mine]" {
		t.Errorf("there is %s", got)
	}
}
