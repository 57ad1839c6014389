package resolver

import (
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func inFolder(t *testing.T) (Options, string) {
	t.Helper()
	top := t.TempDir()
	opt := Options{Server: netip.MustParseAddr("100.64.0.2"), Log: slog.New(slog.DiscardHandler), Path: filepath.Join(top, "resolv.conf")}
	return opt, filepath.Join(top, "resolver")
}

func openFolder(t *testing.T, opt Options, dir string) *folder {
	t.Helper()
	f, err := newFolder(opt, dir)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func files(t *testing.T, dir string) (all []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	for _, e := range entries {
		all = append(all, e.Name())
	}
	return all
}

func wantFiles(t *testing.T, dir string, want ...string) {
	t.Helper()
	if got := files(t, dir); !slices.Equal(got, want) {
		t.Fatalf("files are %q, and should be %q", got, want)
	}
}

// TestFolder shows that each domain has a file with our server as long as there
// are names in it, and that nothing is left at the end.
func TestFolder(t *testing.T) {
	opt, dir := inFolder(t)
	f := openFolder(t, opt, dir)
	if files(t, dir) != nil {
		t.Fatal("something was written before there were names")
	}
	if err := f.tell(t.Context(), []string{"payroll.corp", "*.lab.example", "a.lab.example"}); err != nil {
		t.Fatal(err)
	}
	wantFiles(t, dir, "lab.example", "payroll.corp")
	text, err := os.ReadFile(filepath.Join(dir, "payroll.corp"))
	if err != nil || !strings.HasSuffix(string(text), "\nnameserver 100.64.0.2\n") {
		t.Fatalf("it says %q, %v", text, err)
	}
	if err := f.tell(t.Context(), []string{"payroll.corp"}); err != nil {
		t.Fatal(err)
	}
	wantFiles(t, dir, "payroll.corp")
	if err := os.Remove(filepath.Join(dir, "payroll.corp")); err != nil {
		t.Fatal(err)
	}
	if err := f.look(); err != nil {
		t.Fatal(err)
	}
	wantFiles(t, dir, "payroll.corp")
	if err := f.close(); err != nil {
		t.Fatal(err)
	}
	if exists(dir) {
		t.Fatal("the directory was not there before, and is left")
	}
}

// TestFolderOfOthers shows that files of others stay as they are, and that one who
// was killed leaves nothing for longer than until the next start.
func TestFolderOfOthers(t *testing.T) {
	opt, dir := inFolder(t)
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	theirs := filepath.Join(dir, "corp")
	if err := os.WriteFile(theirs, []byte("nameserver 192.0.2.1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	killed := openFolder(t, opt, dir)
	err := killed.tell(t.Context(), []string{"*.corp", "lab.example"})
	if err == nil || !strings.Contains(err.Error(), "there is "+theirs+" already") {
		t.Fatalf("of a file of somebody else is said: %v", err)
	}
	wantFiles(t, dir, "corp", "lab.example")
	if _, err := newFolder(opt, dir); err == nil || !strings.Contains(err.Error(), "stop it first") {
		t.Fatalf("a second tunneler is told: %v", err)
	}
	if err := killed.let(); err != nil { // as when its process ends
		t.Fatal(err)
	}
	next := openFolder(t, opt, dir)
	wantFiles(t, dir, "corp")
	if err := next.tell(t.Context(), []string{"lab.example"}); err != nil {
		t.Fatal(err)
	}
	changed := filepath.Join(dir, "lab.example")
	text, err := os.ReadFile(changed)
	if err == nil {
		err = os.WriteFile(changed, append(text, "nameserver 192.0.2.2\n"...), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := next.close(); err != nil {
		t.Fatal(err)
	}
	openFolder(t, opt, dir)
	wantFiles(t, dir, "corp", "lab.example")
}

// TestFolderNames shows that no name of a service leads out of the directory.
func TestFolderNames(t *testing.T) {
	opt, dir := inFolder(t)
	f := openFolder(t, opt, dir)
	defer f.close()
	for _, name := range []string{"../escape", "a/b", "..", ".", "", "*.", "a..b", ".a", "a b", "a\nnameserver 1.1.1.1", strings.Repeat("a.", 130) + "a"} {
		if err := f.tell(t.Context(), []string{name}); err == nil || !strings.Contains(err.Error(), "cannot be told") {
			t.Errorf("%q: %v", name, err)
		}
	}
	if got := files(t, filepath.Dir(dir)); got != nil {
		t.Fatalf("there is %q", got)
	}
}

// TestFolderServers shows who is asked for what is not ours.
func TestFolderServers(t *testing.T) {
	opt, dir := inFolder(t)
	if err := os.WriteFile(opt.Path, []byte("nameserver 192.0.2.53\nnameserver 100.64.0.2\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	got := openFolder(t, opt, dir).servers("www.example")
	if want := []netip.AddrPort{netip.MustParseAddrPort("192.0.2.53:53")}; !slices.Equal(got, want) {
		t.Fatalf("they are %v", got)
	}
}
