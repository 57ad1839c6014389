package manifest_test

import (
	"testing"

	"netkeep.internal/internal/ops/config"
	"netkeep.internal/internal/tool/manifest"
	"netkeep.internal/test/servertest"
)

// withRouter runs a controller with a router in it.
func withRouter(t *testing.T, dir string) (*servertest.Server, controller) {
	t.Helper()
	s, err := servertest.Open(dir, func(c *config.Config) { c.Router = "127.0.0.1:0" })
	if err != nil {
		t.Fatal(err)
	}
	return s, newController(t, s)
}

// rename gives the only record of a kind that people can change another name.
func (c controller) rename(t *testing.T, path, name string) {
	t.Helper()
	for _, r := range c.Get("/edge/management/v1/" + path).Want(200).List() {
		if r["isSystem"] != true {
			c.Patch("/edge/management/v1/"+path+"/"+r["id"].(string), M{"name": name}).Want(200)
		}
	}
}

// TestPruneInside spares the router inside a controller and what was made for it,
// whatever they are called, and takes what has their names only.
func TestPruneInside(t *testing.T) {
	dir := t.TempDir()
	s, c := withRouter(t, dir)
	kinds := []string{"edge-routers", "edge-router-policies", "service-edge-router-policies"}
	router := c.Get("/edge/management/v1/edge-routers").Want(200).List()[0]["id"].(string)
	c.Patch("/edge/management/v1/edge-routers/"+router, M{"isTunnelerEnabled": true}).Want(200)
	for _, kind := range kinds {
		c.rename(t, kind, "ours")
	}
	c.Post("/edge/management/v1/edge-routers", M{"name": "another"}).Want(201)
	prune := manifest.Options{Prune: true}
	p := c.apply(t, "", prune)
	if len(p.Changes) != 1 || p.Changes[0].Kind != "edge-router" || p.Changes[0].Target == router {
		t.Errorf("files without anything make these changes: %v", p.Changes)
	}
	if p := c.apply(t, c.text(t), prune); len(p.Changes) != 0 {
		t.Errorf("an export makes these changes: %v", p.Changes)
	}
	c.Get("/edge/management/v1/identities/" + router).Want(200)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestPruneInsideOld does so with policies that do not say yet whose they are: the
// controller says it for them when it starts.
func TestPruneInsideOld(t *testing.T) {
	dir := t.TempDir()
	s, err := servertest.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	policy := M{"name": "everybody uses every router", "semantic": "AnyOf", "identityRoles": []string{"#all"}, "edgeRouterRoles": []string{"#all"}}
	s.Admin(t).Post("/edge/management/v1/edge-router-policies", policy).Want(201)
	policy = M{"name": "every service uses every router", "semantic": "AnyOf", "serviceRoles": []string{"#all"}, "edgeRouterRoles": []string{"#all"}}
	s.Admin(t).Post("/edge/management/v1/service-edge-router-policies", policy).Want(201)
	for range 2 { // the router is made, and found again
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		s, _ = withRouter(t, dir)
	}
	c := newController(t, s)
	for _, kind := range []string{"edge-router-policies", "service-edge-router-policies"} {
		c.rename(t, kind, "ours")
	}
	if p := c.apply(t, "", manifest.Options{Prune: true}); len(p.Changes) != 0 {
		t.Errorf("files without anything make these changes: %v", p.Changes)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}
