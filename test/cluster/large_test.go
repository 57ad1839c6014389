package cluster_test

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"netkeep.internal/internal/ops/config"
	"netkeep.internal/test/etcdtest"
	"netkeep.internal/test/machine"
	"netkeep.internal/test/servertest"
)

// TestLargeList makes thousands of changes at once in a cluster whose
// transactions hold a hundred. Another controller has all of them a moment later.
func TestLargeList(t *testing.T) {
	beside(t)
	n := 5000
	if machine.Raced { // every one costs ten times as much then, and they are alike
		n = 1000
	}
	etcd := etcdtest.Start(t)
	use := func(c *config.Config) {
		etcd.Settings(c)
		c.Timeouts.Request, c.Timeouts.Write = 2*time.Minute, 3*time.Minute // on the slowest of machines
	}
	a := servertest.Start(t, use)
	b := closing(t, second(t, a, use))
	admin := a.Admin(t)
	eventually(t, as(t, b, admin), "identities", http.StatusOK)

	var changes []M
	for i := range n {
		changes = append(changes, M{"op": "create", "kind": "identity", "body": M{
			"name": fmt.Sprint("device ", i), "type": "Device", "isAdmin": false, "roleAttributes": []string{"all"}}})
	}
	start := time.Now()
	admin.Post("changes", M{"changes": changes}).Want(http.StatusOK)
	t.Logf("%d changes took %v", n, time.Since(start))
	there := b.Admin(t)
	servertest.Eventually(t, 30*time.Second, "all of them at the other controller", func() bool { return there.Get("identities").Total() == n+1 })
	there.Post("changes", M{"changes": []M{
		{"op": "patch", "kind": "identity", "target": "device 0", "body": M{"name": "phone"}},
		{"op": "delete", "kind": "identity", "target": fmt.Sprint("device ", n-1)},
	}}).Want(http.StatusOK)
	servertest.Eventually(t, 30*time.Second, "what the other did with them", func() bool { return admin.Get("identities").Total() == n })
}
