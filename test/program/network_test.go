package program_test

import (
	"errors"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"testing"
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
