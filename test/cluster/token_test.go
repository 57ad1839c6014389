package cluster_test

import (
	"net/http"
	"testing"
	"time"

	"netkeep.internal/internal/ops/config"
	"netkeep.internal/test/etcdtest"
	"netkeep.internal/test/servertest"
)

// TestTokenOfTwoControllers makes tokens of machines at one controller and uses them at
// another, which refuses them as soon as it has heard that they are revoked: at the next
// request of whoever knows, and for everybody else with the feed.
func TestTokenOfTwoControllers(t *testing.T) {
	beside(t)
	etcd := etcdtest.Start(t)
	use := func(c *config.Config) { etcd.Settings(c) }
	a := servertest.Start(t, use)
	b := closing(t, second(t, a, use))
	admin := a.Admin(t)
	eventually(t, as(t, b, admin), "identities", http.StatusOK)
	for range 5 {
		made := admin.Post("tokens", M{"name": servertest.Unique("ci"), "roleId": "viewer", "expiresAt": time.Now().Add(time.Hour)}).Want(http.StatusCreated)
		machine := b.Nobody(t).With("Authorization", "Bearer "+made.Data()["token"].(string))
		// One that is not known yet is looked for before it is refused.
		machine.Get("services").Want(http.StatusOK)

		gone := admin.Delete("tokens/" + made.ID()).Want(http.StatusOK)
		revision := gone.Header.Get("netkeep-revision")
		if revision == "" {
			t.Fatal("a change does not say which revision it made")
		}
		machine.With("netkeep-revision", revision).Get("services").Fails(http.StatusUnauthorized, "UNAUTHORIZED", "")
		machine.Get("services").Fails(http.StatusUnauthorized, "UNAUTHORIZED", "")
	}
	// Nobody tells this one of the revision.
	made := admin.Post("tokens", M{"name": servertest.Unique("ci"), "roleId": "viewer", "expiresAt": time.Now().Add(time.Hour)}).Want(http.StatusCreated)
	machine := b.Nobody(t).With("Authorization", "Bearer "+made.Data()["token"].(string))
	machine.Get("services").Want(http.StatusOK)
	admin.Delete("tokens/" + made.ID()).Want(http.StatusOK)
	eventually(t, machine, "services", http.StatusUnauthorized)
}
