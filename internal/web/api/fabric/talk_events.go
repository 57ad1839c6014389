package fabric

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"netkeep.internal/internal/data/state"
	"netkeep.internal/internal/fabric/herald"
	"netkeep.internal/internal/lang/kind"
	"netkeep.internal/internal/model"
	"netkeep.internal/internal/ops/build"
	"netkeep.internal/internal/web/api"
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
	namespace      string // as it was asked for: older tools have other names
	version        int    // of usage
	every          time.Duration
	source, figure *regexp.Regexp // of metrics: who has measured, and what; nil for all
	include        []string       // of authentication: which of the two; none for both
}

// The kinds of events, by the names that tools ask for them under.
const (
	ofAPISessions = "apiSession"
	ofCircuits    = "circuit"
	ofChanges     = "entityChange"
	ofClients     = "sdk"
	ofConnections = "connect"
	ofCounts      = "entityCount"
	ofDials       = "service"
	ofFigures     = "metrics"
	ofLinks       = "link"
	ofLogins      = "authentication"
	ofMembers     = "cluster"
	ofRouters     = "router"
	ofSessions    = "session"
	ofTerminators = "terminator"
	ofUsage       = "usage"
)

// olderNames are those of before, and olderSpaces what the namespace of some was beside
// that.
var (
	olderNames = map[string]string{
		"fabric.circuits": ofCircuits, "fabric.links": ofLinks, "fabric.routers": ofRouters, "fabric.terminators": ofTerminators, "fabric.usage": ofUsage,
		"edge.apiSessions": ofAPISessions, "edge.sessions": ofSessions, "edge.entityCounts": ofCounts, "edge.authentications": ofLogins, "services": ofDials,
	}
	olderSpaces = map[string]string{"edge.authentications": ofLogins, "services": "service.events"}
)

// untold are kinds of events that tools ask for along with all others, and that are not
// told here, with where else they are.
var untold = map[string]string{"alert": "netkeep alerts has them"}

// often is how often something is told again and again: at least and if nobody says.
type often struct{ least, usual time.Duration }

// How often counts are told, what was measured here, and what became of dials.
var (
	countsOften  = often{10 * time.Second, 5 * time.Minute}
	figuresOften = often{10 * time.Second, time.Minute}
	dialsOften   = often{time.Second, time.Minute}
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
	live := map[string]*kind.Def{
		ofCircuits: model.Circuits.Def, ofLinks: model.Links.Def, ofRouters: model.Presences.Def, ofUsage: herald.Usage, ofClients: herald.Clients,
		ofConnections: herald.Connections, ofDials: herald.Dials, ofFigures: herald.Figures, ofLogins: herald.Logins,
	}
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
	if figures, ok := want[ofFigures]; ok {
		begin = append(begin, func() { t.measure(figures) })
	}
	if members, ok := want[ofMembers]; ok {
		begin = append(begin, func() { t.watchMembers(members) })
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
		if !slices.Contains(kindsOfEvents, name) {
			why, known := untold[name]
			if !known {
				return nil, nil, fmt.Errorf("there are no events of type %.40q; there are %s", s.Type, strings.Join(kindsOfEvents, ", "))
			}
			silent = append(silent, s.Type+" ("+why+")")
			continue
		}
		one := wanted{namespace: cmp.Or(olderSpaces[s.Type], s.Type), version: 2}
		if err := one.read(name, s.Options); err != nil {
			return nil, nil, err
		}
		want[name] = one
	}
	return want, silent, nil
}

var kindsOfEvents = []string{
	ofAPISessions, ofLogins, ofCircuits, ofMembers, ofConnections, ofChanges, ofCounts, ofLinks, ofFigures, ofRouters, ofClients, ofDials, ofSessions, ofTerminators, ofUsage,
}

// read takes in what is asked for of events of a type.
func (w *wanted) read(name string, options map[string]jsontext.Value) (err error) {
	text := func(option string) string { return strings.Trim(string(options[option]), `"`) }
	switch name {
	case ofUsage:
		switch version := text("version"); version {
		case "", "2":
		case "3":
			w.version = 3
		default:
			return fmt.Errorf("usage events have version 2 or 3, and not %.40q", version)
		}
	case ofCounts:
		w.every, err = countsOften.read(text("interval"))
	case ofDials:
		w.every, err = dialsOften.read(text("interval"))
	case ofFigures:
		if w.every, err = figuresOften.read(text("interval")); err != nil {
			return err
		}
		if w.source, err = readPattern("sourceFilter", options); err != nil {
			return err
		}
		w.figure, err = readPattern("metricFilter", options)
	case ofLogins:
		w.include, err = readIncluded(options["include"])
	}
	return err
}

// read reads how often something is to be told.
func (o often) read(text string) (time.Duration, error) {
	if text == "" {
		return o.usual, nil
	}
	every, err := time.ParseDuration(text)
	if err != nil {
		return 0, fmt.Errorf("the interval must be a duration such as 5m, and not %.40q", text)
	}
	return max(every, o.least), nil
}

// readPattern reads a regular expression; nil if there is none.
func readPattern(option string, options map[string]jsontext.Value) (*regexp.Regexp, error) {
	value := options[option]
	if len(value) == 0 {
		return nil, nil
	}
	var text string
	if err := json.Unmarshal(value, &text); err != nil {
		return nil, fmt.Errorf("the %s must be a regular expression, and not %.40q", option, value)
	}
	if text == "" {
		return nil, nil
	}
	match, err := regexp.Compile(text)
	if err != nil {
		return nil, fmt.Errorf("the %s must be a regular expression: %w", option, err)
	}
	return match, nil
}

// readIncluded reads which events of a type are wanted: one word or a list of them.
func readIncluded(value jsontext.Value) (words []string, err error) {
	if len(value) == 0 {
		return nil, nil
	}
	if json.Unmarshal(value, &words) != nil {
		words = []string{""}
		if err := json.Unmarshal(value, &words[0]); err != nil {
			return nil, fmt.Errorf("include must be success or fail or a list of these, and not %.40q", value)
		}
	}
	for _, word := range words {
		if word != loginSuccess && word != loginFail {
			return nil, fmt.Errorf("include must be success or fail or a list of these, and not %.40q", word)
		}
	}
	return words, nil
}

// tell sends one event.
func (t *talk) tell(want wanted, at time.Time, event map[string]any) {
	stamp(event, t.s, want.namespace, at)
	text, err := json.Marshal(event, json.Deterministic(true))
	if err == nil {
		t.send(&wire.Frame{Type: message.TypeEvent, Body: text})
	}
}

// stamp says in an event of which kind it is, who tells of it, and when it was.
func stamp(event map[string]any, s *api.Service, namespace string, at time.Time) {
	event["namespace"], event["event_src_id"], event["timestamp"] = namespace, s.ControllerID, at.UTC()
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
				t.tellChange(ev, w.Author, c, want)
			}
		}
	}
}

func (t *talk) tellChange(ev state.Event, author state.Author, c state.Change, want map[string]wanted) {
	at, rec, verb := ev.Time, c.After, "updated"
	switch {
	case c.Before == nil:
		verb = "created"
	case c.After == nil:
		rec, verb = c.Before, "deleted"
	}
	switch rec := rec.(type) {
	case *model.Terminator:
		if one, ok := want[ofTerminators]; ok {
			t.tellTerminator(one, ev, rec, verb)
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
		t.tellRecord(one, ev, author, c, verb)
	}
}

// tellRecord tells of a change of a record, and that it is stored: it would not be told
// of otherwise.
func (t *talk) tellRecord(want wanted, ev state.Event, author state.Author, c state.Change, verb string) {
	id := strconv.FormatInt(int64(ev.Rev), 10) + "-" + c.ID
	event := map[string]any{
		"eventId": id, "eventType": verb, "entityType": publicName(c.Def), "isParentEvent": false, "initialState": nil, "finalState": nil,
		"metadata": map[string]any{
			"author":  map[string]string{"type": author.Kind, "id": author.ID, "name": author.Name},
			"source":  map[string]string{"type": "rest", "method": author.Operation, "remoteAddr": author.Source},
			"version": build.Read().Version,
		},
	}
	if c.Before != nil {
		event["initialState"] = jsontext.Value(c.Def.AppendOpen(nil, c.Before))
	}
	if c.After != nil {
		event["finalState"] = jsontext.Value(c.Def.AppendOpen(nil, c.After))
	}
	t.tell(want, ev.Time, event)
	t.tell(want, ev.Time, map[string]any{"eventId": id, "eventType": "committed"})
}

// tellTerminator tells of a host, with how many the service has and how many of those
// can be reached.
func (t *talk) tellTerminator(want wanted, ev state.Event, rec *model.Terminator, verb string) {
	_, online := t.s.Routers.Connected(rec.RouterID)
	all, usable := 0, map[string]int{}
	for other := range model.Terminators.Select(t.state.Snapshot(), "service", rec.ServiceID) {
		all++
		if _, online := t.s.Routers.Connected(other.RouterID); online {
			usable[other.Precedence]++
		}
	}
	t.tell(want, ev.Time, map[string]any{
		"event_type": verb, "service_id": rec.ServiceID, "terminator_id": rec.ID, "router_id": rec.RouterID, "host_id": rec.HostID, "instance_id": rec.Identity,
		"router_online": online, "precedence": rec.Precedence, "static_cost": rec.Cost, "dynamic_cost": t.s.Routers.DynamicCost(rec),
		"total_terminators": all, "usable_default_terminators": usable[model.PrecedenceDefault], "usable_required_terminators": usable[model.PrecedenceRequired],
	})
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
