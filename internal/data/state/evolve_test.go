package state_test

import (
	"reflect"
	"testing"

	"netkeep.internal/internal/data/state"
	"netkeep.internal/internal/data/store"
	"netkeep.internal/internal/data/store/storetest"
	"netkeep.internal/internal/lang/kind"
)

// Two versions of one kind: the newer has fields with defaults, also in what it
// holds, and calls one of them otherwise.
type (
	gadgetThen struct {
		kind.Meta
		Label string     `json:"label" kind:"unique"`
		Parts []partThen `json:"parts"`
		Cover *coverThen `json:"cover"`
		Frame frameThen  `json:"frame"`
	}
	partThen struct {
		Code string `json:"code"`
	}
	coverThen struct {
		Color string `json:"color"`
	}
	frameThen struct {
		Size int `json:"size"`
	}

	gadgetNow struct {
		kind.Meta
		Name  string    `json:"name" kind:"unique,was=label"`
		Cost  int       `json:"cost" kind:"default=30"`
		Parts []partNow `json:"parts"`
		Cover *coverNow `json:"cover"`
		Frame frameNow  `json:"frame"`
	}
	partNow struct {
		Code  string `json:"code"`
		Count int    `json:"count" kind:"default=1"`
	}
	coverNow struct {
		Paint string `json:"paint" kind:"was=color"`
		Gloss bool   `json:"gloss" kind:"default=true"`
	}
	frameNow struct {
		Size int    `json:"size"`
		Wood string `json:"wood" kind:"default=oak"`
	}
)

var (
	gadgetsThen = kind.Define(kind.Spec[gadgetThen]{Name: "gadget", Path: "gadgets", Doc: "A gadget."})
	gadgetsNow  = kind.Define(kind.Spec[gadgetNow]{Name: "gadget", Path: "gadgets", Doc: "A gadget."})
)

// TestNewField opens what an older version stored with one that has more
// fields, and then again what that one has written.
func TestNewField(t *testing.T) {
	mem := storetest.NewMemory()
	with := func(d *kind.Def, fn func(s *state.State)) {
		t.Helper()
		s, err := state.Open(t.Context(), mem.Another(), kind.NewCatalog(d), state.Options{Frozen: true})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		fn(s)
	}
	update := func(s *state.State, fn func(tx *state.Tx) error) {
		t.Helper()
		if err := s.Update(t.Context(), state.Program("test"), fn); err != nil {
			t.Fatal(err)
		}
	}
	with(gadgetsThen.Def, func(s *state.State) {
		update(s, func(tx *state.Tx) error {
			return gadgetsThen.Create(tx, &gadgetThen{
				Meta: kind.Meta{ID: "g"}, Label: "lamp", Parts: []partThen{{"a"}, {"b"}}, Cover: &coverThen{"red"}, Frame: frameThen{4},
			})
		})
	})
	want := gadgetNow{
		Name: "lamp", Cost: 30, Parts: []partNow{{"a", 1}, {"b", 1}}, Cover: &coverNow{"red", true}, Frame: frameNow{4, "oak"},
	}
	check := func(s *state.State) {
		t.Helper()
		g, ok := gadgetsNow.Find(s.Snapshot(), "name", "lamp") // the index knows the name by its new name
		if !ok {
			t.Fatal("there is no gadget")
		}
		got := *g
		if got.Meta = (kind.Meta{}); !reflect.DeepEqual(got, want) {
			t.Errorf("got  %+v\nwant %+v", got, want)
		}
	}
	with(gadgetsNow.Def, func(s *state.State) {
		check(s)
		update(s, func(tx *state.Tx) error {
			return gadgetsNow.Edit(tx, "g", func(g *gadgetNow) error {
				g.Cost, g.Parts[1].Count, g.Cover.Gloss = 0, 0, false
				return nil
			})
		})
		want.Cost, want.Parts[1].Count, want.Cover.Gloss = 0, 0, false
		check(s)
	})
	with(gadgetsNow.Def, check) // a zero that was chosen is not taken for the default
	_, err := mem.Load(t.Context(), func(rec store.Record) error {
		old, err := gadgetsThen.Decode(rec.Value)
		if err == nil && old.(*gadgetThen).Label != "" {
			t.Errorf("it is still stored under its old name: %s", rec.Value)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}
