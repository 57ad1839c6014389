package cli

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestTunnelInstall says what a service is to run: mistakes in it are told before
// anything is written, as if it were run now.
func TestTunnelInstall(t *testing.T) {
	dir := t.TempDir()
	identity, root := filepath.Join(dir, "i.json"), filepath.Join(dir, "root")
	if err := os.WriteFile(identity, []byte("{}"), 0o600); err != nil {
		t.Fatal(err)
	}
	run := func(args ...string) (string, int) {
		var out bytes.Buffer
		env := Env{Args: append([]string{"tunnel"}, args...), Stdout: &out, Stderr: &out, Stdin: &out, Now: time.Now}
		code := Main(t.Context(), env)
		return out.String(), code
	}
	known := []string{"install", "--root", root, "--program", "/usr/bin/netkeep", "--identity", identity}
	for want, args := range map[string][]string{
		"say behind --":           known,
		"host, proxy or run":      append(known[:len(known):len(known)], "--", "status"),
		"there is no flag --alow": append(known[:len(known):len(known)], "--", "host", "--alow", "x"),
		"--poll is for what the":  append(known[:len(known):len(known)], "--poll", "1s", "--", "host"),
		"give it before --":       append(known[:len(known):len(known)], "--", "host", "--identity", identity),
		"give the file of":        {"install", "--root", root, "--", "host"},
	} {
		if said, code := run(args...); code != 2 || !strings.Contains(said, want) {
			t.Errorf("%v: %d, %s", args, code, said)
		}
	}
	if _, err := os.Stat(root); err == nil {
		t.Fatal("something was written")
	}
	if said, code := run(append(known, "--print", "--", "proxy", "wiki:8080")...); code != 0 || !strings.Contains(said, "ExecStart=/usr/bin/netkeep tunnel proxy wiki:8080 --identity") {
		t.Errorf("%d, %s", code, said)
	}
	if said, code := run(append(known, "--", "proxy", "wiki:8080")...); code != 0 || !strings.Contains(said, "which counts from now on") {
		t.Errorf("%d, %s", code, said)
	}
	if said, code := run("uninstall", "--root", root); code != 0 || !strings.Contains(said, "Its identities are left") {
		t.Errorf("%d, %s", code, said)
	}
	// One that intercepts needs a user, whom only that machine can make and remove.
	if said, code := run(append(known, "--force", "--", "run", "--intercept")...); code != 0 || !strings.Contains(said, "systemd-sysusers netkeep-tunnel.conf && systemctl enable --now netkeep-tunnel") {
		t.Errorf("%d, %s", code, said)
	}
	if err := os.WriteFile(filepath.Join(root, "etc", "passwd"), []byte("netkeep-tunnel:x:995:995::/:/usr/sbin/nologin\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if said, code := run("uninstall", "--root", root); code != 0 || !strings.Contains(said, "The user netkeep-tunnel is left") {
		t.Errorf("%d, %s", code, said)
	}
}
