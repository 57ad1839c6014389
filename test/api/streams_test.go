package api_test

import (
	"bufio"
	"context"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"netkeep.internal/internal/ops/config"
	"netkeep.internal/test/servertest"
)

// TestStreamsOfOneConnection opens as many streams on one connection of HTTP/2 as it
// may have, of several identities, most of which nobody reads: the bounds hold for
// each identity and for all, other requests on the connection are answered, what
// changes is told to who reads, and who leaves makes room.
func TestStreamsOfOneConnection(t *testing.T) {
	const each, all = 15, 40
	s := servertest.Start(t, func(c *config.Config) { c.Limits.IdentityStreams, c.Limits.Streams = each, all })
	var dialled atomic.Int64
	transport := &http.Transport{
		TLSClientConfig: s.TLS(), ForceAttemptHTTP2: true,
		DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
			dialled.Add(1)
			return new(net.Dialer).DialContext(ctx, network, addr)
		},
	}
	t.Cleanup(transport.CloseIdleConnections)
	ask := func(token, path string) (*http.Response, context.CancelFunc) {
		t.Helper()
		ctx, cancel := context.WithCancel(t.Context())
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.URL+"/edge/management/v1/"+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("net-session", token)
		resp, err := transport.RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		if resp.ProtoMajor != 2 {
			t.Fatalf("HTTP/%d answers", resp.ProtoMajor)
		}
		return resp, func() { cancel(); resp.Body.Close() }
	}
	var tokens []string
	for range 3 {
		user := s.AddUser(t, true)
		tokens = append(tokens, s.Login(t, user.Username, user.Password).Token)
	}
	var open []context.CancelFunc
	var read *http.Response
	for i, token := range tokens {
		for n := 0; ; n++ {
			resp, leave := ask(token, "events?kinds=services,circuits")
			if resp.StatusCode == http.StatusOK {
				open, read = append(open, leave), resp
				continue
			}
			leave()
			want, most := http.StatusTooManyRequests, each
			if i == len(tokens)-1 {
				want, most = http.StatusServiceUnavailable, all-2*each
			}
			if resp.StatusCode != want || n != most {
				t.Errorf("identity %d is answered %d after %d streams, want %d after %d", i, resp.StatusCode, n, want, most)
			}
			break
		}
	}
	for range 20 {
		resp, leave := ask(tokens[0], "services")
		if leave(); resp.StatusCode != http.StatusOK {
			t.Errorf("a request beside the streams is answered %d", resp.StatusCode)
		}
	}
	s.Admin(t).Post("services", M{"name": "wiki", "encryptionRequired": true}).Want(201)
	for lines := bufio.NewScanner(read.Body); ; {
		if !lines.Scan() {
			t.Fatal("the stream ended: ", lines.Err())
		}
		if strings.Contains(lines.Text(), `"name":"wiki"`) {
			break
		}
	}
	for _, leave := range open[:each] {
		leave()
	}
	servertest.Eventually(t, 0, "room for another", func() bool {
		resp, leave := ask(tokens[0], "events")
		leave()
		return resp.StatusCode == http.StatusOK
	})
	for _, leave := range open[each:] {
		leave()
	}
	if n := dialled.Load(); n != 1 {
		t.Errorf("it took %d connections", n)
	}
}
