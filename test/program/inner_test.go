package program_test

import (
	"net/http"
	"path/filepath"
	"testing"
)

// TestRestoredRouter restores a controller from its snapshot and its keys, as the
// page says: the router inside it is the one that it was.
func TestRestoredRouter(t *testing.T) {
	dir := t.TempDir()
	data := filepath.Join(dir, "data")
	p := controller(t, data, "--router", "127.0.0.1:0")
	c := p.client(data)
	c.online(t, p, 1)
	was := c.list(t, "edge-routers")
	for id := range was {
		c.must(t, 200, http.MethodPatch, "edge-routers/"+id, M{"name": "our router", "roleAttributes": []string{"home"}})
	}
	c.must(t, 201, http.MethodPost, "edge-routers", M{"name": "another"})
	c.must(t, 200, http.MethodPost, "database/snapshot", nil)
	p.stop()

	restored := filepath.Join(dir, "restored")
	if code := launch(t, settings{args: []string{"restore", "--data", restored, onlySnapshot(t, data)}}).wait(); code != 0 {
		t.Fatalf("restore ended with %d", code)
	}
	copyKeys(t, data, restored)
	for range 2 { // its files are there the second time
		p = controller(t, restored, "--router", "127.0.0.1:0")
		c = c.on(t, p, restored)
		c.online(t, p, 1)
		now := c.list(t, "edge-routers")
		if len(now) != 2 {
			t.Errorf("there are %d routers: %v", len(now), now)
		}
		for id := range was {
			if r := now[id]; r["name"] != "our router" || r["isOnline"] != true || len(r["roleAttributes"].([]any)) != 1 {
				t.Errorf("the router came back as %v", r)
			}
		}
		p.stop()
	}
}
