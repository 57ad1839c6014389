package api_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"netkeep.internal/internal/web/api"
	"netkeep.internal/test/servertest"
)

// resource is what the tests of every resource need to know about one.
type resource struct {
	path string
	home string // the path that links lead to; path if empty
	// least is a body with nothing that can be left out, and more is what can
	// be added to it, none of it with its default.
	least, more func(t *testing.T, c *servertest.Client) M
	required    []string // in create bodies
	nullable    []string // of these, what may be null
	once        []string // of these, what a replace may leave out
	also        M        // what a replace needs beside least
	patch       M        // what every patch needs
	fixed       []string // stay as they were created
	unread      []string // of these, what other bodies may hold anything in
	shown       M        // answers name these members differently, or not at all
	defaults    M        // what is in answers for those left out
	links       []string
	leads       M // links to another record: where it is, and the member with its id
	nameless    bool
}

// absent stands for a member that an answer does not have.
const absent = "there is none"

// resources are all that can be created, changed and deleted, except those in
// elsewhere.
func resources() []resource {
	return []resource{
		authPolicies(), identities(), cas(), signers(), configTypes(), configs(), services(), terminators(), routers(),
		edgeRouters(), postureChecks(), servicePolicies(), edgeRouterPolicies(), serviceEdgeRouterPolicies(), assertions(), grants(),
		adminRoles(), roleBindings(),
		known(routers(), "transit-routers"), known(signers(), "ext-jwt-signers"),
	}
}

// elsewhere are resources with tests of their own, and why.
var elsewhere = map[string]string{
	"authenticators": "each operation takes another body",
	"tokens":         "a create answers with the secret, which nobody sees again",
}

// known returns a resource as it is under another name.
func known(r resource, path string) resource {
	r.home, r.path = r.path, path
	return r
}

// TestEveryResourceIsTested looks into the specification for what can be
// created, read, replaced, changed and deleted, so that nothing new is
// forgotten.
func TestEveryResourceIsTested(t *testing.T) {
	operations := shared.Operations(api.ManagementRoot)
	var want []string
	for name := range operations {
		path, isCreate := strings.CutPrefix(name, "POST "+api.ManagementRoot+"/")
		crud := isCreate
		for _, other := range []string{"GET %s/%s", "GET %s/%s/{id}", "PUT %s/%s/{id}", "PATCH %s/%s/{id}", "DELETE %s/%s/{id}"} {
			crud = crud && operations[fmt.Sprintf(other, api.ManagementRoot, path)] != nil
		}
		if crud && elsewhere[path] == "" {
			want = append(want, path)
		}
	}
	var got []string
	for _, r := range resources() {
		got = append(got, r.path)
	}
	slices.Sort(want)
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the table differs from the specification (-offered +tested):\n%s", diff)
	}
	if len(want) < 16 {
		t.Errorf("found only %d resources in the specification", len(want))
	}
}

func authPolicies() resource {
	return resource{
		path:     "auth-policies",
		least:    func(*testing.T, *servertest.Client) M { return policyBody() },
		more:     func(*testing.T, *servertest.Client) M { return M{"tags": M{"a": "b", "c": nil, "d": true}} },
		required: []string{"name", "primary", "secondary"},
		defaults: M{"tags": M{}},
	}
}

func identities() resource {
	return resource{
		path: "identities",
		least: func(*testing.T, *servertest.Client) M {
			return M{"name": servertest.Unique("identity"), "type": "Device", "isAdmin": false}
		},
		more: func(t *testing.T, c *servertest.Client) M {
			service := create(t, c, "services", nil)
			return M{
				"authPolicyId":              create(t, c, "auth-policies", nil),
				"externalId":                servertest.Unique("external"),
				"roleAttributes":            []any{"blue", "green"},
				"appData":                   M{"deep": M{"list": []any{1.0, "two", nil, M{}}}},
				"defaultHostingCost":        65535.0,
				"defaultHostingPrecedence":  "required",
				"serviceHostingCosts":       M{service: 7.0},
				"serviceHostingPrecedences": M{service: "failed"},
				"tags":                      M{"place": "cellar"},
			}
		},
		required: []string{"name", "type", "isAdmin"},
		shown:    M{"type": "typeId"},
		defaults: M{
			"authPolicyId": "default", "externalId": nil, "roleAttributes": []any{}, "appData": M{},
			"defaultHostingCost": 0.0, "defaultHostingPrecedence": "default",
			"serviceHostingCosts": M{}, "serviceHostingPrecedences": M{}, "tags": M{},
		},
		leads: M{"auth-policies": "authPolicyId"},
		links: []string{
			"authenticators", "edge-router-policies", "edge-routers", "enrollments",
			"failed-service-requests", "posture-data", "service-configs", "service-policies", "services",
		},
	}
}

func configTypes() resource {
	return resource{
		path:  "config-types",
		least: func(*testing.T, *servertest.Client) M { return M{"name": servertest.Unique("type")} },
		more: func(*testing.T, *servertest.Client) M {
			return M{"schema": M{"type": "object", "properties": M{"port": M{"type": "integer"}}}, "tags": M{"x": false}}
		},
		required: []string{"name"},
		defaults: M{"schema": M{}, "tags": M{}},
	}
}

func configs() resource {
	return resource{
		path: "configs",
		least: func(t *testing.T, c *servertest.Client) M {
			return M{
				"name": servertest.Unique("config"), "configTypeId": create(t, c, "config-types", nil),
				"data": M{"host": "example.org", "ports": []any{1.0, 2.5}},
			}
		},
		more:     func(*testing.T, *servertest.Client) M { return M{"tags": M{"x": "y"}} },
		required: []string{"name", "configTypeId", "data"},
		once:     []string{"configTypeId"},
		fixed:    []string{"configTypeId"},
		unread:   []string{"configTypeId"},
		defaults: M{"tags": M{}},
	}
}

func services() resource {
	return resource{
		path: "services",
		least: func(*testing.T, *servertest.Client) M {
			return M{"name": servertest.Unique("service"), "encryptionRequired": true}
		},
		more: func(t *testing.T, c *servertest.Client) M {
			return M{
				"terminatorStrategy": "weighted", "roleAttributes": []any{"db"}, "maxIdleTimeMillis": 1500.0,
				"configs": []any{create(t, c, "configs", nil)}, "tags": M{"x": "y"},
			}
		},
		required: []string{"name", "encryptionRequired"},
		once:     []string{"encryptionRequired"},
		fixed:    []string{"encryptionRequired"},
		defaults: M{"terminatorStrategy": "smartrouting", "roleAttributes": []any{}, "configs": []any{}, "maxIdleTimeMillis": 0.0, "requests": nil, "tags": M{}},
		links:    []string{"configs", "service-edge-router-policies", "service-policies", "terminators"},
	}
}

func policyBody() M {
	return M{
		"name": servertest.Unique("policy"),
		"primary": M{
			"cert": M{"allowed": true, "allowExpiredCerts": false},
			"updb": M{
				"allowed": true, "minPasswordLength": 8.0, "requireSpecialChar": true, "requireNumberChar": false,
				"requireMixedCase": true, "maxAttempts": 3.0, "lockoutDurationMinutes": 4.0,
			},
			"extJwt": M{"allowed": false, "allowedSigners": []any{}},
		},
		"secondary": M{"requireTotp": false, "requireExtJwtSigner": nil},
	}
}

// resourceAt returns the resource with a path.
func resourceAt(path string) resource {
	all := resources()
	return all[slices.IndexFunc(all, func(r resource) bool { return r.path == path })]
}

// create adds a record with the least body and what is given, and returns its
// id.
func create(t *testing.T, c *servertest.Client, path string, more M) string {
	t.Helper()
	body := resourceAt(path).least(t, c)
	maps.Copy(body, more)
	return c.Post(path, body).Want(201).ID()
}

// forEach runs a test for every resource.
func forEach(t *testing.T, test func(t *testing.T, c *servertest.Client, r resource)) {
	c := shared.Admin(t)
	for _, r := range resources() {
		t.Run(r.path, func(t *testing.T) { test(t, c.For(t), r) })
	}
}

// replacement is the least body of a replace.
func (r resource) replacement(t *testing.T, c *servertest.Client) M {
	body := joined(r.least(t, c), r.also)
	for _, name := range r.once {
		delete(body, name)
	}
	return body
}

// without returns a copy of a body that lacks a member.
func without(body M, name string) M {
	body = maps.Clone(body)
	delete(body, name)
	return body
}

// joined returns one body with the members of several.
func joined(bodies ...M) M {
	all := M{}
	for _, b := range bodies {
		maps.Copy(all, b)
	}
	return all
}

// compare reports members of an answer that are not as wanted.
func (r resource) compare(t *testing.T, got, want M) {
	t.Helper()
	for name, value := range want {
		if other, differs := r.shown[name]; differs {
			if name, _ = other.(string); name == "" {
				continue
			}
		}
		shown, there := got[name]
		if value == absent {
			if there {
				t.Errorf("%s is %v, want none", name, shown)
			}
		} else if diff := cmp.Diff(value, shown); diff != "" || !there {
			t.Errorf("%s differs (-want +got):\n%s", name, diff)
		}
	}
}
