package program_test

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"netkeep.internal/test/servertest"
)

// TestCheckpoint starts with what memory had once and what came after it, without a word with
// all records where that file is damaged, put back from earlier or somebody else's, and never
// keeps one where nobody wants it.
func TestCheckpoint(t *testing.T) {
	t.Parallel()
	data := filepath.Join(t.TempDir(), "data")
	file := filepath.Join(data, "checkpoint")
	n := 0
	add := func(c *client) {
		t.Helper()
		n++
		c.must(t, 201, http.MethodPost, "identities", M{"name": fmt.Sprint("device-", n), "type": "Device", "isAdmin": false})
	}
	kept := func() []byte {
		var is []byte
		servertest.Eventually(t, waitTime, "a checkpoint", func() bool {
			var err error
			is, err = os.ReadFile(file)
			return err == nil
		})
		return is
	}
	begun := func(p *process) bool { return strings.Contains(p.stderr.String(), "memory begins with a checkpoint") }

	p := controller(t, data)
	add(p.client(data))
	p.kill(0)
	p = controller(t, data, checkpoints...)
	c := p.client(data)
	guest := c.must(t, 201, http.MethodPost, "identities", M{"name": "guest", "type": "Device", "isAdmin": false, "enrollment": M{"ott": true}}).body["data"].(M)["id"].(string)
	invited := c.must(t, 200, http.MethodGet, "identities/"+guest+"/enrollments", nil).body["data"].([]any)[0].(M)["token"].(string)
	kept()
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	p.kill(0)
	p = controller(t, data, checkpoints...)
	first := kept()
	for what, secret := range map[string]string{"password of the admin": password, "token of an invitation": invited, "token of a session": c.token} {
		if secret == "" || strings.Contains(string(first), secret) {
			t.Errorf("the %s is in it, as %q", what, secret)
		}
	}
	if !strings.Contains(string(first), guest) {
		t.Error("the one who is invited is not in it")
	}
	add(p.client(data))
	want := p.client(data).everything(t)
	p.kill(0)

	for _, tt := range []struct {
		name string
		file []byte
		used bool
	}{
		{"whole", first, true},
		{"damaged", append(append([]byte{}, first[:len(first)/2]...), first[len(first)/2+1:]...), false},
		{"none", nil, false},
		{"another program's", []byte("something"), false},
	} {
		if err := os.WriteFile(file, tt.file, 0o600); err != nil {
			t.Fatal(err)
		}
		if tt.file == nil {
			_ = os.Remove(file)
		}
		p = controller(t, data, checkpoints...)
		c := p.client(data)
		got := c.everything(t)
		for _, id := range []map[string]map[string]M{got, want} {
			for _, identity := range id["identities"] {
				delete(identity, "lastSeenAt")
				delete(identity, "hasApiSession")
			}
		}
		if diff := cmp.Diff(want, got); diff != "" || begun(p) != tt.used {
			t.Errorf("%s: used %t, has (-want +got):\n%s", tt.name, begun(p), diff)
		}
		c.scan(t)
		kept()
		p.kill(0)
	}

	// A store that was put back from before the checkpoint.
	older := filepath.Join(t.TempDir(), "older")
	copyTree(t, filepath.Join(data, "store"), older)
	p = controller(t, data, checkpoints...)
	add(p.client(data))
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	p.kill(0)
	p = controller(t, data, checkpoints...)
	later := kept()
	p.kill(0)
	if err := os.RemoveAll(filepath.Join(data, "store")); err != nil {
		t.Fatal(err)
	}
	copyTree(t, older, filepath.Join(data, "store"))
	if err := os.WriteFile(file, later, 0o600); err != nil {
		t.Fatal(err)
	}
	p = controller(t, data, checkpoints...)
	if got := len(p.client(data).everything(t)["identities"]); got != len(want["identities"]) || begun(p) {
		t.Errorf("%d identities, want the %d of before", got, len(want["identities"]))
	}
	kept()
	p.stop()

	p = controller(t, data, "--store-checkpoint", "0")
	defer p.stop()
	if _, err := os.Stat(file); err == nil || begun(p) {
		t.Error("nobody wants one, and there is one")
	}
}
