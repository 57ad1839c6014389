package main

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"
)

// source is what a release is made of.
type source struct {
	dir    string
	time   time.Time // of the commit, which everything has that has a time
	tagged bool      // whether the commit is a release, as it is
	vcs    bool
}

// look tells what there is to build.
func look(dir string) (source, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return source{}, err
	}
	s := source{dir: dir, time: time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)}
	text := os.Getenv("SOURCE_DATE_EPOCH")
	if at, err := s.git("log", "-1", "--format=%ct"); err == nil {
		s.vcs, text = true, cmp.Or(text, at)
		changed, err := s.git("status", "--porcelain")
		_, tagged := s.git("describe", "--tags", "--exact-match", "--match", "v[0-9]*")
		s.tagged = err == nil && changed == "" && tagged == nil
	}
	if text != "" {
		seconds, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return source{}, fmt.Errorf("SOURCE_DATE_EPOCH is %q, and must be seconds since 1970", text)
		}
		s.time = time.Unix(seconds, 0).UTC()
	}
	return s, nil
}

func (s source) git(args ...string) (string, error) {
	cmd := exec.Command("git", args...)
	cmd.Dir = s.dir
	out, err := cmd.Output()
	return strings.TrimSpace(string(out)), err
}

// binary is netkeep for one system.
type binary struct {
	os, arch, path string
}

// file is what the program is called there.
func (b binary) file() string {
	if b.os == "windows" {
		return "netkeep.exe"
	}
	return "netkeep"
}

// environment is what the compiler is told: the system, and nothing of this machine.
func (b binary) environment() []string {
	return append(os.Environ(), "CGO_ENABLED=0", "GOOS="+b.os, "GOARCH="+b.arch, "GOFLAGS=", "GOEXPERIMENT=", "GOAMD64=v1", "GOARM64=v8.0")
}

// build compiles for a system. Nothing of this machine is in what comes of it: no paths,
// no library of the system, and no time but the commit's.
func (r *release) build(system string) (binary, error) {
	osName, arch, ok := strings.Cut(system, "/")
	if !ok {
		return binary{}, errors.New("a system is written as linux/amd64")
	}
	b := binary{os: osName, arch: arch}
	b.path = filepath.Join(r.temp, osName+"_"+arch, b.file())
	cmd := exec.Command("go", "build", "-trimpath", "-buildvcs="+strconv.FormatBool(r.vcs), "-ldflags=-s -w", "-o", b.path, "./cmd/netkeep")
	cmd.Dir = r.dir
	cmd.Env = b.environment()
	if out, err := cmd.CombinedOutput(); err != nil {
		return b, fmt.Errorf("it does not compile: %w\n%s", err, out)
	}
	return b, nil
}

// prepare builds for this machine, and has that binary say its version and write what
// archives and packages hold besides.
func (r *release) prepare() error {
	here, err := r.build(runtime.GOOS + "/" + runtime.GOARCH)
	if err != nil {
		return err
	}
	ask := func(args ...string) (string, error) {
		out, err := exec.Command(here.path, args...).Output()
		if err != nil {
			return "", fmt.Errorf("netkeep %s: %w", strings.Join(args, " "), err)
		}
		return string(out), nil
	}
	said, err := ask("version")
	if err != nil {
		return err
	}
	fields := strings.Fields(said)
	if len(fields) < 2 || !strings.HasPrefix(fields[1], "v") {
		return fmt.Errorf("the binary says that it is %q", said)
	}
	r.version = strings.TrimPrefix(fields[1], "v")
	if !r.tagged {
		r.before = "git" + r.time.Format("20060102150405")
	}
	for _, what := range []string{"manual", "units"} {
		if _, err := ask(what, filepath.Join(r.temp, what)); err != nil {
			return err
		}
	}
	for shell, file := range completions {
		text, err := ask("completion", shell)
		if err == nil {
			err = os.WriteFile(filepath.Join(r.temp, filepath.Base(file)), []byte(text), 0o644)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// completions are where shells look for what completes commands.
var completions = map[string]string{
	"bash": "/usr/share/bash-completion/completions/netkeep",
	"zsh":  "/usr/share/zsh/vendor-completions/_netkeep",
	"fish": "/usr/share/fish/vendor_completions.d/netkeep.fish",
}
