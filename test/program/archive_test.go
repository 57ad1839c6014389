package program_test

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestArchive has more entries than the store keeps, and a process that is killed: what
// the store forgot is in files, and a check of both says so, and where not.
func TestArchive(t *testing.T) {
	data := filepath.Join(t.TempDir(), "data")
	files := filepath.Join(data, "audit")
	p := controller(t, data, "--audit-entries", "1000")
	c := p.client(data)
	for part := range 11 {
		changes := make([]M, 150)
		for i := range changes {
			changes[i] = M{"op": "create", "kind": "identity", "body": M{"name": fmt.Sprintf("i%d-%d", part, i), "type": "User", "isAdmin": false}}
		}
		c.must(t, http.StatusOK, http.MethodPost, "changes", M{"changes": changes})
	}
	eventually(t, "there is an archive", func() bool {
		all, err := os.ReadDir(files)
		return err == nil && len(all) > 0
	})
	p.kill(0)
	p = controller(t, data, "--audit-entries", "1000")
	c = c.on(t, p, data)
	eventually(t, "the store forgets", func() bool {
		return c.must(t, http.StatusOK, http.MethodGet, "audit-verification", nil).body["data"].(M)["first"].(float64) > 1
	})
	verify := func(more ...string) *process {
		t.Helper()
		return launch(t, settings{args: append([]string{"audit", "verify", "--archive", files}, more...), env: []string{"XDG_CONFIG_HOME=" + t.TempDir()}})
	}
	v := verify("--offline")
	if code := v.wait(); code != 0 || !strings.Contains(v.stdout.String(), "The archive is whole: entries 1 to ") {
		t.Errorf("exit code %d: %s", code, v.stdout.String())
	}
	here := []string{"XDG_CONFIG_HOME=" + t.TempDir()}
	in := launch(t, settings{args: []string{"login", p.ready(), "--ca", filepath.Join(data, "pki", "root.crt"), "--username", "admin"}, env: append(here, "NETKEEP_PASSWORD="+password)})
	if code := in.wait(); code != 0 {
		t.Fatalf("logging in: %s", in.stderr.String())
	}
	v = launch(t, settings{args: []string{"audit", "verify", "--archive", files}, env: here})
	if code := v.wait(); code != 0 || !strings.Contains(v.stdout.String(), "The archive is whole: entries 1 to ") || !strings.Contains(v.stdout.String(), "The audit log is whole: entries ") {
		t.Errorf("exit code %d: %s%s", code, v.stdout.String(), v.stderr.String())
	}
	p.stop()
	all, err := os.ReadDir(files)
	if err != nil || len(all) != 1 {
		t.Fatal(all, err)
	}
	path := filepath.Join(files, all[0].Name())
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(files, "audit-000000000001-000000000500.jsonl.gz"), text[:len(text)/2], 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	v = verify("--offline")
	if code := v.wait(); code != 1 || !strings.Contains(v.stdout.String(), "cannot be read to its end") || !strings.Contains(v.stdout.String(), "missing in the archive") {
		t.Errorf("of a file that was cut it says %d: %s", code, v.stdout.String())
	}
}

// eventually waits for something that needs its time.
func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	deadline := time.Now().Add(waitTime)
	for !is() {
		if time.Now().After(deadline) {
			t.Fatalf("%s: not within %s", what, waitTime)
		}
		<-time.After(50 * time.Millisecond)
	}
}
