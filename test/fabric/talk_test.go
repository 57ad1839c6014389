package fabric

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"netkeep.internal/internal/wire"
	"netkeep.internal/internal/wire/message"
	"netkeep.internal/test/scripted"
	"netkeep.internal/test/servertest"
)

// talk is a websocket as public tools have it.
type talk struct {
	*websocket.Conn
	t   *testing.T
	seq int32
}

// dialTalk opens one, or returns the status of the answer.
func dialTalk(t *testing.T, s *servertest.Server, token string, header ...string) (*talk, int) {
	t.Helper()
	dialer := websocket.Dialer{TLSClientConfig: s.TLS(), HandshakeTimeout: soon}
	h := http.Header{"Zt-Session": {token}}
	for i := 0; i < len(header); i += 2 {
		h.Set(header[i], header[i+1])
	}
	conn, resp, err := dialer.Dial(strings.Replace(s.URL, "https", "wss", 1)+fabricAPI+"ws-api", h)
	if err != nil {
		if resp == nil {
			t.Fatal(err)
		}
		return nil, resp.StatusCode
	}
	t.Cleanup(func() { _ = conn.Close() })
	return &talk{Conn: conn, t: t}, resp.StatusCode
}

// say sends a frame.
func (w *talk) say(typ int32, body []byte) {
	w.t.Helper()
	w.seq++
	must(w.t, w.WriteMessage(websocket.BinaryMessage, (&wire.Frame{Type: typ, Seq: w.seq, Headers: wire.Headers{}, Body: body}).Append(nil)))
}

// hear waits for the next frame.
func (w *talk) hear() *wire.Frame {
	w.t.Helper()
	_ = w.SetReadDeadline(time.Now().Add(soon))
	_, text, err := w.ReadMessage()
	must(w.t, err)
	f, err := wire.Read(bytes.NewReader(text), wire.Bounds{Headers: 1 << 20, Body: 1 << 24})
	must(w.t, err)
	return f
}

// reply waits for the answer to the last frame, which comes before anything else.
func (w *talk) reply(typ int32) *wire.Frame {
	w.t.Helper()
	f := w.hear()
	if n, _ := f.Headers.Uint32(message.HeaderReplyFor); f.Type != typ || int32(n) != w.seq {
		w.t.Fatalf("the answer is a frame of type %d for %d: %s", f.Type, n, f.Body)
	}
	return f
}

// subscribe asks for events.
func (w *talk) subscribe(request string) (said string, ok bool) {
	w.t.Helper()
	w.say(message.TypeStreamEvents, []byte(request))
	f := w.reply(message.TypeResult)
	return string(f.Body), f.Headers.Bool(message.HeaderSuccess)
}

// event waits for the next event.
func (w *talk) event(namespace, typ string) M {
	w.t.Helper()
	f := w.hear()
	var e M
	must(w.t, json.Unmarshal(f.Body, &e))
	if f.Type != message.TypeEvent || e["namespace"] != namespace || typ != "" && e["event_type"] != typ {
		w.t.Fatalf("told %s, want %s %s", f.Body, namespace, typ)
	}
	if e["timestamp"] == nil || e["event_src_id"] == "" {
		w.t.Errorf("nobody says when and where: %s", f.Body)
	}
	return e
}

// TestTalkEvents tells tools of what happens, in the shapes that they know.
func TestTalkEvents(t *testing.T) {
	s := servertest.Start(t)
	r, n := addRouter(t, s), addNetwork(t, s)
	w, _ := dialTalk(t, s, s.Admin(t).Token)
	for _, request := range []string{"{", `{"format": "xml"}`, `{"subscriptions": [{"type": "nope"}]}`, `{"subscriptions": [{"type": "usage", "options": {"version": 4}}]}`} {
		if said, ok := w.subscribe(request); ok {
			t.Errorf("%s is answered with success: %s", request, said)
		}
	}
	said, ok := w.subscribe(`{"format": "json", "subscriptions": [{"type": "circuit"}, {"type": "router"}, {"type": "alert"}, {"type": "fabric.usage", "options": {"version": 3}}]}`)
	if !ok || !strings.Contains(said, "alert") {
		t.Errorf("the answer is %q, %v", said, ok)
	}
	c := r.Connect(t, func(o *scripted.Options) {
		o.Route = func(*message.Route) (wire.Headers, error) { return nil, nil }
	})
	if e := w.event("router", "router-online"); e["router_id"] != r.ID || e["router_online"] != true {
		t.Errorf("told %v", e)
	}
	n.hostOn(t, c, "terminator1")
	id, _, err := n.dialOn(t, c)
	must(t, err)
	e := w.event("circuit", "created")
	if e["circuit_id"] != id || e["service_id"] != n.service || e["client_id"] != n.dialUser.ID || fmt.Sprint(e["path"].(M)["nodes"]) != "["+r.ID+"]" || e["version"] != 2.0 ||
		e["terminator_id"] != "terminator1" || e["creation_timespan"] == nil || e["tags"].(M)["serviceId"] != n.service {
		t.Errorf("told %v", e)
	}
	must(t, c.Send(&wire.Frame{Type: message.TypeMetrics, Body: message.Marshal(&message.Metrics{Usage: []message.Usage{{
		Start: 1000, Length: 60, Buckets: map[string]message.CircuitUsage{id: {Bytes: map[string]uint64{"ingress.rx": 7}}, "nope": {Bytes: map[string]uint64{"ingress.rx": 7}}},
	}}})}))
	e = w.event("fabric.usage", "")
	if e["circuit_id"] != id || e["source_id"] != r.ID || e["version"] != 3.0 || e["usage"].(M)["ingress.rx"] != 7.0 || e["interval_start_utc"] != 1000.0 ||
		e["interval_length"] != 60.0 || e["tags"].(M)["serviceId"] != n.service {
		t.Errorf("told %v", e)
	}
	must(t, c.Send(&wire.Frame{Type: message.TypeFault, Body: message.Marshal(&message.Fault{Subject: message.FaultEgress, ID: id})}))
	if e := w.event("circuit", "deleted"); e["duration"] == nil {
		t.Errorf("told %v", e)
	}
	hosts := listening(t, s, "terminator", "{}")
	n.hostOn(t, c, "terminator2")
	if e := hosts.event("terminator", "created"); e["total_terminators"] != 2.0 || e["usable_default_terminators"] != 2.0 || e["usable_required_terminators"] != 0.0 {
		t.Errorf("told %v", e)
	}
	c.Close()
	w.event("router", "router-offline")

	other, _ := dialTalk(t, s, s.Admin(t).Token)
	if said, ok := other.subscribe(`{"subscriptions": [{"type": "entityChange"}, {"type": "entityCount"}]}`); !ok {
		t.Fatal(said)
	}
	if counts := other.event("entityCount", "")["counts"].(M); counts["services"] != 1.0 || counts["routers.edge"] != 1.0 || counts["serviceEdgeRouterPolicies"] == nil || counts["service-policies"] != nil {
		t.Errorf("told %v", counts)
	}
	id = s.Admin(t).Post(management+"services", M{"name": "new", "encryptionRequired": true}).Want(201).ID()
	for {
		e := other.event("entityChange", "")
		if e["eventType"] == "created" && e["entityType"] == "services" {
			if _, said := e["initialState"]; e["finalState"].(M)["id"] != id || e["initialState"] != nil || !said || e["metadata"].(M)["version"] == 1.0 {
				t.Errorf("told %v", e)
			}
			if stored := other.event("entityChange", ""); stored["eventType"] != "committed" || stored["eventId"] != e["eventId"] || e["eventId"] == id {
				t.Errorf("told %v that %v is stored", stored, e)
			}
			break
		}
	}
}

// TestTalkChecks compares what routers say with what is known.
func TestTalkChecks(t *testing.T) {
	s := servertest.Start(t)
	m := addMesh(t, s, "ab")
	m.hostOn(t, m.routers["b"], "terminator1")
	id, _, err := m.dialOn(t, m.routers["a"])
	must(t, err)
	m.carries("a", id, "", "ab")
	w, _ := dialTalk(t, s, s.Admin(t).Token)
	only := `id = "` + m.records["a"].ID + `"`
	check := func(typ int32, filter string) *message.Checking {
		t.Helper()
		w.say(typ, message.Marshal(&message.Check{Filter: filter}))
		said, err := message.Unmarshal[message.Checking](w.reply(typ + 1).Body)
		must(t, err)
		return said
	}
	if said := check(message.TypeCheckTerminators, `service.name = "nope"`); !said.Success || said.Count != 0 {
		t.Fatalf("the check of no terminators: %+v", said)
	}
	if said := check(message.TypeCheckTerminators, ""); !said.Success || said.Count != 1 {
		t.Fatalf("the check of terminators: %+v", said)
	}
	host, err := message.Unmarshal[message.CheckedTerminator](w.hear().Body)
	must(t, err)
	if host.ID != "terminator1" || host.State != message.TerminatorValid || host.RouterID != m.records["b"].ID || host.ServiceID != m.service {
		t.Errorf("the terminator: %+v", host)
	}
	if said := check(message.TypeCheckLinks, only); !said.Success || said.Count != 1 {
		t.Fatalf("the check of links: %+v", said)
	}
	links, err := message.Unmarshal[message.CheckedLinks](w.hear().Body)
	must(t, err)
	if !links.Success || links.RouterID != m.records["a"].ID || len(links.Links) != 1 || links.Links[0].ID != m.id("ab") || !links.Links[0].Valid {
		t.Errorf("the links: %+v", links)
	}
	if said := check(message.TypeCheckCircuits, only); !said.Success || said.Count != 1 {
		t.Fatalf("the check of circuits: %+v", said)
	}
	circuits, err := message.Unmarshal[message.CheckedCircuits](w.hear().Body)
	must(t, err)
	if one := circuits.Circuits[id]; !circuits.Success || len(circuits.Circuits) != 1 || one.ID != id || one.NotForwarded || one.NotAtController {
		t.Errorf("the circuits: %+v", circuits)
	}
	if said := check(message.TypeCheckSDKTerminators, `id = "`+m.records["b"].ID+`"`); !said.Success || said.Count != 1 {
		t.Fatalf("the check of hosts: %+v", said)
	}
	hosts, err := message.Unmarshal[message.CheckedHosts](w.hear().Body)
	must(t, err)
	if !hosts.Success || len(hosts.Hosts) != 1 || !hosts.Hosts[0].Valid {
		t.Errorf("the hosts: %+v", hosts)
	}
	check(message.TypeCheckConnections, only)
	connections, err := message.Unmarshal[message.CheckedComponent](w.hear().Body)
	must(t, err)
	if connections.Success || len(connections.Errors) != 1 { // which this router does not tell
		t.Errorf("the connections: %+v", connections)
	}
	check(message.TypeCheckDataModel, only)
	told, err := message.Unmarshal[message.CheckedComponent](w.hear().Body)
	must(t, err)
	if !told.Success || told.Type != "router" || told.ID != m.records["a"].ID || len(told.Errors) > 0 { // it was told nothing
		t.Errorf("the data model: %+v", told)
	}
	if said := check(message.TypeCheckDialers, ""); !said.Success || said.Count != 0 {
		t.Errorf("the check of dialers: %+v", said)
	}
	if said := check(message.TypeCheckLinks, "nope ="); said.Success || said.Message == "" {
		t.Errorf("a filter that is none: %+v", said)
	}
}

// TestTalkModel finds what a router knows otherwise than it was told, and mends it.
func TestTalkModel(t *testing.T) {
	s := servertest.Start(t)
	h := addHosting(t, s)
	r := h.router.Connect(t, grouped)
	subscribe(t, r, message.SubscribeToDataModel{Seconds: 300})
	knows := func(k scripted.Known) bool { return len(k.Model.Usable(h.router.ID, message.PolicyBind)) == 1 }
	await(t, r, "what it may host", knows)
	w, _ := dialTalk(t, s, s.Admin(t).Token)
	check := func(mend bool) *message.CheckedComponent {
		t.Helper()
		w.say(message.TypeCheckDataModel, message.Marshal(&message.CheckDataModel{Filter: `id = "` + h.router.ID + `"`, Controller: true, Fix: mend}))
		said, err := message.Unmarshal[message.Checking](w.reply(message.TypeCheckingDataModel).Body)
		must(t, err)
		if !said.Success || said.Count != 1 {
			t.Fatalf("the check is answered with %+v", said)
		}
		f := w.hear()
		found, err := message.Unmarshal[message.CheckedComponent](f.Body)
		must(t, err)
		if f.Type != message.TypeCheckedDataModel || found.Type != "router" || found.ID != h.router.ID || !found.Success {
			t.Errorf("a frame of type %d says %+v", f.Type, found)
		}
		return found
	}
	if found := check(false); len(found.Errors) > 0 {
		t.Errorf("of what it was told it finds otherwise: %q", found.Errors)
	}
	r.Misremember(func(m *scripted.Model) { delete(m.Services, h.service) })
	for _, mend := range []bool{false, true} {
		if found := check(mend); len(found.Errors) != 1 || !strings.Contains(found.Errors[0], h.service) {
			t.Errorf("of what it has forgotten it finds %q", found.Errors)
		}
	}
	if found := check(false); len(found.Errors) > 0 {
		t.Errorf("after it was mended it finds %q", found.Errors)
	}
	await(t, r, "what it may host, again", knows)
}

// TestTalkForAdmins talks to those who have the power, as long as they do, and to
// nobody who says what is none.
func TestTalkForAdmins(t *testing.T) {
	s := servertest.Start(t)
	admin := s.Admin(t)
	admin.Get(fabricAPI + "ws-api").Want(400)
	if _, status := dialTalk(t, s, "nope"); status != 401 {
		t.Errorf("a wrong token is answered with %d", status)
	}
	if _, status := dialTalk(t, s, admin.Token, "Origin", "https://elsewhere.example"); status != 400 {
		t.Errorf("another site's page is answered with %d", status)
	}
	user := s.AddUser(t, false)
	somebody := s.Login(t, user.Username, user.Password)
	if _, status := dialTalk(t, s, somebody.Token); status != 401 {
		t.Errorf("who has no power is answered with %d", status)
	}
	admin.Patch(management+"identities/"+user.ID, M{"adminRoles": []string{"viewer"}}).Want(200)
	w, status := dialTalk(t, s, s.Login(t, user.Username, user.Password).Token)
	if status != 101 {
		t.Fatalf("a viewer is answered with %d", status)
	}
	w.say(message.TypeCheckLinks, nil)
	if said, err := message.Unmarshal[message.Checking](w.reply(message.TypeCheckingLinks).Body); err != nil || said.Success || !strings.Contains(said.Message, "router:inspect") {
		t.Errorf("a viewer inspects: %+v, %v", said, err)
	}
	admin.Patch(management+"identities/"+user.ID, M{"adminRoles": []string{}}).Want(200)
	_ = w.SetReadDeadline(time.Now().Add(soon))
	if _, _, err := w.ReadMessage(); !websocket.IsCloseError(err, websocket.CloseNormalClosure) {
		t.Errorf("who is no viewer any more is told %v", err)
	}
	w, _ = dialTalk(t, s, admin.Token)
	must(t, w.WriteMessage(websocket.BinaryMessage, []byte("no frame")))
	_ = w.SetReadDeadline(time.Now().Add(soon))
	if _, _, err := w.ReadMessage(); err == nil {
		t.Error("what is no frame is answered")
	}
}
