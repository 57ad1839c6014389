package device

import (
	"crypto/sha512"
	"encoding/hex"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestPrograms sees a program while it runs, as what its file is.
func TestPrograms(t *testing.T) {
	self, err := os.Executable()
	must(t, err)
	data, err := os.ReadFile(self)
	must(t, err)
	copied := filepath.Join(t.TempDir(), "copy")
	must(t, os.WriteFile(copied, data, 0o700))
	linked := copied + "-link"
	must(t, os.Symlink(copied, linked))
	cmd := exec.Command(copied)
	cmd.Env = append(os.Environ(), "WAITS=1")
	in, err := cmd.StdinPipe()
	must(t, err)
	out, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	_, err = io.ReadFull(out, make([]byte, 1))
	must(t, err)

	sum := sha512.Sum512(data)
	runs := Program{Running: true, Hash: hex.EncodeToString(sum[:])}
	var p Programs
	asked := []string{self, copied, linked, "/no/such/program"}
	want := map[string]Program{self: runs, copied: runs, linked: runs}
	for range 2 { // the second time from memory
		if diff := cmp.Diff(want, p.Look(asked)); diff != "" {
			t.Error(diff)
		}
	}
	must(t, in.Close())
	must(t, cmd.Wait())
	if diff := cmp.Diff(map[string]Program{self: runs}, p.Look(asked)); diff != "" {
		t.Error(diff)
	}
}

func TestOS(t *testing.T) {
	release, err := os.ReadFile("/proc/sys/kernel/osrelease")
	must(t, err)
	if got, want := OS(), (System{"linux", strings.TrimSpace(string(release))}); got != want {
		t.Errorf("it is %+v, not %+v", want, got)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// TestMain waits, where it is asked to, until nobody listens any more.
func TestMain(m *testing.M) {
	if os.Getenv("WAITS") == "" {
		os.Exit(m.Run())
	}
	_, _ = os.Stdout.WriteString(".")
	_, _ = io.Copy(io.Discard, os.Stdin)
}
