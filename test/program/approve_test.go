package program_test

import (
	"fmt"
	"net/http"
	"path/filepath"
	"syscall"
	"testing"
)

// TestKilledWhileApproving kills the controller while somebody approves one request after
// the other: what was answered is there afterwards, of the rest each is approved with its
// grant or waits without one, and to say it again gives nobody more.
func TestKilledWhileApproving(t *testing.T) {
	const requests, answered, services = 8, 3, "/edge/client/v1/access-requests"
	data := filepath.Join(t.TempDir(), "data")
	p := controller(t, data)
	admin := p.client(data)
	person := func(name string, attributes ...string) *client {
		body := M{"name": name, "type": "User", "isAdmin": false, "roleAttributes": attributes}
		id := admin.must(t, http.StatusCreated, http.MethodPost, "identities", body).id()
		admin.must(t, http.StatusCreated, http.MethodPost, "authenticators", M{"identityId": id, "method": "updb", "username": name, "password": password})
		c := connect(t, p.ready(), filepath.Join(data, "pki", "root.crt"))
		if err := c.login(name, password); err != nil {
			t.Fatal(err)
		}
		return c
	}
	asker, decider := person("asker"), person("decider", "leads")
	var ids []string
	for n := range requests {
		name := fmt.Sprintf("service%d", n)
		admin.must(t, http.StatusCreated, http.MethodPost, "services", M{"name": name, "encryptionRequired": true, "requests": M{"attribute": name, "approvers": "leads"}})
		asked := asker.must(t, http.StatusCreated, http.MethodPost, services, M{"service": name, "minutes": 60, "reason": "quarter end"})
		ids = append(ids, asked.id())
	}
	told := make(chan bool, requests)
	go func() {
		defer close(told)
		for _, id := range ids {
			if a, err := decider.do(http.MethodPost, services+"/"+id+"/approve", nil); err != nil || a.status != http.StatusOK {
				return
			}
			told <- true
		}
	}()
	for range answered {
		<-told
	}
	p.signal(syscall.SIGKILL)
	p.wait()
	sure := answered
	for range told {
		sure++
	}

	p = controller(t, data)
	admin = p.client(data)
	again := connect(t, p.ready(), filepath.Join(data, "pki", "root.crt"))
	again.token = decider.token
	grants := func() map[string]int {
		of := map[string]int{}
		for _, g := range admin.list(t, "grants") {
			of[g["requestId"].(string)]++
		}
		return of
	}
	given, all := grants(), admin.list(t, "access-requests")
	for n, id := range ids {
		standing := all[id]["standing"]
		if n < sure && standing != "approved" || standing == "approved" && given[id] != 1 || standing == "pending" && given[id] != 0 {
			t.Errorf("request %d, of %d that were answered, is %v with %d grants", n, sure, standing, given[id])
		}
		want := http.StatusOK
		if standing == "approved" {
			want = http.StatusBadRequest
		}
		again.must(t, want, http.MethodPost, services+"/"+id+"/approve", nil)
	}
	for _, id := range ids {
		if n := grants()[id]; n != 1 {
			t.Errorf("in the end request %s has %d grants", id, n)
		}
	}
}
