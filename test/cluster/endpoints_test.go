package cluster_test

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"netkeep.internal/internal/ops/config"
	"netkeep.internal/test/etcdtest"
	"netkeep.internal/test/servertest"
)

// copyKeys puts a copy of a controller's keys below a directory, and of nothing
// else.
func copyKeys(t *testing.T, from *servertest.Server, dir string) {
	t.Helper()
	keys := filepath.Join(dir, "data", "pki")
	if err := os.MkdirAll(keys, 0o700); err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(from.Config.Data, "pki", "*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err == nil {
			err = os.WriteFile(filepath.Join(keys, filepath.Base(file)), text, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// refusedStart wants a start to fail with words.
func refusedStart(t *testing.T, dir string, change func(*config.Config), words ...string) {
	t.Helper()
	s, err := servertest.Open(dir, change)
	if err == nil {
		stopping(t, s)
		t.Fatal("it started")
	}
	for _, word := range words {
		if !strings.Contains(err.Error(), word) {
			t.Errorf("it does not say %q: %v", word, err)
		}
	}
}

// TestUninvited starts a controller with a copy of the network's keys on the store
// of a network that has another. It is refused while that one is there, and takes
// its place when it is not.
func TestUninvited(t *testing.T) {
	beside(t)
	etcd := etcdtest.Start(t)
	use := func(c *config.Config) { etcd.Settings(c) }
	a, err := servertest.Open(t.TempDir(), use)
	if err != nil {
		t.Fatal(err)
	}
	id := a.Nobody(t).Get(client + "controllers").Want(http.StatusOK).List()[0]["id"].(string)
	dir := t.TempDir()
	copyKeys(t, a, dir)
	refusedStart(t, dir, use, "was not invited", id, "netkeep cluster invite", "--join TOKEN")
	if list := a.Nobody(t).Get(client + "controllers").Want(http.StatusOK).List(); len(list) != 1 {
		t.Errorf("the list has %d controllers", len(list))
	}
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	moved, err := servertest.Open(dir, use)
	if err != nil {
		t.Fatal(err)
	}
	closing(t, moved)
	list := moved.Nobody(t).Get(client + "controllers").Want(http.StatusOK).List()
	if len(list) != 1 || list[0]["id"] != id || list[0]["isOnline"] != true {
		t.Errorf("the controllers are %v", list)
	}
	moved.Admin(t).Get("identities").Want(http.StatusOK)
}

// TestRemoveByAddress takes one of three controllers off the list that share a store
// by address. It ends, is refused when it comes back, and joins again as another.
func TestRemoveByAddress(t *testing.T) {
	beside(t)
	etcd := etcdtest.Start(t)
	use := func(c *config.Config) { etcd.Settings(c) }
	a := servertest.Start(t, use)
	admin := a.Admin(t)
	alone := admin.Get("cluster/members").Want(http.StatusOK).List()
	if len(alone) != 1 || alone[0]["self"] != true {
		t.Fatalf("the members are %v", alone)
	}
	refused := admin.Delete("cluster/members/" + alone[0]["id"].(string)).Want(http.StatusConflict)
	if !strings.Contains(string(refused.Raw), "the only controller") {
		t.Errorf("the only one is refused with %s", refused.Raw)
	}
	admin.Delete("cluster/members/netkeep-0123456789ab").Want(http.StatusNotFound)
	dir := t.TempDir()
	b, err := servertest.Open(dir, use, joining(t, a))
	if err != nil {
		t.Fatal(err)
	}
	stopped := false
	t.Cleanup(func() {
		if !stopped {
			_ = b.Stop(t.Context())
		}
	})
	closing(t, second(t, a, use))
	var id string
	servertest.Eventually(t, patience, "three members", func() bool {
		list := admin.Get("cluster/members").Want(http.StatusOK).List()
		for _, m := range list {
			if m["address"] == b.Address() {
				id = m["id"].(string)
			}
		}
		return len(list) == 3 && id != ""
	})
	admin.Delete("cluster/members/" + id).Want(http.StatusOK)
	select {
	case err := <-b.Failed():
		if !strings.Contains(err.Error(), "this controller was removed from its cluster") {
			t.Errorf("it ends with %v", err)
		}
	case <-t.Context().Done():
		t.Fatal("it goes on")
	}
	stopped = true
	if err := b.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	refusedStart(t, dir, use, "this controller was removed from its cluster", "netkeep cluster invite")
	if list := admin.Get("cluster/members").Want(http.StatusOK).List(); len(list) != 2 {
		t.Errorf("the members are %v", list)
	}
	again := closing(t, second(t, a, use))
	eventually(t, as(t, again, admin), "identities", http.StatusOK)
}

// TestJoinByAddress joins with a token where the store is elsewhere: once, to the
// store of the network, and with an empty directory.
func TestJoinByAddress(t *testing.T) {
	beside(t)
	etcd, other := etcdtest.Start(t), etcdtest.Start(t)
	use := func(c *config.Config) { etcd.Settings(c) }
	a := servertest.Start(t, use)
	join := joining(t, a)
	refusedStart(t, t.TempDir(), func(c *config.Config) { other.Settings(c); join(c) }, "is not that of the network that the token is for")
	full := t.TempDir()
	copyKeys(t, a, full)
	refusedStart(t, full, func(c *config.Config) { use(c); join(c) }, "did not join", "empty directory")
	dir := t.TempDir()
	b, err := servertest.Open(dir, use, join)
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, as(t, b, a.Admin(t)), "identities", http.StatusOK)
	refusedStart(t, t.TempDir(), func(c *config.Config) { use(c); join(c) }, "was used already")
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	for _, change := range []func(*config.Config){use, func(c *config.Config) { use(c); join(c) }} { // with the token and without
		if b, err = servertest.Open(dir, change); err != nil {
			t.Fatal(err)
		}
		if err := b.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
