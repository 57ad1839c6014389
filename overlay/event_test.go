package overlay_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"netkeep.internal/overlay"
	"netkeep.internal/test/networktest"
)

// TestEvents tells what becomes of connections to those who ask, from the
// beginning or later, to the end.
func TestEvents(t *testing.T) {
	n := networktest.New(t, shared)
	router := n.AddRouter("router")
	service := n.AddService("service", true)
	network, err := overlay.Open(t.Context(), n.AddIdentity("host").File)
	must(t, err)
	l, err := network.Listen(t.Context(), service)
	must(t, err)
	defer l.Close()

	events := make(chan overlay.Event)
	go func() {
		defer close(events)
		for e := range network.Events(t.Context()) {
			events <- e
		}
	}()
	expect := func(state overlay.State, name string) {
		t.Helper()
		e, ok := <-events
		if !ok || e.State != state || e.Router != name || e.Address == "" || e.Time.IsZero() || (e.Err != nil) != (state == overlay.Away) {
			t.Fatalf("%v (%v), want %s to be %s", e, ok, name, state)
		}
		if text := e.String(); !strings.Contains(text, e.Address) || !strings.Contains(text, "is "+fmt.Sprint(state)) || !strings.Contains(text, name) {
			t.Errorf("the event is %q", text)
		}
	}
	expect(overlay.Connected, "")
	expect(overlay.Connected, router.Name)
	router.Stop()
	expect(overlay.Away, router.Name)
	router.Restart()
	expect(overlay.Connected, router.Name)

	for range network.Events(t.Context()) {
		break // who has seen enough
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	for range network.Events(ctx) {
		cancel()
	}
	must(t, network.Close())
	expect(overlay.Over, "")
	expect(overlay.Over, router.Name)
	if e, ok := <-events; ok {
		t.Errorf("after the end there is %v", e)
	}
	late := 0
	for e := range network.Events(t.Context()) {
		if late++; e.State != overlay.Over {
			t.Errorf("after the end there is %v", e)
		}
	}
	if late != 2 {
		t.Errorf("%d connections are over, want 2", late)
	}
	if got := overlay.State(0).String(); got != "State(0)" {
		t.Errorf("no state is %q", got)
	}
}
