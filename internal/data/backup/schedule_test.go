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

// TestSchedule lets days go by: there is a snapshot a day, the last three of
// them stay, and so do those that somebody asked for.
func TestSchedule(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		s := snapshots(dir)
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		if _, err := s.Create(ctx); err != nil {
			t.Fatal(err)
		}
		go s.Schedule(ctx, 24*time.Hour, 3)
		<-time.After(4*24*time.Hour + time.Hour)
		want := "[20000101T000000Z-r7-n0123456789abcdef.db 20000103T000100Z-r7-n0123456789abcdef-scheduled.db 20000104T000100Z-r7-n0123456789abcdef-scheduled.db 20000105T000100Z-r7-n0123456789abcdef-scheduled.db]"
		if got := fmt.Sprint(names(t, s)); got != want {
			t.Errorf("there is %s, want %s", got, want)
		}
		files, err := s.List()
		if err != nil || len(files) != 4 || files[0].Name != "20000105T000100Z-r7-n0123456789abcdef-scheduled.db" || !files[0].Scheduled || files[3].Scheduled ||
			files[0].Size != int64(len("everything")) || files[0].Rev != 7 || !files[0].Time.Equal(time.Date(2000, 1, 5, 0, 1, 0, 0, time.UTC)) {
			t.Errorf("the list is %+v: %v", files, err)
		}
		if last, ok := s.Last(); !ok || last != files[0] {
			t.Errorf("the last is %+v", last)
		}
	})
}

// TestScheduleAfterRestart does not begin anew: the next is due when it was.
func TestScheduleAfterRestart(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		for range 3 {
			s := snapshots(dir)
			ctx, stop := context.WithCancel(t.Context())
			go s.Schedule(ctx, 24*time.Hour, 9)
			<-time.After(10 * time.Hour)
			stop()
			synctest.Wait()
		}
		if got, want := fmt.Sprint(names(t, snapshots(dir))), "[20000101T000000Z-r7-n0123456789abcdef-scheduled.db 20000102T000000Z-r7-n0123456789abcdef-scheduled.db]"; got != want {
			t.Errorf("there is %s, want %s", got, want)
		}
	})
}

// hiding hides snapshots as soon as they are written.
type hiding struct {
	slog.Handler
	hide func(path string) error
	errs []error
}

func (h *hiding) Enabled(context.Context, slog.Level) bool { return true }

func (h *hiding) Handle(_ context.Context, r slog.Record) error {
	r.Attrs(func(a slog.Attr) bool {
		if r.Message == "wrote a snapshot" && a.Key == "file" {
			h.errs = append(h.errs, h.hide(a.Value.String()))
		}
		return true
	})
	return nil
}

// TestScheduleUnseen has snapshots that cannot be found again. They are written
// no more often for that. (Whoever may do everything lists them all the same.)
func TestScheduleUnseen(t *testing.T) {
	for what, hide := range map[string]func(path string) error{
		"taken away": os.Remove,
		"renamed":    func(path string) error { return os.Rename(path, path+".kept") },
		"not for us": func(path string) error { return os.Chmod(filepath.Dir(path), 0o300) },
	} {
		t.Run(what, func(t *testing.T) {
			dir := t.TempDir()
			synctest.Test(t, func(t *testing.T) {
				s := snapshots(dir)
				log := &hiding{Handler: slog.DiscardHandler, hide: hide}
				s.Log = slog.New(log)
				ctx, stop := context.WithCancel(t.Context())
				go s.Schedule(ctx, 24*time.Hour, 3)
				<-time.After(36 * time.Hour)
				stop()
				synctest.Wait()
				if err := errors.Join(log.errs...); err != nil || len(log.errs) != 2 {
					t.Errorf("%d were written in a day and a half, want 2: %v", len(log.errs), err)
				}
			})
			if err := os.Chmod(filepath.Join(dir, "snapshots"), 0o700); err != nil { // to be cleaned up
				t.Fatal(err)
			}
		})
	}
}

// TestScheduleFails has the disk fail for a while. It is said, and tried again
// until it works.
func TestScheduleFails(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		s := snapshots(dir)
		write, tries := s.Write, 0
		s.Write = func(ctx context.Context, w io.Writer) error {
			if tries++; tries <= 2 {
				return storetest.ErrInjected
			}
			return write(ctx, w)
		}
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		go s.Schedule(ctx, 24*time.Hour, 3)
		<-time.After(time.Minute)
		if got, want := s.Failing(), "the last scheduled snapshot failed at 2000-01-01T00:00:00Z; the log says why"; got != want {
			t.Errorf("it says %q, want %q", got, want)
		}
		<-time.After(5 * time.Minute)
		if got := s.Failing(); !strings.Contains(got, "00:05:00Z") {
			t.Errorf("then it says %q", got)
		}
		<-time.After(5 * time.Minute)
		if got := s.Failing(); got != "" || len(names(t, s)) != 1 {
			t.Errorf("in the end it says %q and there is %v", got, names(t, s))
		}
	})
}

// TestScheduleEachMinute begins between two seconds, which names do not tell
// apart. There is a snapshot a minute all the same.
func TestScheduleEachMinute(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		s := snapshots(dir)
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		<-time.After(700 * time.Millisecond)
		go s.Schedule(ctx, time.Minute, 100)
		<-time.After(10*time.Minute + time.Second)
		if n := len(names(t, s)); n != 11 {
			t.Errorf("after ten minutes there are %d: %v", n, names(t, s))
		}
	})
}

// TestNetworks has a directory in which there are snapshots of several networks
// and of versions whose names do not say of which they are. Only those count
// that are known to be one's own, and only those are deleted.
func TestNetworks(t *testing.T) {
	const (
		other   = "20000103T000000Z-r7-nfedcba9876543210-scheduled.db"
		foreign = "20000102T000000Z-r7-scheduled.db"
		silent  = "20000102T000001Z-r7-scheduled.db"
		broken  = "20000102T000002Z-r7-scheduled.db"
		ours    = "19991231T120000Z-r7-scheduled.db"
		older   = "19991230T120000Z-r7-scheduled.db"
	)
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		s := snapshots(dir)
		if err := os.MkdirAll(s.Dir, 0o700); err != nil {
			t.Fatal(err)
		}
		for name, text := range map[string]string{
			other: "everything of fedcba98765432100000", foreign: "everything of fedcba98765432100000", silent: "everything",
			broken: "half", ours: "everything of " + root, older: "everything of " + root,
		} {
			if err := os.WriteFile(filepath.Join(s.Dir, name), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		go s.Schedule(ctx, 24*time.Hour, 2)
		<-time.After(11 * time.Hour)
		if n := len(names(t, s)); n != 6 {
			t.Errorf("one was due when there was one of 12 hours before: %v", names(t, s))
		}
		<-time.After(2 * time.Hour)
		const next = "20000101T120000Z-r7-n0123456789abcdef-scheduled.db"
		if got, want := fmt.Sprint(names(t, s)), fmt.Sprint([]string{ours, next, foreign, silent, broken, other}); got != want {
			t.Errorf("there is %s, want %s", got, want)
		}
		files, err := s.List()
		var listed []string
		for _, f := range files {
			listed = append(listed, f.Name)
		}
		if got, want := fmt.Sprint(listed), fmt.Sprint([]string{broken, silent, next, ours}); got != want || err != nil {
			t.Errorf("the list is %s, want %s: %v", got, want, err)
		}
		if last, ok := s.Last(); !ok || last.Name != next {
			t.Errorf("the last is %+v", last)
		}
		if _, wrong, err := s.Check(t.Context(), other); err != nil || !strings.Contains(wrong, "of another network, that with the root CA fedcba98765432100000") {
			t.Errorf("one of another network: %q, %v", wrong, err)
		}
	})
}

// TestCheck reads snapshots that are whole, damaged, of another revision, and
// names that are none.
func TestCheck(t *testing.T) {
	dir := t.TempDir()
	s := snapshots(dir)
	name, err := s.Create(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if f, wrong, err := s.Check(t.Context(), name); err != nil || wrong != "" || f.Name != name || f.Rev != 7 {
		t.Errorf("a whole one is %+v, %q, %v", f, wrong, err)
	}
	other := strings.Replace(name, "-r7", "-r8", 1)
	if err := os.Rename(filepath.Join(s.Dir, name), filepath.Join(s.Dir, other)); err != nil {
		t.Fatal(err)
	}
	if _, wrong, err := s.Check(t.Context(), other); err != nil || !strings.Contains(wrong, "revision 7") {
		t.Errorf("one of another revision: %q, %v", wrong, err)
	}
	if err := os.WriteFile(filepath.Join(s.Dir, other), []byte("nothing"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, wrong, err := s.Check(t.Context(), other); err != nil || !strings.Contains(wrong, `holds "nothing"`) {
		t.Errorf("a damaged one: %q, %v", wrong, err)
	}
	secret := filepath.Join(dir, "20000101T000000Z-r7.db")
	if err := os.WriteFile(secret, []byte("everything"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(secret, filepath.Join(s.Dir, "20000101T000001Z-r7.db")); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"", ".", "..", name, "../20000101T000000Z-r7.db", secret, "20000101T000001Z-r7.db", other + "\x00", "20001301T000000Z-r7.db", ".unfinished-1"} {
		if _, _, err := s.Check(t.Context(), name); !fault.Is(err, fault.CodeNotFound) {
			t.Errorf("%q: %v", name, err)
		}
	}
	if files, err := s.List(); err != nil || len(files) != 1 {
		t.Errorf("the list is %+v: %v", files, err)
	}
	ctx, leave := context.WithCancel(t.Context())
	s.Verify = func(context.Context, string) (backup.Content, error) {
		leave()
		return backup.Content{}, ctx.Err()
	}
	if _, wrong, err := s.Check(ctx, other); !errors.Is(err, context.Canceled) {
		t.Errorf("one that nobody waits for is called %q, %v", wrong, err)
	}
}
