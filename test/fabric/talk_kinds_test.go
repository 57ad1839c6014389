package fabric

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"netkeep.internal/internal/wire"
	"netkeep.internal/internal/wire/message"
	"netkeep.internal/test/scripted"
	"netkeep.internal/test/servertest"
)

// until waits for an event that is as wanted, and passes others over.
func (w *talk) until(what string, wanted func(e M) bool) M {
	w.t.Helper()
	for {
		f := w.hear()
		var e M
		must(w.t, json.Unmarshal(f.Body, &e))
		if e["event_src_id"] == "" || e["timestamp"] == nil {
			w.t.Errorf("nobody says when and where: %s", f.Body)
		}
		if wanted(e) {
			return e
		}
		if e["namespace"] == "missed" {
			w.t.Fatalf("%s: told %s", what, f.Body)
		}
	}
}

// listening subscribes to one type of events.
func listening(t *testing.T, s *servertest.Server, typ, options string) *talk {
	t.Helper()
	w, status := dialTalk(t, s, s.Admin(t).Token)
	if status != 101 {
		t.Fatalf("the websocket is answered with %d", status)
	}
	if said, ok := w.subscribe(`{"format": "json", "subscriptions": [{"type": "` + typ + `", "options": ` + options + `}]}`); !ok || strings.Contains(said, "except") {
		t.Fatalf("%s is answered with %q, %v", typ, said, ok)
	}
	return w
}

// members fails the test unless an event has these members and no others.
func (e eventOf) members(t *testing.T, names ...string) {
	t.Helper()
	names = append(names, "namespace", "event_src_id", "timestamp")
	for _, name := range names {
		if _, there := e[name]; !there {
			t.Errorf("%v has no %s", M(e), name)
		}
	}
	if len(e) != len(names) {
		t.Errorf("%v has others than %q", M(e), names)
	}
}

type eventOf M

// TestTalkLogins tells of who authenticates and who tries, and does not tell the name
// that somebody typed.
func TestTalkLogins(t *testing.T) {
	s := servertest.Start(t)
	u := s.AddUser(t, false)
	w, failed := listening(t, s, "edge.authentications", "{}"), listening(t, s, "authentication", `{"include": ["fail"]}`)
	s.Login(t, u.Username, u.Password)
	e := w.event("authentication", "success")
	eventOf(e).members(t, "event_type", "type", "authenticator_id", "external_jwt_signer_id", "identity_id", "auth_policy_id", "remote_address", "success", "reason")
	if e["identity_id"] != u.ID || e["type"] != "password" || e["authenticator_id"] == "" || e["auth_policy_id"] != "default" || e["remote_address"] != "127.0.0.1" || e["success"] != true || e["reason"] != "" {
		t.Errorf("told %v", e)
	}
	guess := func(name string) {
		s.Nobody(t).Post(client+"authenticate?method=password", M{"username": name, "password": "not-the-one-7QX"}).Want(401)
	}
	guess(u.Username)
	for _, one := range []*talk{w, failed} {
		if e := one.event("authentication", "fail"); e["identity_id"] != u.ID || e["success"] != false || e["reason"] == "" {
			t.Errorf("told %v", e)
		}
	}
	guess("a-secret-typed-in-its-place")
	e = w.event("authentication", "fail")
	if text := fmt.Sprint(e); e["identity_id"] != "" || strings.Contains(text, "secret") {
		t.Errorf("told %v", e)
	}
	w.say(message.TypeStreamEvents, []byte(`{"subscriptions": [{"type": "authentication", "options": {"include": ["all"]}}]}`))
	if f := w.reply(message.TypeResult); f.Headers.Bool(message.HeaderSuccess) {
		t.Errorf("what is no outcome is answered with %s", f.Body)
	}
}

// TestTalkClients tells of identities that come to routers and go, and of who connects to
// whom.
func TestTalkClients(t *testing.T) {
	s := servertest.Start(t)
	r, n := addRouter(t, s), addNetwork(t, s)
	w, connections := listening(t, s, "sdk", "{}"), listening(t, s, "connect", "{}")
	c := r.Connect(t)
	between := func(from, to string) M {
		return connections.until("from "+from+" to "+to, func(e M) bool {
			if e["dst_addr"] == "" { // a stream that is judged again is no connection
				t.Errorf("told %v", e)
			}
			return e["src_id"] == from && e["dst_id"] == to
		})
	}
	e := connections.until("the router's", func(e M) bool { return e["src_type"] == "router" })
	eventOf(e).members(t, "src_type", "src_id", "src_addr", "dst_type", "dst_id", "dst_addr")
	if e["src_id"] != r.ID || e["dst_type"] != "ctrl" || e["dst_id"] != e["event_src_id"] || !strings.HasPrefix(e["src_addr"].(string), "127.0.0.1:") || !strings.HasPrefix(e["dst_addr"].(string), "127.0.0.1:") {
		t.Errorf("told %v", e)
	}
	n.dialer.For(t).Get(client + "services").Want(200)
	if e := between(n.dialUser.ID, e["dst_id"].(string)); e["src_type"] != "identity" || e["dst_type"] != "ctrl" {
		t.Errorf("told %v", e)
	}
	at := time.Now().Add(-time.Minute).Truncate(time.Second)
	name := func(full bool, events ...message.ConnectEvent) {
		t.Helper()
		must(t, c.Send(&wire.Frame{Type: message.TypeConnectEvents, Body: message.Marshal(&message.ConnectEvents{Full: full, Events: events})}))
	}
	is := func(id, typ string) {
		t.Helper()
		e := w.event("sdk", typ)
		eventOf(e).members(t, "event_type", "identity_id")
		if e["identity_id"] != id {
			t.Errorf("told %v, want one of %s", e, id)
		}
	}
	there := message.ConnectEvent{IdentityID: n.dialUser.ID, Connected: true, Times: []message.ConnectTime{{At: at.UnixMilli(), Source: "192.0.2.7:4711", Destination: "192.0.2.8:3022"}}}
	name(true, there, message.ConnectEvent{IdentityID: "nobody", Connected: true, Times: there.Times})
	is(n.dialUser.ID, "sdk-online")
	if e := between(n.dialUser.ID, r.ID); e["src_addr"] != "192.0.2.7:4711" || e["dst_addr"] != "192.0.2.8:3022" || e["dst_type"] != "router" || e["timestamp"] != at.UTC().Format(time.RFC3339) {
		t.Errorf("told %v", e)
	}
	name(false, message.ConnectEvent{IdentityID: n.dialUser.ID, Connected: true})
	name(false, message.ConnectEvent{IdentityID: n.dialUser.ID})
	is(n.dialUser.ID, "sdk-offline")
	name(false, there, message.ConnectEvent{IdentityID: n.hostUser.ID, Connected: true})
	for range 2 {
		w.event("sdk", "sdk-online")
	}
	c.Close() // who is connected to it is not known any more
	for range 2 {
		w.event("sdk", "sdk-status-unknown")
	}
	c = r.Connect(t)
	name(true, message.ConnectEvent{IdentityID: n.hostUser.ID, Connected: true})
	got := map[any]any{}
	for range 2 {
		e := w.event("sdk", "")
		got[e["identity_id"]] = e["event_type"]
	}
	if got[n.hostUser.ID] != "sdk-online" || got[n.dialUser.ID] != "sdk-offline" {
		t.Errorf("after the router is back: %v", got)
	}
}

// TestTalkDials tells what became of dials, counted by interval.
func TestTalkDials(t *testing.T) {
	s := servertest.Start(t)
	r, n := addRouter(t, s), addNetwork(t, s)
	code := make(chan message.RouteError, 8)
	c := r.Connect(t, func(o *scripted.Options) {
		o.Route = func(*message.Route) (wire.Headers, error) {
			select {
			case why := <-code:
				return wire.Headers{message.HeaderRouteErrorCode: {byte(why)}}, errors.New("no")
			default:
				return nil, nil
			}
		}
	})
	w, older := listening(t, s, "service", `{"interval": "1s"}`), listening(t, s, "services", `{"interval": "10ms"}`)
	dial := func(works bool) {
		t.Helper()
		if _, _, err := n.dialOn(t, c); (err == nil) != works {
			t.Fatalf("the dial: %v", err)
		}
	}
	counted := func(typ, host string) M {
		t.Helper()
		return w.until(typ, func(e M) bool { return e["event_type"] == typ && e["terminator_id"] == host })
	}
	dial(false)
	e := counted("service.dial.error_other", "")
	eventOf(e).members(t, "version", "event_type", "service_id", "terminator_id", "count", "interval_start_utc", "interval_length")
	if e["service_id"] != n.service || e["namespace"] != "service" || e["version"] != 2.0 || e["count"] != 1.0 || e["interval_length"] != 1.0 || time.Since(time.Unix(int64(e["interval_start_utc"].(float64)), 0)) > soon {
		t.Errorf("told %v", e)
	}
	older.event("service.events", "service.dial.error_other")
	n.hostOn(t, c, "terminator1")
	dial(true)
	counted("service.dial.success", "terminator1")
	code <- message.RouteRefused
	dial(false)
	counted("service.dial.fail", "terminator1")
	counted("service.dial.terminator.connection_refused", "terminator1")
	code <- message.RouteInvalidTerminator
	dial(false)
	counted("service.dial.fail", "terminator1")
	counted("service.dial.terminator.invalid", "terminator1")
}

// TestTalkFigures tells what was measured here and what routers have measured, of that
// what is asked for.
func TestTalkFigures(t *testing.T) {
	s := servertest.Start(t)
	m := addMesh(t, s, "ab")
	w := listening(t, s, "metrics", "{}")
	e := w.until("its own", func(e M) bool { return e["metric"] == "netkeep_routers_online" })
	eventOf(e).members(t, "metric_type", "source_id", "version", "metric", "metrics", "source_event_id")
	if e["namespace"] != "metrics" || e["version"] != 3.0 || e["source_id"] != e["event_src_id"] || e["metric_type"] != "floatValue" || fmt.Sprint(e["metrics"]) != "map[value:2]" {
		t.Errorf("told %v", e)
	}
	only := listening(t, s, "metrics", `{"sourceFilter": "`+m.records["a"].ID+`", "metricFilter": "link.*latency.*p99$"}`)
	link := m.id("ab")
	must(t, m.routers["a"].Send(&wire.Frame{Type: message.TypeMetrics, Body: message.Marshal(&message.Measured{
		Ints: map[string]int64{"xgress.active": 3}, Meters: map[string]message.Meter{"link." + link + ".tx.bytesrate": {Count: 7, Rate1: 0.5}},
		Histograms: map[string]message.Spread{"link." + link + ".latency": {Count: 2, P99: 5}}, Timers: map[string]message.Timer{"xgress.ack": {Count: 9, Rate15: 1, P50: 2}},
	})}))
	of := func(name string) M {
		return w.until(name, func(e M) bool { return e["metric"] == name && e["source_id"] == m.records["a"].ID })
	}
	if e := of("xgress.active"); e["metric_type"] != "intValue" || fmt.Sprint(e["metrics"]) != "map[value:3]" {
		t.Errorf("told %v", e)
	}
	e = of("link.tx.bytesrate")
	if e["metric_type"] != "meter" || e["source_entity_id"] != link || fmt.Sprint(e["metrics"]) != "map[count:7 m15_rate:0 m1_rate:0.5 m5_rate:0 mean_rate:0]" ||
		e["tags"].(M)["sourceRouterId"] != m.records["a"].ID || e["tags"].(M)["targetRouterId"] != m.records["b"].ID {
		t.Errorf("told %v", e)
	}
	if e := of("link.latency"); e["metric_type"] != "histogram" || len(e["metrics"].(M)) != 12 {
		t.Errorf("told %v", e)
	}
	if e := of("xgress.ack"); e["metric_type"] != "timer" || len(e["metrics"].(M)) != 16 {
		t.Errorf("told %v", e)
	}
	if e := only.event("metrics", ""); e["metric"] != "link.latency" || fmt.Sprint(e["metrics"]) != "map[p99:5]" {
		t.Errorf("told %v", e)
	}
	must(t, m.routers["a"].Send(&wire.Frame{Type: message.TypeMetrics, Body: message.Marshal(&message.Measured{Ints: map[string]int64{"again": 1}, Copy: true})}))
	must(t, m.routers["a"].Send(&wire.Frame{Type: message.TypeMetrics, Body: message.Marshal(&message.Measured{Ints: map[string]int64{"once": 1}})}))
	w.until("what one controller tells", func(e M) bool {
		if e["metric"] == "again" {
			t.Error("what another controller tells is told twice")
		}
		return e["metric"] == "once"
	})
	w.say(message.TypeStreamEvents, []byte(`{"subscriptions": [{"type": "metrics", "options": {"metricFilter": "("}}]}`))
	for {
		f := w.hear()
		if f.Type == message.TypeResult {
			if f.Headers.Bool(message.HeaderSuccess) {
				t.Errorf("what is no expression is answered with %s", f.Body)
			}
			break
		}
	}
}
