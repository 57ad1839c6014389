package fabric

import (
	"testing"
	"time"

	"netkeep.internal/internal/ops/config"
	"netkeep.internal/internal/wire/message"
	"netkeep.internal/test/etcdtest"
	"netkeep.internal/test/scripted"
	"netkeep.internal/test/servertest"
)

// TestCutOff cuts a controller off from its cluster. After a while it lets
// nobody dial or host any more, since sessions may have been ended elsewhere;
// what its routers carry goes on, and so does everything when it is back.
func TestCutOff(t *testing.T) {
	etcd := etcdtest.Start(t)
	line := etcd.NewLine(t)
	s := servertest.Start(t, func(c *config.Config) {
		etcd.Settings(c, line)
		c.Store.Grace = 5 * time.Second
	})
	r, n := addRouter(t, s), addNetwork(t, s)
	c := r.Connect(t)
	n.hostOn(t, c, "terminator1")
	carried, _, err := n.dialOn(t, c)
	if err != nil {
		t.Fatal(err)
	}
	line.Cut()
	servertest.Eventually(t, 30*time.Second, "a refusal", func() bool {
		_, _, err := n.dialOn(t, c)
		if err != nil && !isRefused(err, message.CodeInternal) {
			t.Fatal(err)
		}
		return err != nil
	})
	await(t, c, "what it carries goes on", func(k scripted.Known) bool { return k.Circuits[carried] != nil })
	line.Mend()
	servertest.Eventually(t, 30*time.Second, "a circuit", func() bool {
		_, _, err := n.dialOn(t, c)
		return err == nil
	})
}
