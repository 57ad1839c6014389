package program_test

import (
	"net/http"
	"os"
	"path/filepath"
	"testing"
)

// TestSnapshotOfSeveral restores a snapshot of two controllers. The directory is
// none to join with, and makes one controller, which knows of no others after a
// while.
func TestSnapshotOfSeveral(t *testing.T) {
	t.Parallel() // it waits more than it works
	dir := t.TempDir()
	a := startNode(t, filepath.Join(dir, "a"))
	admin := a.client()
	b := startNode(t, filepath.Join(dir, "b"), "--join", inviteBy(t, admin))
	awaitVotes(t, admin, 2)
	known := func(c *client, want int) {
		t.Helper()
		awaitTrue(t, "the controllers that there are", func() bool {
			answer, err := c.do(http.MethodGet, "controllers", nil)
			return err == nil && answer.status == 200 && len(answer.body["data"].([]any)) == want
		})
	}
	known(b.client(), 2)
	b.client().must(t, 200, http.MethodPost, "database/snapshot", nil)
	token := inviteBy(t, admin)
	restored := filepath.Join(dir, "restored")
	if r := launch(t, settings{args: []string{"restore", "--data", restored, onlySnapshot(t, b.data)}}); r.wait() != 0 {
		t.Fatalf("it cannot be restored: %s", r.stderr.String())
	}
	before, err := os.ReadDir(restored)
	if err != nil {
		t.Fatal(err)
	}
	c := &node{data: restored, listen: freeAddress(t), peers: freeAddress(t)}
	c.launch(t, "--join", token).failsLate("did not join", "empty directory")
	// But for the lock of who tried.
	if after, err := os.ReadDir(restored); err != nil || len(after) != len(before)+1 {
		t.Errorf("it left %v, %v", after, err)
	}
	for _, n := range []*node{a, b} {
		n.stop()
	}
	// One of two that were stopped has to wait, and says for what.
	waiting := b.launch(t)
	waiting.logs("this controller waits for the others")
	waiting.kill(0)
	copyKeys(t, a.data, restored)
	c.start(t)
	known(c.client(), 1)
	addService(t, c.client(), "after")
}
