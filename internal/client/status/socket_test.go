//go:build linux || darwin

package status

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// askFor has the test's own program ask at a socket, as another user would.
const askFor = "NETKEEP_TEST_ASK"

func TestMain(m *testing.M) {
	if path := os.Getenv(askFor); path != "" {
		_, err := Ask(context.Background(), path)
		fmt.Println(err)
		return
	}
	os.Exit(m.Run())
}

func serve(t *testing.T, s *Socket, report func() *Report) (end func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	over := make(chan struct{})
	go func() {
		defer close(over)
		s.Serve(ctx, report)
	}()
	return func() {
		cancel()
		<-over
	}
}

// short is a directory whose path is short enough for sockets wherever tests run.
func short(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "nk")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

// TestSocket asks at a socket of this user, which nobody else can open, and which
// is gone afterwards; what others have left there is taken away, and what is in use
// is not.
func TestSocket(t *testing.T) {
	dir := filepath.Join(short(t), "run")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	left := filepath.Join(dir, "1.sock")
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: left, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	l.SetUnlinkOnClose(false)
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	other, err := ListenAt(filepath.Join(dir, "2.sock"), time.Now)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()

	s, err := Listen(dir, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]os.FileMode{dir: os.ModeDir | 0o700, s.path: os.ModeSocket | 0o600} {
		if info, err := os.Stat(path); err != nil || info.Mode() != want {
			t.Errorf("%s: %v, %v", path, info.Mode(), err)
		}
	}
	if got := fmt.Sprint(Find([]string{dir})); !strings.Contains(got, s.path) || !strings.Contains(got, "2.sock") || strings.Contains(got, left) {
		t.Errorf("there are %s", got)
	}
	end := serve(t, s, func() *Report { return &Report{PID: 7} })
	var all sync.WaitGroup
	for range 4 * maxAsking {
		all.Go(func() {
			if r, err := Ask(t.Context(), s.path); err != nil || r.PID != 7 {
				t.Errorf("it answers %v, %v", r, err)
			}
		})
	}
	all.Wait()
	if _, err := ListenAt(s.path, time.Now); err == nil || !strings.Contains(err.Error(), "somebody answers there already") {
		t.Errorf("a second one has the same path: %v", err)
	}
	end()
	if entries, _ := os.ReadDir(dir); len(entries) != 1 {
		t.Errorf("there are left: %v", entries)
	}
	if _, err := Ask(t.Context(), s.path); !errors.Is(err, ErrSilent) {
		t.Errorf("nobody is there: %v", err)
	}
}

// TestOthers has another user ask, past the modes of files: it is not answered.
// Without root there is nobody else to be, and only this user is looked at.
func TestOthers(t *testing.T) {
	s, err := ListenAt(filepath.Join(short(t), "s.sock"), time.Now)
	if err != nil {
		t.Fatal(err)
	}
	asked := 0
	end := serve(t, s, func() *Report { asked++; return &Report{} })
	want := "<nil>"
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	ask := exec.Command(program)
	ask.Env = []string{askFor + "=" + s.path}
	if os.Geteuid() == 0 {
		want = "only the user that the tunneler runs as may ask it"
		ask.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
		// It has to get as far as the socket, and to its own program.
		program := copied(t, program)
		ask.Path, ask.Args, ask.Dir = program, []string{program}, "/"
		for path, mode := range map[string]os.FileMode{filepath.Dir(s.path): 0o755, s.path: 0o666} {
			if err := os.Chmod(path, mode); err != nil {
				t.Fatal(err)
			}
		}
	}
	out, err := ask.CombinedOutput()
	if err != nil || !strings.Contains(string(out), want) {
		t.Errorf("it is told %s, %v", out, err)
	}
	end()
	if os.Geteuid() == 0 && asked > 0 {
		t.Error("a report was made for somebody else")
	}
}

// copied is a program where everybody can run it.
func copied(t *testing.T, program string) string {
	t.Helper()
	dir := short(t)
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(program)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "ask")
	if err := os.WriteFile(path, text, 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestNoSocket looks at paths where there can be none: each has a sentence, and
// what is there stays.
func TestNoSocket(t *testing.T) {
	dir := short(t)
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		file:                                   "there is a file of that name",
		filepath.Join(dir, "none", "s.sock"):   "no such file or directory",
		dir + "/" + strings.Repeat("long", 30): "is too long",
	} {
		if _, err := ListenAt(path, time.Now); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", path, err)
		}
	}
	if text, err := os.ReadFile(file); err != nil || string(text) != "x" {
		t.Errorf("the file is %q, %v", text, err)
	}
	link := filepath.Join(dir, "link")
	if err := os.Symlink(dir, link); err != nil {
		t.Fatal(err)
	}
	if _, err := Listen(link, time.Now); err == nil || !strings.Contains(err.Error(), "no directory of this user") {
		t.Errorf("somebody else's link is followed: %v", err)
	}
	if entries, _ := os.ReadDir(dir); len(entries) != 2 {
		t.Errorf("there are left: %v", entries)
	}
}

// TestSlowAskers stops a socket while as many ask as are answered at once, and more
// wait: it does not wait for them.
func TestSlowAskers(t *testing.T) {
	s, err := ListenAt(filepath.Join(short(t), "s.sock"), time.Now)
	if err != nil {
		t.Fatal(err)
	}
	asked, release := make(chan struct{}), make(chan struct{})
	end := serve(t, s, func() *Report {
		asked <- struct{}{}
		<-release
		return &Report{}
	})
	for range maxAsking + 2 {
		conn, err := net.Dial("unix", s.path)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
	}
	for range maxAsking {
		<-asked
	}
	end()
	close(release)
}

// TestStranger asks at what is no tunneler.
func TestStranger(t *testing.T) {
	for said, want := range map[string]string{"": "closed without an answer", "hello": "no tunneler of this version"} {
		path := filepath.Join(short(t), "s")
		l, err := net.Listen("unix", path)
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			conn, err := l.Accept()
			if err == nil {
				_, _ = io.WriteString(conn, said)
				_ = conn.Close()
			}
		}()
		if _, err := Ask(t.Context(), path); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", said, err)
		}
		_ = l.Close()
	}
}

// TestMemory logs more than is remembered, and longer: the last is kept, and the log
// gets all.
func TestMemory(t *testing.T) {
	var log strings.Builder
	var m Memory
	l := m.Logger(slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelError}))).With("service", "wiki").WithGroup("g")
	for i := range 2 * maxErrors {
		l.Info("fine")
		l.Warn("odd", "number", i, "nothing", nil, "empty", "", "error", errors.Join(io.EOF, io.ErrClosedPipe))
	}
	l.Error("wrong", "text", strings.Repeat("ö", maxText))
	all := m.Errors()
	if len(all) != maxErrors || all[maxErrors-2].Text != fmt.Sprintf("odd; service: wiki; g.number: %d; g.error: EOF; io: read/write on closed pipe", 2*maxErrors-1) {
		t.Errorf("remembered are %v", all)
	}
	if last := all[maxErrors-1].Text; len(last) > maxText || !strings.HasPrefix(last, "wrong; service: wiki; g.text: ö") {
		t.Errorf("the last is %q", last)
	}
	if strings.Count(log.String(), "\n") != 1 {
		t.Errorf("the log got %s", log.String())
	}
}

// TestTrim makes a report of more than anybody reads.
func TestTrim(t *testing.T) {
	r := &Report{Ports: make([]Port, maxEntries+5), Intercepted: []Intercepted{{Addresses: make([]string, maxInner+3)}}}
	r.trim()
	if len(r.Ports) != maxEntries || len(r.Intercepted[0].Addresses) != maxInner || r.Omitted != 8 {
		t.Errorf("%d ports, %d addresses, %d omitted", len(r.Ports), len(r.Intercepted[0].Addresses), r.Omitted)
	}
}
