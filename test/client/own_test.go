package client_test

import "testing"

// own is what a list of one's own services says of one of them.
func (s *scene) own(service string) M {
	s.Helper()
	for _, e := range s.me.Get(root + "current-identity/services?configTypes=all").Want(200).List() {
		if e["id"] == service {
			return e
		}
	}
	return nil
}

// reaches fails unless the service is shown with just this obstacle.
func (s *scene) reaches(service, obstacle string) {
	s.Helper()
	e := s.own(service)
	if e == nil {
		s.Fatalf("the service is not in the list, want one with the obstacle %q", obstacle)
	}
	if e["obstacle"] != obstacle || e["reachable"] != (obstacle == "") {
		s.Errorf("reachable is %v and the obstacle %q, want %q", e["reachable"], e["obstacle"], obstacle)
	}
}

// TestOwnServices shows somebody each thing that is in the way, one after the
// other, and nothing of what is not theirs.
func TestOwnServices(t *testing.T) {
	s := newScene(t)
	config := s.add("configs", M{"configTypeId": s.admin.Get(`config-types?filter=name="intercept.v1"`).Want(200).List()[0]["id"],
		"data": M{"protocols": []string{"tcp"}, "addresses": []string{"wiki.internal"}, "portRanges": []M{{"low": 80, "high": 80}}}})
	service := s.service(M{"encryptionRequired": false, "configs": []string{config}})
	if e := s.own(service); e != nil {
		t.Errorf("what nobody gave is listed: %v", e)
	}
	check := s.add("posture-checks", M{"typeId": "DOMAIN", "domains": []string{"example.com"}})
	s.policy("Dial", M{"postureCheckRoles": []string{"@" + check}})
	s.reaches(service, "your devices fail its posture checks")
	if got := s.own(service)["config"].(M)["intercept.v1"]; got == nil {
		t.Error("it does not say under which addresses")
	}
	// Another device of the same person is one too.
	other := s.login()
	other.Post(root+"posture-response", M{"id": check, "typeId": "DOMAIN", "domain": "example.com"}).Want(201)
	s.reaches(service, "you share no edge router with it")
	router := s.routers()
	s.reaches(service, "no edge router for it is online")
	connect(t, router, "edge.example.com")
	s.reaches(service, "nobody hosts it at present")
	s.add("terminators", M{"service": service, "router": router, "binding": "transport", "address": "tcp:localhost:80"})
	s.reaches(service, "")

	// Of those who have very many devices the last count.
	for range 32 {
		s.login()
	}
	s.reaches(service, "your devices fail its posture checks")
	s.login().Post(root+"posture-response", M{"id": check, "typeId": "DOMAIN", "domain": "example.com"}).Want(201)
	s.reaches(service, "")

	// Who may only host it needs no other host.
	hosted := s.service(M{"encryptionRequired": false, "roleAttributes": []string{s.role + "h"}})
	s.policy("Bind", M{"serviceRoles": []string{"#" + s.role + "h"}})
	s.reaches(hosted, "you share no edge router with it")
	s.add("service-edge-router-policies", M{"semantic": "AnyOf", "edgeRouterRoles": []string{"#" + s.role}, "serviceRoles": []string{"#" + s.role + "h"}})
	s.reaches(hosted, "")
}
