package transit

import (
	"io"
	"sync"
	"testing"

	"netkeep.internal/internal/client/sdk"
	"netkeep.internal/test/networktest"
)

// world is a network of one router for benchmarks, with somebody who hosts and
// somebody who dials.
func world(b *testing.B, encrypted bool) (c *sdk.Client, service string, r *networktest.Router) {
	b.Helper()
	n := networktest.New(b, shared)
	r = n.AddRouter("one")
	service = n.AddService("echo", encrypted)
	n.Echo(n.Client(n.AddIdentity("host")), service)
	c = n.Client(n.AddIdentity("user"))
	conn, err := c.Dial(b.Context(), service, sdk.DialOptions{})
	must(b, err)
	must(b, conn.Close())
	return c, service, r
}

// BenchmarkDial dials, sends a byte and gets it back, many at once.
func BenchmarkDial(b *testing.B) {
	c, service, _ := world(b, true)
	b.SetParallelism(32)
	b.ResetTimer()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			conn, err := c.Dial(b.Context(), service, sdk.DialOptions{})
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

// BenchmarkEcho sends bytes there and back over one connection and over many:
// what the router and both clients need for it together.
func BenchmarkEcho(b *testing.B) {
	for _, of := range []struct {
		name      string
		encrypted bool
		conns     int
	}{{"encrypted", true, 1}, {"plain", false, 1}, {"plain-50", false, 50}} {
		b.Run(of.name, func(b *testing.B) {
			c, service, r := world(b, of.encrypted)
			const piece = 32 << 10
			b.SetBytes(piece)
			lost := r.Figures().Lost
			var all sync.WaitGroup
			for i := range of.conns {
				conn, err := c.Dial(b.Context(), service, sdk.DialOptions{})
				must(b, err)
				defer conn.Close()
				pieces := (b.N + i) / of.conns
				all.Go(func() {
					data := make([]byte, piece)
					for range pieces {
						if _, err := conn.Write(data); err != nil {
							return
						}
					}
				})
				all.Go(func() {
					if _, err := io.CopyN(io.Discard, conn, piece*int64(pieces)); err != nil {
						b.Error(err)
					}
				})
			}
			all.Wait()
			b.ReportMetric(float64(r.Figures().Lost-lost)/float64(2*b.N), "lost/piece")
		})
	}
}
