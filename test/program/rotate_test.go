package program_test

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestRotatedKeys puts keys and stores together that are not of the same time: of
// before, in the middle of and after a rotation of the root CA. Snapshots of
// before are the network's own, and nobody is shut out without a word.
func TestRotatedKeys(t *testing.T) {
	dir := t.TempDir()
	data, before := filepath.Join(dir, "data"), filepath.Join(dir, "before")
	p := controller(t, data)
	c := p.client(data)
	c.must(t, 201, http.MethodPost, "identities", M{"name": "laptop", "type": "Device", "isAdmin": false, "enrollment": M{"ott": true}})
	var token string
	for _, i := range c.list(t, "identities") {
		if i["name"] == "laptop" {
			token = i["enrollment"].(M)["ott"].(M)["jwt"].(string)
		}
	}
	told(t, launch(t, settings{args: []string{"enroll", token, "-o", filepath.Join(dir, "laptop.json")}}), "laptop")
	c.must(t, 200, http.MethodPost, "database/snapshot", nil)
	first := filepath.Base(onlySnapshot(t, data))
	copyKeys(t, data, before)
	whose := fingerprint.FindString(p.stdout.String())

	keys := func(words string, args ...string) {
		t.Helper()
		told(t, launch(t, settings{args: append(append([]string{"keys"}, args...), "--data", data)}), words)
	}
	status := func(words string) {
		t.Helper()
		deadline := time.Now().Add(waitTime)
		for {
			s := launch(t, settings{args: []string{"keys", "status", "--data", data}})
			if s.wait(); strings.Contains(s.stdout.String(), words) {
				return
			}
			if time.Now().After(deadline) {
				t.Fatalf("keys status does not say %q: %s", words, s.stdout.String())
			}
		}
	}
	exchange := func(keys string) {
		t.Helper()
		if err := os.RemoveAll(filepath.Join(data, "pki")); err != nil {
			t.Fatal(err)
		}
		copyKeys(t, keys, data)
	}
	keys("new root CA", "rotate", "root")
	status("0 of 1 identities")
	turned := noted(t, c, `event = "keys-changed"`)
	if e := turned[0]; len(turned) != 1 || e["actorKind"] != "program" || e["targetKind"] != "controller" || !strings.Contains(e["reason"].(string), "root CA of before "+whose[:16]) {
		t.Errorf("of the rotation the audit log says %v", turned)
	}
	if own := noted(t, c, `event = "certificate-issued" and targetKind = "controller"`); len(own) != 1 || !strings.HasPrefix(own[0]["reason"].(string), "server: serial number ") {
		t.Errorf("of its own certificate the audit log says %v", own)
	}
	p.stop()
	middle := filepath.Join(dir, "middle")
	copyKeys(t, data, middle)

	// Keys of before are good as long as both are trusted, with a warning.
	exchange(before)
	p = controller(t, data)
	p.logs("these are keys of before the root CA was rotated")
	p.stop()
	exchange(middle)
	p = controller(t, data)
	if strings.Contains(p.stderr.String(), "these are keys of before") {
		t.Error("the right keys are taken for those of before")
	}
	keys("has retired", "rotate", "root", "--finish", "--force")
	status("No rotation")
	p.logs("some have certificates of a root CA that has retired")
	status("no more: laptop")
	status("network          " + whose)
	c = p.client(data)
	c.must(t, 200, http.MethodPost, "database/snapshot", nil)
	if all := c.must(t, 200, http.MethodGet, "database/snapshots", nil).body["data"].([]any); len(all) != 2 {
		t.Errorf("of its own snapshots it lists %v", all)
	}
	if said := c.must(t, 200, http.MethodPost, "database/snapshots/"+first+"/verify", nil).body["data"].(M); said["intact"] != true {
		t.Errorf("of a snapshot of before it says %v", said)
	}
	noted(t, c, `event = "keys-changed" and reason = "root CA of before no more"`)
	p.stop()
	keys("new intermediate CA", "rotate", "intermediate") // while nobody is there to see it
	p = controller(t, data)
	if e := noted(t, p.client(data), `event = "keys-changed" sort by number desc`)[0]; !strings.HasPrefix(e["reason"].(string), "intermediate CA ") {
		t.Errorf("of what changed meanwhile the audit log says %v", e)
	}
	p.stop()
	after := filepath.Join(dir, "after")
	copyKeys(t, data, after)
	exchange(before)
	launch(t, settings{args: []string{"run", "--data", data, "--listen", "127.0.0.1:0"}}).fails("has retired: these are keys of before it was rotated", "a later backup")

	// A store of before goes on with the keys of now, and says who is left behind.
	file := filepath.Join(data, "snapshots", first)
	data = filepath.Join(dir, "restored")
	told(t, launch(t, settings{args: []string{"restore", "--data", data, file}}), "root CA "+whose)
	copyKeys(t, after, data)
	p = controller(t, data)
	p.logs("some have certificates of a root CA that has retired")
	status("no more: laptop")
	p.stop()
	exchange(before)
	launch(t, settings{args: []string{"run", "--data", data, "--listen", "127.0.0.1:0"}}).fails("has retired")
}
