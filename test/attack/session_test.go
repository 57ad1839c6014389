package attack_test

import (
	"net/url"
	"testing"

	"netkeep.internal/internal/ops/config"
	"netkeep.internal/test/servertest"
)

// TestSessionsWithoutEnd has one identity log in again and again. It is never
// refused: of its own sessions those end that were not used for longest, and
// others keep theirs.
func TestSessionsWithoutEnd(t *testing.T) {
	const most = 10
	s := servertest.Start(t, func(c *config.Config) { c.Limits.APISessions = most })
	user, other := s.AddUser(t, false), s.AddUser(t, false)
	neighbour := s.Login(t, other.Username, other.Password)
	const current = client + "current-api-session"
	var all []*servertest.Client
	for range most {
		all = append(all, s.Login(t, user.Username, user.Password))
	}
	ended := map[int]bool{}
	for i := range 4 {
		all[2*i].Get(current).Want(200) // in use, unlike the one after it
		all = append(all, s.Login(t, user.Username, user.Password))
		ended[2*i+1] = true
		held := s.Admin(t).Get(management + "api-sessions?filter=" + url.QueryEscape(`identity="`+user.ID+`"`)).Want(200).Total()
		if held != most {
			t.Fatalf("after %d logins it has %d sessions", len(all), held)
		}
	}
	for i, c := range all {
		if want := map[bool]int{true: 401, false: 200}[ended[i]]; c.Get(current).Status != want {
			t.Errorf("session %d of %d: want %d", i+1, len(all), want)
		}
	}
	neighbour.Get(current).Want(200)
}
