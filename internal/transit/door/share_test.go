package door

import (
	"crypto/x509"
	"log/slog"
	"testing"
	"time"

	"netkeep/internal/line/channel"
	"netkeep/internal/line/wire"
)

// TestShares has one dialer take all connections to a host that it can get:
// another still gets one, and what is given up can be had again.
func TestShares(t *testing.T) {
	d := New(Options{Controller: &hearing{}, Now: time.Now, Log: slog.New(slog.DiscardHandler)})
	c := d.newClient("token", []*x509.Certificate{{Raw: []byte("leaf")}}, &channel.Hello{Headers: wire.Headers{}})
	c.entry = Entry{IdentityID: "host", Leave: func() {}}
	if err := d.add(c); err != nil {
		t.Fatal(err)
	}
	var last *conn
	taken := 0
	for range maxConns + 1 {
		next := &conn{client: c, hosts: true, dialer: "greedy"}
		if c.number(next) {
			taken, last = taken+1, next
		}
	}
	if taken != maxOfDialer {
		t.Errorf("one dialer gets %d connections, want %d", taken, maxOfDialer)
	}
	if !c.number(&conn{client: c, hosts: true, dialer: "other"}) {
		t.Error("another dialer gets none")
	}
	c.drop(last)
	if !c.number(&conn{client: c, hosts: true, dialer: "greedy"}) {
		t.Error("what was given up cannot be had again")
	}
}
