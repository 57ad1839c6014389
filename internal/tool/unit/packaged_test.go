package unit

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestPackaged looks at what a package brings: no service is root or has a capability,
// each has a user and a directory of its own, and none has a name that tunnel install
// would give its own.
func TestPackaged(t *testing.T) {
	files, users := Packaged(), map[string]bool{}
	for name, text := range files {
		if !strings.HasSuffix(name, ".service") {
			continue
		}
		for _, line := range slices.Concat(kept, []string{"CapabilityBoundingSet=", "PrivateDevices=yes", "StateDirectoryMode=0700"}) {
			if !strings.Contains(text, "\n"+line+"\n") {
				t.Errorf("%s lacks %s", name, line)
			}
		}
		_, user, _ := strings.Cut(text, "\nUser=")
		user, _, _ = strings.Cut(user, "\n")
		if users[user] || user == "" || user == "root" || user == Usual {
			t.Errorf("%s runs as %q", name, user)
		}
		users[user] = true
		for _, list := range []string{files["sysusers.conf"], files["tmpfiles.conf"]} {
			if !strings.Contains(list, " "+user+" ") {
				t.Errorf("%s of %s is not in\n%s", user, name, list)
			}
		}
	}
	if len(users) != 3 || len(files) != 5 {
		t.Errorf("there are %d files, and users %v", len(files), users)
	}
}

// TestVerified has systemd read the units, where there is one.
func TestVerified(t *testing.T) {
	analyze, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Log("systemd is not there to ask")
		return
	}
	root := t.TempDir()
	for _, dir := range []string{"etc/systemd/system", "usr/bin", "bin"} {
		if err := os.MkdirAll(filepath.Join(root, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"usr/bin/netkeep", "bin/sh"} {
		if err := os.WriteFile(filepath.Join(root, name), nil, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for name, text := range Packaged() {
		if !strings.HasSuffix(name, ".service") {
			continue
		}
		unit := filepath.Join(root, "etc/systemd/system", name)
		put(t, unit, text)
		ask := exec.CommandContext(t.Context(), analyze, "verify", "--man=no", "--recursive-errors=no", "--root="+root, strings.Replace(name, "@.", "@wiki.", 1))
		if out, err := ask.CombinedOutput(); err != nil || len(out) > 0 {
			t.Errorf("%s: %v\n%s", name, err, out)
		}
	}
}
