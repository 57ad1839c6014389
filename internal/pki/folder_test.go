package pki

import (
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var errStopped = errors.New("stopped")

// stopping returns a folder whose n-th rename is the last thing that happens,
// or the first that does not.
func stopping(dir string, n int, after bool) folder {
	return folder{path: dir, rename: func(from, to string) error {
		n--
		switch {
		case n > 0:
			return os.Rename(from, to)
		case n == 0 && after:
			return errors.Join(os.Rename(from, to), errStopped)
		}
		return errStopped
	}}
}

// wantKept checks that the files before, except for the given, are unchanged.
func wantKept(t *testing.T, before, after map[string]string, except ...string) {
	t.Helper()
	for name, data := range before {
		if !slices.Contains(except, name) && after[name] != data {
			t.Errorf("%s was changed", name)
		}
	}
}

func TestCreationCutShort(t *testing.T) {
	for step := 1; step <= len(creation); step++ {
		for _, after := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s after=%t", creation[step-1], after), func(t *testing.T) {
				c := newClock()
				dir := t.TempDir()
				if _, err := open(stopping(dir, step, after), options(c)); !errors.Is(err, errStopped) {
					t.Fatalf("first opening: %v", err)
				}
				// A crash, unlike an error, leaves the temporary file.
				if err := os.WriteFile(filepath.Join(dir, tempPrefix+"123"), []byte("half"), 0o600); err != nil {
					t.Fatal(err)
				}
				before := contents(t, dir)
				if _, made := before[creation[step-1]]; made != after {
					t.Fatalf("step %d does not make %s", step, creation[step-1])
				}
				if _, err := Open(dir, options(c)); err != nil {
					t.Fatal(err)
				}
				wantConsistent(t, dir, c.Now())
				wantKept(t, before, contents(t, dir), tempPrefix+"123")
			})
		}
	}
}

// TestOpenSubsets removes files in every combination.
func TestOpenSubsets(t *testing.T) {
	c := newClock()
	whole := t.TempDir()
	must(Open(whole, options(c)))(t)
	full := contents(t, whole)
	delete(full, lockFile)

	for mask := range 1 << len(creation) {
		dir := t.TempDir()
		before := map[string]string{}
		for i, name := range creation {
			if mask&(1<<i) != 0 {
				before[name] = full[name]
				if err := os.WriteFile(filepath.Join(dir, name), []byte(full[name]), 0o600); err != nil {
					t.Fatal(err)
				}
			}
		}
		if err := os.Chmod(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		_, err := Open(dir, options(c))
		after := contents(t, dir)
		delete(after, lockFile)

		// Files in order of creation are bits from the lowest. All five of
		// the CAs may be there, perhaps without the root's key; or else the
		// first few of all and nothing else.
		complete := (mask|0b10)&0b11111 == 0b11111
		prefix := mask&(mask+1) == 0
		if want := complete || prefix; (err == nil) != want {
			t.Errorf("files %07b: %v", mask, err)
			continue
		}
		if err != nil {
			wantError(t, err, "missing", "restore it from a backup")
			if diff := cmp.Diff(before, after); diff != "" {
				t.Errorf("files %07b: refused but changed: %s", mask, diff)
			}
			continue
		}
		wantConsistent(t, dir, c.Now())
		wantKept(t, before, after, serverFile)
	}
}

func TestOpenRefusesDamage(t *testing.T) {
	for _, name := range creation {
		for what, keep := range map[string]func(int) int{
			"emptied": func(int) int { return 0 },
			"one":     func(int) int { return 1 },
			"half":    func(n int) int { return n / 2 },
		} {
			t.Run(name+" "+what, func(t *testing.T) {
				c := newClock()
				dir := t.TempDir()
				must(Open(dir, options(c)))(t)
				path := filepath.Join(dir, name)
				if err := os.Truncate(path, int64(keep(len(contents(t, dir)[name])))); err != nil {
					t.Fatal(err)
				}
				before := contents(t, dir)
				_, err := Open(dir, options(c))
				remedy := "restore it from a backup"
				if strings.HasPrefix(name, "server") {
					remedy = "delete it"
				}
				wantError(t, err, path, remedy)
				if diff := cmp.Diff(before, contents(t, dir)); diff != "" {
					t.Errorf("refused but changed: %s", diff)
				}
				if !strings.HasPrefix(name, "server") {
					return
				}
				if err := os.Remove(path); err != nil {
					t.Fatal(err)
				}
				if _, err := Open(dir, options(c)); err != nil {
					t.Errorf("after doing as told: %v", err)
				}
				wantConsistent(t, dir, c.Now())
			})
		}
	}
}

// TestOpenRefusesStrangers puts each file of one keystore into another.
func TestOpenRefusesStrangers(t *testing.T) {
	for name, want := range map[string]string{
		rootKeyFile:         rootKeyFile,
		rootFile:            rootKeyFile,
		intermediateKeyFile: intermediateKeyFile,
		intermediateFile:    intermediateKeyFile,
		serverKeyFile:       serverFile,
		serverFile:          serverFile,
	} {
		t.Run(name, func(t *testing.T) {
			c := newClock()
			dir, other := t.TempDir(), t.TempDir()
			must(Open(dir, options(c)))(t)
			must(Open(other, options(c)))(t)
			if err := os.Rename(filepath.Join(other, name), filepath.Join(dir, name)); err != nil {
				t.Fatal(err)
			}
			before := contents(t, dir)
			_, err := Open(dir, options(c))
			wantError(t, err, filepath.Join(dir, want), "does not belong to")
			if diff := cmp.Diff(before, contents(t, dir)); diff != "" {
				t.Errorf("refused but changed: %s", diff)
			}
		})
	}
}

// TestOpenRefusesUnfitCAs replaces CA certificates while the root's key, which
// would show some of it at once, is away.
func TestOpenRefusesUnfitCAs(t *testing.T) {
	c := newClock()
	dir := t.TempDir()
	ks := must(Open(dir, options(c)))(t)
	rootKey := must(ks.folder.readKey(rootKeyFile))(t)
	if err := os.Remove(filepath.Join(dir, rootKeyFile)); err != nil {
		t.Fatal(err)
	}
	good := contents(t, dir)
	stranger := authority{key: ecKey(t)}
	unlimited, leaf := caNamed(ks.Root().Subject.CommonName), x509.Certificate{Subject: ks.Root().Subject, BasicConstraintsValid: true}
	noSigning, noPath := unlimited, unlimited
	noSigning.KeyUsage = x509.KeyUsageCRLSign
	noPath.MaxPathLen, noPath.MaxPathLenZero = 0, true
	own := authority{key: rootKey}

	for name, tt := range map[string]struct {
		root       []*x509.Certificate
		file, want string
	}{
		"another key":    {[]*x509.Certificate{issue(t, stranger, unlimited, stranger.key.Public())}, intermediateFile, "not signed by"},
		"another name":   {[]*x509.Certificate{issue(t, own, caNamed("else"), rootKey.Public())}, intermediateFile, "not signed by"},
		"not a CA":       {[]*x509.Certificate{issue(t, own, leaf, rootKey.Public())}, rootFile, "not a CA"},
		"no signing":     {[]*x509.Certificate{issue(t, own, noSigning, rootKey.Public())}, rootFile, "may not sign"},
		"no path":        {[]*x509.Certificate{issue(t, own, noPath, rootKey.Public())}, intermediateFile, "cannot sign for the server"},
		"no self-signed": {[]*x509.Certificate{ks.Intermediate()}, rootFile, "not signed by"},
		"two":            {[]*x509.Certificate{ks.Root(), ks.Root()}, rootFile, "at most 1"},
		"fit":            {[]*x509.Certificate{issue(t, own, unlimited, rootKey.Public())}, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			f := folder{path: dir, rename: os.Rename}
			for file, data := range good {
				if file == rootFile {
					data = string(EncodeCertificates(tt.root...))
				}
				if err := f.write(file, []byte(data)); err != nil || os.Chmod(dir, 0o700) != nil {
					t.Fatal(err)
				}
			}
			// Another name makes the server's certificate due, which a
			// root that only seems to fit does not survive.
			_, err := Open(dir, Options{Now: c.Now, DNSNames: []string{"due.example"}})
			if tt.want == "" && err == nil {
				wantConsistent(t, dir, c.Now())
				return
			}
			wantError(t, err, filepath.Join(dir, tt.file), tt.want, "restore it from a backup")
		})
	}
}

func TestOpenPermissions(t *testing.T) {
	c := newClock()
	dir := t.TempDir()
	chmod := func(name string, mode os.FileMode) {
		t.Helper()
		if err := os.Chmod(filepath.Join(dir, name), mode); err != nil {
			t.Fatal(err)
		}
	}
	chmod(".", 0o755) // as an operator would make it
	must(Open(dir, options(c)))(t)
	if mode := must(os.Stat(dir))(t).Mode().Perm(); mode != 0o700 {
		t.Errorf("empty directory was left with mode %o", mode)
	}
	chmod(".", 0o750)
	_, err := Open(dir, options(c))
	wantError(t, err, dir, "mode 0750", "chmod 700")
	chmod(".", 0o700)

	for _, name := range creation {
		chmod(name, 0o640)
		_, err := Open(dir, options(c))
		if strings.HasSuffix(name, ".key") {
			wantError(t, err, filepath.Join(dir, name), "mode 0640", "chmod 600")
		} else if err != nil {
			t.Errorf("certificate that others can read: %v", err)
		}
		chmod(name, 0o600)
	}
	must(Open(dir, options(c)))(t)
}
