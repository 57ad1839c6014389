//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package pki

import (
	"bytes"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// TestServeRefusesExposedKey gives the operator's key every mode, by its own
// name and through links as mounted secrets have them.
func TestServeRefusesExposedKey(t *testing.T) {
	p := newPairFiles(t)
	p.replace(t, serverFile, serverKeyFile)
	link := filepath.Join(t.TempDir(), "tls.key")
	for _, pair := range [][2]string{{"..data", link}, {p.path, filepath.Join(filepath.Dir(link), "..data")}} {
		target := pair[0]
		if target == "..data" {
			target = filepath.Join("..data", serverKeyFile)
		}
		if err := os.Symlink(target, pair[1]); err != nil {
			t.Fatal(err)
		}
	}
	for mode := fs.FileMode(0); mode <= 0o777; mode++ {
		if mode&0o400 == 0 {
			continue // we could not read it ourselves
		}
		if err := os.Chmod(p.file(serverKeyFile), mode); err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{p.file(serverKeyFile), link} {
			_, err := Serve(p.file(serverFile), name, time.Now, slog.New(slog.NewTextHandler(io.Discard, nil)))
			if refused := err != nil; refused != (mode&closedTo(os.Getuid()) != 0) {
				t.Fatalf("a key with mode %04o: %v", mode, err)
			}
			if err != nil {
				wantError(t, err, name, "chmod 600")
			}
		}
	}
}

// TestClosedTo says who may read a key: its owner, and if that is root, who
// gives keys to others by their group, that group.
func TestClosedTo(t *testing.T) {
	for uid, open := range map[int][]fs.FileMode{
		1000: {0o400, 0o600},
		0:    {0o400, 0o600, 0o440, 0o640},
	} {
		for _, mode := range []fs.FileMode{0o400, 0o600, 0o440, 0o640, 0o660, 0o650, 0o604, 0o602, 0o601, 0o444, 0o644, 0o777} {
			want := false
			for _, m := range open {
				want = want || m == mode
			}
			if got := mode&closedTo(uid) == 0; got != want {
				t.Errorf("mode %04o of user %d: accepted is %v, want %v", mode, uid, got, want)
			}
		}
	}
}

// TestServedFollowsModes puts a key there that others can read, and closes it.
func TestServedFollowsModes(t *testing.T) {
	c, p := newClock(), newPairFiles(t)
	var log bytes.Buffer
	first := p.replace(t, serverFile, serverKeyFile)
	s := p.serve(t, c, &log)
	second := p.replace(t, serverFile, serverKeyFile)
	if err := os.Chmod(p.file(serverKeyFile), 0o644); err != nil {
		t.Fatal(err)
	}
	c.Add(time.Second)
	wantServed(t, s, first)
	if !bytes.Contains(log.Bytes(), []byte("chmod 600")) {
		t.Errorf("the log does not say what to do: %s", &log)
	}
	if err := os.Chmod(p.file(serverKeyFile), 0o600); err != nil {
		t.Fatal(err)
	}
	c.Add(time.Second)
	wantServed(t, s, second)
}
