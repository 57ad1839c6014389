package schema

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// checks tries health checks in a type that has them.
func checks(t *testing.T, s *Schema, base string, at []string, wrap func(doc map[string]any) map[string]any) {
	t.Helper()
	for _, tt := range []struct {
		member, base, target string
		edits                []edit
	}{
		{"portChecks", `{"interval": "5s", "timeout": "500ms", "address": "a.example:80"}`, "address", nil},
		{"httpChecks", `{"interval": "5s", "timeout": "500ms", "url": "http://a.example/health"}`, "url", httpEdits()},
	} {
		try(t, s, base, at, wrap, []edit{
			{set: `{"` + tt.member + `": []}`},
			{set: `{"` + tt.member + `": null}`, field: tt.member},
			{set: `{"` + tt.member + `": ` + tt.base + `}`, field: tt.member},
			{set: `{"` + tt.member + `": [` + tt.base + `,` + tt.base + `]}`},
		})
		within := func(doc map[string]any) map[string]any {
			data := object(t, base)
			data[tt.member] = []any{doc}
			if wrap != nil {
				data = wrap(data)
			}
			return data
		}
		try(t, s, tt.base, append(slices.Clone(at), tt.member, "0"), within, slices.Concat(
			whole("interval", "timeout", tt.target),
			durations("interval"), durations("timeout"),
			[]edit{{set: `{"` + tt.target + `": 5}`, field: tt.target}},
			tt.edits,
			actions(),
		))
	}
}

func httpEdits() []edit {
	return []edit{
		{set: `{"method": "GET"}`}, {set: `{"method": "POST"}`}, {set: `{"method": "PUT"}`}, {set: `{"method": "PATCH"}`},
		{set: `{"method": "DELETE"}`, field: "method"},
		{set: `{"method": "get"}`, field: "method"},
		{set: `{"body": "ping", "expectInBody": "pong", "expectStatus": 200}`},
		{set: `{"body": {}}`, field: "body"},
		{set: `{"expectInBody": 1}`, field: "expectInBody"},
		{set: `{"expectStatus": 100}`}, {set: `{"expectStatus": 599}`},
		{set: `{"expectStatus": 99}`, field: "expectStatus"},
		{set: `{"expectStatus": 600}`, field: "expectStatus"},
		{set: `{"expectStatus": "200"}`, field: "expectStatus"},
	}
}

// durations are edits of a member that is a duration.
func durations(member string) []edit {
	var edits []edit
	for _, good := range []string{"0s", "1h", "5m", "30s", "500ms", "1m30s", "1.5s"} {
		edits = append(edits, edit{set: fmt.Sprintf(`{%q: %q}`, member, good)})
	}
	for _, bad := range []string{"", "5", "s", "5 s", "5d", "-5s", "5S", "five", "5s ", "1..5s", "5us", ".5s"} {
		edits = append(edits, edit{set: fmt.Sprintf(`{%q: %q}`, member, bad), field: member})
	}
	return append(edits, edit{set: fmt.Sprintf(`{%q: 5}`, member), field: member})
}

// actions are edits of a health check's actions.
func actions() []edit {
	set := func(actions string) string { return `{"actions": ` + actions + `}` }
	one := func(action string) string { return set(`[` + action + `]`) }
	many := func(n int) string {
		return set(`[` + strings.TrimSuffix(strings.Repeat(`{"trigger": "fail", "action": "send event"},`, n), ",") + `]`)
	}
	edits := []edit{
		{set: set(`[]`), field: "actions"},
		{set: many(20)},
		{set: many(21), field: "actions"},
		{set: set(`{}`), field: "actions"},
		{set: one(`{"action": "send event"}`), field: "actions.0"},
		{set: one(`{"trigger": "fail"}`), field: "actions.0"},
		{set: one(`{"trigger": "fail", "action": "send event", "other": 1}`), field: "actions.0"},
		{set: one(`{"trigger": "pass", "action": "send event", "consecutiveEvents": 0, "duration": "10s"}`)},
		{set: one(`{"trigger": "change", "action": "send event", "consecutiveEvents": 65535}`)},
		{set: one(`{"trigger": "other", "action": "send event"}`), field: "actions.0.trigger"},
		{set: one(`{"trigger": "fail", "action": "send event", "consecutiveEvents": -1}`), field: "actions.0.consecutiveEvents"},
		{set: one(`{"trigger": "fail", "action": "send event", "consecutiveEvents": 65536}`), field: "actions.0.consecutiveEvents"},
		{set: one(`{"trigger": "fail", "action": "send event", "duration": "10"}`), field: "actions.0.duration"},
	}
	for _, good := range []string{"mark healthy", "mark unhealthy", "increase cost 100", "decrease cost 0", "send event"} {
		edits = append(edits, edit{set: one(fmt.Sprintf(`{"trigger": "fail", "action": %q}`, good))})
	}
	for _, bad := range []string{"", "mark", "mark ununhealthy", "increase cost", "increase cost -1", "decrease cost x", "send events", "restart", " send event"} {
		edits = append(edits, edit{set: one(fmt.Sprintf(`{"trigger": "fail", "action": %q}`, bad)), field: "actions.0.action"})
	}
	return edits
}
