package fabric

import (
	"strings"
	"testing"

	"netkeep.internal/internal/wire"
	"netkeep.internal/internal/wire/message"
	"netkeep.internal/test/scripted"
	"netkeep.internal/test/servertest"
)

// listed is the ids of the circuits that the Fabric API lists.
func listed(t *testing.T, s *servertest.Server) (ids []string) {
	t.Helper()
	for _, c := range s.Admin(t).Get(fabricAPI + "circuits").Want(200).List() {
		ids = append(ids, c["id"].(string))
	}
	return ids
}

// TestEndedForGood ends a circuit that its router goes on speaking of, now and
// when it connects again. It does not come back.
func TestEndedForGood(t *testing.T) {
	s := servertest.Start(t)
	r, n := addRouter(t, s), addNetwork(t, s)
	c := r.Connect(t)
	n.hostOn(t, c, servertest.Unique("t"))
	id, _, err := n.dialOn(t, c)
	must(t, err)
	has, _ := c.Has()
	must(t, c.Fault(message.Fault{Subject: message.FaultIngress, ID: id}))
	await(t, c, "it is ended", func(k scripted.Known) bool { return len(k.Circuits) == 0 })
	c.Close()
	again := r.Connect(t, func(o *scripted.Options) { o.Circuits = has })
	await(t, again, "it is ended once more", func(k scripted.Known) bool { return len(k.Circuits) == 0 })
	told := make(chan struct{}, 10)
	again.Heard(func(f *wire.Frame) {
		if f.Type == message.TypeUnroute {
			told <- struct{}{}
		}
	})
	must(t, again.Fault(message.Fault{Subject: message.FaultForward, ID: id}))
	<-told
	must(t, again.Send(&wire.Frame{Type: message.TypeCircuitConfirmation, Body: message.Marshal(&message.CircuitConfirmation{CircuitIDs: []string{id}})}))
	<-told
	if ids := listed(t, s); len(ids) > 0 {
		t.Errorf("listed are %q", ids)
	}
}

// TestInventedCircuits has a router say that it carries circuits that nobody has
// made. It is believed only for those who may use it, and not when it is gone.
func TestInventedCircuits(t *testing.T) {
	s := servertest.Start(t)
	r, n := addRouter(t, s), addNetwork(t, s)
	c := r.Connect(t)
	n.hostOn(t, c, servertest.Unique("t"))
	id, _, err := n.dialOn(t, c)
	must(t, err)
	invented := "before" + id[6:]
	has := map[string]*message.Route{id: {}, invented: {Forwards: []message.Forward{{From: "in.x", To: "out.y"}, {From: "out.y", To: "in.x"}}}}
	connect := func() *scripted.Router {
		return r.Connect(t, func(o *scripted.Options) { o.Circuits = has })
	}
	is := func(want bool) func() bool {
		return func() bool { return strings.Contains(strings.Join(listed(t, s), " "), invented) == want }
	}
	c.Close()
	c = connect()
	servertest.Eventually(t, patience, "what is older than the controller is taken on", is(true))
	c.Close()
	servertest.Eventually(t, patience, "it goes with the router that told of it", is(false))
	for _, p := range s.Admin(t).Get(management + "edge-router-policies").Want(200).List() {
		s.Admin(t).Patch(management+"edge-router-policies/"+p["id"].(string), M{"edgeRouterRoles": []string{"#others"}}).Want(200)
	}
	c = connect()
	await(t, c, "what cannot be is ended", func(k scripted.Known) bool { return k.Circuits[invented] == nil })
	if !is(false)() {
		t.Error("a circuit is listed of one who may not use the router")
	}
	c.Close()
	routes := &message.Route{}
	for i := range 50_000 {
		routes.Forwards = append(routes.Forwards, message.Forward{From: servertest.Unique("f")[:9] + string(rune('a'+i%26)), To: "t"})
	}
	has = map[string]*message.Route{invented: routes}
	c = connect()
	await(t, c, "what has too many routes is ended", func(k scripted.Known) bool { return k.Circuits[invented] == nil })
	if !s.Logged("it says that a circuit has") {
		t.Error("the log does not name a router that says too much")
	}
}
