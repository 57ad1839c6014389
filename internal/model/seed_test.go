package model_test

import (
	"testing"

	"netkeep.internal/internal/data/state"
	"netkeep.internal/internal/data/store/storetest"
	"netkeep.internal/internal/lang/kind"
	"netkeep.internal/internal/model"
)

// TestSeedKeepsNames starts with a config type that somebody gave a name which a
// later version has built in: it stays as it is, and the network starts.
func TestSeedKeepsNames(t *testing.T) {
	st, err := state.Open(t.Context(), storetest.NewMemory(), model.All, state.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(st.Close)
	own := &model.ConfigType{Meta: kind.Meta{ID: "own"}, Name: "proxy.v1", Schema: []byte(`{"type":"object"}`)}
	for _, step := range []func(tx *state.Tx) error{
		func(tx *state.Tx) error { return model.ConfigTypes.Create(tx, own) },
		func(tx *state.Tx) error { return model.Seed(tx) },
		func(tx *state.Tx) error { return model.Seed(tx) },
	} {
		if err := st.Update(t.Context(), state.Program("test"), step); err != nil {
			t.Fatal(err)
		}
	}
	named, _ := model.ConfigTypes.Find(st.Snapshot(), "name", "proxy.v1")
	if _, there := model.ConfigTypes.Get(st.Snapshot(), "interfaces.v1"); !there || named == nil || named.ID != "own" {
		t.Errorf("the type is %v, and others are built in: %t", named, there)
	}
}
