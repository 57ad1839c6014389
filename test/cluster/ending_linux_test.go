package cluster_test

import (
	"context"
	"io"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"

	"netkeep.internal/test/servertest"
)

// TestEndOfThree has three controllers around the moment at which a policy ends: the one
// that leads is killed right before it, another sleeps through it. Who asks after the
// moment is shown nothing, whomever they ask and whatever is written by then, and the
// end is written once.
func TestEndOfThree(t *testing.T) {
	atOnce(t)
	c := newTeam(t)
	first := c.nodes[0]
	create := func(path string, body M) string {
		t.Helper()
		var made struct {
			Data struct {
				ID string `json:"id"`
			} `json:"data"`
		}
		if status, text := first.hear(http.MethodPost, path, body, &made); status != http.StatusCreated {
			t.Fatalf("%s is answered %d: %s", path, status, text)
		}
		return made.Data.ID
	}
	bob := create("identities", M{"name": "bob", "type": "User", "isAdmin": false})
	create("authenticators", M{"identityId": bob, "method": "updb", "username": "robert", "password": servertest.Password})
	create("services", M{"name": "payroll", "encryptionRequired": true})
	policy := create("service-policies", M{"name": "brief", "type": "Dial", "semantic": "AnyOf", "identityRoles": []string{"@" + bob}, "serviceRoles": []string{"#all"}})
	var session tokenAnswer
	if status := first.as("").ask(http.MethodPost, "authenticate?method=password", M{"username": "robert", "password": servertest.Password}, &session); status != http.StatusOK {
		t.Fatalf("bob's login is answered %d", status)
	}
	for _, n := range c.nodes {
		c.eventually(t, "bob to see the service everywhere", func() bool { return n.shows(session.Data.Token, "payroll") })
	}
	leader := c.leader(t)
	others := c.others(leader)
	moment := time.Now().Add(4 * time.Second).UTC().Truncate(time.Millisecond)
	if status, text := others[0].hear(http.MethodPatch, "service-policies/"+policy, M{"validUntil": moment.Format(time.RFC3339Nano)}, nil); status != http.StatusOK {
		t.Fatalf("the end is answered %d: %s", status, text)
	}
	c.eventually(t, "the other to know of it", func() bool {
		_, text := others[1].hear(http.MethodGet, "service-policies/"+policy, nil, nil)
		return strings.Contains(text, `"validUntil":"`)
	})
	<-time.After(time.Until(moment.Add(-200 * time.Millisecond)))
	others[1].signal(syscall.SIGSTOP)
	leader.kill()
	<-time.After(time.Until(moment))
	for end := time.Now().Add(3 * time.Second); time.Now().Before(end); <-time.After(20 * time.Millisecond) {
		if others[0].shows(session.Data.Token, "payroll") {
			t.Fatalf("%s after the moment, without the others, bob sees the service", time.Since(moment))
		}
	}
	others[1].signal(syscall.SIGCONT)
	for end := time.Now().Add(2 * time.Second); time.Now().Before(end); <-time.After(20 * time.Millisecond) {
		if others[1].shows(session.Data.Token, "payroll") {
			t.Fatalf("%s after the moment, of a controller that was asleep, bob sees the service", time.Since(moment))
		}
	}
	leader.start(t)
	for _, n := range c.nodes {
		c.eventually(t, "the end to be written", func() bool {
			_, text := n.hear(http.MethodGet, "service-policies/"+policy, nil, nil)
			return strings.Contains(text, `"standing":"over"`)
		})
		if n.shows(session.Data.Token, "payroll") {
			t.Errorf("controller %d shows the service when all are back", n.n)
		}
	}
	var entries struct {
		Data []M `json:"data"`
	}
	if status := first.ask(http.MethodGet, "audit-entries?filter=actorName%20%3D%20%22validity%22", nil, &entries); status != http.StatusOK || len(entries.Data) != 1 {
		t.Errorf("the end is in the audit log as %v", entries.Data)
	}
}

// shows is whether a controller shows a service to who has a token.
func (n *node) shows(token, service string) bool {
	req, err := http.NewRequestWithContext(context.Background(), http.MethodGet, "https://"+n.listen+"/edge/client/v1/services", nil)
	if err != nil {
		panic(err)
	}
	req.Header.Set("zt-session", token)
	resp, err := n.http.Do(req)
	if err != nil {
		return false
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	return err == nil && resp.StatusCode == http.StatusOK && strings.Contains(string(text), `"name":"`+service+`"`)
}
