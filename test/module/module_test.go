// Package module gives the Go module another path, in a copy, and fetches it as
// others do.
package module

import (
	"archive/zip"
	"bytes"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// sourceTree copies what people edit to another directory.
func sourceTree(t *testing.T) (dir string) {
	t.Helper()
	dir = t.TempDir()
	all, err := os.ReadDir(filepath.Join("..", ".."))
	must(t, err)
	for _, entry := range all {
		name := entry.Name()
		from, to := filepath.Join("..", "..", name), filepath.Join(dir, name)
		switch {
		case name == "bin" || name == "data" || name == "dist" || name[0] == '.':
		case entry.IsDir():
			must(t, os.CopyFS(to, os.DirFS(from)))
		case entry.Type().IsRegular():
			text, err := os.ReadFile(from)
			must(t, err)
			must(t, os.WriteFile(to, text, 0o600))
		}
	}
	return dir
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// contents are all files below a directory.
func contents(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	must(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		rel, _ := filepath.Rel(dir, path)
		all[filepath.ToSlash(rel)] = string(text)
		return err
	}))
	return all
}

// command runs a program in a directory, with some variables set.
func command(t *testing.T, dir string, env []string, name string, args ...string) (out string, err error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOWORK=off", "GOTOOLCHAIN=local")
	cmd.Env = append(cmd.Env, env...)
	text, err := cmd.CombinedOutput()
	return string(text), err
}

func succeeds(t *testing.T, dir string, env []string, name string, args ...string) string {
	t.Helper()
	out, err := command(t, dir, env, name, args...)
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
	return out
}

// TestModulePath gives the module another path, in a copy: what is for others
// compiles under it, nothing is left of the old one, it can be fetched from a
// proxy, and with its own path the copy is what it was.
func TestModulePath(t *testing.T) {
	const other = "git.example.com/net/netkeep"
	dir, own := sourceTree(t), strings.TrimSpace(succeeds(t, ".", nil, "go", "list", "-m"))
	before := contents(t, dir)
	for _, path := range []string{"", "nodot", "Example.com/a b", "../above", "example.com/netkeep/v0"} {
		if out, err := command(t, dir, nil, "make", "module", "MODULE="+path); err == nil || !strings.Contains(out, "example.com/netkeep") {
			t.Errorf("the module may be called %q: %s", path, out)
		}
	}
	if after := contents(t, dir); !maps.Equal(after, before) {
		t.Error("a path that was refused changes something")
	}

	succeeds(t, dir, nil, "make", "module", "MODULE="+other)
	if got := strings.TrimSpace(succeeds(t, dir, nil, "go", "list", "-m")); got != other {
		t.Errorf("the module is %s now", got)
	}
	for name, text := range contents(t, dir) {
		if strings.Contains(text, own+"/") && !strings.Contains(other, own) {
			t.Errorf("%s still says %s", name, own)
		}
	}
	if out := succeeds(t, dir, nil, "gofmt", "-l", "."); out != "" {
		t.Errorf("not in order any more: %s", out)
	}
	succeeds(t, dir, nil, "go", "build", "./overlay")
	fetch(t, dir, other)

	succeeds(t, dir, nil, "make", "module", "MODULE="+own)
	after := contents(t, dir)
	for name, text := range before {
		if after[name] != text {
			t.Errorf("%s is not what it was", name)
		}
	}
}

// fetch has a module in another place need the one in a directory, from a proxy
// that has it.
func fetch(t *testing.T, dir, path string) {
	t.Helper()
	const version = "v0.9.0"
	proxy := t.TempDir()
	at := filepath.Join(proxy, filepath.FromSlash(path), "@v")
	must(t, os.MkdirAll(at, 0o700))
	var packed bytes.Buffer
	w := zip.NewWriter(&packed)
	files := contents(t, dir)
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if place, _, _ := strings.Cut(name, "/"); !slices.Contains([]string{"go.mod", "LICENSE", "cmd", "internal", "overlay"}, place) {
			continue
		}
		f, err := w.Create(path + "@" + version + "/" + name)
		must(t, err)
		_, err = f.Write([]byte(files[name]))
		must(t, err)
	}
	must(t, w.Close())
	for name, text := range map[string]string{
		"list": version + "\n", version + ".info": `{"Version":"` + version + `"}`, version + ".mod": files["go.mod"], version + ".zip": packed.String(),
	} {
		must(t, os.WriteFile(filepath.Join(at, name), []byte(text), 0o600))
	}
	kept := strings.TrimSpace(succeeds(t, dir, nil, "go", "env", "GOMODCACHE"))
	env := []string{
		// What it needs of others has been fetched: go build did. Nobody else is asked.
		"GOPROXY=file://" + filepath.ToSlash(proxy) + ",file://" + filepath.ToSlash(filepath.Join(kept, "cache", "download")),
		"GOMODCACHE=" + t.TempDir(), "GOFLAGS=" + os.Getenv("GOFLAGS") + " -modcacherw", "GOSUMDB=off",
	}
	outside := t.TempDir()
	succeeds(t, outside, env, "go", "mod", "init", "example.com/hello")
	succeeds(t, outside, env, "go", "get", path+"/overlay")
	if got := succeeds(t, outside, env, "go", "list", "-f", "{{.Module.Version}}", path+"/overlay"); strings.TrimSpace(got) != version {
		t.Errorf("version %s was fetched", got)
	}
	succeeds(t, outside, env, "go", "list", "-deps", path+"/overlay")
}
