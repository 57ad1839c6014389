package program_test

import (
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// committed is when the commit was made.
const committed = "2026-01-31T12:00:00Z"

// TestBuild has `make build` leave a binary that tells what it was built from:
// sources alone, a commit, and a commit with changes beside it.
func TestBuild(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"cmd", "internal"} {
		if err := os.CopyFS(filepath.Join(dir, name), os.DirFS(filepath.Join("..", "..", name))); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"go.mod", "go.sum", "Makefile"} {
		text, err := os.ReadFile(filepath.Join("..", "..", name))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	built := made(t, dir)
	built.says(t, "unknown", "unknown")

	if _, err := exec.LookPath("git"); err != nil {
		return // nobody can tell a revision
	}
	command(t, dir, "git", "init", "--quiet")
	if err := os.WriteFile(filepath.Join(dir, ".git", "info", "exclude"), []byte("bin\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	command(t, dir, "git", "add", ".")
	command(t, dir, "git", "-c", "user.name=test", "-c", "user.email=test@localhost", "commit", "--quiet", "-m", "test")
	revision := strings.TrimSpace(command(t, dir, "git", "rev-parse", "HEAD"))
	built = made(t, dir)
	built.says(t, revision, committed)
	built.answers(t, revision, committed)

	command(t, dir, "git", "tag", "v1.23.4")
	built = made(t, dir)
	if got := command(t, t.TempDir(), string(built), "version"); !strings.HasPrefix(got, "netkeep v1.23.4 (revision "+revision) {
		t.Errorf("built from a tag, the version is %q", got)
	}

	if err := os.WriteFile(filepath.Join(dir, "change"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	built = made(t, dir)
	built.says(t, revision+"+dirty", committed)
}

// command runs a command in a directory and returns what it printed.
func command(t *testing.T, dir, name string, args ...string) string {
	t.Helper()
	cmd := exec.Command(name, args...)
	cmd.Dir = dir
	// No setting of git from outside may lead to a repository but this one.
	cmd.Env = append(slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "GIT_") }),
		"GIT_CONFIG_GLOBAL="+os.DevNull, "GIT_CONFIG_NOSYSTEM=1", "GIT_COMMITTER_DATE="+committed)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %v\n%s", cmd, err, out)
	}
	return string(out)
}

// build is a binary other than the one that most tests are about.
type build string

func made(t *testing.T, dir string) build {
	t.Helper()
	command(t, dir, "make", "build")
	return build(filepath.Join(dir, "bin", "netkeep"))
}

// says checks what `netkeep version` prints.
func (b build) says(t *testing.T, revision, date string) {
	t.Helper()
	want := fmt.Sprintf("(revision %s, built %s, ", revision, date)
	if got := command(t, t.TempDir(), string(b), "version"); !strings.Contains(got, want) {
		t.Errorf("the version is %q, want it to hold %q", got, want)
	}
}

// answers checks what a controller answers who asks for its version.
func (b build) answers(t *testing.T, revision, date string) {
	t.Helper()
	data := t.TempDir()
	p := launch(t, settings{binary: string(b), args: []string{"run", "--data", data, "--listen", "127.0.0.1:0"}})
	c := connect(t, p.ready(), filepath.Join(data, "pki", "root.crt"))
	v := c.must(t, http.StatusOK, http.MethodGet, "version", nil).body["data"].(M)
	if v["revision"] != revision || v["buildDate"] != date {
		t.Errorf("the version is %v", v)
	}
	p.stop()
}
