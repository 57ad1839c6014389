package attack_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"testing"
	"time"

	"netkeep.internal/internal/ops/config"
	"netkeep.internal/test/servertest"
)

// silence opens connections that say nothing, so many a second, from a few
// addresses.
func silence(ctx context.Context, s *servertest.Server, perSecond, addresses int, ready func()) {
	const beat = 20 * time.Millisecond
	tick := time.NewTicker(beat)
	defer tick.Stop()
	dialers := make([]func(context.Context, string, string) error, addresses)
	for i := range dialers {
		d := from(newAddress())
		dialers[i] = func(ctx context.Context, network, address string) error {
			conn, err := d.DialContext(ctx, network, address)
			if err == nil {
				go func() {
					stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
					defer stop()
					_, _ = io.Copy(io.Discard, conn) // until it is cut
					_ = conn.Close()
				}()
			}
			return err
		}
	}
	for n := 0; ctx.Err() == nil; <-tick.C {
		for range perSecond * int(beat) / int(time.Second) {
			_ = dialers[n%addresses](ctx, "tcp", s.Address())
			n++
		}
		if n > 2*s.Config.Limits.Connections {
			ready()
		}
	}
}

// ponderous is somebody who logs in and takes a second between the header and
// the body.
func ponderous(t *testing.T, s *servertest.Server) *person {
	address := newAddress()
	return &person{name: "takes its time", every: time.Millisecond, soon: prompt, ask: func(ctx context.Context) error {
		conn, err := dialTLS(ctx, s, address)
		if err != nil {
			return err
		}
		defer conn.Close()
		_, err = fmt.Fprintf(conn, "POST /edge/client/v1/authenticate?method=cert HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n")
		if err != nil {
			return err
		}
		<-time.After(time.Second)
		if _, err := io.WriteString(conn, "{}"); err != nil {
			return err
		}
		resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		if resp.StatusCode != http.StatusUnauthorized {
			return fmt.Errorf("status %d", resp.StatusCode)
		}
		return nil
	}}
}

// TestSilentConnections opens more connections a second than there may be at a
// time.
func TestSilentConnections(t *testing.T) {
	s := servertest.Start(t, func(c *config.Config) { c.Limits.Connections = scaled(240) })
	people := others(t, s)
	for range 4 {
		people = append(people, ponderous(t, s))
	}
	while(t, s, func(ctx context.Context, ready func()) { silence(ctx, s, scaled(300), 3, ready) }, people)
}

// TestBeginnings has strangers at several addresses hold more connections than
// there may be, each with a request that has begun: a header or a body without
// an end.
func TestBeginnings(t *testing.T) {
	s := servertest.Start(t, func(c *config.Config) { c.Limits.Connections = scaled(240) })
	var addresses []net.IP
	for range 8 {
		addresses = append(addresses, newAddress())
	}
	starts := []string{
		"GET /version HTTP/1.1\r\nHost:",
		"POST " + byPassword + " HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{",
	}
	while(t, s, func(ctx context.Context, ready func()) {
		persist(ctx, scaled(400), ready, func(ctx context.Context, i int, placed func()) {
			begin(ctx, s, addresses[i%len(addresses)], starts[i/len(addresses)%len(starts)], placed)
		})
	}, others(t, s))
}
