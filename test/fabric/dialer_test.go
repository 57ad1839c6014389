package fabric

import (
	"context"
	"testing"

	"netkeep.internal/internal/wire"
	"netkeep.internal/internal/wire/message"
	"netkeep.internal/test/scripted"
	"netkeep.internal/test/servertest"
)

// TestForgedDialer has a router say that somebody else dials. The host is told
// who the session belongs to.
func TestForgedDialer(t *testing.T) {
	s := servertest.Start(t)
	r, n := addRouter(t, s), addNetwork(t, s)
	routes := make(chan *message.Route, 1)
	c := r.Connect(t, func(o *scripted.Options) {
		o.Route = func(m *message.Route) (wire.Headers, error) {
			routes <- m
			return nil, nil
		}
	})
	n.hostOn(t, c, servertest.Unique("t"))
	ctx, cancel := context.WithTimeout(t.Context(), soon)
	defer cancel()
	for name, said := range map[string]map[uint32][]byte{
		"nothing": nil,
		"an admin": {
			message.PeerDialerID: []byte("another"), message.PeerDialerName: []byte("Default Admin"), message.PeerCallerID: []byte("Default Admin"),
		},
		"only a name": {message.PeerDialerName: []byte("Default Admin")},
	} {
		if _, _, err := c.Dial(ctx, n.dialing, n.dialer.Token, said); err != nil {
			t.Fatalf("a router that says %s: %v", name, err)
		}
		told := (<-routes).Egress.PeerData
		if got := string(told[message.PeerDialerID]); got != n.dialUser.ID {
			t.Errorf("a router that says %s: the host is told that %q dials, and not %q", name, got, n.dialUser.ID)
		}
		if got := string(told[message.PeerDialerName]); got != n.dialUser.Username {
			t.Errorf("a router that says %s: the host is told the name %q, and not %q", name, got, n.dialUser.Username)
		}
		if got := string(told[message.PeerCallerID]); got != string(said[message.PeerCallerID]) {
			t.Errorf("what the dialer calls itself arrives as %q", got)
		}
	}
}
