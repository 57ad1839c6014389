// Release makes what people download: binaries of every system, archives, packages for
// Debian and Fedora, an image for containers, what each binary was built from, and the
// sums of all of it. Everything follows from the commit and the compiler: two runs give
// the same bytes. It is a module of its own, so that who builds netkeep has to fetch
// nothing of what it needs, and imports nothing of ours: what packages hold besides the
// binary, the binary writes.
package main

import (
	"debug/buildinfo"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// usual are the systems that a release is for.
const usual = "linux/amd64,linux/arm64,darwin/amd64,darwin/arm64,windows/amd64,windows/arm64"

func main() {
	in := flag.String("in", "..", "directory of the sources")
	out := flag.String("out", "../dist", "directory that the files go to")
	only := flag.String("only", usual, "systems to build for")
	flag.Parse()
	if err := run(*in, *out, strings.Split(*only, ",")); err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

// run makes everything for some systems, and the sums last.
func run(in, out string, systems []string) error {
	src, err := look(in)
	if err != nil {
		return err
	}
	if err := os.RemoveAll(out); err != nil {
		return err
	}
	if err := os.MkdirAll(out, 0o755); err != nil {
		return err
	}
	temp, err := os.MkdirTemp("", "netkeep-release-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(temp)
	r := &release{source: src, out: out, temp: temp}
	if err := r.prepare(); err != nil {
		return err
	}
	for _, system := range systems {
		if err := r.system(system); err != nil {
			return fmt.Errorf("%s: %w", system, err)
		}
	}
	if err := r.image(); err != nil {
		return err
	}
	return r.sums()
}

// release is one that is being made.
type release struct {
	source
	out, temp string
	version   string // without the v, such as 1.0.0
	before    string // what is said of one that is no release yet, such as git20260131120000
	binaries  []binary
}

// name is what a file is called that is for a system, or for all.
func (r *release) name(parts ...string) string {
	return filepath.Join(r.out, strings.Join(append([]string{"netkeep", r.full()}, parts...), "_"))
}

// full is the version with what comes before it.
func (r *release) full() string {
	if r.before == "" {
		return r.version
	}
	return r.version + "-" + r.before
}

// system makes all that is for one system.
func (r *release) system(system string) error {
	b, err := r.build(system)
	if err != nil {
		return err
	}
	r.binaries = append(r.binaries, b)
	info, err := buildinfo.ReadFile(b.path)
	if err != nil {
		return err
	}
	if err := r.bill(b, info); err != nil {
		return err
	}
	if err := r.licences(b, info); err != nil {
		return err
	}
	if err := r.archive(b); err != nil {
		return err
	}
	if b.os != "linux" {
		return nil
	}
	return r.packages(b)
}
