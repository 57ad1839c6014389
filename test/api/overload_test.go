package api_test

import (
	"fmt"
	"net"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"netkeep.internal/internal/ops/config"
	"netkeep.internal/internal/web/api"
	"netkeep.internal/test/servertest"
)

// TestAttemptsOfAnAddress tries to log in and to enroll more often than an
// address may.
func TestAttemptsOfAnAddress(t *testing.T) {
	s := servertest.Start(t, func(c *config.Config) { c.Limits.Logins, c.Limits.Enrollments = 5, 3 })
	nobody := s.Nobody(t)
	login := func() *servertest.Answer {
		return nobody.Post("authenticate?method=cert", servertest.M{})
	}
	enroll := func() *servertest.Answer {
		return nobody.Post("/edge/client/v1/enroll/updb?token=00000000-0000-4000-8000-000000000000", servertest.M{})
	}
	for _, test := range []struct {
		what string
		try  func() *servertest.Answer
		free int
	}{{"log in", login, 5}, {"enroll", enroll, 3}} {
		for i := range test.free {
			if a := test.try(); a.Status == http.StatusTooManyRequests {
				t.Fatalf("attempt %d to %s has to wait", i, test.what)
			}
		}
		a := test.try().Fails(429, "RATE_LIMITED", "")
		if seconds, err := strconv.Atoi(a.Header.Get("Retry-After")); err != nil || seconds < 1 || seconds > 60 {
			t.Errorf("attempts to %s may go on after %q", test.what, a.Header.Get("Retry-After"))
		}
	}
	nobody.Get("version").Want(200) // nothing else is counted
}

// TestEveryWayInIsCounted tries each operation that strangers send something to, from an
// address of its own, more often than it may: that is for the operation to say, and
// for none to forget.
func TestEveryWayInIsCounted(t *testing.T) {
	const most = 3
	s := servertest.Start(t, func(c *config.Config) { c.Limits.Logins, c.Limits.Enrollments = most, most })
	ways := 0
	for _, root := range []string{api.ClientRoot, api.ManagementRoot, api.FabricRoot} {
		for name, op := range s.Operations(root) {
			method, path, _ := strings.Cut(name, " ")
			if method == http.MethodGet || op.Extensions["x-access"] != "anonymous" {
				continue
			}
			dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 1, byte(ways+1))}}
			transport := &http.Transport{TLSClientConfig: s.TLS(), DialContext: dialer.DialContext}
			t.Cleanup(transport.CloseIdleConnections)
			var got []int
			for range most + 1 {
				req, err := http.NewRequestWithContext(t.Context(), method, s.URL+path, strings.NewReader("{}"))
				if err != nil {
					t.Fatal(err)
				}
				req.Header.Set("Content-Type", "application/json")
				resp, err := (&http.Client{Transport: transport}).Do(req)
				if err != nil {
					t.Fatal(err)
				}
				_ = resp.Body.Close()
				got = append(got, resp.StatusCode)
			}
			if got[0] == http.StatusMethodNotAllowed {
				continue // it is not offered, and looks at nothing
			}
			ways++
			if last := got[most]; last != http.StatusTooManyRequests || strings.Contains(fmt.Sprint(got[:most]), "429") {
				t.Errorf("%s, of which %d attempts are free, answers %v", name, most, got)
			}
		}
	}
	if ways < 10 {
		t.Errorf("there are %d ways in", ways)
	}
}
