package client_test

import (
	"slices"
	"testing"

	"netkeep.internal/internal/data/state"
	"netkeep.internal/internal/model"
)

// leave has a router ask to be left alone, or take that back.
func (s *scene) leave(router string, leaving bool) {
	s.Helper()
	err := shared.State().Update(s.Context(), state.Program("test"), func(tx *state.Tx) error {
		return model.Routers.Edit(tx, router, func(r *model.Router) error {
			r.Quiesced = leaving
			return nil
		})
	})
	if err != nil {
		s.Fatal(err)
	}
}

// TestLeavingRouters sends nobody to a router that is about to stop, unless there
// is no other that is online.
func TestLeavingRouters(t *testing.T) {
	s := newScene(t)
	service := s.service()
	s.policy("Dial")
	first := s.routers()
	second := s.add("edge-routers", M{"roleAttributes": []string{s.role}})
	connect(t, first, "one.example.com")
	names := func(of []any) (all []string) {
		for _, r := range of {
			all = append(all, r.(M)["hostname"].(string))
		}
		slices.Sort(all)
		return all
	}
	sees := func(want ...string) {
		t.Helper()
		session := s.dial(service).Data()["edgeRouters"].([]any)
		asked := s.me.Get(root + "services/" + service + "/edge-routers").Want(200).Data()["edgeRouters"].([]any)
		if !slices.Equal(names(session), want) || !slices.Equal(names(asked), want) {
			t.Errorf("a session may use %v, and who asks is told %v, want %v", names(session), names(asked), want)
		}
	}
	sees("", "one.example.com")
	s.leave(first, true)
	sees("", "one.example.com") // the other is not online
	connect(t, second, "two.example.com")
	sees("two.example.com")
	s.leave(second, true)
	sees("one.example.com", "two.example.com")
	s.leave(first, false)
	sees("one.example.com")
}
