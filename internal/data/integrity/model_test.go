package integrity_test

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	"netkeep.internal/internal/data/integrity"
	"netkeep.internal/internal/data/state"
	"netkeep.internal/internal/data/store"
	"netkeep.internal/internal/data/store/storetest"
	"netkeep.internal/internal/lang/fault"
	"netkeep.internal/internal/lang/kind"
	"netkeep.internal/internal/model"
)

// TestModelRules writes records of the network's own kinds that break a rule:
// no transaction takes them. Where they are stored all the same they can be
// read, a scan reports them, and an edit need not mend them but can.
func TestModelRules(t *testing.T) {
	mem := storetest.NewMemory()
	s, err := state.Open(t.Context(), mem, model.All, state.Options{Frozen: true})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	update := func(fn func(tx *state.Tx) error) error { return s.Update(t.Context(), state.Program("test"), fn) }
	err = update(func(tx *state.Tx) error {
		if err := model.Seed(tx); err != nil {
			return err
		}
		if err := model.Services.Create(tx, &model.Service{Meta: kind.Meta{ID: "svc"}, Name: "service"}); err != nil {
			return err
		}
		return model.Routers.Create(tx, &model.Router{Meta: kind.Meta{ID: "router"}, Name: "router"})
	})
	if err != nil {
		t.Fatal(err)
	}
	terminator := func(change func(*model.Terminator)) *model.Terminator {
		rec := &model.Terminator{Meta: kind.Meta{ID: "t"}, ServiceID: "svc", RouterID: "router", Binding: "edge", Address: "a"}
		change(rec)
		return rec
	}
	for _, tt := range []struct {
		def    *kind.Def
		rec    kind.Record
		reason string
		edit   func(kind.Record) // another field
		mend   func(kind.Record)
	}{
		{
			model.Services.Def, &model.Service{Meta: kind.Meta{ID: "t"}, Name: strings.Repeat("x", 5000)}, "name must be 1 to 256 characters long",
			func(r kind.Record) { r.(*model.Service).RoleAttributes = []string{"a"} }, func(r kind.Record) { r.(*model.Service).Name = "fine" },
		},
		{
			model.Terminators.Def, terminator(func(r *model.Terminator) { r.Cost = 9_999_999 }), "cost must be 0 to 65535",
			func(r kind.Record) { r.(*model.Terminator).Address = "b" }, func(r kind.Record) { r.(*model.Terminator).Cost = 1 },
		},
		{
			model.Terminators.Def, terminator(func(r *model.Terminator) { r.Precedence = "nonsense" }), "precedence must be one of default, required, failed",
			func(r kind.Record) { r.(*model.Terminator).Address = "b" }, func(r kind.Record) { r.(*model.Terminator).Precedence = "failed" },
		},
	} {
		err := update(func(tx *state.Tx) error { return tx.Create(tt.def, tt.def.Clone(tt.rec)) })
		if !fault.Is(err, fault.CodeInvalid) || err.Error() != tt.reason {
			t.Errorf("a transaction says %v, want %q", err, tt.reason)
		}
		smuggle(t, mem, s, tt.def, tt.rec)
		if _, readable := s.Snapshot().Lookup(tt.def, "t"); !readable {
			t.Errorf("%s: it cannot be read", tt.reason)
		}
		finds := tt.def.Name + "/t: " + tt.reason
		if found := scanOnce(t, mem, s); len(found) != 1 || found[0].Description != finds {
			t.Errorf("a scan found %v, want %q", found, finds)
		}
		edit := func(change func(kind.Record)) error {
			return update(func(tx *state.Tx) error {
				return tx.Edit(tt.def, "t", func(rec kind.Record) error { change(rec); return nil })
			})
		}
		if err := edit(tt.edit); err != nil {
			t.Errorf("%s: another field cannot be changed: %v", tt.reason, err)
		}
		if err := edit(tt.mend); err != nil {
			t.Errorf("%s: it cannot be mended: %v", tt.reason, err)
		}
		if found := scanOnce(t, mem, s); len(found) > 0 {
			t.Errorf("after it was mended a scan found %v", found)
		}
		if err := s.Delete(t.Context(), state.Program("test"), tt.def, "t"); err != nil {
			t.Error(err)
		}
	}
}

// smuggle stores a record past all rules.
func smuggle(t *testing.T, mem *storetest.Memory, s *state.State, d *kind.Def, rec kind.Record) {
	t.Helper()
	value, err := d.Encode(rec)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := mem.Another().Put(t.Context(), store.Head{}, []store.Op{{Key: d.Name + "/" + rec.Base().ID, Value: value, Prev: store.Any}}); err != nil {
		t.Fatal(err)
	}
	if err := s.Reload(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// scanOnce returns what a scan finds.
func scanOnce(t *testing.T, mem *storetest.Memory, s *state.State) []integrity.Finding {
	t.Helper()
	scanner := &integrity.Scanner{State: s, Store: mem, Quarantine: t.TempDir(), Now: time.Now, Log: slog.New(slog.DiscardHandler)}
	if err := scanner.Start(state.Program("test"), false); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	done := make(chan struct{})
	go func() { scanner.Run(ctx); close(done) }()
	for scanner.Report().Running && ctx.Err() == nil {
		<-time.After(time.Millisecond)
	}
	stop()
	<-done
	if r := scanner.Report(); r.Error == "" {
		return r.Findings
	}
	t.Fatal(scanner.Report().Error)
	return nil
}
