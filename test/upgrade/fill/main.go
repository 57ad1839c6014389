// Command fill makes a fixture for the tests of upgrades: it runs a controller,
// gives it something of every kind, and keeps what it stored.
//
//	go run ./test/upgrade/fill BINARY DIRECTORY
package main

import (
	"bufio"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"netkeep.internal/test/upgrade/fixture"
)

// patience bounds the whole run.
const patience = 2 * time.Minute

// password is the admin's.
const password = "a password of the past"

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: fill BINARY DIRECTORY")
		os.Exit(2)
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := run(ctx, os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, "fill:", err)
		os.Exit(1)
	}
}

// run fills a controller and keeps its snapshot, its keys, and what only its
// clients know.
func run(ctx context.Context, binary, into string) (err error) {
	data, err := os.MkdirTemp("", "netkeep-fill")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(data)) }()
	cmd := exec.CommandContext(ctx, binary, "run", "--data", data, "--listen", "127.0.0.1:0", "--metrics-listen", "off", "--log-level", "warn")
	cmd.Env = append(os.Environ(), "NETKEEP_ADMIN_PASSWORD="+password)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	url, err := address(out)
	var known *fixture.Known
	if err == nil {
		known, err = fill(url, filepath.Join(data, "pki", "root.crt"))
	}
	err = errors.Join(err, cmd.Process.Signal(syscall.SIGTERM), cmd.Wait())
	if err != nil {
		return err
	}
	return keep(data, into, known)
}

// address reads where a controller says it is ready, and lets it say the rest.
func address(out io.Reader) (string, error) {
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if url, ok := strings.CutPrefix(lines.Text(), "netkeep is ready at "); ok {
			go func() { _, _ = io.Copy(io.Discard, out) }()
			return url, nil
		}
	}
	return "", errors.Join(errors.New("the controller did not start"), lines.Err())
}

// keep writes the fixture.
func keep(data, into string, known *fixture.Known) error {
	files, err := filepath.Glob(filepath.Join(data, "snapshots", "*.db"))
	if err != nil || len(files) != 1 {
		return fmt.Errorf("there are the snapshots %v: %w", files, err)
	}
	if err := os.CopyFS(filepath.Join(into, "pki"), os.DirFS(filepath.Join(data, "pki"))); err != nil {
		return err
	}
	if err := os.Remove(filepath.Join(into, "pki", ".lock")); err != nil {
		return err
	}
	text, err := json.Marshal(known, jsontext.WithIndent("  "))
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(into, "known.json"), append(text, '\n'), 0o600); err != nil {
		return err
	}
	return compress(files[0], filepath.Join(into, "snapshot.db.gz"))
}

func compress(from, to string) error {
	src, err := os.Open(from)
	if err != nil {
		return err
	}
	defer src.Close()
	dst, err := os.Create(to)
	if err != nil {
		return err
	}
	w, err := gzip.NewWriterLevel(dst, gzip.BestCompression)
	if err != nil {
		return errors.Join(err, dst.Close())
	}
	_, err = io.Copy(w, src)
	return errors.Join(err, w.Close(), dst.Close())
}
