package cluster_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"netkeep.internal/test/machine"
	"netkeep.internal/test/servertest"
)

// apart is how far the clocks of two controllers are from each other.
const apart = 5 * time.Minute

func init() {
	faults["clocks"] = fault{
		begin: func(t *testing.T, _ *team, leader *node) { leader.setClock(t, apart) },
		lasts: func(t *testing.T, c *team, leader *node) {
			c.works(t, leader)
			for _, n := range c.nodes {
				c.eventually(t, fmt.Sprintf("controller %d to say that clocks are apart", n.n), n.saysApart)
			}
			c.eventually(t, "the one whose clock it is to be not ready", func() bool {
				return leader.says503("ahead of that of the other controllers")
			})
			for _, n := range c.others(leader) {
				if n.says503("of this machine is") {
					t.Errorf("controller %d, whose clock is right, is not ready for it", n.n)
				}
			}
			leader.setClock(t, -apart)
			c.works(t, leader)
			c.eventually(t, "it to say that its clock is behind", func() bool {
				return leader.says503("behind that of the other controllers")
			})
		},
		end: func(t *testing.T, c *team, leader *node) {
			leader.setClock(t, 0)
			c.eventually(t, "the one whose clock is right again to be ready", func() bool { return !leader.says503("clock") })
			for _, n := range c.nodes {
				c.eventually(t, fmt.Sprintf("controller %d to say no more that clocks are apart", n.n), func() bool { return !n.saysApart() })
			}
		},
	}
}

// saysApart is whether the status of a controller tells of clocks.
func (n *node) saysApart() bool {
	status, text := n.hear(http.MethodGet, "status", nil, nil)
	return status == http.StatusOK && strings.Contains(text, "the clocks of this controller and another are")
}

// says503 is whether a controller is not ready, for the reason that its clock is wrong.
func (n *node) says503(reason string) bool {
	resp, err := n.http.Get("https://" + n.listen + "/health/ready")
	if err != nil {
		return false
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	return err == nil && resp.StatusCode == http.StatusServiceUnavailable && strings.Contains(string(text), `"name":"clock","ok":false`) && strings.Contains(string(text), reason)
}

// works looks whether what one controller gives out is good at all, and what others
// give out there.
func (c *team) works(t *testing.T, odd *node) {
	t.Helper()
	for _, from := range c.nodes {
		var session tokenAnswer
		c.eventually(t, fmt.Sprintf("a login at controller %d", from.n), func() bool {
			return from.as("").ask(http.MethodPost, "authenticate?method=password", M{"username": "admin", "password": servertest.Password}, &session) == http.StatusOK
		})
		for _, at := range c.nodes {
			if at != odd && from != odd {
				continue
			}
			if status, text := at.as(session.Data.Token).hear(http.MethodGet, "current-identity", nil, nil); status != http.StatusOK {
				t.Errorf("a login at controller %d is answered %d by controller %d: %s", from.n, status, at.n, text)
			}
		}
		if status := from.as(session.Data.Token).ask(http.MethodDelete, "current-api-session", nil, nil); status != http.StatusOK {
			t.Errorf("a logout at controller %d is answered %d", from.n, status)
		}
	}
}

// as is the controller for somebody who has another token.
func (n *node) as(token string) *node {
	team, out := *n.team, *n
	team.token, out.team = token, &team
	return &out
}

// setClock has a controller live ahead of its machine, or behind it.
func (n *node) setClock(t *testing.T, by time.Duration) {
	t.Helper()
	machine.SetClock(t, n.cmd.Process.Pid, n.binary, by)
}
