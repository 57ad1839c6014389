package client_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"netkeep.internal/internal/wire"
	"netkeep.internal/internal/wire/message"
	"netkeep.internal/test/scripted"
	"netkeep.internal/test/servertest"
)

func TestServicesAreThoseOfPolicies(t *testing.T) {
	s := newScene(t)
	dialed, hosted, both, other := s.service(M{"roleAttributes": []string{s.role + "d"}}), s.service(M{"roleAttributes": []string{s.role + "b"}}),
		s.service(), s.service(M{"roleAttributes": []string{"elsewhere"}})
	if n := s.me.Get(root + "services").Want(200).Total(); n != 0 {
		t.Errorf("%d services are seen without a policy", n)
	}
	s.policy("Dial", M{"serviceRoles": []string{"#" + s.role, "#" + s.role + "d"}})
	s.policy("Bind", M{"serviceRoles": []string{"#" + s.role, "#" + s.role + "b"}})
	list := s.me.Get(root + "services").Want(200)
	want := []string{dialed, hosted, both}
	slices.Sort(want)
	if diff := cmp.Diff(want, ids(list.List())); diff != "" || list.Total() != 3 {
		t.Errorf("services differ (-want +got):\n%s", diff)
	}
	for id, permissions := range map[string][]any{dialed: {"Dial"}, hosted: {"Bind"}, both: {"Bind", "Dial"}} {
		got := s.me.Get(root + "services/" + id).Want(200).Data()
		if diff := cmp.Diff(permissions, got["permissions"]); diff != "" {
			t.Errorf("permissions differ:\n%s", diff)
		}
	}
	for _, path := range []string{"services/" + other, "services/" + other + "/terminators", "services/nothing"} {
		s.me.Get(root+path).Fails(404, "NOT_FOUND", "")
	}
	// An admin may use everything.
	admin := s.admin.Get(root + "services/" + other).Want(200).Data()
	if diff := cmp.Diff([]any{"Bind", "Dial"}, admin["permissions"]); diff != "" {
		t.Errorf("an admin's permissions differ:\n%s", diff)
	}
}

func TestServicesAreFilteredSortedAndPaged(t *testing.T) {
	s := newScene(t)
	s.policy("Dial")
	var names, odd []string
	for i := range 5 {
		name := servertest.Unique("paged")
		more := []string{s.role}
		if i%2 == 1 {
			more = append(more, s.role+"odd")
			odd = append(odd, name)
		}
		s.service(M{"name": name, "roleAttributes": more})
		names = append(names, name)
	}
	slices.Sort(names)
	slices.Sort(odd)
	get := func(query string, total int, want ...string) {
		t.Helper()
		a := s.me.Get(root + "services?" + query).Want(200)
		got := []string{}
		for _, e := range a.List() {
			got = append(got, e["name"].(string))
		}
		if diff := cmp.Diff(want, got); diff != "" || a.Total() != total {
			t.Errorf("%s gives %d in all; entries differ (-want +got):\n%s", query, a.Total(), diff)
		}
	}
	get("filter=true+sort+by+name", 5, names...)
	get("filter=true+sort+by+name+desc+limit+2", 5, names[4], names[3])
	get("filter=true+sort+by+name&offset=1&limit=2", 5, names[1], names[2])
	get("filter=name%3D%22"+names[2]+"%22", 1, names[2])
	get("roleFilter=%23"+s.role+"odd&filter=true+sort+by+name", 2, odd...)
	get("roleFilter=%23"+s.role+"odd&roleFilter=%23"+s.role+"&roleSemantic=AnyOf&filter=true+sort+by+name", 5, names...)
	s.me.Get(root+"services?roleSemantic=Some").Fails(400, "COULD_NOT_VALIDATE", "roleSemantic")
	s.me.Get(root+"services?roleFilter=plain").Fails(400, "COULD_NOT_VALIDATE", "roleFilter")
	s.me.Get(root+"services?filter=nonsense").Fails(400, "INVALID_FILTER", "")
}

func TestConfigsOfServices(t *testing.T) {
	s := newScene(t)
	schema := M{"type": "object"}
	one, two := s.add("config-types", M{"name": s.role + "-one", "schema": schema}), s.add("config-types", M{"name": s.role + "-two", "schema": schema})
	config := func(typ string, n int) string { return s.add("configs", M{"configTypeId": typ, "data": M{"n": n}}) }
	own1, own2, mine1 := config(one, 1), config(two, 2), config(one, 3)
	service := s.service(M{"configs": []string{own1, own2}})
	bare := s.service()
	s.policy("Dial")
	shown := func(c *servertest.Client, service, query string) any {
		t.Helper()
		return c.Get(root + "services/" + service + query).Want(200).Data()["config"]
	}
	expect := func(what string, got any, want M) {
		t.Helper()
		if diff := cmp.Diff(any(want), got); diff != "" {
			t.Errorf("%s: configs differ (-want +got):\n%s", what, diff)
		}
	}
	both := M{s.role + "-one": M{"n": 1.0}, s.role + "-two": M{"n": 2.0}}
	expect("a session without config types", shown(s.me, service, ""), M{})
	expect("a session with one, by name", shown(s.login(s.role+"-one", "unknown"), service, ""), M{s.role + "-one": M{"n": 1.0}})
	expect("a session with one, by id", shown(s.login(two), service, ""), M{s.role + "-two": M{"n": 2.0}})
	expect("a session with all", shown(s.login("all"), service, ""), both)
	expect("a request for all", shown(s.me, service, "?configTypes=all"), both)
	expect("a request for one", shown(s.login("all"), service, "?configTypes="+two+",unknown"), M{s.role + "-two": M{"n": 2.0}})

	s.admin.Post("identities/"+s.user.ID+"/service-configs", []M{{"serviceId": service, "configId": mine1}, {"serviceId": bare, "configId": own2}}).Want(200)
	expect("an override", shown(s.me, service, "?configTypes=all"), M{s.role + "-one": M{"n": 3.0}, s.role + "-two": M{"n": 2.0}})
	expect("an addition", shown(s.me, bare, "?configTypes=all"), M{s.role + "-two": M{"n": 2.0}})
	expect("an override of a type that was not asked for", shown(s.me, service, "?configTypes="+two), M{s.role + "-two": M{"n": 2.0}})
	expect("what others see", shown(s.admin, service, "?configTypes=all"), both)

	// An admin may look through somebody else's eyes.
	seen := s.admin.Get("services?configTypes=all&asIdentity=" + s.user.ID + "&filter=true+sort+by+id").Want(200)
	for _, e := range seen.List() {
		if e["id"] == service {
			expect("seen by an admin as the identity", e["config"], M{s.role + "-one": M{"n": 3.0}, s.role + "-two": M{"n": 2.0}})
		}
	}
	if seen.Total() != 2 {
		t.Errorf("the identity sees 2 services, an admin in its place %d", seen.Total())
	}
	if n := s.admin.Get("services?asIdentity=" + s.user.Username).Want(200).Total(); n != 2 {
		t.Errorf("by name the identity sees %d services", n)
	}
	s.admin.Get("services?asIdentity=nobody").Fails(404, "NOT_FOUND", "")
}

func TestServicesAreChangedByAdminsOnly(t *testing.T) {
	s := newScene(t)
	service := s.service()
	s.policy("Dial")
	path := root + "services/" + service
	name := servertest.Unique("renamed")
	s.me.Patch(path, M{"name": name}).Fails(401, "UNAUTHORIZED", "")
	s.me.Put(path, M{"name": name}).Fails(401, "UNAUTHORIZED", "")
	s.me.Delete(path).Fails(401, "UNAUTHORIZED", "")
	s.admin.Patch(path, M{"name": name, "encryptionRequired": false}).Want(200)
	if got := s.me.Get(path).Want(200).Data(); got["name"] != name || got["encryptionRequired"] != true {
		t.Errorf("after a patch it is %v", got)
	}
	s.admin.Put(path, M{"name": name + "2", "roleAttributes": []string{s.role}}).Want(200)
	if got := s.me.Get(path).Want(200).Data(); got["name"] != name+"2" || got["encryptionRequired"] != true {
		t.Errorf("after a replace it is %v", got)
	}
	s.admin.Delete(path).Want(200)
	s.me.Get(path).Fails(404, "NOT_FOUND", "")
	s.admin.Delete(path).Fails(404, "NOT_FOUND", "")
}

func TestTerminatorsShowNoAddresses(t *testing.T) {
	s := newScene(t)
	service, router := s.service(), s.routers()
	s.policy("Dial")
	body := M{"service": service, "router": router, "binding": "transport", "address": "tcp:secret.internal:22", "identity": "instance"}
	id := s.admin.Post("terminators", body).Want(201).ID()
	path := root + "services/" + service + "/terminators"
	a := s.me.Get(path).Want(200)
	if got := ids(a.List()); len(got) != 1 || got[0] != id || a.At("data.0.routerId") != router || a.At("data.0.identity") != "instance" {
		t.Errorf("terminators are %s", a.Raw)
	}
	for _, hidden := range []string{"address", "binding", "hostId", "cost"} {
		if a.List()[0][hidden] != nil {
			t.Errorf("%s is shown: %s", hidden, a.Raw)
		}
		s.me.Get(path+"?filter="+hidden+"+!%3D+null").Fails(400, "INVALID_FILTER", "")
	}
}

func TestEdgeRoutersOfTheCaller(t *testing.T) {
	s := newScene(t)
	router := s.routers()
	path := root + "current-identity/edge-routers"
	if n := s.me.Get(path).Want(200).Total(); n != 0 {
		t.Errorf("%d routers are listed that have yet to enroll", n)
	}
	c := connect(t, router, "edge.example.com")
	servertest.Eventually(t, soon, "the router is in step", func() bool { return s.me.Get(path).Want(200).At("data.0.syncStatus") == "SYNC_DONE" })
	a := s.me.Get(path).Want(200)
	want := M{"tls": "tls://edge.example.com:3022"}
	got := a.At("data.0").(M)
	if a.Total() != 1 || got["id"] != router || got["isOnline"] != true || got["hostname"] != "edge.example.com" {
		t.Errorf("routers are %s", a.Raw)
	}
	if diff := cmp.Diff(any(want), got["supportedProtocols"]); diff != "" {
		t.Errorf("protocols differ:\n%s", diff)
	}
	s.me.Get(path+"?filter=fingerprint+!%3D+null").Fails(400, "INVALID_FILTER", "")
	if got := s.admin.Get("edge-routers/" + router).Want(200).Data(); got["isOnline"] != true || got["versionInfo"].(M)["version"] != "v1.6.20" {
		t.Errorf("an admin sees %v", got)
	}
	if got := s.admin.Get("routers/" + router).Want(200).Data(); got["isOnline"] != true {
		t.Errorf("among all routers it is %v", got)
	}
	if got := s.admin.Get("identities/" + s.user.ID).Want(200).Data(); got["hasEdgeRouterConnection"] != false {
		t.Errorf("the identity is connected: %v", got)
	}
	seen := message.ConnectEvents{Events: []message.ConnectEvent{{IdentityID: s.user.ID, Connected: true}}}
	if err := c.Send(&wire.Frame{Type: message.TypeConnectEvents, Body: message.Marshal(&seen)}); err != nil {
		t.Fatal(err)
	}
	servertest.Eventually(t, soon, "the identity is connected", func() bool {
		return s.admin.Get("identities/" + s.user.ID).Want(200).Data()["hasEdgeRouterConnection"] == true
	})
}

func TestAdviceKnowsWhoIsOnline(t *testing.T) {
	s := newScene(t)
	service, router := s.service(), s.routers()
	s.policy("Dial")
	path := "identities/" + s.user.ID + "/policy-advice/" + service
	if got := s.admin.Get(path).Want(200); got.At("data.commonRouters.0.isOnline") != false {
		t.Errorf("advice is %s", got.Raw)
	}
	connect(t, router, "edge.example.com")
	if got := s.admin.Get(path).Want(200); got.At("data.commonRouters.0.isOnline") != true {
		t.Errorf("advice is %s", got.Raw)
	}
}

// TestLostRoutersAreDropped has changes that shut a connected router out.
func TestLostRoutersAreDropped(t *testing.T) {
	s := newScene(t)
	online := func(c *scripted.Router) bool {
		select {
		case <-c.Done():
			return false
		default:
			return true
		}
	}
	add := func() (string, *scripted.Router) {
		id := s.add("edge-routers", M{})
		return id, connect(t, id, "edge.example.com")
	}
	for what, change := range map[string]func(id string){
		"enrolled again": func(id string) { s.admin.Post("edge-routers/"+id+"/re-enroll", M{}).Want(200) },
		"disabled":       func(id string) { s.admin.Patch("edge-routers/"+id, M{"disabled": true}).Want(200) },
		"deleted":        func(id string) { s.admin.Delete("edge-routers/" + id).Want(200) },
	} {
		id, c := add()
		_, other := add()
		s.admin.Patch("edge-routers/"+id, M{"cost": 7}).Want(200)
		if !online(c) {
			t.Fatalf("a change of cost drops the connection")
		}
		change(id)
		servertest.Eventually(t, soon, "dropping a router that is "+what, func() bool { return !online(c) })
		if !online(other) {
			t.Errorf("a router is dropped because another is %s", what)
		}
	}
}

func TestSignersForEveryone(t *testing.T) {
	s := newScene(t)
	signer := func(enabled bool, url string) string {
		body := M{
			"enabled": enabled, "issuer": servertest.Unique("https://issuer"), "audience": "netkeep",
			"jwksEndpoint": "https://127.0.0.1:1/keys",
		}
		if url != "" {
			body["externalAuthUrl"] = url
		}
		return s.add("ext-jwt-signers", body)
	}
	listed := signer(true, "https://login.example.com/")
	hidden := []string{signer(true, ""), signer(false, "https://login.example.com/")}
	a := shared.Nobody(t).Get(root + "external-jwt-signers?limit=500").Want(200)
	got := ids(a.List())
	if !slices.Contains(got, listed) || slices.ContainsFunc(hidden, func(id string) bool { return slices.Contains(got, id) }) {
		t.Errorf("signers are %v, want %s and not %v", got, listed, hidden)
	}
	shown := a.List()[slices.Index(got, listed)]
	for _, member := range []string{"issuer", "audience", "jwksEndpoint", "claimsProperty", "kid"} {
		if _, shown := shown[member]; shown {
			t.Errorf("strangers see %s", member)
		}
		shared.Nobody(t).Get(root+"external-jwt-signers?filter="+member+"+!%3D+null").Fails(400, "INVALID_FILTER", "")
	}
}

// TestRoutersOfAGoneSession has a client ask for routers with the token of its
// session: it makes a new one only if it is told that the old one is gone.
func TestRoutersOfAGoneSession(t *testing.T) {
	s := newScene(t)
	service, other := s.service(), s.service()
	s.policy("Dial")
	s.routers()
	made := s.dial(service).Want(201)
	with := s.me.With("session-token", made.Data()["token"].(string))
	path := root + "services/" + service + "/edge-routers"
	with.Get(path).Want(200)
	with.Get(root+"services/"+other+"/edge-routers").Fails(404, "NOT_FOUND", "")
	s.admin.Delete("sessions/" + made.ID()).Want(200)
	with.Get(path).Fails(404, "NOT_FOUND", "")
	s.me.Get(path).Want(200)
}
