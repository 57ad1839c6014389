package program_test

import (
	"flag"
	"math/rand/v2"
	"net/http"
	"net/url"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"netkeep.internal/test/machine"
)

var clockJumps = flag.Int("clock-jumps", 3, "how often to set the clock of the controller")

const year = 365 * 24 * time.Hour

// TestClockJumps sets the clock of a running controller back by up to a year and ahead by
// up to 25 hours, again and again. Sessions, tokens, invitations and grants end when as
// much time has passed as they were given, and nothing that was over comes back.
func TestClockJumps(t *testing.T) {
	t.Parallel() // it waits more than it works
	data := filepath.Join(t.TempDir(), "data")
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	jumps := []time.Duration{-year, 25 * time.Hour, -year}
	for len(jumps) < *clockJumps {
		jumps = append(jumps, time.Duration(r.Int64N(int64(year+25*time.Hour)))-year)
	}
	p := controller(t, data)
	c := p.client(data)
	latest := time.Duration(0) // by which the controller has ever been ahead
	var over []*client         // sessions
	for _, jump := range jumps[:*clockJumps] {
		soon := time.Now().Add(latest + 3*time.Second)
		b := c.brief(t, soon)
		before := *c
		machine.SetClock(t, p.cmd.Process.Pid, binary, jump)
		if err := c.login("admin", password); err != nil { // and it has seen the time
			t.Fatalf("after %v: %v", jump, err)
		}
		if jump > latest+time.Hour {
			latest, over = jump, append(over, &before)
		}
		for _, session := range over {
			if status, err := session.status(http.MethodGet, "current-identity", nil); err != nil || status != http.StatusUnauthorized {
				t.Errorf("after %v, an API session that was not used for too long answers %d: %v", jump, status, err)
			}
		}
		b.ends(t, c, jump)
		if t.Failed() {
			return
		}
	}
	machine.SetClock(t, p.cmd.Process.Pid, binary, 0)
	p.stop()
}

// brief is what ends soon, of every sort.
type brief struct {
	machine    *client // with an API token
	invitation string
	grant      string
}

// brief makes some that end at a moment.
func (c *client) brief(t *testing.T, end time.Time) brief {
	t.Helper()
	at := end.UTC().Format(time.RFC3339Nano)
	name := at
	role := c.must(t, 201, http.MethodPost, "admin-roles", M{"name": name, "allows": []string{"*:read"}}).id()
	token := c.must(t, 201, http.MethodPost, "tokens", M{"name": name, "roleId": role, "expiresAt": at}).body["data"].(M)
	who := c.must(t, 201, http.MethodPost, "identities", M{"name": name, "type": "Device", "isAdmin": false}).id()
	enrollment := c.must(t, 201, http.MethodPost, "enrollments", M{"identityId": who, "method": "ott", "expiresAt": at}).id()
	grant := c.must(t, 201, http.MethodPost, "grants", M{"identityId": who, "attribute": "brief", "reason": "a test", "validUntil": at}).id()
	return brief{
		machine:    &client{base: c.base, http: c.http, token: token["token"].(string), bears: true},
		invitation: c.must(t, 200, http.MethodGet, "enrollments/"+enrollment, nil).body["data"].(M)["token"].(string),
		grant:      grant,
	}
}

// ends waits until all of it is over.
func (b brief) ends(t *testing.T, c *client, jump time.Duration) {
	t.Helper()
	for deadline := time.Now().Add(waitTime / 2); ; <-time.After(100 * time.Millisecond) {
		status, err := b.machine.status(http.MethodGet, "identities?limit=1", nil)
		if err != nil {
			t.Fatal(err)
		}
		if status == http.StatusUnauthorized {
			break
		}
		if time.Now().After(deadline) {
			t.Errorf("after %v, a token that was to end within seconds is answered %d", jump, status)
			break
		}
	}
	if a := c.must(t, 200, http.MethodGet, "grants/"+b.grant, nil); a.body["data"].(M)["standing"] != "over" {
		t.Errorf("after %v, a grant that has ended is %v", jump, a.body["data"].(M)["standing"])
	}
	_, csr, err := signingRequest()
	if err != nil {
		t.Fatal(err)
	}
	status, err := c.as(nil, "").status(http.MethodPost, clientAPI+"enroll?token="+url.QueryEscape(b.invitation), M{"clientCsr": csr})
	if err != nil || !slices.Contains([]int{http.StatusBadRequest, http.StatusNotFound}, status) {
		t.Errorf("after %v, an invitation that has ended is answered %d: %v", jump, status, err)
	}
}
