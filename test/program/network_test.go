package program_test

import (
	"errors"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestForeignKeys starts a controller on a store with keys that are not those
// of its network: none, others, and what a restore leaves. It says what to do,
// makes no keys, and goes on with the right ones.
func TestForeignKeys(t *testing.T) {
	dir := t.TempDir()
	data, other := filepath.Join(dir, "data"), filepath.Join(dir, "other")
	p := controller(t, data)
	p.client(data).must(t, 200, http.MethodPost, "database/snapshot", nil)
	p.stop()
	controller(t, other).stop()

	pki, aside := filepath.Join(data, "pki"), filepath.Join(dir, "aside")
	refused := func(data, problem string) {
		t.Helper()
		launch(t, settings{args: []string{"run", "--data", data, "--listen", "127.0.0.1:0"}}).
			fails("the store belongs to the network with the root CA", filepath.Join(data, "pki", "root.crt")+problem, "put the pki directory of that network there")
	}
	move := func(from, to string) {
		t.Helper()
		if err := os.Rename(from, to); err != nil {
			t.Fatal(err)
		}
	}
	move(pki, aside)
	refused(data, " is not there")
	if _, err := os.Stat(pki); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("it made keys: %v", err)
	}
	copyKeys(t, other, data)
	refused(data, " is that of another")
	if err := os.RemoveAll(pki); err != nil {
		t.Fatal(err)
	}
	move(aside, pki)

	restored := filepath.Join(dir, "restored")
	if code := launch(t, settings{args: []string{"restore", "--data", restored, onlySnapshot(t, data)}}).wait(); code != 0 {
		t.Fatalf("restore ended with %d", code)
	}
	refused(restored, " is not there")
	copyKeys(t, data, restored)
	for _, data := range []string{data, restored} {
		p := controller(t, data)
		p.client(data).must(t, 200, http.MethodGet, "identities", nil)
		p.stop()
	}
}

// TestForgottenKeys loses the keys of a network for good. What it was told to
// forget is the old CA; all that is not sealed stays.
func TestForgottenKeys(t *testing.T) {
	data := filepath.Join(t.TempDir(), "data")
	p := controller(t, data)
	c := p.client(data)
	c.must(t, 201, http.MethodPost, "services", M{"name": "kept", "encryptionRequired": false})
	c.must(t, 201, http.MethodPost, "identities", M{"name": "invited", "type": "Device", "isAdmin": false, "enrollment": M{"ott": true}})
	forget := settings{args: []string{"keys", "forget", "--data", data}}
	launch(t, forget).fails(data, "in use by another netkeep")
	p.stop()
	launch(t, forget).fails(filepath.Join(data, "pki"), "has the keys of this store")
	if err := os.RemoveAll(filepath.Join(data, "pki")); err != nil {
		t.Fatal(err)
	}
	told(t, launch(t, forget), "The store has forgotten the root CA", "enroll again", "fix-data-integrity")
	launch(t, forget).fails("belongs to no network")

	p = controller(t, data)
	c = p.client(data)
	if n := len(c.list(t, "services")); n != 1 {
		t.Errorf("there are %d services", n)
	}
	if n := len(c.list(t, "enrollments")); n != 0 {
		t.Errorf("there are %d invitations that nobody can open", n)
	}
	c.must(t, 202, http.MethodPost, "database/fix-data-integrity", nil)
	scan := func() M {
		return c.must(t, 200, http.MethodGet, "database/data-integrity-results", nil).body["data"].(M)
	}
	for scan()["inProgress"] == true {
		<-time.After(20 * time.Millisecond)
	}
	if found := scan()["results"].([]any); len(found) != 1 || !strings.Contains(found[0].(M)["description"].(string), "cannot be opened with the keys of this controller") {
		t.Errorf("the scan found %v", found)
	}
	p.stop()
}
