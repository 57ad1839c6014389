package transit

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"syscall"
	"testing"
	"time"

	"netkeep.internal/internal/client/tunneler"
	"netkeep.internal/test/networktest"
)

// leaving is a tunneler that can be told to leave.
type leaving struct {
	leave context.CancelFunc
	done  chan error
}

func newLeaving(t *testing.T, drain time.Duration, opt tunneler.Options) *leaving {
	t.Helper()
	ctx, end := context.WithCancel(context.Background())
	leave, cancel := context.WithCancel(ctx)
	opt.Leave, opt.Drain, opt.Now, opt.Poll, opt.Log = leave.Done(), drain, time.Now, 100*time.Millisecond, slog.New(slog.DiscardHandler)
	l := &leaving{cancel, make(chan error, 1)}
	over := make(chan struct{})
	go func() {
		defer close(over)
		l.done <- tunneler.Run(ctx, opt)
	}()
	t.Cleanup(func() {
		end()
		<-over
	})
	return l
}

// ended waits until it is gone.
func (l *leaving) ended(t *testing.T) {
	t.Helper()
	select {
	case err := <-l.done:
		must(t, err)
	case <-time.After(networktest.Soon):
		t.Fatal("it does not end")
	}
}

// echoes is a server that says its name first, and then what it is told.
func echoes(t *testing.T, name string) net.Listener {
	t.Helper()
	return server(t, func(conn net.Conn) {
		_, _ = io.WriteString(conn, name)
		_, _ = io.Copy(conn, conn)
	})
}

// dialPort connects to a local port, and returns what it is told first.
func dialPort(t *testing.T, port int) (net.Conn, string) {
	t.Helper()
	conn, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", port))
	if err != nil {
		return nil, err.Error()
	}
	t.Cleanup(func() { _ = conn.Close() })
	must(t, conn.SetDeadline(time.Now().Add(networktest.Soon)))
	name := make([]byte, 3)
	if _, err := io.ReadFull(conn, name); err != nil {
		_ = conn.Close()
		return nil, err.Error()
	}
	return conn, string(name)
}

// drop closes a connection, if there is one.
func drop(conn net.Conn) {
	if conn != nil {
		_ = conn.Close()
	}
}

// alive reports whether a connection still carries something.
func alive(conn net.Conn) bool {
	if _, err := io.WriteString(conn, "?"); err != nil {
		return false
	}
	_, err := io.ReadFull(conn, make([]byte, 1))
	return err == nil
}

// TestLeave lets connections go on that a tunneler has when its config changes
// or it is told to leave, and takes no new ones; but not when they are not
// allowed any more, nor for ever.
func TestLeave(t *testing.T) {
	n := networktest.New(t, shared)
	n.AddRouter("router")
	host, user := n.AddIdentity("host", n.Word+"host"), n.AddIdentity("user", n.Word+"user")
	one, two := echoes(t, "one"), echoes(t, "two")
	data := func(l net.Listener) M {
		return M{"protocol": "tcp", "address": "127.0.0.1", "port": portOf(l.Addr())}
	}
	_, config := leading(n, "s", data(one))
	service, port, other := n.Word+"s", freePort(t), freePort(t)
	proxy := tunneler.Options{Identities: []string{user.File}, Ports: []tunneler.Port{{Service: service, Bind: "127.0.0.1", Number: port}}}
	hosting := tunneler.Options{Identities: []string{host.File}, Host: true}
	second := proxy
	second.Ports = []tunneler.Port{{Service: service, Bind: "127.0.0.1", Number: other}}

	first := newLeaving(t, time.Hour, hosting)
	short, long := newLeaving(t, 100*time.Millisecond, proxy), newLeaving(t, time.Hour, second)
	dial := func(port int, want string) (conn net.Conn) {
		t.Helper()
		n.Eventually("it leads to "+want, func() bool {
			c, name := dialPort(t, port)
			if conn = c; name != want {
				drop(conn)
			}
			return name == want
		})
		return conn
	}
	refused := func(port int) bool {
		c, _ := dialPort(t, port)
		drop(c)
		return c == nil
	}
	cut, held, kept := dial(port, "one"), dial(other, "one"), dial(other, "one")

	n.Admin.Patch(networktest.Management+"configs/"+config, M{"data": data(two)}).Want(200)
	drop(dial(port, "two"))
	if !alive(held) {
		t.Error("a connection was cut because of a change that is for the next")
	}

	long.leave()
	n.Eventually("the port is closed", func() bool { return refused(other) })
	if !alive(held) || !alive(kept) {
		t.Error("a tunneler that leaves cuts what is connected")
	}
	must(t, held.Close())
	if !alive(kept) {
		t.Error("all are cut when the first has ended")
	}

	first.leave()
	n.Eventually("the service is not hosted any more", func() bool { return refused(port) })
	if !alive(kept) || !alive(cut) {
		t.Error("a host that leaves cuts what is connected")
	}
	must(t, kept.Close())
	long.ended(t)

	short.leave()
	if _, err := io.Copy(io.Discard, cut); !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("a connection that was cut off ended with %v, which looks like all there was", err)
	}
	short.ended(t)
	first.ended(t)
}

// TestRevokedHost cuts connections whose host may not host any more, though it
// would let them go on.
func TestRevokedHost(t *testing.T) {
	n := networktest.New(t, shared)
	n.AddRouter("router")
	host, user := n.AddIdentity("host", n.Word+"host"), n.AddIdentity("user", n.Word+"user")
	leading(n, "s", M{"protocol": "tcp", "address": "127.0.0.1", "port": portOf(echoes(t, "one").Addr())})
	port := freePort(t)
	newLeaving(t, time.Hour, tunneler.Options{Identities: []string{host.File}, Host: true})
	newLeaving(t, time.Hour, tunneler.Options{Identities: []string{user.File}, Ports: []tunneler.Port{{Service: n.Word + "s", Bind: "127.0.0.1", Number: port}}})
	var conn net.Conn
	n.Eventually("it is hosted", func() bool { conn, _ = dialPort(t, port); return conn != nil })
	policies := n.Admin.Get(networktest.Management + `service-policies?filter=name="` + n.Word + `sBind"`).Want(200).List()
	n.Admin.Delete(networktest.Management + "service-policies/" + policies[0]["id"].(string)).Want(200)
	n.Eventually("the connection is cut", func() bool { return !alive(conn) })
}
