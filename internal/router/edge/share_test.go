package edge

import (
	"context"
	"crypto/x509"
	"io"
	"log/slog"
	"net"
	"strings"
	"testing"
	"time"

	"netkeep.internal/internal/wire"
	"netkeep.internal/internal/wire/channel"
	"netkeep.internal/internal/wire/message"
)

// TestShares has one dialer take all connections to a host that it can get:
// another still gets one, and what is given up can be had again.
func TestShares(t *testing.T) {
	d := New(Options{Controller: &hearing{}, Mentions: silent, Now: time.Now, Log: slog.New(slog.DiscardHandler)})
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

// silent has the log told nothing.
func silent(string) bool { return false }

// named is a controller that takes the token for the name of the identity.
type named struct{ anybody }

func (*named) Enter(_ context.Context, e Entrant) (Entry, error) {
	return Entry{IdentityID: e.Token, Leave: func() {}}, nil
}

// socketOf opens a socket of an identity's client: of a new one, or of one that
// is there.
func socketOf(d *Door, identity string, of *client) (net.Conn, error) {
	here, there := net.Pipe()
	go func() { _, _ = io.Copy(io.Discard, there) }()
	leaf := &x509.Certificate{Raw: []byte(identity)}
	h := wire.Headers{}
	h.SetText(message.HeaderClientToken, identity)
	if of == nil {
		return there, d.enter(context.Background(), here, &channel.Hello{Headers: h}, []*x509.Certificate{leaf})
	}
	h.SetBool(message.HeaderGrouped, true)
	h.SetText(message.HeaderConnectionID, of.ch.ID)
	h[message.HeaderGroupSecret] = of.secret
	_, err := d.join(here, &channel.Hello{Headers: h}, leaf)
	return there, err
}

// TestSockets has one identity take all sockets that it can get, with as many
// clients as it needs: it gets a part of what a router has, another gets its own,
// and what was given up can be had again.
func TestSockets(t *testing.T) {
	d := New(Options{Controller: &named{}, Mentions: silent, Now: time.Now, Log: slog.New(slog.DiscardHandler)})
	var taken []net.Conn
	var last error
	take := func(of *client) bool {
		conn, err := socketOf(d, "greedy", of)
		if err != nil {
			last = err
			return false
		}
		taken = append(taken, conn)
		return true
	}
	for range maxOfIdentity / 2 {
		if !take(nil) {
			break
		}
	}
	for _, c := range d.clients {
		for range 2 * maxSockets {
			if !take(c) {
				break
			}
		}
	}
	if len(taken) != maxSocketsOf || last == nil || !strings.Contains(last.Error(), "its identity has 1024 sockets") {
		t.Fatalf("one identity gets %d sockets of %d, and hears %v", len(taken), maxSocketsOf, last)
	}
	if _, err := socketOf(d, "other", nil); err != nil {
		t.Errorf("another identity: %v", err)
	}
	_ = taken[0].Close()
	within(t, "what was given up can be had again", func() bool { return take(nil) })
	for _, conn := range taken {
		_ = conn.Close()
	}
	within(t, "nothing stays", func() bool {
		d.mu.Lock()
		defer d.mu.Unlock()
		return d.identities["greedy"] == nil && len(d.clients) == 1
	})
}

// within waits until something is so.
func within(t *testing.T, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !is(); <-time.After(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("never: %s", what)
		}
	}
}
