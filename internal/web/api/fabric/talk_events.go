package fabric

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"netkeep.internal/internal/data/state"
	"netkeep.internal/internal/fabric/herald"
	"netkeep.internal/internal/lang/kind"
	"netkeep.internal/internal/model"
	"netkeep.internal/internal/wire"
	"netkeep.internal/internal/wire/message"
)

// eventsIn is what somebody wants to be told of.
type eventsIn struct {
	Format        string `json:"format"`
	Subscriptions []struct {
		Type    string                    `json:"type"`
		Options map[string]jsontext.Value `json:"options"`
	} `json:"subscriptions"`
}

// wanted is what one of them says, in the words of the public events.
type wanted struct {
	namespace string // as it was asked for: older tools have other names
	version   int    // of usage
	every     time.Duration
}

// The kinds of events, by the names that tools ask for them under.
const (
	ofAPISessions = "apiSession"
	ofCircuits    = "circuit"
	ofChanges     = "entityChange"
	ofCounts      = "entityCount"
	ofLinks       = "link"
	ofRouters     = "router"
	ofSessions    = "session"
	ofTerminators = "terminator"
	ofUsage       = "usage"
)

// olderNames are those of before.
var olderNames = map[string]string{
	"fabric.circuits": ofCircuits, "fabric.links": ofLinks, "fabric.routers": ofRouters, "fabric.terminators": ofTerminators, "fabric.usage": ofUsage,
	"edge.apiSessions": ofAPISessions, "edge.sessions": ofSessions, "edge.entityCounts": ofCounts,
}

// untold are kinds of events that tools ask for along with all others, and that are not
// told here, with where else they are.
var untold = map[string]string{
	"authentication": "the audit log has logins", "cluster": "netkeep cluster shows the controllers", "connect": "the audit log has connections of routers",
	"metrics": "/metrics has figures", "fabric.metrics": "/metrics has figures", "metrics.internal": "/metrics has figures",
	"sdk": "identities say whether they are connected", "service": "usage events and /metrics have figures", "services": "usage events and /metrics have figures",
	"alert": "netkeep alerts has them",
}

// The bounds of how often counts are told.
const (
	leastEvery = 10 * time.Second
	usualEvery = 5 * time.Minute
)

// events begins to tell of events.
func (t *talk) events(f *wire.Frame) {
	want, silent, err := readEvents(f.Body)
	if err != nil {
		t.result(f, false, err.Error())
		return
	}
	said := "success"
	if len(silent) > 0 {
		said = "success, except that there will be none of these: " + strings.Join(silent, ", ")
	}
	live := map[string]*kind.Def{ofCircuits: model.Circuits.Def, ofLinks: model.Links.Def, ofRouters: model.Presences.Def, ofUsage: herald.Usage}
	stored := map[string][]*kind.Def{
		ofTerminators: {model.Terminators.Def}, ofSessions: {model.Sessions.Def}, ofAPISessions: {model.APISessions.Def}, ofChanges: changing,
	}
	var heard, followed []*kind.Def
	for name := range want {
		if d := live[name]; d != nil {
			heard = append(heard, d)
		}
		for _, d := range stored[name] {
			if !slices.Contains(followed, d) {
				followed = append(followed, d)
			}
		}
	}
	// Whoever has the answer misses nothing, and gets nothing before it.
	var begin []func()
	if len(heard) > 0 {
		wake := make(chan struct{}, 1)
		listener := t.s.Herald.Listen(wake, heard...)
		begin = append(begin, func() {
			defer listener.Close()
			t.listen(listener, wake, want)
		})
	}
	if len(followed) > 0 {
		sub := t.state.Subscribe(followed...).Bare()
		begin = append(begin, func() { t.follow(sub, want) })
	}
	if counts, ok := want[ofCounts]; ok {
		begin = append(begin, func() { t.count(counts) })
	}
	t.result(f, true, said)
	for _, tell := range begin {
		t.work.Go(tell)
	}
}

// readEvents reads what somebody wants to be told of, and what of it is not told.
func readEvents(body []byte) (want map[string]wanted, silent []string, err error) {
	var in eventsIn
	if err := json.Unmarshal(body, &in); err != nil {
		return nil, nil, fmt.Errorf("the request cannot be read: %w", err)
	}
	if in.Format != "" && in.Format != "json" {
		return nil, nil, fmt.Errorf("events are told as json, and not as %.40q", in.Format)
	}
	want = map[string]wanted{}
	for _, s := range in.Subscriptions {
		name := s.Type
		if now, older := olderNames[name]; older {
			name = now
		}
		one := wanted{namespace: s.Type, version: 2, every: usualEvery}
		switch name {
		case ofAPISessions, ofCircuits, ofChanges, ofLinks, ofRouters, ofSessions, ofTerminators:
		case ofUsage:
			switch version := strings.Trim(string(s.Options["version"]), `"`); version {
			case "", "2":
			case "3":
				one.version = 3
			default:
				return nil, nil, fmt.Errorf("usage events have version 2 or 3, and not %.40q", version)
			}
		case ofCounts:
			if text := strings.Trim(string(s.Options["interval"]), `"`); text != "" {
				if one.every, err = time.ParseDuration(text); err != nil {
					return nil, nil, fmt.Errorf("the interval must be a duration such as 5m, and not %.40q", text)
				}
				one.every = max(one.every, leastEvery)
			}
		default:
			why, known := untold[name]
			if !known {
				return nil, nil, fmt.Errorf("there are no events of type %.40q; there are %s", s.Type, strings.Join(kindsOfEvents, ", "))
			}
			silent = append(silent, s.Type+" ("+why+")")
			continue
		}
		want[name] = one
	}
	return want, silent, nil
}

var kindsOfEvents = []string{ofAPISessions, ofCircuits, ofChanges, ofCounts, ofLinks, ofRouters, ofSessions, ofTerminators, ofUsage}

// tell sends one event.
func (t *talk) tell(want wanted, at time.Time, event map[string]any) {
	event["namespace"], event["event_src_id"], event["timestamp"] = want.namespace, t.s.ControllerID, at.UTC()
	text, err := json.Marshal(event, json.Deterministic(true))
	if err == nil {
		t.send(&wire.Frame{Type: message.TypeEvent, Body: text})
	}
}

// listen tells of what happens among routers.
func (t *talk) listen(from *herald.Listener, wake <-chan struct{}, want map[string]wanted) {
	for {
		select {
		case <-t.ctx.Done():
			return
		case <-wake:
		}
		for {
			e, missed, ok := from.Take()
			if missed > 0 {
				t.tell(wanted{namespace: "missed"}, t.s.Sessions.Now(), map[string]any{"event_type": "missed", "count": missed})
			}
			if !ok {
				break
			}
			t.tellLive(&e, want)
		}
	}
}

func (t *talk) tellLive(e *herald.Event, want map[string]wanted) {
	switch e.Ref.Def {
	case model.Presences.Def:
		online := e.Verb == "connected"
		verb := map[bool]string{true: "router-online", false: "router-offline"}[online]
		t.tell(want[ofRouters], e.At, map[string]any{"event_type": verb, "router_id": e.Ref.ID, "router_online": online})
	case model.Links.Def:
		if l, ok := e.Record.(*model.Link); ok {
			verb := map[string]string{"up": "routerLinkNew"}[e.Verb]
			if verb == "" {
				verb = "fault"
			}
			conns := []map[string]string{}
			for _, c := range l.Conns {
				conns = append(conns, map[string]string{"id": c.Type, "local_addr": c.Source, "remote_addr": c.Dest})
			}
			t.tell(want[ofLinks], e.At, map[string]any{
				"event_type": verb, "link_id": l.ID, "src_router_id": l.SourceID, "dst_router_id": l.DestID, "protocol": l.Protocol,
				"dial_address": l.DialAddress, "cost": l.Cost, "connections": conns,
			})
		}
	case model.Circuits.Def:
		t.tell(want[ofCircuits], e.At, circuitEvent(e))
	case herald.Usage:
		if carried, ok := e.Detail.(herald.Carried); ok {
			t.tellUsage(want[ofUsage], e, carried)
		}
	}
}

// circuitEvent tells of a circuit, also of one that never was.
func circuitEvent(e *herald.Event) map[string]any {
	c, _ := e.Record.(*model.Circuit)
	if c == nil {
		c = &model.Circuit{IdentityID: e.By.ID}
	}
	event := map[string]any{
		"version": 2, "event_type": map[string]string{"created": "created", "ended": "deleted", "refused": "failed"}[e.Verb], "circuit_id": c.ID,
		"client_id": c.IdentityID, "service_id": c.ServiceID, "terminator_id": c.TerminatorID, "instance_id": "",
		"path":       map[string]any{"nodes": slices.Clone(c.Path), "links": slices.Clone(c.Links), "ingress_id": "", "egress_id": ""},
		"link_count": len(c.Links), "path_cost": c.Cost, "tags": map[string]string{"clientId": c.IdentityID, "hostId": c.HostID, "serviceId": c.ServiceID},
	}
	switch e.Verb {
	case "ended":
		event["duration"] = e.At.Sub(c.CreatedAt).Nanoseconds()
	case "refused":
		event["failure_cause"] = e.Reason
	}
	return event
}

// tellUsage tells what a circuit carried: in the second version one event for each
// direction.
func (t *talk) tellUsage(want wanted, e *herald.Event, carried herald.Carried) {
	event := func() map[string]any {
		return map[string]any{
			"version": want.version, "source_id": carried.RouterID, "circuit_id": e.Ref.ID, "interval_start_utc": carried.Start, "interval_length": carried.Length, "tags": carried.Tags,
		}
	}
	if want.version == 3 {
		all := event()
		all["usage"] = carried.Bytes
		t.tell(want, e.At, all)
		return
	}
	for _, direction := range slices.Sorted(maps.Keys(carried.Bytes)) {
		one := event()
		one["event_type"], one["usage"] = "usage."+direction, carried.Bytes[direction]
		t.tell(want, e.At, one)
	}
}

// changing are the kinds whose changes are told as such: all that are noted.
var changing = func() (some []*kind.Def) {
	for _, d := range model.All.Defs {
		if d.Lane == kind.Model && d.Noted && d.Verbs.Has(kind.Creates|kind.Lists) {
			some = append(some, d)
		}
	}
	return some
}()

// publicName is what public events call a kind: its collection, written as they write names.
func publicName(d *kind.Def) string {
	if d == model.EdgeRouters.Def {
		return "routers.edge"
	}
	words := strings.Split(d.Path, "-")
	for i, word := range words[1:] {
		words[i+1] = strings.ToUpper(word[:1]) + word[1:]
	}
	return strings.Join(words, "")
}

// follow tells of changes of records.
func (t *talk) follow(sub *state.Subscription, want map[string]wanted) {
	for {
		ev, err := sub.Next(t.ctx)
		if err != nil {
			return
		}
		for _, w := range ev.Writes {
			for _, c := range w.Changes {
				t.tellChange(ev.Time, w.Author, c, want)
			}
		}
	}
}

func (t *talk) tellChange(at time.Time, author state.Author, c state.Change, want map[string]wanted) {
	rec, verb := c.After, "updated"
	switch {
	case c.Before == nil:
		verb = "created"
	case c.After == nil:
		rec, verb = c.Before, "deleted"
	}
	switch rec := rec.(type) {
	case *model.Terminator:
		if one, ok := want[ofTerminators]; ok {
			_, online := t.s.Routers.Connected(rec.RouterID)
			t.tell(one, at, map[string]any{
				"event_type": verb, "service_id": rec.ServiceID, "terminator_id": rec.ID, "router_id": rec.RouterID, "host_id": rec.HostID, "instance_id": rec.Identity,
				"router_online": online, "precedence": rec.Precedence, "static_cost": rec.Cost, "dynamic_cost": t.s.Routers.DynamicCost(rec),
			})
		}
	case *model.Session:
		if one, ok := want[ofSessions]; ok && verb != "updated" {
			t.tell(one, at, map[string]any{
				"event_type": verb, "session_type": rec.Type, "provider": "legacy", "id": rec.ID, "api_session_id": rec.APISessionID, "identity_id": rec.IdentityID, "service_id": rec.ServiceID,
			})
		}
	case *model.APISession:
		if one, ok := want[ofAPISessions]; ok && verb != "updated" {
			t.tell(one, at, map[string]any{
				"event_type": verb, "id": rec.ID, "type": "legacy", "token": "", "identity_id": rec.IdentityID, "ip_address": rec.IPAddress,
			})
		}
	}
	if one, ok := want[ofChanges]; ok && slices.Contains(changing, c.Def) {
		event := map[string]any{
			"eventId": c.ID, "eventType": verb, "entityType": publicName(c.Def), "isParentEvent": false,
			"metadata": map[string]any{"author": map[string]string{"type": author.Kind, "id": author.ID, "name": author.Name}, "source": map[string]string{"type": "rest", "method": author.Operation, "remoteAddr": author.Source}, "version": 1},
		}
		if c.Before != nil {
			event["initialState"] = jsontext.Value(c.Def.AppendOpen(nil, c.Before))
		}
		if c.After != nil {
			event["finalState"] = jsontext.Value(c.Def.AppendOpen(nil, c.After))
		}
		t.tell(one, at, event)
	}
}

// count tells again and again how many records there are.
func (t *talk) count(want wanted) {
	again := time.NewTicker(want.every)
	defer again.Stop()
	for {
		snap, counts := t.state.Snapshot(), map[string]int{}
		for _, d := range changing {
			counts[publicName(d)] = snap.Len(d)
		}
		t.tell(want, t.s.Sessions.Now(), map[string]any{"counts": counts, "error": ""})
		select {
		case <-t.ctx.Done():
			return
		case <-again.C:
		}
	}
}
