package state_test

import (
	"testing"
	"testing/synctest"
	"time"

	"netkeep.internal/internal/data/format"
	"netkeep.internal/internal/data/state"
	"netkeep.internal/internal/data/store"
	"netkeep.internal/internal/data/store/storetest"
	"netkeep.internal/internal/lang/fault"
	"netkeep.internal/internal/lang/kind"
)

// newer is what a later version says of a store; tooNew is what this version
// says of that.
const (
	newer  = `{"format":99,"release":"v9.0.0","from":98}`
	tooNew = "the store has format 99, which netkeep v9.0.0 and newer can read; this version reads formats up to 7"
)

func setFormat(t *testing.T, st store.Store, value string) {
	t.Helper()
	_, err := st.Put(t.Context(), store.Head{}, []store.Op{{Key: format.Key, Value: []byte(value), Prev: store.Any}})
	must(t, err)
}

// TestOpenNewer refuses a store of a later version, or one that is not whole.
func TestOpenNewer(t *testing.T) {
	for value, want := range map[string]string{
		newer: "load the store: " + tooNew,
		`{"format":2,"release":"v0.1.0","from":1}`: "load the store: the store is being brought to format 2",
		`{"format":2,"release":"v0.1.0"}`:          "",
	} {
		mem := storetest.NewMemory()
		setFormat(t, mem, value)
		s, err := state.Open(t.Context(), mem, kinds, state.Options{})
		if err == nil {
			s.Close()
		}
		if got := message(err); got != want {
			t.Errorf("%s: got %q, want %q", value, got, want)
		}
	}
}

func message(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// TestOutgrown has a newer version bring the store to its format while an older
// one runs. That one takes nothing over any more and writes nothing any more.
func TestOutgrown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mem := storetest.NewMemory()
		setFormat(t, mem, `{"format":2,"release":"v0.1.0"}`)
		var told []error
		s := open(t, mem, state.Options{Outgrown: func(err error) { told = append(told, err) }})
		create(t, s, places.Def, &place{Meta: kind.Meta{ID: "hall"}})
		setFormat(t, mem, newer)
		_, err := mem.Put(t.Context(), store.Head{}, []store.Op{{Key: "place/yard", Value: []byte(`{"id":"yard"}`)}})
		must(t, err)
		synctest.Wait()
		if len(told) != 1 || message(told[0]) != tooNew {
			t.Errorf("told %v", told)
		}
		before := history(t, mem)
		for name, update := range map[string]func() error{
			"model": func() error {
				return s.Update(t.Context(), state.Program("test"), func(tx *state.Tx) error {
					return places.Create(tx, &place{Meta: kind.Meta{ID: "attic"}})
				})
			},
			"session": func() error {
				return s.UpdateSessions(t.Context(), state.Program("test"), func(tx *state.Tx) error {
					return visits.Create(tx, &visit{Meta: kind.Meta{ID: "x"}})
				})
			},
		} {
			if err := update(); !fault.Is(err, fault.CodeUnavailable) {
				t.Errorf("%s: %v", name, err)
			}
		}
		if history(t, mem) != before {
			t.Error("it wrote nevertheless")
		}
		if _, there := s.Snapshot().Lookup(places.Def, "yard"); there {
			t.Error("it took over what it may not understand")
		}
		if _, there := s.Snapshot().Lookup(places.Def, "hall"); !there {
			t.Error("it forgot what it had")
		}
	})
}

// TestRewritten has another controller rewrite the store while one runs, which
// is none of the rules. It writes nothing until that is done.
func TestRewritten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mem := storetest.NewMemory()
		s := open(t, mem, state.Options{Outgrown: func(err error) { t.Error(err) }})
		write := func() error {
			return s.UpdateSessions(t.Context(), state.Program("test"), func(tx *state.Tx) error {
				return visits.Create(tx, &visit{Meta: kind.Meta{ID: "x"}})
			})
		}
		setFormat(t, mem, `{"format":2,"release":"v0.1.0","from":1}`)
		synctest.Wait()
		if err := write(); !fault.Is(err, fault.CodeUnavailable) {
			t.Errorf("in the middle: %v", err)
		}
		setFormat(t, mem, `{"format":2,"release":"v0.1.0"}`)
		<-time.After(2 * time.Second)
		must(t, write())
	})
}

// history is the revision that a store has reached.
func history(t *testing.T, st store.Store) store.Rev {
	t.Helper()
	mark, err := st.Load(t.Context(), func(store.Record) error { return nil })
	must(t, err)
	return mark.Rev
}
