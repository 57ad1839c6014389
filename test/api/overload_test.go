package api_test

import (
	"net/http"
	"strconv"
	"testing"

	"netkeep.internal/internal/ops/config"
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
