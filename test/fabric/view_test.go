package fabric

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"testing"
	"time"

	"netkeep.internal/internal/wire"
	"netkeep.internal/internal/wire/message"
	"netkeep.internal/test/scripted"
	"netkeep.internal/test/servertest"
)

// fabricAPI is where operators look at what routers make between them.
const fabricAPI = "/fabric/v1/"

// TestFabricAPI looks at routers, links and circuits, and ends one of them.
func TestFabricAPI(t *testing.T) {
	s := servertest.Start(t)
	admin := s.Admin(t)
	for _, path := range []string{"routers", "links", "circuits", "services", "terminators"} {
		if list := admin.Get(fabricAPI + path).Want(200).List(); len(list) != 0 {
			t.Errorf("%s of a new network: %v", path, list)
		}
	}
	m := addMesh(t, s, "ab", "bc")
	m.measure("a", "ab", 3)
	m.hostOn(t, m.routers["c"], "terminator1")
	id, _, err := m.dialOn(t, m.routers["a"])
	must(t, err)

	link := admin.Get(fabricAPI + "links/" + m.id("ab")).Want(200).Data()
	for member, want := range map[string]any{
		"id": m.id("ab"), "protocol": "tls", "state": "Connected", "down": false, "cost": 5.0, "staticCost": 1.0, "iteration": 1.0,
		"sourceLatency": 3e6, "destLatency": 1e6,
	} {
		if link[member] != want {
			t.Errorf("the link's %s is %v, want %v", member, link[member], want)
		}
	}
	if got := link["connections"].([]any); len(got) != 0 {
		t.Errorf("the link consists of %v", got)
	}
	must(t, m.routers["a"].Send(&wire.Frame{Type: message.TypeLinkState, Body: message.Marshal(&message.LinkState{
		ID: m.id("ab"), Iteration: 1, Conns: message.LinkConns{Conns: []message.LinkConn{{Type: "single", Local: "tcp:127.0.0.1:1", Remote: "tcp:127.0.0.1:2"}}},
	})}))
	m.settled("a")
	got := admin.Get(fabricAPI + "links").Want(200).List()[0]["connections"].([]any)
	if want := (M{"type": "single", "source": "tcp:127.0.0.1:1", "dest": "tcp:127.0.0.1:2"}); len(got) != 1 || fmt.Sprint(got[0]) != fmt.Sprint(want) {
		t.Errorf("the link consists of %v, want %v", got, want)
	}
	if from, to := link["sourceRouter"].(M), link["destRouter"].(M); from["name"] != m.records["a"].Name || to["id"] != m.records["b"].ID {
		t.Errorf("the link is from %v to %v", from, to)
	}
	list := func(path, filter string) []M {
		t.Helper()
		return admin.Get(fabricAPI + path + "?filter=" + url.QueryEscape(filter)).Want(200).List()
	}
	if got := list("links", `destRouterId = "`+m.records["c"].ID+`"`); len(got) != 1 || got[0]["id"] != m.id("bc") {
		t.Errorf("the links to c: %v", got)
	}
	if got := list("links", "true sort by cost desc limit 1"); len(got) != 1 || got[0]["id"] != m.id("ab") {
		t.Errorf("the dearest link: %v", got)
	}
	if got := list("routers", `connected = true and not name = "`+m.records["a"].Name+`"`); len(got) != 2 {
		t.Errorf("the routers that are connected: %v", got)
	} else if at := got[0]["listenerAddresses"].([]any)[0].(M); at["address"] != "tls:127.0.0.1:6262" || got[0]["versionInfo"].(M)["version"] != "v1.6.20" {
		t.Errorf("a connected router: %v", got[0])
	}
	if got := admin.Get(fabricAPI + "terminators/terminator1").Want(200).Data(); got["hostId"] == "" || got["router"].(M)["id"] != m.records["c"].ID {
		t.Errorf("the terminator: %v", got)
	}
	for filter, want := range map[string]int{
		`router.name = "` + m.records["c"].Name + `"`: 1, `router.name = "nope"`: 0, `service.name = "nope"`: 0, `not service.name = "nope"`: 1,
	} {
		if got := list("terminators", filter); len(got) != want {
			t.Errorf("terminators with %s: %v", filter, got)
		}
	}
	m.circuit(admin, id)

	admin.Delete(fabricAPI + "circuits/nope").Want(404)
	admin.Delete(fabricAPI + "circuits/" + id).Want(200)
	for _, name := range []string{"a", "b", "c"} {
		await(t, m.routers[name], "the circuit ends everywhere", func(k scripted.Known) bool { return len(k.Circuits) == 0 })
	}
	admin.Get(fabricAPI + "circuits/" + id).Want(404)
	admin.Do(http.MethodDelete, fabricAPI+"terminators/terminator1", M{"immediate": false}).Want(200)
	admin.Get(management + "terminators/terminator1").Want(404)

	m.routers["c"].Close()
	m.offline("c")
	servertest.Eventually(t, soon, "a link to a router that is away cannot be used", func() bool {
		down := list("links", "down = true")
		return len(down) == 1 && down[0]["id"] == m.id("bc") && down[0]["state"] == "Unknown"
	})
}

// circuit checks how a circuit from a to c is shown.
func (m *mesh) circuit(admin *servertest.Client, id string) {
	t := m.t
	t.Helper()
	circuit := admin.Get(fabricAPI + "circuits/" + id).Want(200).Data()
	path := circuit["path"].(M)
	var way []any
	for i, node := range path["nodes"].([]any) {
		if i > 0 {
			way = append(way, path["links"].([]any)[i-1].(M)["id"])
		}
		way = append(way, node.(M)["name"])
	}
	if want := []any{m.records["a"].Name, m.id("ab"), m.records["b"].Name, m.id("bc"), m.records["c"].Name}; fmt.Sprint(way) != fmt.Sprint(want) {
		t.Errorf("the circuit's path is %v, want %v", way, want)
	}
	if circuit["terminator"].(M)["id"] != "terminator1" || circuit["service"].(M)["id"] != m.service || circuit["movedAt"] != nil ||
		circuit["tags"].(M)["serviceId"] != m.service || circuit["clientId"] == "" {
		t.Errorf("the circuit: %v", circuit)
	}
	for filter, want := range map[string]int{
		`serviceId = "` + m.service + `"`: 1, `serviceId = "nope"`: 0, `anyOf(routers) = "` + m.records["b"].ID + `"`: 1,
		`service = "` + m.service + `"`: 1, `service = "nope"`: 0, `terminator = "terminator1"`: 1, `terminator = "nope"`: 0,
		`anyOf(links) = "nope"`: 0, `clientId = "` + fmt.Sprint(circuit["clientId"]) + `"`: 1,
	} {
		if got := admin.Get(fabricAPI + "circuits?filter=" + url.QueryEscape(filter)).Want(200).List(); len(got) != want {
			t.Errorf("circuits with %s: %v", filter, got)
		}
	}
}

// TestFabricForAdmins keeps the Fabric API from everybody else.
func TestFabricForAdmins(t *testing.T) {
	s := servertest.Start(t)
	user := s.AddUser(t, false)
	somebody := s.Login(t, user.Username, user.Password)
	for name, op := range s.Operations("/fabric/v1") {
		if want := op.Tags[0] != "informational"; want != (op.Extensions["x-access"] == "admin") {
			t.Errorf("%s is for %v", name, op.Extensions["x-access"])
		}
	}
	for _, path := range []string{"routers", "links", "links/x", "circuits", "circuits/x", "services", "terminators", "paths/x/y"} {
		somebody.Get(fabricAPI + path).Want(401)
		s.Nobody(t).Get(fabricAPI + path).Want(401)
	}
	somebody.Post(fabricAPI+"inspections", M{"appRegex": ".*", "requestedValues": []string{"links"}}).Want(401)
	somebody.Delete(fabricAPI + "circuits/x").Want(401)
	s.Nobody(t).Get(fabricAPI + "version").Want(200)
}

// TestInspect asks routers what they know.
func TestInspect(t *testing.T) {
	s := servertest.Start(t)
	m := addMesh(t, s, "ab")
	admin := s.Admin(t)
	ask := func(regex string, names ...string) M {
		t.Helper()
		return admin.Post(fabricAPI+"inspections", M{"appRegex": regex, "requestedValues": names}).Want(200).JSON.(M)
	}
	said := ask(".*", "links", "connected-routers", "nobody knows this")
	from := map[any]M{}
	for _, v := range said["values"].([]any) {
		from[fmt.Sprint(v.(M)["appId"], " ", v.(M)["name"])] = v.(M)
	}
	// Both routers of their links, the controller of links and routers.
	if said["success"] != true || len(said["errors"].([]any)) != 0 || len(from) != 4 {
		t.Fatalf("everybody says: %v", said)
	}
	own := from[m.records["a"].ID+" links"]["value"].(M)["links"].([]any)
	if len(own) != 1 || own[0].(M)["dest"] != m.records["b"].ID {
		t.Errorf("a says of its links: %v", own)
	}
	if one := ask("^"+m.records["b"].Name+"$", "links")["values"].([]any); len(one) != 1 || one[0].(M)["appId"] != m.records["b"].ID {
		t.Errorf("b alone says: %v", one)
	}
	for _, body := range []M{
		{"appRegex": "(", "requestedValues": []string{"links"}}, {"appRegex": ".*", "requestedValues": []string{}},
		{"appRegex": ".*", "requestedValues": []string{""}}, {"requestedValues": []string{"links"}},
	} {
		admin.Post(fabricAPI+"inspections", body).Want(400)
	}
}

// TestTracePath says which way traffic would take, and why none.
func TestTracePath(t *testing.T) {
	s := servertest.Start(t)
	m := addMesh(t, s, "ab", "bc")
	admin := s.Admin(t)
	who := m.dialer.Get(client + "current-identity").Want(200).ID()
	way := func() (paths, from M) {
		t.Helper()
		paths = admin.Get(fabricAPI + "paths/" + who + "/" + m.service).Want(200).Data()
		for _, w := range paths["ways"].([]any) {
			if w.(M)["routerId"] == m.records["a"].ID {
				from = w.(M)
			}
		}
		if from == nil {
			t.Fatalf("there is no way from a: %v", paths)
		}
		return paths, from
	}
	if paths, from := way(); paths["allowed"] != false || len(paths["missing"].([]any)) == 0 || from["problem"] == nil || from["hosts"] != 0.0 {
		t.Errorf("a service that nobody hosts: %v", paths)
	}
	m.hostOn(t, m.routers["c"], "terminator1")
	paths, from := way()
	hops := from["hops"].([]any)
	if paths["allowed"] != true || from["problem"] != nil || from["terminatorId"] != "terminator1" || len(hops) != 3 {
		t.Fatalf("the way from a: %v", paths)
	}
	if hops[0].(M)["linkId"] != nil || hops[2].(M)["linkId"] != m.id("bc") || hops[2].(M)["sourceLatency"] != float64(time.Millisecond) {
		t.Errorf("the hops: %v", hops)
	}
	m.fault("b", "bc")
	if _, from := way(); from["problem"] == nil || from["terminatorId"] != nil || len(from["hops"].([]any)) != 0 {
		t.Errorf("without a path: %v", from)
	}
	m.routers["a"].Close()
	m.offline("a")
	if _, from := way(); from["isOnline"] != false || from["problem"] == nil {
		t.Errorf("from a router that is away: %v", from)
	}
	admin.Get(fabricAPI + "paths/nope/" + m.service).Want(404)
	admin.Get(fabricAPI + "paths/" + who + "/nope").Want(404)
}

// TestConnectEvents shows who is connected to an edge router, as it says.
func TestConnectEvents(t *testing.T) {
	s := servertest.Start(t)
	r, n := addRouter(t, s), addNetwork(t, s)
	c := r.Connect(t)
	who := n.dialer.Get(client + "current-identity").Want(200).ID()
	is := func(connected bool) {
		t.Helper()
		servertest.Eventually(t, soon, fmt.Sprintf("it is connected: %v", connected), func() bool {
			return s.Admin(t).Get(management + "identities/" + who).Want(200).Data()["hasEdgeRouterConnection"] == connected
		})
	}
	say := func(full, connected bool, ids ...string) {
		t.Helper()
		m := &message.ConnectEvents{Full: full}
		for _, id := range ids {
			m.Events = append(m.Events, message.ConnectEvent{IdentityID: id, Connected: connected})
		}
		must(t, c.Send(&wire.Frame{Type: message.TypeConnectEvents, Body: message.Marshal(m)}))
	}
	is(false)
	say(false, true, who)
	is(true)
	say(false, false, who)
	is(false)
	say(true, true, who)
	is(true)
	say(true, true) // all, and nobody is
	is(false)
	say(false, true, who)
	is(true)
	c.Close() // who it carries is not known any more
	is(false)
	// Those who may not use it cannot be connected to it, whatever it says.
	for _, p := range s.Admin(t).Get(management + "edge-router-policies").Want(200).List() {
		s.Admin(t).Delete(management + "edge-router-policies/" + p["id"].(string)).Want(200)
	}
	c = r.Connect(t)
	say(true, true, who)
	ctx, cancel := context.WithTimeout(t.Context(), soon)
	defer cancel()
	_, err := c.Request(ctx, &wire.Frame{Type: message.TypePing})
	must(t, err)
	is(false)
}
