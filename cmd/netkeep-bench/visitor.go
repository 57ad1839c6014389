package main

import (
	"crypto/rand"
	"errors"
	"net/http"
)

// addVisitor makes an identity that may dial the services with these roles,
// until the scenario ends.
func (s *bench) addVisitor(services []string) (id string, err error) {
	name := "bench-visitor-" + s.id
	id, err = s.add("identities", identityBody{Name: name, Type: "User"})
	if err != nil {
		return "", err
	}
	_, err = s.add("service-policies", servicePolicyBody{
		Name: name, Type: "Dial", Semantic: "AnyOf", IdentityRoles: []string{"@" + id}, ServiceRoles: services,
	})
	return id, err
}

// add makes a record that is deleted when the scenario ends.
func (s *bench) add(path string, body any) (id string, err error) {
	path = managementRoot + "/" + path
	r, err := fetch[created](s.admin, request{method: http.MethodPost, path: path, body: body})
	if err != nil {
		return "", err
	}
	s.undo = append(s.undo, func() error {
		_, err := fetch[any](s.admin, request{method: http.MethodDelete, path: path + "/" + r.Data.ID})
		return err
	})
	return r.Data.ID, nil
}

// passwordBody gives an identity a password.
type passwordBody struct {
	Method     string `json:"method"`
	IdentityID string `json:"identityId"`
	credentials
}

// visit logs a visitor in to the Client API and returns its session token.
func (s *bench) visit(services []string) (token string, err error) {
	id, err := s.addVisitor(services)
	if err != nil {
		return "", err
	}
	if err := s.addRouter(id); err != nil {
		return "", err
	}
	who := credentials{"bench-visitor-" + s.id, rand.Text()}
	_, err = fetch[created](s.admin, request{
		method: http.MethodPost, path: managementRoot + "/authenticators",
		body: passwordBody{Method: "updb", IdentityID: id, credentials: who},
	})
	if err != nil {
		return "", err
	}
	// The session ends with its identity.
	visitor := &client{base: s.admin.base, header: s.admin.header, http: s.admin.http}
	err = visitor.login(clientRoot, who.Username, who.Password)
	return visitor.token, err
}

// addRouter lets a visitor use every service through one edge router.
func (s *bench) addRouter(visitor string) error {
	name := "bench-visitor-" + s.id
	router, err := s.add("edge-routers", routerBody{Name: name, RoleAttributes: []string{}})
	if err != nil {
		return err
	}
	_, err1 := s.add("edge-router-policies", routerPolicyBody{
		Name: name, Semantic: "AnyOf", EdgeRouterRoles: []string{"@" + router}, IdentityRoles: []string{"@" + visitor},
	})
	_, err2 := s.add("service-edge-router-policies", serviceRouterPolicyBody{
		Name: name, Semantic: "AnyOf", EdgeRouterRoles: []string{"@" + router}, ServiceRoles: []string{"#all"},
	})
	return errors.Join(err1, err2)
}

// The services that visitors see: ten by their ids, or about a thousand of ten
// thousand by their attributes.
func ten(s *bench) ([]string, error) {
	services, err := s.sample("services", servicePrefix)
	var roles []string
	for _, one := range services[:min(10, len(services))] {
		roles = append(roles, "@"+one.ID)
	}
	return roles, err
}

func thousand(*bench) ([]string, error) {
	return []string{"#bench-s000", "#bench-s001", "#bench-s002", "#bench-s003", "#bench-s004", "#bench-s005"}, nil
}

// clientServices lists the services of a visitor.
func clientServices(see func(*bench) ([]string, error), query string) func(*bench, *load) error {
	return func(s *bench, l *load) error {
		roles, err := see(s)
		if err != nil {
			return err
		}
		l.token, err = s.visit(roles)
		l.round = func(w *worker) { w.send(0, get(clientRoot+"/services"+query)) }
		return err
	}
}

func serviceUpdates(s *bench, l *load) error {
	roles, err := ten(s)
	if err != nil {
		return err
	}
	l.token, err = s.visit(roles)
	l.round = func(w *worker) { w.send(0, get(clientRoot+"/current-api-session/service-updates")) }
	return err
}

// sessionBody asks for a session to use a service.
type sessionBody struct {
	ServiceID string `json:"serviceId"`
	Type      string `json:"type"`
}

// sessions has each client take services of its own: two that ask for one at a
// time get the same session.
func sessions(s *bench, l *load) error {
	services, err := s.sample("services", servicePrefix)
	if err != nil {
		return err
	}
	l.token, err = s.visit([]string{"#all"})
	l.round = func(w *worker) {
		one := services[(w.done*len(s.clients)+w.number)%len(services)]
		if id, ok := w.create(0, clientRoot+"/sessions", sessionBody{one.ID, "Dial"}); ok {
			w.send(1, request{method: http.MethodDelete, path: clientRoot + "/sessions/" + id})
		}
	}
	return err
}
