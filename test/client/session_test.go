package client_test

import (
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"netkeep.internal/test/servertest"
)

func TestSessionOfAService(t *testing.T) {
	s := newScene(t)
	service, router := s.service(), s.routers()
	s.policy("Dial")
	s.policy("Bind")
	connect(t, router, "edge.example.com")
	got := s.dial(service).Want(201).Data()
	id := got["id"].(string)
	if got["type"] != "Dial" || got["serviceId"] != service || got["identityId"] != s.user.ID || !strings.HasPrefix(got["token"].(string), "ey") {
		t.Errorf("a session is %v", got)
	}
	urls := M{"tls": "tls://edge.example.com:3022"}
	routers := got["edgeRouters"].([]any)
	if len(routers) != 1 {
		t.Fatalf("there is one router, not %v", routers)
	}
	r := routers[0].(M)
	if r["isOnline"] != true || r["hostname"] != "edge.example.com" {
		t.Errorf("the router is %v", r)
	}
	if diff := cmp.Diff([]any{urls, urls}, []any{r["urls"], r["supportedProtocols"]}); diff != "" {
		t.Errorf("addresses differ:\n%s", diff)
	}

	if again := s.dial(service).Want(201).Data(); again["id"] != id || again["token"] != got["token"] {
		t.Errorf("asked again, the session is %v", again)
	}
	if absent := s.me.Post(root+"sessions", M{"serviceId": service}).Want(201).ID(); absent != id {
		t.Errorf("without a type it is another session, %s", absent)
	}
	host := s.me.Post(root+"sessions", M{"serviceId": service, "type": "Bind"}).Want(201).ID()
	if host == id {
		t.Error("one session is to dial and to host")
	}
	other := s.login()
	if elsewhere := other.Post(root+"sessions", M{"serviceId": service}).Want(201).ID(); elsewhere == id {
		t.Error("two API sessions have one session")
	}
	if n := s.me.Get(root + "sessions").Want(200).Total(); n != 3 {
		t.Errorf("%d sessions are listed, want those of both API sessions", n)
	}

	// An admin sees it, but not its token.
	seen := s.admin.Get("sessions/" + id).Want(200).Data()
	if seen["token"] != "" || len(seen["servicePolicies"].([]any)) != 1 {
		t.Errorf("an admin sees %v", seen)
	}
	if path := s.admin.Get("sessions/" + id + "/route-path").Want(200).Data()["routePath"]; len(path.([]any)) != 0 {
		t.Errorf("there is a path without a circuit: %v", path)
	}

	// Strangers do not.
	stranger := newScene(t)
	stranger.me.Get(root+"sessions/"+id).Fails(404, "NOT_FOUND", "")
	stranger.me.Delete(root+"sessions/"+id).Fails(404, "NOT_FOUND", "")
	if n := stranger.me.Get(root + "sessions").Want(200).Total(); n != 0 {
		t.Errorf("a stranger lists %d sessions", n)
	}

	s.me.Delete(root + "sessions/" + id).Want(200)
	s.me.Get(root+"sessions/"+id).Fails(404, "NOT_FOUND", "")
	s.admin.Delete("sessions/" + host).Want(200)
	s.me.Get(root+"sessions/"+host).Fails(404, "NOT_FOUND", "")
	if fresh := s.dial(service).Want(201).Data(); fresh["id"] == id || fresh["token"] == got["token"] {
		t.Errorf("a new session is the old one: %v", fresh)
	}
}

func TestSessionsThatAreRefused(t *testing.T) {
	s := newScene(t)
	service := s.service()
	s.dial(service).Fails(404, "NOT_FOUND", "")
	s.dial("nothing").Fails(404, "NOT_FOUND", "")
	s.me.Post(root+"sessions", M{"type": "Dial"}).Fails(400, "COULD_NOT_VALIDATE", "serviceId")
	s.me.Post(root+"sessions", M{"serviceId": service, "type": "Watch"}).Fails(400, "COULD_NOT_VALIDATE", "type")
	s.policy("Bind")
	s.dial(service).Fails(400, "COULD_NOT_VALIDATE", "ServiceId")
	s.policy("Dial")
	s.dial(service).Fails(400, "NO_EDGE_ROUTERS_AVAILABLE", "")
	// A router for the identity alone is not enough.
	mine := []string{"#" + s.role}
	s.add("edge-routers", M{"roleAttributes": mine[:0]})
	s.add("edge-router-policies", M{"semantic": "AnyOf", "edgeRouterRoles": []string{"#all"}, "identityRoles": mine})
	s.dial(service).Fails(400, "NO_EDGE_ROUTERS_AVAILABLE", "")
	s.routers()
	s.dial(service).Want(201)
	// Admins need no policy for the service, but a router like anyone else.
	s.admin.Post(root+"sessions", M{"serviceId": service}).Fails(400, "NO_EDGE_ROUTERS_AVAILABLE", "")
	shared.Nobody(t).Post(root+"sessions", M{"serviceId": service}).Fails(401, "UNAUTHORIZED", "")
}

// TestSessionsEndWithWhatTheyRestOn takes away one thing after the other.
func TestSessionsEndWithWhatTheyRestOn(t *testing.T) {
	for what, take := range map[string]func(s *scene, service, policy string){
		"the policy": func(s *scene, _, policy string) { s.admin.Delete("service-policies/" + policy).Want(200) },
		"the policy's roles": func(s *scene, _, policy string) {
			s.admin.Patch("service-policies/"+policy, M{"serviceRoles": []string{}}).Want(200)
		},
		"the policy's type": func(s *scene, _, policy string) {
			s.admin.Patch("service-policies/"+policy, M{"type": "Bind"}).Want(200)
		},
		"the attribute of the service": func(s *scene, service, _ string) {
			s.admin.Patch("services/"+service, M{"roleAttributes": []string{}}).Want(200)
		},
		"the attribute of the identity": func(s *scene, _, _ string) {
			s.admin.Patch("identities/"+s.user.ID, M{"roleAttributes": []string{}}).Want(200)
		},
		"the service":     func(s *scene, service, _ string) { s.admin.Delete("services/" + service).Want(200) },
		"the identity":    func(s *scene, _, _ string) { s.admin.Delete("identities/" + s.user.ID).Want(200) },
		"the API session": func(s *scene, _, _ string) { s.me.Delete(root + "current-api-session").Want(200) },
		"the right to log in": func(s *scene, _, _ string) {
			s.admin.Post("identities/"+s.user.ID+"/disable", M{"durationMinutes": 1}).Want(200)
		},
	} {
		t.Run(what, func(t *testing.T) {
			s := newScene(t)
			service := s.service()
			s.routers()
			policy := s.policy("Dial")
			id := s.dial(service).Want(201).ID()
			bystander := newScene(t)
			kept := bystander.service()
			bystander.routers()
			bystander.policy("Dial")
			stays := bystander.dial(kept).Want(201).ID()
			take(s, service, policy)
			if a := s.me.Get(root + "sessions/" + id); a.Status != 404 && a.Status != 401 {
				t.Errorf("without %s its owner still has the session: %s", what, a.Raw)
			}
			s.removed(id, "removal for want of "+what)
			bystander.me.Get(root + "sessions/" + stays).Want(200)
		})
	}
}

// TestAdminsKeepSessions has an admin who needs no policy, until it is none.
func TestAdminsKeepSessions(t *testing.T) {
	s := newScene(t)
	s.admin.Patch("identities/"+s.user.ID, M{"isAdmin": true}).Want(200)
	service := s.service()
	s.routers()
	policy := s.policy("Dial")
	id := s.dial(service).Want(201).ID()
	s.admin.Delete("service-policies/" + policy).Want(200)
	s.me.Get(root + "sessions/" + id).Want(200)
	s.admin.Patch("identities/"+s.user.ID, M{"isAdmin": false}).Want(200)
	s.removed(id, "removal of what was an admin's")
}

// TestSessionsAtTheSameTime has many ask for one session.
func TestSessionsAtTheSameTime(t *testing.T) {
	s := newScene(t)
	service := s.service()
	s.routers()
	s.policy("Dial")
	var wg sync.WaitGroup
	var mu sync.Mutex
	got := map[string]bool{}
	for range 16 {
		wg.Go(func() {
			a := s.dial(service)
			id, _ := a.At("data.id").(string)
			mu.Lock()
			defer mu.Unlock()
			got[id] = true
		})
	}
	wg.Wait()
	if len(got) != 1 || got[""] {
		t.Errorf("there are several sessions: %v", got)
	}
}

func TestUpdatesMoveWithWhatIsSeen(t *testing.T) {
	s := newScene(t)
	typ := s.add("config-types", M{"schema": M{"type": "object"}})
	config := s.add("configs", M{"configTypeId": typ, "data": M{"n": 1}})
	service := s.service(M{"configs": []string{config}})
	policy, unrelated := s.policy("Dial"), s.service(M{"roleAttributes": []string{}})
	check := s.add("posture-checks", M{"typeId": "DOMAIN", "domains": []string{"example.com"}, "roleAttributes": []string{s.role}})
	idle := servertest.Unique("idle")
	s.policy("Dial", M{"identityRoles": []string{"#" + idle}, "serviceRoles": []string{"#" + idle}})
	be := func(attributes ...string) func() *servertest.Answer {
		return func() *servertest.Answer {
			return s.admin.Patch("identities/"+s.user.ID, M{"roleAttributes": attributes})
		}
	}
	for _, step := range []struct {
		what  string
		moves bool
		do    func() *servertest.Answer
	}{
		{"one's own attributes, to one that no policy knows", false, be(s.role, servertest.Unique("x"))},
		{"one's own attributes, to one whose policy gives nothing", false, be(s.role, idle)},
		{"one's own attributes, back again", false, be(s.role)},
		{"one's own attributes, to none", true, be()},
		{"nothing of one's own attributes", false, be()},
		{"one's own attributes, to that of the policy", true, be(s.role)},
		{"nothing", false, func() *servertest.Answer { return s.me.Get(root + "services") }},
		{"another service", false, func() *servertest.Answer {
			return s.admin.Patch("services/"+unrelated, M{"name": servertest.Unique("x")})
		}},
		{"another identity", false, func() *servertest.Answer {
			return s.admin.Post("identities", M{"name": servertest.Unique("x"), "type": "User", "isAdmin": false})
		}},
		{"an edge router", false, func() *servertest.Answer { return s.admin.Post("edge-routers", M{"name": servertest.Unique("x")}) }},
		{"the policy's name", false, func() *servertest.Answer {
			return s.admin.Patch("service-policies/"+policy, M{"name": servertest.Unique("x")})
		}},
		{"the service", true, func() *servertest.Answer {
			return s.admin.Patch("services/"+service, M{"name": servertest.Unique("x")})
		}},
		{"its config", true, func() *servertest.Answer { return s.admin.Patch("configs/"+config, M{"data": M{"n": 2}}) }},
		{"the policy's checks", true, func() *servertest.Answer {
			return s.admin.Patch("service-policies/"+policy, M{"postureCheckRoles": []string{"#" + s.role}})
		}},
		{"a check", true, func() *servertest.Answer {
			return s.admin.Patch("posture-checks/"+check, M{"typeId": "DOMAIN", "domains": []string{"example.org"}})
		}},
		{"an override", true, func() *servertest.Answer {
			return s.admin.Post("identities/"+s.user.ID+"/service-configs", []M{{"serviceId": service, "configId": config}})
		}},
		{"the device", true, func() *servertest.Answer {
			return s.me.Post(root+"posture-response", M{"id": check, "typeId": "DOMAIN", "domain": "example.org"})
		}},
		{"the same of the device", false, func() *servertest.Answer {
			return s.me.Post(root+"posture-response", M{"id": check, "typeId": "DOMAIN", "domain": "example.org"})
		}},
		{"the permission", true, func() *servertest.Answer { return s.admin.Patch("service-policies/"+policy, M{"type": "Bind"}) }},
		{"access", true, func() *servertest.Answer { return s.admin.Delete("service-policies/" + policy) }},
		{"the service, unseen", false, func() *servertest.Answer { return s.admin.Delete("services/" + service) }},
	} {
		before := s.updated()
		if a := step.do(); a.Status >= 300 {
			t.Fatalf("%s: %s", step.what, a.Raw)
		}
		if moved := s.updated() != before; moved != step.moves {
			t.Errorf("a change of %s moves the time: %v, want %v", step.what, moved, step.moves)
		}
	}
}
