package main

import (
	"crypto/rand"
	"errors"
	"net/http"
)

// addVisitor makes an identity that may dial every service, until the
// scenario ends.
func (s *bench) addVisitor() (id string, err error) {
	name := "bench-visitor-" + s.id
	id, err = s.add("identities", identityBody{Name: name, Type: "User"})
	if err != nil {
		return "", err
	}
	_, err = s.add("service-policies", servicePolicyBody{
		Name: name, Type: "Dial", Semantic: "AnyOf", IdentityRoles: []string{"@" + id}, ServiceRoles: []string{"#all"},
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
func (s *bench) visit() (token string, err error) {
	id, err := s.addVisitor()
	if err != nil {
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

func clientServices(query string) func(*bench, *load) error {
	return func(s *bench, l *load) (err error) {
		l.token, err = s.visit()
		l.round = func(w *worker) { w.send(0, get(clientRoot+"/services"+query)) }
		return err
	}
}

func serviceUpdates(s *bench, l *load) (err error) {
	l.token, err = s.visit()
	l.round = func(w *worker) { w.send(0, get(clientRoot+"/current-api-session/service-updates")) }
	return err
}

// sessionBody asks for a session to use a service.
type sessionBody struct {
	ServiceID string `json:"serviceId"`
	Type      string `json:"type"`
}

func sessions(s *bench, l *load) error {
	services, err1 := s.sample("services", servicePrefix)
	token, err2 := s.visit()
	l.token = token
	l.round = func(w *worker) {
		body := sessionBody{services[w.IntN(len(services))].ID, "Dial"}
		if id, ok := w.create(0, clientRoot+"/sessions", body); ok {
			w.send(1, request{method: http.MethodDelete, path: clientRoot + "/sessions/" + id})
		}
	}
	return errors.Join(err1, err2)
}
