package transit

import (
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"netkeep.internal/internal/client/sdk"
	"netkeep.internal/test/networktest"
)

// leaves makes a service whose traffic leaves the network at a router for an
// address.
func leaves(n *networktest.Network, at *networktest.Router, name, address string) string {
	n.T.Helper()
	service := n.AddService(name, false)
	id := n.Admin.Get(networktest.Management + `services?filter=name="` + service + `"`).Want(200).List()[0]["id"]
	n.Admin.Post(networktest.Management+"terminators", M{"service": id, "router": at.ID, "binding": "transport", "address": address}).Want(201)
	return service
}

// TestExits has traffic leave for addresses that are no part of the network:
// over TCP with either side closing first, over UDP, and for where nobody is.
func TestExits(t *testing.T) {
	n := networktest.New(t, shared)
	near, far := n.AddRouter("near"), n.AddRouter("far")
	n.Eventually("the routers are linked", func() bool { return linked(n, near, far) })
	c := n.Client(n.AddIdentity("user"))

	t.Run("tcp", func(t *testing.T) {
		l := server(t, func(conn net.Conn) {
			_, _ = io.Copy(conn, conn) // ends when the other side half closes
		})
		service := leaves(n, far, "tcp", "tcp:"+l.Addr().String())
		for _, size := range []int{0, 1, 2_000_000} {
			if err := exchange(within(t, networktest.Soon), c, service, size); err != nil {
				t.Errorf("%d bytes: %v", size, err)
			}
		}
	})
	t.Run("the server closes first", func(t *testing.T) {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		must(t, err)
		defer l.Close()
		go func() {
			if conn, err := l.Accept(); err == nil {
				_, _ = io.WriteString(conn, "that is all")
				_ = conn.Close()
			}
		}()
		service := leaves(n, far, "first", "tcp:"+l.Addr().String())
		conn, err := c.Dial(within(t, networktest.Soon), service, sdk.DialOptions{})
		must(t, err)
		defer conn.Close()
		must(t, conn.SetDeadline(time.Now().Add(networktest.Soon)))
		if got, err := io.ReadAll(conn); err != nil || string(got) != "that is all" {
			t.Fatalf("heard %q: %v", got, err)
		}
	})
	t.Run("the server answers what it does not read", func(t *testing.T) {
		l := server(t, func(conn net.Conn) {
			_, _ = conn.Read(make([]byte, 1))
			_, _ = io.WriteString(conn, "too large")
		})
		service := leaves(n, far, "large", "tcp:"+l.Addr().String())
		for range 20 {
			conn, err := c.Dial(within(t, networktest.Soon), service, sdk.DialOptions{})
			must(t, err)
			must(t, conn.SetDeadline(time.Now().Add(networktest.Soon)))
			var upload sync.WaitGroup
			upload.Go(func() { _, _ = conn.Write(make([]byte, 1<<20)) })
			if got, err := io.ReadAll(conn); err != nil || string(got) != "too large" {
				t.Errorf("heard %q: %v", got, err)
			}
			_ = conn.Close()
			upload.Wait()
		}
	})
	t.Run("udp", func(t *testing.T) {
		server, err := net.ListenPacket("udp", "127.0.0.1:0")
		must(t, err)
		defer server.Close()
		go func() {
			buf := make([]byte, 1<<16)
			for {
				size, from, err := server.ReadFrom(buf)
				if err != nil {
					return
				}
				_, _ = server.WriteTo(buf[:size], from)
			}
		}()
		service := leaves(n, near, "udp", "udp:"+server.LocalAddr().String())
		conn, err := c.Dial(within(t, networktest.Soon), service, sdk.DialOptions{})
		must(t, err)
		defer conn.Close()
		must(t, conn.SetDeadline(time.Now().Add(networktest.Soon)))
		for _, text := range []string{"one", "two", strings.Repeat("three", 1000)} {
			_, err := io.WriteString(conn, text)
			must(t, err)
			got := make([]byte, len(text))
			if _, err := io.ReadFull(conn, got); err != nil || string(got) != text {
				t.Fatalf("said %q and heard %q: %v", text, got, err)
			}
		}
	})
	t.Run("nobody is there", func(t *testing.T) {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		must(t, err)
		address := l.Addr().String()
		must(t, l.Close())
		service := leaves(n, near, "nobody", "tcp:"+address)
		if _, err := c.Dial(within(t, networktest.Soon), service, sdk.DialOptions{}); err == nil || !strings.Contains(err.Error(), "refused") {
			t.Fatalf("where nobody listens: %v", err)
		}
	})
	t.Run("no address", func(t *testing.T) {
		service := leaves(n, near, "wrong", "gopher:there")
		if _, err := c.Dial(within(t, networktest.Soon), service, sdk.DialOptions{}); err == nil || !strings.Contains(err.Error(), "tcp:host:port") {
			t.Fatalf("with an address that is none: %v", err)
		}
	})
	n.Eventually("all circuits are gone", func() bool { return near.Carried() == 0 && far.Carried() == 0 })
}
