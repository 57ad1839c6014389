package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"slices"
	"strings"
)

// licencesFile is what a copy of the program comes with, since those who wrote the parts
// ask for their words to go along: under which licences they are.
const licencesFile = "LICENSES-OF-PARTS"

// licence is how files are called that such words are in.
var licence = regexp.MustCompile(`(?i)^(un)?(licen[cs]e|copying|copyright|notice|patents)([-._].*)?$`)

// part is a module that was compiled in, and where those of its packages are that were.
type part struct {
	name, root string
	dirs       map[string]bool
}

// licences writes the words of all that is in a binary, each text once. They are looked
// for where packages are that were compiled in, and above, up to their module: some have
// parts of others in them.
func (r *release) licences(b binary, info *debug.BuildInfo) error {
	parts, err := r.parts(b)
	if err != nil {
		return err
	}
	for _, m := range info.Deps {
		if m.Replace != nil {
			m = m.Replace
		}
		if parts[m.Path] == nil {
			return fmt.Errorf("%s is in the binary, and not among what it is compiled from", m.Path)
		}
	}
	whose := map[string][]string{} // by text
	for _, name := range slices.Sorted(maps.Keys(parts)) {
		texts, err := parts[name].texts()
		if err != nil {
			return fmt.Errorf("licences of %s: %w", name, err)
		}
		for _, text := range texts {
			whose[text] = append(whose[text], parts[name].name)
		}
	}
	var out bytes.Buffer
	out.WriteString("netkeep is under the licence in the file LICENSE. It is compiled from these parts of others too.\n")
	texts := slices.SortedFunc(maps.Keys(whose), func(a, b string) int {
		if order := slices.Compare(whose[a], whose[b]); order != 0 {
			return order
		}
		return strings.Compare(a, b)
	})
	for _, text := range texts {
		fmt.Fprintf(&out, "\n%s\n%s\n\n%s\n", strings.Repeat("=", 78), strings.Join(whose[text], "\n"), text)
	}
	return os.WriteFile(b.licences(), out.Bytes(), 0o644)
}

// licences is where the words are that go with a binary.
func (b binary) licences() string { return filepath.Join(filepath.Dir(b.path), licencesFile) }

// parts are the modules that a binary is compiled from, by their paths.
func (r *release) parts(b binary) (map[string]*part, error) {
	cmd := exec.Command("go", "list", "-deps", "-json=Dir,Standard,Module", "./cmd/netkeep")
	cmd.Dir, cmd.Env = r.dir, b.environment()
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("what it is compiled from: %w", err)
	}
	std, err := r.standard()
	if err != nil {
		return nil, err
	}
	parts := map[string]*part{"std": std}
	for list := json.NewDecoder(bytes.NewReader(out)); ; {
		var p struct {
			Dir      string
			Standard bool
			Module   *struct {
				Path, Version, Dir string
				Main               bool
			}
		}
		switch err := list.Decode(&p); {
		case errors.Is(err, io.EOF):
			return parts, nil
		case err != nil:
			return nil, err
		case p.Standard || p.Module.Main:
			continue
		}
		m := p.Module
		if parts[m.Path] == nil {
			parts[m.Path] = &part{name: m.Path + " " + m.Version, root: m.Dir, dirs: map[string]bool{}}
		}
		parts[m.Path].dirs[p.Dir] = true
	}
}

// standard is the library that comes with the compiler.
func (r *release) standard() (*part, error) {
	cmd := exec.Command("go", "env", "GOVERSION", "GOROOT")
	cmd.Dir = r.dir
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("where the compiler is: %w", err)
	}
	version, root, _ := strings.Cut(strings.TrimSpace(string(out)), "\n")
	return &part{name: "Go " + strings.TrimPrefix(version, "go"), root: root, dirs: map[string]bool{root: true}}, nil
}

// texts are the words of a part. One without any is not for us to hand on.
func (p *part) texts() ([]string, error) {
	look := map[string]bool{}
	for dir := range p.dirs {
		for ; len(dir) >= len(p.root); dir = filepath.Dir(dir) {
			look[dir] = true
		}
	}
	var all []string
	for _, dir := range slices.Sorted(maps.Keys(look)) {
		files, err := os.ReadDir(dir)
		if err != nil {
			return nil, err
		}
		for _, f := range files {
			if f.IsDir() || !licence.MatchString(f.Name()) || strings.HasSuffix(f.Name(), ".go") {
				continue
			}
			text, err := os.ReadFile(filepath.Join(dir, f.Name()))
			if err != nil {
				return nil, err
			}
			if clean := strings.TrimSpace(strings.ReplaceAll(string(text), "\r\n", "\n")); !slices.Contains(all, clean) {
				all = append(all, clean)
			}
		}
	}
	if len(all) == 0 {
		return nil, errors.New("it has no file that says so")
	}
	return all, nil
}
