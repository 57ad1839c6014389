package program_test

import (
	"bytes"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"

	"netkeep.internal/internal/data/store"
	"netkeep.internal/test/upgrade/fixture"
)

// TestNewerStore starts a controller on a store of a newer version, and
// restores a snapshot of one. Both say which version can read it, and leave
// everything as it is.
func TestNewerStore(t *testing.T) {
	dir := t.TempDir()
	data := filepath.Join(dir, "data")
	controller(t, data).stop()
	st := openStore(t, data)
	was, _, err := st.Get(t.Context(), "format/store")
	if err != nil || was.Value == nil {
		t.Fatalf("the store says %q: %v", was.Value, err)
	}
	put := func(value []byte) {
		t.Helper()
		if _, err := st.Put(t.Context(), store.Head{}, []store.Op{{Key: "format/store", Value: value, Prev: store.Any}}); err != nil {
			t.Fatal(err)
		}
	}
	put([]byte(`{"format":99,"release":"v9.1.0"}`))
	var snapshot bytes.Buffer
	if err := st.Snapshot(t.Context(), &snapshot); err != nil {
		t.Fatal(err)
	}
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
	const says = "the store has format 99, which netkeep v9.1.0 and newer can read; this version reads formats up to 7"
	launch(t, settings{args: []string{"run", "--data", data, "--listen", "127.0.0.1:0"}}).fails(says)
	fresh := filepath.Join(dir, "fresh")
	launch(t, settings{args: []string{"restore", "--data", fresh, write(t, "snapshot.db", snapshot.String())}}).fails(says)
	if _, err := os.Stat(fresh); !os.IsNotExist(err) {
		t.Errorf("it left a directory: %v", err)
	}
	st = openStore(t, data)
	put(was.Value)
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
	p := controller(t, data)
	p.client(data).must(t, http.StatusOK, http.MethodGet, "identities", nil)
	p.stop()
}

// TestUpgradingPage upgrades an old network and goes back as the page says.
func TestUpgradingPage(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "upgrading.md"))
	if err != nil {
		t.Fatal(err)
	}
	block := regexp.MustCompile("(?s)```sh\n(.*?)```").FindSubmatch(page)
	if block == nil {
		t.Fatal("the page has nothing to paste")
	}
	data := filepath.Join(t.TempDir(), "data")
	fixture.Restore(t, fixture.First, data)
	known := fixture.Read(t, fixture.First)
	identities := func(p *process, data string) int {
		t.Helper()
		c := connect(t, p.ready(), filepath.Join(data, "pki", "root.crt"))
		if err := c.login("admin", known.Password); err != nil {
			t.Fatal(err)
		}
		return len(c.list(t, "identities"))
	}
	p := controller(t, data)
	before := identities(p, data)
	p.stop()

	bin := t.TempDir()
	if err := os.Symlink(binary, filepath.Join(bin, "netkeep")); err != nil {
		t.Fatal(err)
	}
	shell := exec.CommandContext(t.Context(), "bash", "-eu", "-c", string(block[1]))
	shell.Env = append(os.Environ(), "PATH="+bin+":"+os.Getenv("PATH"), "DATA="+data, "SNAPSHOT="+onlySnapshot(t, data))
	if out, err := shell.CombinedOutput(); err != nil {
		t.Fatalf("the page does not work: %v\n%s", err, out)
	}
	p = controller(t, data+"-before")
	if n := identities(p, data+"-before"); n != before || n == 0 {
		t.Errorf("there were %d identities and are %d", before, n)
	}
	p.stop()
}
