package audit_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"pgregory.net/rapid"

	"netkeep.internal/internal/data/state"
	"netkeep.internal/internal/data/store/storetest"
	"netkeep.internal/internal/lang/filter"
	"netkeep.internal/internal/lang/kind"
	"netkeep.internal/internal/model"
	"netkeep.internal/internal/ops/audit"
	"netkeep.internal/test/machine"
)

// someone is one of those who change things in these tests.
func someone(i int) state.Author {
	if i%9 == 0 {
		return state.Program("tester")
	}
	return state.Author{
		Kind: "identity", ID: fmt.Sprint("admin-", i%300), Name: fmt.Sprint("Admin ", i%290), Operation: []string{"createService", "patchService"}[i%2],
		Request: fmt.Sprint("r", i), Source: fmt.Sprint("192.0.2.", i%50), Session: fmt.Sprint("s", i%700), Factors: "password",
	}
}

// clock is a time that a test sets.
type clock struct{ at atomic.Int64 }

func (c *clock) now() time.Time { return time.UnixMicro(c.at.Load()) }

// mixed makes writes by many, some of them of many changes.
func mixed(t *testing.T, s *state.State, c *clock, from, writes int) {
	t.Helper()
	for i := from; i < from+writes; i++ {
		must(t, s.Update(t.Context(), someone(i), func(tx *state.Tx) error {
			for j := range 1 + i%3*i%7*20 { // few records, and many names
				err := model.Services.Upsert(tx, fmt.Sprint("id-", j), func(v *model.Service) { v.Name, v.TerminatorStrategy = fmt.Sprint("service-", i, "-", j), "random" })
				if err != nil {
					return err
				}
			}
			return model.Services.Upsert(tx, "web", func(v *model.Service) { v.Name, v.TerminatorStrategy = fmt.Sprint("web ", i%4), "random" })
		}))
		c.at.Add(int64(i % 40 * 333))
	}
}

// question draws what somebody may ask about entries such as some that there are.
func question(t *rapid.T, some []*model.AuditEntry, depth int) string {
	if depth > 0 {
		switch rapid.IntRange(0, 5).Draw(t, "form") {
		case 0, 1:
			return fmt.Sprintf("(%s) and (%s)", question(t, some, depth-1), question(t, some, depth-1))
		case 2, 3:
			return fmt.Sprintf("(%s) or (%s)", question(t, some, depth-1), question(t, some, depth-1))
		case 4:
			return fmt.Sprintf("not (%s)", question(t, some, depth-1))
		}
	}
	e, other := some[rapid.IntRange(0, len(some)-1).Draw(t, "entry")], some[rapid.IntRange(0, len(some)-1).Draw(t, "another")]
	when := func(at time.Time) string { return "datetime(" + at.Format(time.RFC3339Nano) + ")" }
	texts := map[string]string{
		"id": e.ID, "event": e.Event, "actorKind": e.ActorKind, "actorId": e.ActorID, "actor": e.ActorID, "actorName": e.ActorName, "apiSessionId": e.APISessionID,
		"factors": e.Factors, "address": e.Address, "operation": e.Operation, "requestId": e.RequestID, "targetKind": e.TargetKind,
		"targetId": e.TargetID, "target": e.TargetID, "targetName": e.TargetName,
	}
	field := rapid.SampledFrom([]string{
		"id", "event", "actorKind", "actorId", "actor", "actorName", "apiSessionId", "factors", "address", "operation", "requestId", "targetKind",
		"targetId", "target", "targetName", "number", "createdAt", "updatedAt", "tags.x", "isSystem",
	}).Draw(t, "field")
	switch field {
	case "number":
		return fmt.Sprintf(rapid.SampledFrom([]string{"number %s %[2]d", "number in [%[2]d, %[3]d]", "number between %[2]d and %[3]d", "number contains %[2]d", "number > %[2]d.5"}).Draw(t, "number"),
			rapid.SampledFrom([]string{"=", "!=", "<", "<=", ">", ">="}).Draw(t, "operator"), e.Number, other.Number)
	case "createdAt", "updatedAt":
		return fmt.Sprintf(rapid.SampledFrom([]string{"%s %s %[3]s", "%s not between %[3]s and %[4]s", "%s between %[3]s and %[4]s"}).Draw(t, "time"), field,
			rapid.SampledFrom([]string{"=", "!=", "<", "<=", ">", ">="}).Draw(t, "operator"), when(e.CreatedAt.Time().Truncate(time.Millisecond)), when(other.CreatedAt.Time()))
	case "tags.x":
		return "tags.x = null"
	case "isSystem":
		return "isSystem = false"
	}
	text := rapid.SampledFrom([]string{texts[field], texts[field], "", "nothing"}).Draw(t, "text")
	switch op := rapid.SampledFrom([]string{"=", "=", "=", "!=", "<", ">=", "contains", "not contains", "in", "not in", "null"}).Draw(t, "operator"); op {
	case "contains", "not contains":
		return fmt.Sprintf("%s %s %q", field, op, text[len(text)/2:])
	case "in", "not in":
		return fmt.Sprintf("%s %s [%q, %q]", field, op, text, "nothing")
	case "null":
		return fmt.Sprintf("%s != null", field)
	default:
		return fmt.Sprintf("%s %s %q", field, op, text)
	}
}

// asked draws a question and holds its answer against that of who reads all entries.
func asked(t *rapid.T, l *audit.Log, all []*model.AuditEntry) {
	text := question(t, all, 2) + rapid.SampledFrom([]string{"", "", " sort by number desc", " sort by createdAt desc, event", " sort by targetName", " sort by actorId desc"}).Draw(t, "order")
	text += rapid.SampledFrom([]string{"", " skip 7 limit 5", " skip 300 limit 20", " limit none"}).Draw(t, "page")
	q, err := filter.Compile(model.AuditEntries.Symbols, text)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	page := q.Page(nil, nil)
	want, wanted := q.Select(filter.Rows[kind.Record]{Seq: func(yield func(kind.Record) bool) {
		for _, e := range all {
			if !yield(e) {
				return
			}
		}
	}}, page)
	got, total, err := l.Query(t.Context(), q, page)
	must(t, err)
	if total != wanted || !slices.EqualFunc(got, want, func(a, b kind.Record) bool { return a.Base().ID == b.Base().ID }) {
		t.Fatalf("%s: %s of %d, want %s of %d", text, ids(got), total, ids(want), wanted)
	}
}

func ids(recs []kind.Record) string {
	var all []string
	for _, rec := range recs[:min(len(recs), 20)] {
		all = append(all, strings.TrimLeft(rec.Base().ID, "0"))
	}
	return strings.Join(all, " ")
}

// TestColumns asks at random: what memory has of entries answers as all of them do,
// whether they are packed, some are forgotten, others are new or a controller starts.
func TestColumns(t *testing.T) {
	memory := storetest.NewMemory()
	c := &clock{}
	c.at.Store(1_800_000_000_000_123)
	s, err := state.Open(t.Context(), memory, model.All, state.Options{Journal: audit.Journal{}, Frozen: true, Now: c.now})
	must(t, err)
	defer s.Close()
	l := &audit.Log{State: s}
	k := &audit.Keeper{Log: &audit.Log{State: s}, Age: 24 * time.Hour, Entries: 1_000_000, Now: c.now}
	ask := func(logs ...*audit.Log) {
		t.Helper()
		if machine.Raced { // TestColumnsTogether has several ask: here nobody does anything at once
			return
		}
		all := entries(t, s)
		for _, l := range logs {
			rapid.Check(t, func(rt *rapid.T) { asked(rt, l, all) })
		}
	}
	mixed(t, s, c, 0, 60)
	ask(l)
	mixed(t, s, c, 60, 140)
	ask(l)
	must(t, k.Keep(t.Context()))
	other := &audit.Log{State: s} // which has seen nothing of before
	ask(l, other)
	mixed(t, s, c, 200, 30)
	k.Entries = 5000
	must(t, k.Keep(t.Context()))
	ask(l, other)
	if n := len(entries(t, s)); n < 5000 || n > 6000 {
		t.Errorf("%d entries are left", n)
	}
}

// TestColumnsTogether has several ask while entries are made, packed and forgotten:
// each gets a page of entries that match.
func TestColumnsTogether(t *testing.T) {
	s := open(t, storetest.NewMemory())
	defer s.Close()
	write(t, s, 300)
	l := &audit.Log{State: s}
	k := &audit.Keeper{Log: l, Age: time.Hour, Entries: 700, Now: time.Now}
	ctx, stop := context.WithCancel(t.Context())
	var all sync.WaitGroup
	all.Go(func() { l.Follow(ctx, time.Millisecond) })
	for _, text := range []string{
		`targetId = "web" and event = "updated" sort by number desc`, `targetName contains "eb 1" limit 20`, `requestId = "r1" sort by createdAt desc limit 5`,
	} {
		q, err := filter.Compile(model.AuditEntries.Symbols, text)
		must(t, err)
		all.Go(func() {
			for ctx.Err() == nil {
				recs, total, err := l.Query(t.Context(), q, q.Page(nil, nil))
				if err != nil || len(recs) == 0 || total < int64(len(recs)) || !q.Match(recs[0]) {
					t.Errorf("%s: %d of %d, %v", text, len(recs), total, err)
					return
				}
			}
		})
	}
	for range 4 {
		write(t, s, 200)
		must(t, k.Keep(t.Context()))
	}
	stop()
	all.Wait()
	if n := asks(t, l, `targetId = "web" limit none`); n < 700 || n > 1100 {
		t.Errorf("%d entries are left", n)
	}
}
