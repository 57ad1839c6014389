package main

import (
	"fmt"
	"net/http"
	"net/url"

	"github.com/go-json-experiment/json"
)

// scenario is one kind of load.
type scenario struct {
	name, doc string
	steps     []string // if a round is several requests
	// prepare makes what the scenario needs and says what a round is. What
	// it makes it also promises to undo.
	prepare func(s *bench, l *load) error
}

var policySteps = []string{"create", "patch semantic", "delete"}

// scenarios are all there are, the cheap ones first.
var scenarios = []scenario{
	{name: "version", doc: "ask for the version: what any request costs", prepare: version},
	{name: "login", doc: "log in with a password, and out", steps: []string{"login", "logout"}, prepare: login},
	{name: "get-identity", doc: "get an identity by id", prepare: getIdentity},
	{name: "list-identities-equality", doc: `list identities where name = "..."`, prepare: listEqual},
	{name: "list-identities-contains", doc: `list 100 identities where name contains "...", by name`, prepare: listContains},
	{name: "identity-services", doc: "list 500 services of an identity that sees all", prepare: identityServices},
	{name: "attribute", doc: "add and remove an attribute of an identity", steps: []string{"add", "remove"}, prepare: attribute},
	{name: "policy-none", doc: "create, patch and delete a service policy that matches nothing", steps: policySteps, prepare: policy("#bench-nobody")},
	{name: "policy-all", doc: "create, patch and delete a service policy that matches everything", steps: policySteps, prepare: policy("#all")},
	{name: "client-services", doc: "list services as a client that sees ten", prepare: clientServices(ten, "")},
	{name: "client-services-500", doc: "list 500 services as a client that sees about a thousand", prepare: clientServices(thousand, "?limit=500")},
	{name: "service-updates", doc: "ask as a client when its services last changed", prepare: serviceUpdates},
	{name: "session-create-delete", doc: "create and delete a session as a client", steps: []string{"create", "delete"}, prepare: sessions},
}

func get(path string) request { return request{method: http.MethodGet, path: path} }

func version(_ *bench, l *load) error {
	l.token = ""
	l.round = func(w *worker) { w.send(0, get(managementRoot+"/version")) }
	return nil
}

func login(s *bench, l *load) error {
	l.token = ""
	in := loginRequest(managementRoot, s.target.username, s.target.password)
	out := request{method: http.MethodDelete, path: managementRoot + "/current-api-session"}
	l.round = func(w *worker) {
		data, ok := w.send(0, in)
		var r reply[struct {
			Token string `json:"token"`
		}]
		if ok && json.Unmarshal(data, &r) == nil {
			out := out
			out.token = r.Data.Token
			w.send(1, out)
		}
	}
	return nil
}

func getIdentity(s *bench, l *load) error {
	all, err := s.sample("identities", identityPrefix)
	l.round = func(w *worker) { w.send(0, get(managementRoot+"/identities/"+all[w.IntN(len(all))].ID)) }
	return err
}

func listEqual(s *bench, l *load) error {
	all, err := s.sample("identities", identityPrefix)
	l.round = func(w *worker) {
		w.send(0, get(managementRoot+"/identities?filter="+url.QueryEscape(fmt.Sprintf("name = %q", all[w.IntN(len(all))].Name))))
	}
	return err
}

// listContains looks for three digits that a few of a thousand names have.
func listContains(_ *bench, l *load) error {
	l.round = func(w *worker) {
		filter := fmt.Sprintf(`name contains "%03d" sort by name limit 100`, w.IntN(1000))
		w.send(0, get(managementRoot+"/identities?filter="+url.QueryEscape(filter)))
	}
	return nil
}

func identityServices(s *bench, l *load) error {
	id, err := s.addVisitor([]string{"#all"})
	l.round = func(w *worker) { w.send(0, get(managementRoot+"/identities/"+id+"/services?limit=500")) }
	return err
}

// attributes is the body of a patch.
type attributes struct {
	RoleAttributes []string `json:"roleAttributes"`
}

// attribute gives each client an identity of its own to change.
func attribute(s *bench, l *load) error {
	all, err := s.sample("identities", identityPrefix)
	l.round = func(w *worker) {
		one := all[w.number%len(all)]
		patch := request{method: http.MethodPatch, path: managementRoot + "/identities/" + one.ID}
		patch.body = attributes{append(one.RoleAttributes[:len(one.RoleAttributes):len(one.RoleAttributes)], "bench-extra")}
		w.send(0, patch)
		patch.body = attributes{one.RoleAttributes}
		w.send(1, patch)
	}
	return err
}

// semantic is the body of a patch.
type semantic struct {
	Semantic string `json:"semantic"`
}

// policy makes Dial policies with one role on both sides.
func policy(role string) func(*bench, *load) error {
	return func(s *bench, l *load) error {
		l.round = func(w *worker) {
			id, ok := w.create(0, managementRoot+"/service-policies", servicePolicyBody{
				Name: fmt.Sprintf("bench-%s-%d-%d", s.id, w.number, w.done), Type: "Dial", Semantic: "AnyOf",
				IdentityRoles: []string{role}, ServiceRoles: []string{role},
			})
			if !ok {
				return
			}
			path := managementRoot + "/service-policies/" + id
			w.send(1, request{method: http.MethodPatch, path: path, body: semantic{"AllOf"}})
			w.send(2, request{method: http.MethodDelete, path: path})
		}
		return nil
	}
}

// create makes a record as a measured step and returns its id.
func (w *worker) create(step int, path string, body any) (id string, ok bool) {
	data, ok := w.send(step, request{method: http.MethodPost, path: path, body: body})
	var r reply[created]
	if !ok || json.Unmarshal(data, &r) != nil {
		return "", false
	}
	return r.Data.ID, true
}

// sample finds up to a thousand of the records that fill made, spread over
// all of them.
func (s *bench) sample(path, prefix string) ([]record, error) {
	const pages, size = 10, 100
	query := managementRoot + "/" + path + "?filter=" + url.QueryEscape(fmt.Sprintf("name contains %q sort by name", prefix))
	page := func(offset int) (reply[[]record], error) {
		return fetch[[]record](s.admin, get(fmt.Sprintf("%s&limit=%d&offset=%d", query, size, offset)))
	}
	first, err := page(0)
	if err != nil {
		return nil, err
	}
	all, total := first.Data, first.Meta.Pagination.TotalCount
	if len(all) == 0 {
		return nil, fmt.Errorf("there are no %s whose names begin with %s; fill the controller first", path, prefix)
	}
	stride := max(total/pages, size)
	for offset := stride; offset < total && len(all) < pages*size; offset += stride {
		next, err := page(offset)
		if err != nil {
			return nil, err
		}
		all = append(all, next.Data...)
	}
	return all, nil
}
