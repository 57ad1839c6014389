package transit

import (
	"io"
	"testing"

	"netkeep/internal/transit/client"
	"netkeep/test/networktest"
)

// world is a network of one router for benchmarks, with somebody who hosts and
// somebody who dials.
func world(b *testing.B, encrypted bool) (c *client.Client, service string) {
	b.Helper()
	n := networktest.New(b, shared)
	n.AddRouter("one")
	service = n.AddService("echo", encrypted)
	n.Echo(n.Client(n.AddIdentity("host")), service)
	c = n.Client(n.AddIdentity("user"))
	conn, err := c.Dial(b.Context(), service, client.DialOptions{})
	must(b, err)
	must(b, conn.Close())
	return c, service
}

// BenchmarkDial dials, sends a byte and gets it back, many at once.
func BenchmarkDial(b *testing.B) {
	c, service := world(b, true)
	b.SetParallelism(32)
	b.ResetTimer()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			conn, err := c.Dial(b.Context(), service, client.DialOptions{})
			if err == nil {
				_, err = conn.Write([]byte{1})
			}
			if err == nil {
				_, err = io.ReadFull(conn, make([]byte, 1))
			}
			if err != nil {
				b.Error(err)
				return
			}
			_ = conn.Close()
		}
	})
}

// BenchmarkEcho sends bytes there and back over one connection: what the router
// and both clients need for it together.
func BenchmarkEcho(b *testing.B) {
	for name, encrypted := range map[string]bool{"encrypted": true, "plain": false} {
		b.Run(name, func(b *testing.B) {
			c, service := world(b, encrypted)
			conn, err := c.Dial(b.Context(), service, client.DialOptions{})
			must(b, err)
			defer conn.Close()
			const piece = 32 << 10
			b.SetBytes(piece)
			b.ResetTimer()
			go func() {
				data := make([]byte, piece)
				for range b.N {
					if _, err := conn.Write(data); err != nil {
						return
					}
				}
			}()
			if _, err := io.CopyN(io.Discard, conn, piece*int64(b.N)); err != nil {
				b.Fatal(err)
			}
		})
	}
}
