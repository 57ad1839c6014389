package resolver

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

var server = netip.MustParseAddr("100.64.0.2")

const usual = "# made by hand\nsearch corp.example\nnameserver 192.0.2.1\nnameserver 2001:db8::1\nnameserver 192.0.2.3\noptions rotate ndots:2\n\n"

// place is a resolv.conf in a directory of its own.
type place struct {
	t    *testing.T
	path string
	log  bytes.Buffer
}

func newPlace(t *testing.T, text string) *place {
	t.Helper()
	p := &place{t: t, path: filepath.Join(t.TempDir(), "resolv.conf")}
	p.write(text)
	return p
}

func (p *place) write(text string) {
	p.t.Helper()
	if err := os.WriteFile(p.path, []byte(text), 0o640); err != nil {
		p.t.Fatal(err)
	}
}

func (p *place) read() string {
	p.t.Helper()
	text, err := os.ReadFile(p.path)
	if err != nil {
		p.t.Fatal(err)
	}
	return string(text)
}

// file is the way by resolv.conf, on a machine with the GNU C library.
func (p *place) file() *file {
	f := newFile(Options{Server: server, Path: p.path, Log: slog.New(slog.NewTextHandler(&p.log, nil))})
	f.alone = false
	return f
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func (p *place) started() *file {
	p.t.Helper()
	f := p.file()
	must(p.t, f.mend())
	must(p.t, f.tell(context.Background(), []string{"payroll.corp"}))
	return f
}

// alone holds that nothing but resolv.conf is in its directory.
func (p *place) alone() {
	p.t.Helper()
	all, err := os.ReadDir(filepath.Dir(p.path))
	must(p.t, err)
	for _, e := range all {
		if e.Name() != "resolv.conf" && e.Name() != "real" {
			p.t.Errorf("%s is left", e.Name())
		}
	}
}

func TestThereAndBack(t *testing.T) {
	p := newPlace(t, usual)
	before, err := os.Lstat(p.path)
	must(t, err)
	f := p.file()
	must(t, f.mend())
	must(t, f.tell(context.Background(), nil))
	if p.read() != usual {
		t.Error("it is changed, and there are no names")
	}
	must(t, f.tell(context.Background(), []string{"payroll.corp"}))
	_, rest, _ := strings.Cut(p.read(), "\n")
	if want := "nameserver 100.64.0.2\nnameserver 192.0.2.1\nnameserver 2001:db8::1\nsearch corp.example\noptions ndots:2\n"; rest != want {
		t.Errorf("it is\n%s\nwant\n%s", rest, want)
	}
	if got, want := fmt.Sprint(f.servers("example.com")), "[192.0.2.1:53 [2001:db8::1]:53 192.0.2.3:53]"; got != want {
		t.Errorf("the servers are %s, want %s", got, want)
	}
	must(t, f.look())
	must(t, f.tell(context.Background(), []string{"payroll.corp", "*.corp"}))
	must(t, f.tell(context.Background(), nil))
	if p.read() != usual {
		t.Error("there are no names any more, and it is not as before")
	}
	must(t, f.tell(context.Background(), []string{"payroll.corp"}))
	must(t, f.close())
	must(t, f.close())
	after, err := os.Lstat(p.path)
	must(t, err)
	if p.read() != usual || !os.SameFile(before, after) || before.Mode() != after.Mode() || before.ModTime() != after.ModTime() {
		t.Errorf("it was %v and is %v:\n%s", before, after, p.read())
	}
	p.alone()
}

func TestAlone(t *testing.T) {
	if text := string(compose(replaced, "resolv.conf", read([]byte(usual)), server, true)); strings.Count(text, "nameserver") != 1 {
		t.Errorf("it is\n%s", text)
	}
}

// TestLinked has a resolv.conf that is a link to what somebody else writes.
func TestLinked(t *testing.T) {
	for _, to := range []string{"real", "nowhere"} {
		p := &place{t: t, path: filepath.Join(t.TempDir(), "resolv.conf")}
		real := filepath.Join(filepath.Dir(p.path), "real")
		must(t, os.WriteFile(real, []byte(usual), 0o644))
		must(t, os.Symlink(to, p.path))
		f := p.started()
		if text, err := os.ReadFile(real); err != nil || string(text) != usual {
			t.Errorf("what is linked to is %q, %v", text, err)
		}
		if to == "real" {
			must(t, os.WriteFile(real, []byte("nameserver 198.51.100.7\n"), 0o644))
			must(t, os.Chtimes(real, time.Time{}, time.Unix(1, 0)))
			if got := fmt.Sprint(f.servers("example.com")); got != "[198.51.100.7:53]" {
				t.Errorf("the servers are %s", got)
			}
		}
		must(t, f.close())
		if got, err := os.Readlink(p.path); err != nil || got != to {
			t.Errorf("it leads to %q, %v", got, err)
		}
		p.alone()
	}
}

func TestThereWasNone(t *testing.T) {
	p := newPlace(t, "")
	must(t, os.Remove(p.path))
	f := p.started()
	if got := f.servers("example.com"); got != nil {
		t.Errorf("the servers are %v", got)
	}
	killed(f)
	must(t, p.file().mend())
	if exists(p.path) {
		t.Errorf("it is\n%s", p.read())
	}
	p.alone()
}

// killed is what becomes of a process without a word.
func killed(f *file) {
	if f.release != nil {
		_ = f.release()
	}
}

// TestTwo has two that were both opened before one of them had names.
func TestTwo(t *testing.T) {
	p := newPlace(t, usual)
	other := p.file()
	must(t, other.mend())
	f := p.started()
	names := []string{"a.b"}
	if err := other.tell(context.Background(), names); err == nil || !strings.Contains(err.Error(), "another tunneler") {
		t.Errorf("the error is %v", err)
	}
	must(t, other.close())
	must(t, f.close())
	must(t, other.tell(context.Background(), names))
	killed(other)
	must(t, f.tell(context.Background(), names))
	must(t, f.close())
	if p.read() != usual {
		t.Errorf("it is\n%s", p.read())
	}
	p.alone()
}

func TestKilled(t *testing.T) {
	p := newPlace(t, usual)
	f := p.started()
	if err := p.file().mend(); err == nil || !strings.Contains(err.Error(), "another tunneler") {
		t.Fatalf("one that runs is taken for one that was killed: %v", err)
	}
	killed(f)
	must(t, p.file().mend())
	if p.read() != usual {
		t.Errorf("it is\n%s", p.read())
	}
	p.alone()
	must(t, p.started().close())
	if p.read() != usual {
		t.Errorf("it is\n%s", p.read())
	}
}

// TestLeftThere has what was before be where nobody may remove it, beside a resolv.conf that
// somebody else wrote since: it is said, and names are found even so.
func TestLeftThere(t *testing.T) {
	p := newPlace(t, usual)
	must(t, os.MkdirAll(filepath.Join(backup(p.path), "in the way"), 0o700))
	must(t, p.file().mend())
	if p.read() != usual || !strings.Contains(p.log.String(), "remove it as root") {
		t.Errorf("it is\n%s\nand is said\n%s", p.read(), &p.log)
	}
}

// TestKilledForGood does that with a process.
func TestKilledForGood(t *testing.T) {
	if path := os.Getenv("RESOLVER_TEST_PATH"); path != "" {
		f := newFile(Options{Server: server, Path: path, Log: slog.New(slog.DiscardHandler)})
		if errors.Join(f.mend(), f.tell(context.Background(), []string{"payroll.corp"})) == nil {
			fmt.Println("told")
			select {}
		}
		return
	}
	p := newPlace(t, usual)
	cmd := exec.Command(os.Args[0], "-test.run=^TestKilledForGood$")
	cmd.Env = append(os.Environ(), "RESOLVER_TEST_PATH="+p.path)
	out, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	line := make([]byte, 4)
	if _, err := out.Read(line); err != nil || string(line) != "told" {
		t.Errorf("it says %q, %v", line, err)
	}
	if p.read() == usual {
		t.Error("it was not changed")
	}
	if err := p.file().mend(); err == nil {
		t.Error("two have it at once")
	}
	must(t, cmd.Process.Kill())
	_ = cmd.Wait()
	must(t, p.file().mend())
	if p.read() != usual {
		t.Errorf("it is\n%s", p.read())
	}
	p.alone()
}

func TestChangedMeanwhile(t *testing.T) {
	const theirs = "nameserver 203.0.113.1\n"
	p := newPlace(t, usual)
	f := p.started()
	p.write(theirs)
	must(t, f.close())
	if p.read() != theirs || !strings.Contains(p.log.String(), "stays as it is") {
		t.Errorf("it is\n%s\nand is said\n%s", p.read(), p.log.String())
	}
	p.alone()

	// As long as names are to be found, theirs is what comes back.
	p.write(usual)
	f = p.started()
	p.write(theirs)
	must(t, f.look())
	if got := fmt.Sprint(f.servers("example.com")); got != "[203.0.113.1:53]" || !strings.Contains(p.read(), "nameserver 100.64.0.2") {
		t.Errorf("the servers are %s, and it is\n%s", got, p.read())
	}
	must(t, f.close())
	if p.read() != theirs {
		t.Errorf("it is\n%s", p.read())
	}
	p.alone()

	// Two who both do that end some time.
	f = p.started()
	for range 2 * maxTimes {
		p.write(theirs)
		must(t, f.look())
	}
	if p.read() != theirs || strings.Count(p.log.String(), "again and again") != 1 {
		t.Errorf("it is\n%s\nand is said\n%s", p.read(), p.log.String())
	}
	for range calmLooks + 1 {
		must(t, f.look())
	}
	if !strings.Contains(p.read(), "nameserver 100.64.0.2") {
		t.Errorf("nobody writes it any more, and it is\n%s", p.read())
	}
	must(t, f.close())

	// Ours was changed: what was before is not lost.
	f = p.started()
	edited := p.read() + "search else.example\n"
	p.write(edited)
	must(t, f.look())
	must(t, f.close())
	saved, err := os.ReadFile(backup(p.path))
	if p.read() != edited || string(saved) != theirs || err != nil || !strings.Contains(p.log.String(), "take nameserver 100.64.0.2 out") {
		t.Errorf("it is\n%s\nbefore it was %q, %v, and is said\n%s", p.read(), saved, err, p.log.String())
	}
	p.write(theirs)
	must(t, p.file().mend())

	// It was removed.
	f = p.started()
	must(t, os.Remove(p.path))
	must(t, f.close())
	if exists(p.path) {
		t.Errorf("it is there again")
	}
}

func TestChangedAfterwards(t *testing.T) {
	const theirs = "nameserver 203.0.113.1\n"
	p := newPlace(t, usual)
	killed(p.started())
	p.write(theirs)
	must(t, p.file().mend())
	if p.read() != theirs {
		t.Errorf("it is\n%s", p.read())
	}
	p.alone()

	killed(p.started())
	edited := p.read() + "nameserver 203.0.113.9\n"
	p.write(edited)
	must(t, p.file().mend())
	saved, err := os.ReadFile(backup(p.path))
	if p.read() != edited || string(saved) != theirs || err != nil {
		t.Errorf("it is\n%s\nand before it was %q, %v", p.read(), saved, err)
	}

	f := p.file()
	must(t, f.mend())
	if err := f.tell(context.Background(), []string{"a.b"}); err == nil || !strings.Contains(err.Error(), "was changed after a tunneler") {
		t.Errorf("the error is %v", err)
	}
	must(t, f.close())
	if saved, err := os.ReadFile(backup(p.path)); p.read() != edited || string(saved) != theirs || err != nil {
		t.Errorf("it is\n%s\nand before it was %q, %v", p.read(), saved, err)
	}

	p.write(usual)
	must(t, p.file().mend())
	killed(p.started())
	must(t, os.Remove(backup(p.path)))
	if err := p.file().mend(); err == nil || !strings.Contains(err.Error(), "is gone") {
		t.Errorf("the error is %v", err)
	}
}

// TestInPlace is for files that can be written and cannot get another name, such
// as those that containers are given.
func TestInPlace(t *testing.T) {
	for _, c := range []struct{ name, left string }{{"killed", ""}, {"killed while it wrote", "nothing"}} {
		p := newPlace(t, usual)
		before, err := os.Lstat(p.path)
		must(t, err)
		must(t, rewrite(p.path, []byte(usual), compose(inPlace, p.path, read([]byte(usual)), server, false)))
		if c.left != "" {
			must(t, os.Truncate(p.path, 0))
		}
		must(t, p.file().mend())
		after, err := os.Lstat(p.path)
		must(t, err)
		if p.read() != usual || !os.SameFile(before, after) || before.Mode() != after.Mode() {
			t.Errorf("%s: it is\n%s", c.name, p.read())
		}
		p.alone()
	}
	// It was killed before it wrote.
	p := newPlace(t, usual)
	must(t, os.Link(p.path, backup(p.path)))
	must(t, p.file().mend())
	if p.read() != usual || p.log.Len() > 0 {
		t.Errorf("it is\n%s\nand is said\n%s", p.read(), p.log.String())
	}
	p.alone()
}

func TestUnusable(t *testing.T) {
	p := &place{t: t, path: filepath.Join(t.TempDir(), "nowhere", "resolv.conf")}
	f := p.file()
	must(t, f.mend())
	if err := f.tell(context.Background(), []string{"a.b"}); !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), "cannot be changed") {
		t.Errorf("the error is %v", err)
	}
	p.path = t.TempDir()
	if err := p.file().mend(); err == nil || !strings.Contains(err.Error(), "cannot be read") {
		t.Errorf("the error is %v", err)
	}
}

// TestAnyText holds that whatever the file says comes back.
func TestAnyText(t *testing.T) {
	for n, text := range []string{
		"", "\n", "nameserver 192.0.2.1", "nameserver nonsense\nnameserver\n", "nameserver fe80::1%eth0\r\noptions rotate\r\n",
		"options\noptions rotate\nsearch a b", "\x00\xff", " nameserver 192.0.2.1\n", "\n" + opening + "replaced, 0): x\n", "nameserver 100.64.0.2\n",
		strings.Repeat("# long\n", 10_000),
	} {
		p := newPlace(t, text)
		f := p.started()
		if _, whole := written([]byte(p.read())); !whole {
			t.Errorf("it is not known again:\n%s", p.read())
		}
		if n%2 == 0 {
			killed(f)
			must(t, p.file().mend())
		} else {
			must(t, f.close())
		}
		if p.read() != text {
			t.Errorf("it was %q and is %q", text, p.read())
		}
		p.alone()
	}
}
