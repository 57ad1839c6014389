package transit

import (
	"testing"
	"time"

	"netkeep.internal/internal/client/sdk"
	"netkeep.internal/internal/ops/config"
	"netkeep.internal/test/networktest"
	"netkeep.internal/test/servertest"
)

// TestUpdatesAreTold has a client that hardly ever asks: it knows of a service when
// there is one, since it is told.
func TestUpdatesAreTold(t *testing.T) {
	n := networktest.New(t, shared)
	c := n.Client(n.AddIdentity("me"), func(o *sdk.Options) { o.Poll = time.Hour })
	for _, name := range []string{"first", "second"} {
		service := n.AddService(name, true)
		n.Eventually("the client is told", func() bool { return c.Find(service) != nil })
	}
}

// TestUpdatesAreAskedFor has a client to which the controller tells nothing, since
// somebody else has the only stream that its identity may have: it asks.
func TestUpdatesAreAskedFor(t *testing.T) {
	n := networktest.New(t, servertest.Start(t, func(c *config.Config) { c.Limits.IdentityStreams = 1 }))
	me := n.AddIdentity("me")
	other := n.Server.Nobody(t)
	other.Token = login(t, n, me).token
	other.Stream("/edge/client/v1/current-api-session/service-updates/stream").Next()
	c := n.Client(me)
	service := n.AddService("asked", true)
	n.Eventually("the client asks", func() bool { return c.Find(service) != nil })
}
