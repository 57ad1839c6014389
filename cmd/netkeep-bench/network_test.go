package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/google/go-cmp/cmp"
)

// bodies returns what fill would send for the first records of every kind, by
// the order in which it is asked for them.
func bodies(n network, numbers []int) map[string][]any {
	all := map[string][]any{}
	for _, i := range numbers {
		for kind, body := range map[string]any{
			"config": n.config(i, "type"), "service": n.service(i, []string{"a", "b", "c"}), "router": n.edgeRouter(i),
			"service policy": n.servicePolicy(i), "router policy": n.routerPolicy(i),
			"service router policy": n.serviceRouterPolicy(i), "identity": n.identity(i),
		} {
			all[kind] = append(all[kind], body)
		}
	}
	return all
}

func TestNetworkIsDeterministic(t *testing.T) {
	up, down := []int{0, 1, 2, 3, 4, 5, 6, 7}, []int{7, 6, 5, 4, 3, 2, 1, 0}
	one, two := bodies(network{1}, up), bodies(network{1}, down)
	for kind := range two {
		slices.Reverse(two[kind])
	}
	if diff := cmp.Diff(one, two); diff != "" {
		t.Errorf("records depend on the order in which they are made:\n%s", diff)
	}
	other := bodies(network{2}, up)
	for kind := range one {
		if cmp.Equal(one[kind], other[kind]) {
			t.Errorf("%s records are the same with another seed", kind)
		}
	}
}

// What a seed means must not change: it would mix two networks in one
// controller.
func TestNetworkOfSeedOne(t *testing.T) {
	text, err := json.Marshal([]any{network{1}.identity(0), network{1}.servicePolicy(0)})
	if err != nil {
		t.Fatal(err)
	}
	const want = `[{"name":"bench-identity-000000","type":"Device","isAdmin":false,"roleAttributes":["bench-i096","bench-i244","bench-i081"]},` +
		`{"name":"bench-service-policy-00000","type":"Bind","semantic":"AnyOf","identityRoles":["#bench-i098"],` +
		`"serviceRoles":["#bench-s043","#bench-s005","#bench-s052"]}]`
	if string(text) != want {
		t.Errorf("seed 1 begins with\n%s, want\n%s", text, want)
	}
}

func TestNetworkIsVaried(t *testing.T) {
	n := network{1}
	identities, services, kinds := map[string]int{}, map[string]int{}, map[string]int{}
	for i := range 2000 {
		id := n.identity(i)
		count(t, identities, id.RoleAttributes, attributesPerIdentity, attributesPerIdentity)
		count(t, services, n.service(i, nil).RoleAttributes, attributesPerService, attributesPerService)
		p := n.servicePolicy(i)
		kinds[p.Type+" "+p.Semantic]++
		count(t, kinds, p.IdentityRoles, 1, 3)
		for _, role := range p.IdentityRoles {
			if _, known := identities[strings.TrimPrefix(role, "#")]; !known && i > 1000 {
				t.Fatalf("policy %d has the role %s, which no identity has", i, role)
			}
		}
	}
	if len(identities) != identityAttributes || len(services) != serviceAttributes {
		t.Errorf("identities use %d attributes and services %d; want %d and %d", len(identities), len(services), identityAttributes, serviceAttributes)
	}
	for _, kind := range []string{"Dial AnyOf", "Dial AllOf", "Bind AnyOf", "Bind AllOf"} {
		if kinds[kind] < 400 {
			t.Errorf("%d of 2000 policies are %s", kinds[kind], kind)
		}
	}
}

// count adds values up that must be of a number and different.
func count(t *testing.T, into map[string]int, values []string, least, most int) {
	t.Helper()
	if len(values) < least || len(values) > most {
		t.Fatalf("%v are %d, want %d to %d", values, len(values), least, most)
	}
	for i, v := range values {
		if slices.Contains(values[:i], v) {
			t.Fatalf("%v has %s twice", values, v)
		}
		into[v]++
	}
}
