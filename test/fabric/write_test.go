package fabric

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"netkeep.internal/test/scripted"
	"netkeep.internal/test/servertest"
)

// TestFabricWrites makes routers, services and terminators as clients of the Fabric API
// do, finds them in the Management API, and changes them without losing what these
// clients do not know.
func TestFabricWrites(t *testing.T) {
	s := servertest.Start(t)
	admin := s.Admin(t)
	print1, print2 := strings.Repeat("ab", 20), strings.Repeat("cd", 20)
	admin.Post(fabricAPI+"routers", M{"id": "transit-1", "name": "one", "fingerprint": print1, "cost": 7, "noTraversal": true, "disabled": false, "tags": M{}}).Want(201)
	router := admin.Get(management + "routers/transit-1").Want(200).Data()
	if router["fingerprint"] != print1 || router["isVerified"] != true || router["cost"] != 7.0 || router["noTraversal"] != true {
		t.Errorf("the router: %v", router)
	}
	admin.Post(fabricAPI+"routers", M{"id": "transit-1", "name": "again", "cost": 0, "noTraversal": false}).Fails(400, "COULD_NOT_VALIDATE", "id")
	admin.Post(fabricAPI+"routers", M{"id": "a/b", "name": "again"}).Fails(400, "COULD_NOT_VALIDATE", "id")
	admin.Post(fabricAPI+"routers", M{"name": "again", "fingerprint": print1}).Want(400)
	admin.Post(fabricAPI+"routers", M{"name": "again", "fingerprint": strings.Repeat("xy", 20)}).Fails(400, "COULD_NOT_VALIDATE", "fingerprint")
	admin.Patch(fabricAPI+"routers/transit-1", M{"fingerprint": strings.ToUpper(print2)}).Want(200)
	admin.Put(fabricAPI+"routers/transit-1", M{"name": "two", "fingerprint": print2, "cost": 9, "noTraversal": false}).Want(200)
	if got := admin.Get(fabricAPI + "routers/transit-1").Want(200).Data(); got["fingerprint"] != print2 || got["name"] != "two" || got["cost"] != 9.0 {
		t.Errorf("the changed router: %v", got)
	}
	invited := admin.Post(fabricAPI+"routers", M{"name": "invited", "cost": 0, "noTraversal": false}).Want(201).ID()
	if got := admin.Get(management + "routers/" + invited).Want(200).Data(); got["enrollmentToken"] == nil {
		t.Errorf("a router without a certificate is not invited: %v", got)
	}
	admin.Delete(fabricAPI + "routers/" + invited).Want(200)

	edge := admin.Post(management+"edge-routers", M{"name": "edge", "isTunnelerEnabled": true, "roleAttributes": []string{"other"}}).Want(201).ID()
	if got := admin.Patch(fabricAPI+"routers/"+edge, servertest.Odd(`{"cost": 5, "connected": false, "roleAttributes": ["public"], "zzzz": 1}`)).Want(200); got.Header.Get("net-ignored") != `"zzzz"` {
		t.Errorf("of a change of an edge router is ignored: %s", got.Header.Get("net-ignored"))
	}
	admin.Put(fabricAPI+"routers/"+edge, M{"name": "edge two", "fingerprint": "", "cost": 6, "noTraversal": true}).Want(200)
	admin.Patch(fabricAPI+"routers/"+edge, M{"fingerprint": print1}).Fails(400, "COULD_NOT_VALIDATE", "fingerprint")
	if got := admin.Get(management + "edge-routers/" + edge).Want(200).Data(); got["name"] != "edge two" || got["cost"] != 6.0 || got["noTraversal"] != true ||
		got["isTunnelerEnabled"] != true || fmt.Sprint(got["roleAttributes"]) != "[public]" {
		t.Errorf("the edge router: %v", got)
	}

	service := admin.Post(fabricAPI+"services", M{"name": "wiki", "tags": M{"of": "ann"}}).Want(201).ID()
	if got := admin.Get(management + "services/" + service).Want(200).Data(); got["encryptionRequired"] != true || got["terminatorStrategy"] != "smartrouting" {
		t.Errorf("the service: %v", got)
	}
	admin.Patch(management+"services/"+service, M{"roleAttributes": []string{"office"}}).Want(200)
	admin.Put(fabricAPI+"services/"+service, M{"name": "wiki two", "terminatorStrategy": "random"}).Want(200)
	admin.Patch(fabricAPI+"services/"+service, M{"tags": M{"of": "bob"}}).Want(200)
	admin.Put(fabricAPI+"services/"+service, M{"terminatorStrategy": "random"}).Fails(400, "COULD_NOT_VALIDATE", "name")
	if got := admin.Get(management + "services/" + service).Want(200).Data(); got["name"] != "wiki two" || got["terminatorStrategy"] != "random" ||
		fmt.Sprint(got["roleAttributes"]) != "[office]" || got["tags"].(M)["of"] != "bob" {
		t.Errorf("the changed service: %v", got)
	}
	writeTerminators(t, admin, service, edge)
	admin.Delete(fabricAPI + "services/" + service).Want(200)
	admin.Delete(fabricAPI + "routers/" + edge).Want(200)
	admin.Get(management + "edge-routers/" + edge).Want(404)
}

// writeTerminators makes a terminator, changes it and takes it away.
func writeTerminators(t *testing.T, admin *servertest.Client, service, router string) {
	t.Helper()
	made := admin.Post(fabricAPI+"terminators", M{
		"service": service, "router": router, "binding": "transport", "address": "tcp:127.0.0.1:1", "instanceId": "left", "instanceSecret": "c2VjcmV0", "cost": 3, "precedence": "required",
	}).Want(201)
	if ignored := made.Header.Get("net-ignored"); ignored != "" {
		t.Errorf("of a terminator was ignored: %s", ignored)
	}
	id := made.ID()
	admin.Patch(fabricAPI+"terminators/"+id, M{"cost": 4, "hostId": ""}).Want(200)
	if got := admin.Get(fabricAPI + "terminators/" + id).Want(200).Data(); got["instanceId"] != "left" || got["cost"] != 4.0 || got["precedence"] != "required" {
		t.Errorf("the terminator: %v", got)
	}
	admin.Post(fabricAPI+"terminators", M{"service": service, "router": router, "address": "tcp:127.0.0.1:1", "binding": "transport", "hostId": "somebody"}).Fails(400, "COULD_NOT_VALIDATE", "hostId")
	admin.Patch(fabricAPI+"terminators/"+id, M{"hostId": "somebody"}).Fails(400, "COULD_NOT_VALIDATE", "hostId")
	for path, want := range map[string]int{"services/" + service: 1, "routers/" + router: 1, "routers/transit-1": 0} {
		if got := admin.Get(fabricAPI + path + "/terminators").Want(200).List(); len(got) != want {
			t.Errorf("the terminators of %s: %v", path, got)
		}
	}
	admin.Get(fabricAPI + "services/nope/terminators").Want(404)
	admin.Delete(fabricAPI + "terminators/" + id).Want(200)
}

// TestFabricWriters has those write here who may in the Management API, and nobody name
// a certificate who may not see an invitation.
func TestFabricWriters(t *testing.T) {
	s := servertest.Start(t)
	admin := s.Admin(t)
	role := admin.Post(management+"admin-roles", M{"name": "routers", "allows": []string{"router:read", "router:create", "router:update"}}).Want(201).ID()
	user := s.AddUser(t, false)
	somebody := s.Login(t, user.Username, user.Password)
	who := somebody.Get(client + "current-identity").Want(200).ID()
	admin.Post(management+"role-bindings", M{"name": "them", "roleId": role, "semantic": "AnyOf", "identityRoles": []string{"@" + who}}).Want(201)
	somebody = s.Login(t, user.Username, user.Password)
	id := somebody.Post(fabricAPI+"routers", M{"name": "mine", "cost": 0, "noTraversal": false}).Want(201).ID()
	print := strings.Repeat("ab", 20)
	somebody.Post(fabricAPI+"routers", M{"name": "theirs", "fingerprint": print}).Want(401)
	somebody.Patch(fabricAPI+"routers/"+id, M{"fingerprint": print}).Want(401)
	edge := admin.Post(management+"edge-routers", M{"name": "edge"}).Want(201).ID()
	somebody.Patch(fabricAPI+"routers/"+edge, M{"cost": 5}).Want(401)
	somebody.Patch(fabricAPI+"routers/"+id, M{"cost": 5}).Want(200)
	somebody.Delete(fabricAPI + "routers/" + id).Want(401)
	somebody.Post(fabricAPI+"services", M{"name": "x"}).Want(401)
	somebody.Post(fabricAPI+"database/snapshot", M{"path": ""}).Want(401)
	somebody.Delete(fabricAPI + "links/x").Want(401)
}

// TestFabricLinkWrites has circuits take another way when a link is set down or made
// dear, and routers close one that is ended.
func TestFabricLinkWrites(t *testing.T) {
	s := servertest.Start(t)
	m := addMesh(t, s, "ab", "bd", "ac", "cd")
	m.measure("a", "ac", 5)
	admin := s.Admin(t)
	m.hostOn(t, m.routers["d"], "terminator1")
	id, _, err := m.dialOn(t, m.routers["a"])
	must(t, err)
	m.carries("b", id, "ab", "bd")
	at := func(link string) string { return fabricAPI + "links/" + m.id(link) }

	admin.Patch(at("bd"), M{"down": true}).Want(200)
	m.carries("c", id, "ac", "cd")
	if link := admin.Get(at("bd")).Want(200).Data(); link["down"] != true || link["state"] != "Connected" || link["staticCost"] != 1.0 {
		t.Errorf("the link that is down: %v", link)
	}
	m.measure("b", "bd", 1) // which does not bring it back
	admin.Patch(at("cd"), M{"staticCost": 1000}).Want(200)
	admin.Patch(at("bd"), M{"down": false, "staticCost": 2}).Want(200)
	again, _, err := m.dialOn(t, m.routers["a"])
	must(t, err)
	m.carries("b", again, "ab", "bd")
	if link := admin.Get(at("cd")).Want(200).Data(); link["cost"] != 1002.0 || link["down"] != false {
		t.Errorf("the dear link: %v", link)
	}
	admin.Do(http.MethodDelete, at("bd"), M{"immediate": false}).Want(200)
	for _, end := range []string{"b", "d"} {
		await(t, m.routers[end], "the link is closed", func(k scripted.Known) bool { _, there := k.Links[m.id("bd")]; return !there })
	}
	admin.Get(at("bd")).Want(404)
	m.carries("c", again, "ac", "cd")
	admin.Patch(at("bd"), M{"down": true}).Want(404)
	admin.Delete(at("bd")).Want(404)
	admin.Patch(at("cd"), M{"staticCost": -1}).Fails(400, "COULD_NOT_VALIDATE", "staticCost")
	var noted []string
	servertest.Eventually(t, soon, "the audit log tells of it", func() bool {
		noted = nil
		for _, e := range admin.Get(management + "audit-entries?filter=targetKind%3D%22link%22").Want(200).List() {
			noted = append(noted, fmt.Sprint(e["event"]))
		}
		return strings.Contains(strings.Join(noted, " "), "link-changed") && strings.Contains(strings.Join(noted, " "), "link-ended")
	})
}

// TestFabricSnapshot takes a copy of everything, and refuses to write it elsewhere.
func TestFabricSnapshot(t *testing.T) {
	s := servertest.Start(t)
	admin := s.Admin(t)
	admin.Post(fabricAPI+"database/snapshot", M{"path": "/elsewhere"}).Fails(400, "COULD_NOT_VALIDATE", "path")
	if made := admin.Post(fabricAPI+"database/snapshot", M{"path": ""}).Want(200).Data(); made["path"] == "" {
		t.Errorf("the snapshot: %v", made)
	}
	admin.Post(fabricAPI+"database/check-data-integrity", nil).Want(202)
	admin.Get(fabricAPI + "database/data-integrity-results").Want(200)
}
