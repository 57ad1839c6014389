package overlay_test

import (
	"crypto/tls"
	"net"
	"testing"

	"netkeep.internal/internal/client/sdk"
	"netkeep.internal/overlay"
	"netkeep.internal/test/networktest"
)

// TestWho has dialers who claim to be somebody else: the host is shown who they
// are.
func TestWho(t *testing.T) {
	n := networktest.New(t, shared)
	n.AddRouter("router")
	victim := n.AddIdentity("victim")
	for _, encrypted := range []bool{false, true} {
		service := n.AddService(map[bool]string{false: "open", true: "sealed"}[encrypted], encrypted)
		l, err := open(t, n.AddIdentity("host of "+service).File).Listen(t.Context(), service)
		must(t, err)
		liar := n.AddIdentity("liar of " + service)
		dialers := map[string]networktest.Identity{"the victim": victim, "a liar": liar}
		for what, me := range dialers {
			for _, claim := range []string{"", victim.Name, victim.ID, "Default Admin", "\x00"} {
				dialled := make(chan error, 1)
				go func() {
					conn, err := n.Client(me).Dial(t.Context(), service, sdk.DialOptions{Caller: claim, Data: []byte(victim.Name)})
					if err == nil {
						t.Cleanup(func() { _ = conn.Close() })
					}
					dialled <- err
				}()
				conn, err := l.Accept()
				must(t, err)
				must(t, <-dialled)
				for name, c := range map[string]net.Conn{"itself": conn, "in TLS": tls.Server(conn, nil), "in TLS twice": tls.Client(tls.Server(conn, nil), nil)} {
					if who, known := overlay.DialerOf(c); !known || who.ID != me.ID || who.Name != me.Name || who.String() != me.Name {
						t.Errorf("%s dials as %q, and the connection %s says %+v (%v)", what, claim, name, who, known)
					}
				}
				if at := conn.RemoteAddr().String(); at != me.Name {
					t.Errorf("%s dials as %q, and the remote address is %q", what, claim, at)
				}
				must(t, conn.Close())
			}
		}
	}
	// Nobody vouches for anybody else.
	near, far := net.Pipe()
	defer near.Close()
	defer far.Close()
	for _, conn := range []net.Conn{near, tls.Server(near, nil), nil} {
		if who, known := overlay.DialerOf(conn); known || who != (overlay.Identity{}) {
			t.Errorf("%T is dialled by %v", conn, who)
		}
	}
	if who := (overlay.Identity{ID: "id"}); who.String() != "id" {
		t.Errorf("an identity without a name is %q", who)
	}
}

// TestWhoDialledFromHere knows nobody: the other end is a service.
func TestWhoDialledFromHere(t *testing.T) {
	n := networktest.New(t, shared)
	n.AddRouter("router")
	service := n.AddService("service", true)
	l, err := open(t, n.AddIdentity("host").File).Listen(t.Context(), service)
	must(t, err)
	go answer(l, "host")
	conn, err := open(t, n.AddIdentity("user").File).Dial(t.Context(), service)
	must(t, err)
	defer conn.Close()
	if who, known := conn.Dialer(); known || conn.RemoteAddr().String() != service {
		t.Errorf("it was dialled by %v, and leads to %s", who, conn.RemoteAddr())
	}
}
