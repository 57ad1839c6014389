package router

import (
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"netkeep.internal/internal/ops/build"
	"netkeep.internal/internal/ops/config"
	"netkeep.internal/test/servertest"
)

// inside runs a controller with a router in it, on data that may be there.
func inside(t *testing.T, dir string, change ...func(*config.Config)) *servertest.Server {
	t.Helper()
	s, err := servertest.Open(dir, append([]func(*config.Config){func(c *config.Config) { c.Router = "127.0.0.1:0" }}, change...)...)
	must(t, err)
	return s
}

// only returns the one edge router that there is, when it is online.
func only(t *testing.T, s *servertest.Server) M {
	t.Helper()
	var router M
	servertest.Eventually(t, soon, "the one router is online", func() bool {
		list := s.Admin(t).Get(management + "edge-routers").Want(200).List()
		if len(list) != 1 {
			t.Fatalf("there are %d routers", len(list))
		}
		router = list[0]
		return router["isOnline"] == true && router["syncStatus"] == "SYNC_DONE"
	})
	return router
}

// remains is how long the certificates of a router are good.
var remains = regexp.MustCompile(`(?m)^netkeep_router_certificate_remaining_seconds (\S+)$`)

// TestInside has a controller bring its own router, with what it takes to use
// it, and keep it over restarts, other names, lost files and a lost record.
func TestInside(t *testing.T) {
	dir := t.TempDir()
	s := inside(t, dir)
	first := only(t, s)
	if at := first["supportedProtocols"].(M)["tls"].(string); first["name"] != "local-router" || !strings.HasPrefix(at, "tls://127.0.0.1:") {
		t.Errorf("the router is %v", first)
	}
	_, text := get(t, "http://"+s.Metrics().String()+"/metrics")
	if !strings.Contains(text, "netkeep_router_connected 1") {
		t.Error("monitoring sees nothing of the router")
	}
	if left := remains.FindStringSubmatch(text); left == nil {
		t.Error("monitoring does not see how long its certificates are good")
	} else if seconds, err := strconv.ParseFloat(left[1], 64); err != nil || seconds < 300*86400 || seconds > 400*86400 {
		t.Errorf("its certificates are good for %s seconds", left[1])
	}
	if info := first["versionInfo"].(M); info["version"] != build.Read().Version || strings.Contains(info["revision"].(string), "netkeep") {
		t.Errorf("people are shown that it is %v", info)
	}
	for _, kind := range []string{"edge-router-policies", "service-edge-router-policies"} {
		list := s.Admin(t).Get(management + kind).Want(200).List()
		if len(list) != 1 || list[0]["edgeRouterRoles"].([]any)[0] != "#all" {
			t.Errorf("%s are %v", kind, list)
		}
	}
	s.Admin(t).Patch(management+"edge-routers/"+first["id"].(string), M{"name": "renamed"}).Want(200)
	admin := s.Admin(t)
	for _, p := range admin.Get(management + "edge-router-policies").Want(200).List() {
		admin.Patch(management+"edge-router-policies/"+p["id"].(string), M{"identityRoles": []string{"#staff"}}).Want(200)
	}
	must(t, s.Close())

	s = inside(t, dir)
	second := only(t, s)
	if second["id"] != first["id"] || second["name"] != "renamed" || second["fingerprint"] != first["fingerprint"] {
		t.Errorf("after a restart it is %v", second)
	}
	if roles := s.Admin(t).Get(management + "edge-router-policies").Want(200).List()[0]["identityRoles"].([]any); roles[0] != "#staff" {
		t.Errorf("what an admin decided became %v", roles)
	}
	must(t, s.Close())

	s = inside(t, dir, func(c *config.Config) { c.Router, c.Advertise = "0.0.0.0:0", "localhost:1280" })
	third := only(t, s)
	if at := third["supportedProtocols"].(M)["tls"].(string); third["id"] != first["id"] || third["fingerprint"] == first["fingerprint"] || !strings.HasPrefix(at, "tls://localhost:") {
		t.Errorf("under another name it is %v", third)
	}
	must(t, s.Close())

	must(t, os.WriteFile(filepath.Join(dir, "data", "router", "identity.json"), []byte("{"), 0o600))
	s = inside(t, dir, func(c *config.Config) { c.RouterAdvertise = "router.example:443" })
	fourth := only(t, s)
	if fourth["id"] != first["id"] || fourth["name"] != "renamed" || fourth["fingerprint"] == third["fingerprint"] {
		t.Errorf("with its key lost, it is %v", fourth)
	}
	s.Admin(t).Delete(management + "edge-routers/" + first["id"].(string)).Want(200)
	must(t, s.Close())
	s = inside(t, dir)
	if last := only(t, s); last["name"] != "local-router" {
		t.Errorf("with its record lost, it is %v", last)
	}
	must(t, s.Close())
}

// TestInsideUnopened has the router's directory be no directory: the controller
// says so and ends, although it serves already.
func TestInsideUnopened(t *testing.T) {
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "data"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "data", "router"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := servertest.Open(dir, func(c *config.Config) { c.Router = "127.0.0.1:0" })
	if err == nil || !strings.Contains(err.Error(), "the router inside the controller: the router's directory") {
		t.Errorf("it starts: %v", err)
	}
}
