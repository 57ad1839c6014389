package etcdstore

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.etcd.io/etcd/client/pkg/v3/fileutil"
	"go.etcd.io/etcd/server/v3/embed"
	"go.uber.org/goleak"
	"go.uber.org/zap"

	"netkeep.internal/internal/data/store"
)

func set(key string, size int) []store.Op {
	return []store.Op{{Key: key, Value: bytes.Repeat([]byte{'x'}, size), Prev: store.Any}}
}

// use writes, follows and closes.
func use(t *testing.T, s *Store) {
	t.Helper()
	following, ended := make(chan struct{}), make(chan error, 1)
	go func() {
		ended <- s.Follow(t.Context(), 0, func(store.Batch) error {
			close(following)
			return nil
		})
	}()
	if _, err := s.Put(t.Context(), store.Head{}, set("k/1", 100)); err != nil {
		t.Fatal(err)
	}
	select {
	case <-following:
	case err := <-ended:
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if err := <-ended; !errors.Is(err, store.ErrClosed) {
		t.Errorf("Follow: %v", err)
	}
}

func TestOpenLeavesNothing(t *testing.T) {
	before := goleak.IgnoreCurrent()
	dir := filepath.Join(t.TempDir(), "new", "data")
	s, err := Open(t.Context(), Options{Dir: dir, Logger: testLogger(t)})
	if err != nil {
		t.Fatal(err)
	}
	use(t, s)
	if err := goleak.Find(before); err != nil {
		t.Error(err)
	}
	again, err := Open(t.Context(), Options{Dir: dir, Logger: testLogger(t)})
	if err != nil {
		t.Fatalf("the directory is still taken: %v", err)
	}
	if err := again.Close(); err != nil {
		t.Error(err)
	}
}

// TestOpenIsPrivate looks at the modes of what a member keeps. etcd makes its
// own snapshots with a wider mode; they name the member only, and their
// directory is closed.
func TestOpenIsPrivate(t *testing.T) {
	o := directory(t)
	s := o.Open(t).(*Store)
	defer s.Close()
	for range snapshotCount + 10 {
		if _, err := s.Put(t.Context(), store.Head{}, set("k/1", 10)); err != nil {
			t.Fatal(err)
		}
	}
	dir := s.member.etcd.Config().Dir
	files := 0
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		files++
		snap := filepath.Ext(path) == ".snap"
		if mode := info.Mode().Perm(); mode&0o077 != 0 && !snap {
			t.Errorf("%s has mode %v", path, mode)
		}
		return nil
	})
	if err != nil || files < 5 {
		t.Errorf("%d files, %v", files, err)
	}
}

func TestOpenRefuses(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	taken := directory(t)
	s := taken.Open(t).(*Store)
	defer s.Close()
	damaged := damage(t)
	for name, tt := range map[string]struct {
		dir  string
		says string
	}{
		"nothing":      {"", "no data directory"},
		"a file":       {file, "not a directory"},
		"beneath file": {filepath.Join(file, "data"), "not a directory"},
		"taken":        {s.member.etcd.Config().Dir, "in use by another process"},
		"damaged":      {damaged, "invalid database"},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := Open(t.Context(), Options{Dir: tt.dir, Logger: silent})
			if err == nil {
				s.Close()
				t.Fatal("opened")
			}
			if !strings.Contains(err.Error(), tt.says) {
				t.Errorf("error is %q, want %q", err, tt.says)
			}
		})
	}
}

// damage makes a data directory whose database is none.
func damage(t *testing.T) string {
	dir := filepath.Join(t.TempDir(), "data")
	s, err := Open(t.Context(), Options{Dir: dir, Logger: testLogger(t)})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	db := filepath.Join(dir, "member", "snap", "db")
	if err := os.WriteFile(db, bytes.Repeat([]byte("no database "), 10000), 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

// TestOpenCanceled gives up before the member is there. It must still go away.
func TestOpenCanceled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	dir := filepath.Join(t.TempDir(), "data")
	if _, err := Open(ctx, Options{Dir: dir, Logger: testLogger(t)}); !errors.Is(err, context.Canceled) {
		t.Fatalf("Open: %v", err)
	}
	// This waits until the directory is free.
	lock, err := fileutil.LockFile(filepath.Join(dir, "lock"), os.O_RDWR, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	if err := lock.Close(); err != nil {
		t.Fatal(err)
	}
	s, err := Open(t.Context(), Options{Dir: dir, Logger: testLogger(t)})
	if err != nil {
		t.Fatal(err)
	}
	use(t, s)
}

// TestOpenUnfinished finds the rest of a member that was killed before it was
// ready, and one that was not.
func TestOpenUnfinished(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	if err := os.MkdirAll(filepath.Join(dir, "member", "wal", "0.tmp"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, unfinished), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for n := range 2 {
		s, err := Open(t.Context(), Options{Dir: dir, Logger: testLogger(t)})
		if err != nil {
			t.Fatal(err)
		}
		records := 0
		_, err = s.Load(t.Context(), func(store.Record) error { records++; return nil })
		if err != nil || records != n {
			t.Errorf("start %d has %d records, %v", n, records, err)
		}
		if _, err := s.Put(t.Context(), store.Head{}, set(fmt.Sprintf("k/%d", n), 10)); err != nil {
			t.Error(err)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestFailed has etcd give up as it does when the disk is full.
func TestFailed(t *testing.T) {
	var log bytes.Buffer
	dir := filepath.Join(t.TempDir(), "data")
	m, err := startMember(t.Context(), Options{Dir: dir, Logger: slog.New(slog.NewTextHandler(&log, nil))}, func(*embed.Config) {})
	if err != nil {
		t.Fatal(err)
	}
	s := m.handle("", m.close)
	ended := make(chan error, 1)
	go func() { ended <- s.Follow(t.Context(), 0, func(store.Batch) error { return nil }) }()
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		m.etcd.GetLogger().Fatal("failed to save", zap.Error(errors.New("no space left")))
	}()
	<-gone
	if err := <-ended; !errors.Is(err, store.ErrFailed) {
		t.Errorf("Follow: %v", err)
	}
	_, err = s.Put(t.Context(), store.Head{}, set("k/1", 10))
	if !errors.Is(err, store.ErrFailed) || !strings.Contains(fmt.Sprint(err), "no space left") {
		t.Errorf("Put: %v", err)
	}
	if _, _, err := s.Get(t.Context(), "k/1"); !errors.Is(err, store.ErrFailed) {
		t.Errorf("Get: %v", err)
	}
	if err := s.Close(); !errors.Is(err, store.ErrFailed) {
		t.Errorf("Close: %v", err)
	}
	if !strings.Contains(log.String(), "level=ERROR") || !strings.Contains(log.String(), "no space left") {
		t.Errorf("logged %q", log.String())
	}
}

func TestLog(t *testing.T) {
	var out bytes.Buffer
	h := slog.NewTextHandler(&out, &slog.HandlerOptions{Level: slog.LevelDebug, ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}})
	b := &bridge{log: slog.New(h)}
	log := b.logger()
	log.Debug("too little")
	log.Info("too little")
	log.Warn(noise[0])
	log.With(zap.Int("n", 1)).Warn("slow", zap.String("request", strings.Repeat("k", 1000)))
	log.Error("bad", zap.Error(errors.New("disk")))
	b.closing.Store(true)
	log.Error("closed, says the listener")
	want := `level=WARN msg="etcd: slow" n=1 request=` + strings.Repeat("k", 300) + "...\n" +
		`level=ERROR msg="etcd: bad" error=disk` + "\n"
	if out.String() != want {
		t.Errorf("logged\n%swant\n%s", out.String(), want)
	}
}

// TestPublish has a member tell of itself in vain, a thousand times. It is said
// once, and it does so in ten seconds and not in one turn of a loop.
func TestPublish(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		b := &bridge{log: slog.New(slog.NewTextHandler(&out, nil)), fail: func(error) {}}
		log, start := b.logger().With(zap.String("name", "value")), time.Now()
		for range 1000 {
			log.Warn(publishFailed, zap.Error(errors.New("too many requests")))
		}
		if took := time.Since(start); took != 1000*publishPause {
			t.Errorf("it took %s", took)
		}
		if text := out.String(); strings.Count(text, "\n") != 1 || !strings.Contains(text, "level=INFO") || !strings.Contains(text, "too many requests") {
			t.Errorf("it logged:\n%s", text)
		}
	})
}

// TestFullAndReclaimed fills a member to its quota, and makes room again.
func TestFullAndReclaimed(t *testing.T) {
	m := startTest(t, silent, func(c *embed.Config) { c.QuotaBackendBytes = 8 << 20 })
	m.reclaim = 1 << 20
	s := m.handle("", func() error { return nil })
	defer s.Close()
	var rev store.Rev
	var err error
	for n := 0; err == nil; n++ {
		if n > 100 {
			t.Fatal("there is no quota")
		}
		var at store.Written
		if at, err = s.Put(t.Context(), store.Head{}, set("k/1", 512<<10)); err == nil {
			rev = at.Rev
		}
	}
	if !strings.Contains(err.Error(), "full") {
		t.Fatalf("Put: %v", err)
	}
	size := m.etcd.Server.Backend().Size()
	if err := s.Compact(t.Context(), rev); err != nil {
		t.Fatal(err)
	}
	if now := m.etcd.Server.Backend().Size(); now >= size/2 {
		t.Errorf("the file has %d bytes, %d before", now, size)
	}
	if _, err := s.Put(t.Context(), store.Head{}, set("k/1", 512<<10)); err != nil {
		t.Errorf("Put after making room: %v", err)
	}
}

// TestFailureSaidAtOnce ends a member's life and asks at once why a call failed,
// before that has reached the call's context.
func TestFailureSaidAtOnce(t *testing.T) {
	for range 1000 {
		life, fail := context.WithCancelCause(t.Context())
		ctx, cancel := either(t.Context(), life)
		fail(store.ErrFailed)
		err := explain(ctx, "put", errors.New("raft: stopped"))
		cancel()
		if !errors.Is(err, store.ErrFailed) {
			t.Fatalf("said %v", err)
		}
	}
}
