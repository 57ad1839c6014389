package audit_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"netkeep.internal/internal/data/format"
	"netkeep.internal/internal/data/state"
	"netkeep.internal/internal/data/store"
	"netkeep.internal/internal/data/store/storetest"
	"netkeep.internal/internal/lang/kind"
	"netkeep.internal/internal/model"
	"netkeep.internal/internal/ops/audit"
)

// say has a store say which format it has.
func say(t tester, m *storetest.Memory, number int) {
	t.Helper()
	value := fmt.Appendf(nil, `{"format":%d,"release":"v0.1.0"}`, number)
	_, err := m.Put(context.Background(), store.Head{}, []store.Op{{Key: format.Key, Value: value, Prev: store.Any}})
	must(t, err)
}

// newer brings a store to the format of this version.
func newer(t tester, m *storetest.Memory) {
	t.Helper()
	move := format.Migration{
		Store: m.Another(), Steps: format.Steps(nil), Before: func(context.Context) error { return nil }, Now: time.Now, Log: slog.New(slog.DiscardHandler),
	}
	must(t, move.Run(context.Background()))
}

// tell is a write that changes nothing and has an entry.
func tell(event string) func(*state.Tx) error {
	return func(tx *state.Tx) error {
		tx.Tell(&model.AuditEntry{Event: event, Outcome: model.AuditDone, Count: 1})
		return nil
	}
}

// create adds a service, which is an entry.
func create(t tester, s *state.State, name string) {
	t.Helper()
	must(t, s.Update(context.Background(), ann, func(tx *state.Tx) error {
		return model.Services.Create(tx, &model.Service{Meta: kind.Meta{ID: name}, Name: name, TerminatorStrategy: "random"})
	}))
}

// says is what the last commit says of where the log ends.
func says(t tester, m *storetest.Memory) string {
	t.Helper()
	mark, err := m.Load(context.Background(), func(store.Record) error { return nil })
	must(t, err)
	return mark.End
}

// TestEndMoves has two controllers on a store whose format moves under them. As
// long as others may use it who look at the record alone, that says where the log
// ends; from then on commits do, and nobody can add to the log by the record.
func TestEndMoves(t *testing.T) {
	const record = "audit-chain/audit"
	memory := storetest.NewMemory()
	say(t, memory, format.Ends-1)
	a, b := open(t, memory.Another()), open(t, memory.Another())
	defer a.Close()
	defer b.Close()
	create(t, a, "one")
	must(t, b.UpdateSessions(t.Context(), ann, tell("router-connected")))
	before, _, err := memory.Get(t.Context(), record)
	must(t, err)
	if said := says(t, memory); said != "" || !strings.Contains(string(before.Value), `"last":2`) {
		t.Errorf("commits say %q, and the record %s", said, before.Value)
	}

	newer(t, memory)
	_, err = b.Current(t.Context()) // or it may not have heard of it, and is still right
	must(t, err)
	must(t, b.UpdateSessions(t.Context(), ann, tell("router-connected")))
	moved, _, err := memory.Get(t.Context(), record)
	must(t, err)
	if said := says(t, memory); !strings.HasPrefix(said, "3 ") || !strings.Contains(string(moved.Value), `"told":true`) {
		t.Errorf("commits say %q, and the record %s", said, moved.Value)
	}
	late := store.Op{Key: record, Value: before.Value, Prev: before.Rev} // as a version would write that knows nothing of it
	if _, err := memory.Put(t.Context(), store.Head{}, []store.Op{late}); !errors.Is(err, store.ErrConflict) {
		t.Errorf("the record could be written: %v", err)
	}

	create(t, a, "two")
	must(t, b.UpdateSessions(t.Context(), ann, tell("router-connected")))
	if rec, _, err := memory.Get(t.Context(), record); err != nil || rec.Rev != moved.Rev {
		t.Errorf("the record was written again: %s, %v", rec.Value, err)
	}
	c := open(t, memory.Another())
	defer c.Close()
	for _, s := range []*state.State{a, b, c} {
		verdict, err := (&audit.Log{State: s}).Verify(t.Context())
		if err != nil || len(verdict.Flaws) > 0 || verdict.Found != 5 {
			t.Errorf("%+v, %v", verdict, err)
		}
	}
}

// TestEndStays has a commit without an entry repeat what the one before said, and
// one that moves the format.
func TestEndStays(t *testing.T) {
	memory := storetest.NewMemory()
	say(t, memory, format.Current)
	s := open(t, memory.Another())
	defer s.Close()
	create(t, s, "one")
	said := says(t, memory)
	must(t, s.Update(t.Context(), ann, func(tx *state.Tx) error {
		return model.ClientInfos.Create(tx, &model.ClientInfo{Meta: kind.Meta{ID: "one"}})
	}))
	if now := says(t, memory); said == "" || now != said {
		t.Errorf("commits said %q and say %q", said, now)
	}
	rec, _, err := memory.Get(t.Context(), format.Key)
	must(t, err)
	say(t, memory, format.Current-1)
	newer(t, memory)
	if now, _, err := memory.Get(t.Context(), format.Key); err != nil || string(now.Value) != string(rec.Value) {
		t.Errorf("the store says %s: %v", now.Value, err)
	}
	if now := says(t, memory); now != said {
		t.Errorf("commits said %q and say %q", said, now)
	}
	create(t, s, "two")
	if last := audit.Head(s.Snapshot()).Last; last != 2 {
		t.Errorf("the log ends at %d", last)
	}
}

// TestEndLost has somebody else commit who does not repeat where the log ends.
// Nothing is changed then: its entry would take the place of another.
func TestEndLost(t *testing.T) {
	memory := storetest.NewMemory()
	s := open(t, memory.Another())
	defer s.Close()
	create(t, s, "one")
	for _, end := range []string{"", "1", "1 2 x", "-1 2 " + strings.Repeat("A", 43), "1 2 " + strings.Repeat("A", 22)} {
		mark, err := memory.Load(t.Context(), func(store.Record) error { return nil })
		must(t, err)
		_, err = memory.Commit(t.Context(), mark.Head, store.Head{End: end}, []store.Op{{Key: "foreign/1", Value: []byte("x"), Prev: store.Any}})
		must(t, err)
		_, err = s.Current(t.Context())
		must(t, err)
		err = s.Update(t.Context(), ann, func(tx *state.Tx) error { return model.Services.Delete(tx, "one") })
		if err == nil || !strings.Contains(err.Error(), "does not say where the audit log ends") {
			t.Errorf("after %q: %v", end, err)
		}
	}
	if n := s.Snapshot().Len(model.Services.Def); n != 1 {
		t.Errorf("there are %d services", n)
	}
}
