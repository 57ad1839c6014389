package program_test

import (
	"net/http"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// TestKilledBeforeTheEnd kills the only controller right before what it gave ends, and
// starts it when that is over: nobody is in, from the first answer on, and the end is
// in the audit log.
func TestKilledBeforeTheEnd(t *testing.T) {
	data := filepath.Join(t.TempDir(), "data")
	p := controller(t, data)
	admin := p.client(data)
	const clients = "/edge/client/v1/"
	bob := admin.must(t, http.StatusCreated, http.MethodPost, "identities", M{"name": "bob", "type": "User", "isAdmin": false}).id()
	admin.must(t, http.StatusCreated, http.MethodPost, "authenticators", M{"identityId": bob, "method": "updb", "username": "robert", "password": password})
	for _, name := range []string{"by-grant", "by-policy"} {
		admin.must(t, http.StatusCreated, http.MethodPost, "services", M{"name": name, "encryptionRequired": true, "roleAttributes": []string{name}})
	}
	policy := func(name, who string) string {
		body := M{"name": name, "type": "Dial", "semantic": "AnyOf", "identityRoles": []string{who}, "serviceRoles": []string{"#" + name}}
		return admin.must(t, http.StatusCreated, http.MethodPost, "service-policies", body).id()
	}
	policy("by-grant", "#finance")
	grant := M{"identityId": bob, "attribute": "finance", "reason": "quarter end", "validUntil": "2999-12-31T23:59:59Z"}
	end := []string{
		"service-policies/" + policy("by-policy", "@"+bob),
		"grants/" + admin.must(t, http.StatusCreated, http.MethodPost, "grants", grant).id(),
	}
	user := connect(t, p.ready(), filepath.Join(data, "pki", "root.crt"))
	if err := user.login("robert", password); err != nil {
		t.Fatal(err)
	}
	sees := func(c *client) []any {
		t.Helper()
		return c.must(t, http.StatusOK, http.MethodGet, clients+"services", nil).body["data"].([]any)
	}
	if before := sees(user); len(before) != 2 {
		t.Errorf("before the moment bob sees %v", before)
	}
	moment := time.Now().Add(3 * time.Second).UTC().Truncate(time.Millisecond)
	for _, path := range end {
		admin.must(t, http.StatusOK, http.MethodPatch, path, M{"validUntil": moment.Format(time.RFC3339Nano)})
	}
	<-time.After(time.Until(moment.Add(-100 * time.Millisecond)))
	p.signal(syscall.SIGKILL)
	p.wait()
	<-time.After(time.Until(moment))

	p = controller(t, data)
	again := connect(t, p.ready(), filepath.Join(data, "pki", "root.crt"))
	again.token = user.token // what was written before the kill is there
	if after := sees(again); len(after) > 0 {
		t.Errorf("after the moment bob sees %v", after)
	}
	admin = p.client(data)
	for _, path := range end {
		if got := admin.must(t, http.StatusOK, http.MethodGet, path, nil).body["data"].(M); got["standing"] != "over" {
			t.Errorf("after the moment there is %v", got)
		}
	}
	if got := admin.must(t, http.StatusOK, http.MethodGet, "identities/"+bob, nil).body["data"].(M); len(got["roleAttributes"].([]any)) > 0 {
		t.Errorf("after the moment bob has %v", got["roleAttributes"])
	}
	entries := admin.must(t, http.StatusOK, http.MethodGet, "audit-entries?filter=actorName%20%3D%20%22validity%22", nil).body["data"].([]any)
	if len(entries) < 2 {
		t.Errorf("the audit log tells of the end %v", entries)
	}
}
