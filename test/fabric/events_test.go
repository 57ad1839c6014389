package fabric

import (
	"testing"

	"netkeep.internal/internal/wire"
	"netkeep.internal/internal/wire/message"
	"netkeep.internal/test/scripted"
	"netkeep.internal/test/servertest"
)

// TestLiveEvents follows routers, links and circuits as they come and go. Who does not
// ask for them is not told.
func TestLiveEvents(t *testing.T) {
	s := servertest.Start(t)
	r, other, n := addRouter(t, s), addRouter(t, s), addNetwork(t, s)
	changes := s.Admin(t).Stream("events")
	stream := s.Admin(t).Stream("events?kinds=presences,links,circuits")
	refused := s.Admin(t).Stream("events?kinds=circuits&filter=verb+%3D+%22refused%22")
	for _, stream := range []*servertest.Stream{changes, stream, refused} {
		if e := stream.Next(); e.Name != "ready" {
			t.Fatalf("it begins with %+v", e)
		}
	}
	next := func(stream *servertest.Stream, name, verb, id string) M {
		t.Helper()
		e := stream.Next()
		if e.Name != name || e.Data["verb"] != verb || e.ID != "" || id != "" && e.Data["id"] != id {
			t.Fatalf("told %+v, want %s %s of %s", e, name, verb, id)
		}
		return e.Data
	}
	c := r.Connect(t, func(o *scripted.Options) {
		o.Route = func(*message.Route) (wire.Headers, error) { return nil, nil }
	})
	if e := next(stream, "router", "connected", r.ID); e["name"] != r.Name || e["author"].(M)["kind"] != "router" {
		t.Errorf("told %v", e)
	}
	if _, _, err := n.dialOn(t, c); !isRefused(err, message.CodeInvalidTerminator) {
		t.Errorf("a service that nobody hosts: %v", err)
	}
	for _, stream := range []*servertest.Stream{stream, refused} {
		if e := next(stream, "circuit", "refused", ""); e["author"].(M)["id"] != n.dialUser.ID || e["reason"] == "" || e["record"] != nil {
			t.Errorf("told %v", e)
		}
	}
	n.hostOn(t, c, "terminator1")
	id, _, err := n.dialOn(t, c)
	must(t, err)
	if e := next(stream, "circuit", "created", id); e["record"].(M)["serviceId"] != n.service {
		t.Errorf("told %v", e)
	}
	must(t, c.Send(&wire.Frame{Type: message.TypeFault, Body: message.Marshal(&message.Fault{Subject: message.FaultEgress, ID: id})}))
	next(stream, "circuit", "ended", id)
	must(t, c.Send(&wire.Frame{Type: message.TypeRouterLinks, Body: message.Marshal(&message.Links{Links: []message.Link{
		{ID: "link1", Destination: other.ID, Protocol: "tls", DialAddress: "tls:127.0.0.1:1", Iteration: 1},
	}})}))
	if e := next(stream, "link", "up", "link1"); e["record"].(M)["destRouterId"] != other.ID && e["record"].(M)["destRouter"] == nil {
		t.Errorf("told %v", e)
	}
	must(t, c.Fault(message.Fault{Subject: message.FaultLink, ID: "link1", Iteration: 1}))
	next(stream, "link", "faulted", "link1")
	c.Close()
	next(stream, "router", "lost", r.ID)
	for e := changes.Next(); ; e = changes.Next() { // of the terminator alone, and of what the router was told
		if e.Name != "change" {
			t.Fatalf("told %+v to who asked for changes", e)
		}
		if e.Data["kind"] == "terminator" {
			break
		}
	}
}
