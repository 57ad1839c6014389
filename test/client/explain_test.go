package client_test

import (
	"slices"
	"strings"
	"testing"

	"netkeep.internal/test/servertest"
)

// broken returns the links that do not hold, and how many there are.
func (s *scene) broken(service, typ string) (links []string, all int) {
	s.Helper()
	e := s.admin.Get("identities/" + s.user.ID + "/explain/" + service + "?type=" + typ).Want(200).Data()
	for _, l := range e["links"].([]any) {
		if l.(M)["passed"] != true {
			links = append(links, l.(M)["link"].(string))
		}
	}
	if e["allowed"] != (len(links) == 0) {
		s.Errorf("allowed is %v, and broken are %v", e["allowed"], links)
	}
	return links, len(e["links"].([]any))
}

// wants fails unless just these links do not hold.
func (s *scene) wants(service string, links ...string) {
	s.Helper()
	got, all := s.broken(service, "Dial")
	if !slices.Equal(got, links) || all != 8 {
		s.Errorf("of %d links %v do not hold, want %v", all, got, links)
	}
}

// TestExplain mends one link after the other, until the person gets through.
func TestExplain(t *testing.T) {
	s := newScene(t)
	service := s.service(M{"encryptionRequired": false})
	s.wants(service, "service-policy", "edge-router-policy", "service-edge-router-policy", "router", "terminator")
	s.dial(service).Fails(404, "NOT_FOUND", "")

	check := s.add("posture-checks", M{"typeId": "DOMAIN", "domains": []string{"example.com"}})
	policy := s.policy("Dial", M{"postureCheckRoles": []string{"@" + check}})
	s.wants(service, "posture", "edge-router-policy", "service-edge-router-policy", "router", "terminator")
	s.dial(service).Fails(409, "INVALID_POSTURE", "")

	s.me.Post(root+"posture-response", M{"id": check, "typeId": "DOMAIN", "domain": "example.com"}).Want(201)
	s.wants(service, "edge-router-policy", "service-edge-router-policy", "router", "terminator")
	s.dial(service).Fails(400, "NO_EDGE_ROUTERS_AVAILABLE", "")

	router := s.routers()
	s.wants(service, "router", "terminator")
	s.dial(service).Want(201)

	connect(t, router, "edge.example.com")
	s.wants(service, "terminator")
	s.add("terminators", M{"service": service, "router": router, "binding": "transport", "address": "tcp:localhost:80"})
	s.wants(service)
	if links, all := s.broken(service, "Bind"); !slices.Equal(links, []string{"service-policy"}) || all != 7 {
		t.Errorf("of hosting, %v of %d do not hold", links, all)
	}

	a := s.admin.Get("identities/" + s.user.ID + "/explain/" + service).Want(200)
	because := a.At("data.links.2.because").([]any)
	want := []M{{"kind": "service-policy", "id": policy, "role": ""}, {"kind": "identity", "id": s.user.ID, "role": "#" + s.role}, {"kind": "service", "id": service, "role": "#" + s.role}}
	for i, w := range want {
		if got := because[i].(M); got["kind"] != w["kind"] || got["id"] != w["id"] || got["role"] != w["role"] || got["name"] == "" {
			t.Errorf("cause %d is %v, want %v", i, got, w)
		}
	}

	s.admin.Post("identities/"+s.user.ID+"/disable", M{"durationMinutes": 0}).Want(200)
	s.wants(service, "identity", "session", "posture")
	a = s.admin.Get("identities/" + s.user.ID + "/explain/" + service).Want(200)
	if remedy := a.At("data.links.0.remedy").(string); !strings.HasPrefix(remedy, "netkeep enable identity ") {
		t.Errorf("the remedy is %q", remedy)
	}
}

// TestExplainRemedy says which attribute would do, and else which policy.
func TestExplainRemedy(t *testing.T) {
	s := newScene(t)
	service, word := s.service(), servertest.Unique("word")
	path := "identities/" + s.user.ID + "/explain/" + service
	remedy := func() string { return s.admin.Get(path).Want(200).At("data.links.2.remedy").(string) }
	if got := remedy(); !strings.HasPrefix(got, "netkeep create service-policy ") || !strings.Contains(got, " --type Dial --identity-roles ") {
		t.Errorf("the remedy is %q", got)
	}
	s.policy("Dial", M{"identityRoles": []string{"#" + word}, "serviceRoles": []string{"@" + service}})
	if got := remedy(); !strings.HasPrefix(got, "netkeep update identity ") || !strings.HasSuffix(got, " --add-role "+word) {
		t.Errorf("the remedy is %q", got)
	}
	s.admin.Get("identities/nobody/explain/"+service).Fails(404, "NOT_FOUND", "")
	s.admin.Get("identities/"+s.user.ID+"/explain/nothing").Fails(404, "NOT_FOUND", "")
	s.admin.Get(path+"?type=Look").Fails(400, "COULD_NOT_VALIDATE", "type")
}

// TestExplainAdmin tells that admins need no policy.
func TestExplainAdmin(t *testing.T) {
	s := newScene(t)
	service := s.service()
	s.admin.Patch("identities/"+s.user.ID, M{"isAdmin": true}).Want(200)
	a := s.admin.Get("identities/" + s.user.ID + "/explain/" + service).Want(200)
	if what, _ := a.At("data.links.2.what").(string); a.At("data.links.2.passed") != true || !strings.Contains(what, "admins may dial every service") {
		t.Errorf("the link is %v", a.At("data.links.2"))
	}
}

// TestWhoCanAndWhatCan lists both sides of the same policies, in pages.
func TestWhoCanAndWhatCan(t *testing.T) {
	s := newScene(t)
	dialed, hosted := s.service(), s.service(M{"roleAttributes": []string{}})
	s.service(M{"roleAttributes": []string{}})
	s.policy("Dial")
	s.policy("Bind", M{"serviceRoles": []string{"@" + hosted, "#" + s.role}})
	other := s.add("identities", M{"type": "User", "isAdmin": false, "roleAttributes": []string{s.role}})

	both := []string{s.user.ID, other}
	slices.Sort(both)
	for path, want := range map[string][]string{
		"services/" + dialed + "/who-can":                                            both,
		"services/" + dialed + "/who-can?type=bind":                                  both,
		"services/" + hosted + "/who-can?type=Dial":                                  {},
		"services/" + hosted + "/who-can?type=Bind":                                  both,
		"services/" + hosted + "/who-can?type=Bind&limit=1&offset=1":                 both[1:],
		"services/" + hosted + "/who-can?type=Bind&filter=id%3D%22nope%22":           {},
		"identities/" + other + "/what-can?sort=id&filter=id%3D%22" + hosted + "%22": {hosted},
	} {
		if got := ids(s.admin.Get(path).Want(200).List()); !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", path, got, want)
		}
	}
	page := s.admin.Get("identities/" + other + "/what-can?limit=1").Want(200)
	if page.Total() != 2 || len(page.List()) != 1 {
		t.Errorf("a page of one: %s", page.Raw)
	}
	for _, e := range s.admin.Get("identities/" + other + "/what-can").Want(200).List() {
		if e["bind"] != true || e["dial"] != (e["id"] == dialed) {
			t.Errorf("it may %v", e)
		}
	}
	s.admin.Get("services/nothing/who-can").Fails(404, "NOT_FOUND", "")
	s.admin.Get("identities/nobody/what-can").Fails(404, "NOT_FOUND", "")
}
