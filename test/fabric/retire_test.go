package fabric

import (
	"context"
	"testing"

	"netkeep.internal/internal/ops/config"
	"netkeep.internal/internal/wire"
	"netkeep.internal/internal/wire/message"
	"netkeep.internal/test/scripted"
	"netkeep.internal/test/servertest"
)

// asks has a router of a mesh ask for a change of itself.
func (m *mesh) asks(router string, typ int32) {
	m.t.Helper()
	ctx, cancel := context.WithTimeout(m.t.Context(), soon)
	defer cancel()
	reply, err := m.routers[router].Request(ctx, &wire.Frame{Type: typ})
	must(m.t, err)
	if reply.Type != message.TypeResult || !reply.Headers.Bool(message.HeaderSuccess) {
		m.t.Fatalf("%d is answered with %+v: %s", typ, reply.Headers, reply.Body)
	}
}

// ends fails the test unless a dial at a router ends at a terminator.
func (m *mesh) ends(at, what, want string) {
	m.t.Helper()
	_, h, err := m.dialOn(m.t, m.routers[at])
	must(m.t, err)
	told, _ := h.Data(message.HeaderPeerData)
	if got := string(told[message.PeerSticky]); got != want {
		m.t.Errorf("%s: the circuit ends at %s, want %s", what, got, want)
	}
}

// TestPassedAround has a router in the middle ask to be left alone: new circuits
// take another way, however much that costs, and this one if there is no other.
func TestPassedAround(t *testing.T) {
	m := addMesh(t, servertest.Start(t), "ab", "bd", "ae", "ed")
	m.measure("a", "ae", 500)
	m.hostOn(t, m.routers["d"], servertest.Unique("t"))
	way := func(what, over string) {
		t.Helper()
		servertest.Eventually(t, soon, what, func() bool {
			id, _, err := m.dialOn(t, m.routers["a"])
			return err == nil && m.over(id, over)
		})
	}
	way("the cheaper way is taken", "b")
	m.asks("b", message.TypeQuiesce)
	way("the other way is taken", "e")
	m.fault("a", "ae")
	way("there is no other way", "b")
}

// TestQuiesce has a router ask that no circuits end at it, nor begin.
func TestQuiesce(t *testing.T) {
	dir := t.TempDir()
	first, err := servertest.Open(dir)
	must(t, err)
	m := addMesh(t, first, "ab")
	m.hostOn(t, m.routers["a"], "near")
	m.ends("a", "both are well", "near")
	m.asks("a", message.TypeQuiesce)
	m.ends("a", "there is no other way", "near")
	m.hostOn(t, m.routers["b"], "far")
	m.ends("b", "there is another way", "far")
	if _, _, err := m.dialOn(t, m.routers["a"]); !isRefused(err, message.CodeInvalidSession) {
		t.Errorf("it takes what another could: %v", err)
	}

	must(t, first.Close())
	second, err := servertest.Open(dir, func(c *config.Config) { c.Listen = first.Listening().String() })
	must(t, err)
	t.Cleanup(func() { must(t, second.Close()) })
	for _, name := range []string{"a", "b"} {
		was := m.routers[name]
		<-was.Done()
		m.records[name].Server = second
		m.connect(name, func(o *scripted.Options) {
			if _, o.Links = was.Has(); name == "b" {
				o.Links[m.id("ab")] = message.Link{ID: m.id("ab"), Destination: m.records["a"].ID}
			}
		})
	}
	m.link("ab", 1)
	m.ends("b", "the router and the controller have come back", "far")
	second.Admin(t).Patch(management+"edge-routers/"+m.records["a"].ID, M{"cost": 5}).Want(200)
	m.ends("b", "the router was changed otherwise", "far")
	m.asks("a", message.TypeDequiesce)
	m.ends("a", "it is back in use", "near")

	// One whose own tool is gone is taken back by its owner.
	m.asks("a", message.TypeQuiesce)
	quiesced := func() any {
		return second.Admin(t).Get("/fabric/v1/routers/" + m.records["a"].ID).Want(200).Data()["quiesced"]
	}
	if quiesced() != true {
		t.Error("nobody can see that it is out of use")
	}
	second.Admin(t).Post(management+"edge-routers/"+m.records["a"].ID+"/re-enroll", M{}).Want(200)
	if quiesced() != false {
		t.Error("it stays out of use when it is enrolled anew")
	}
}

// TestDecommission has a router ask to be deleted: it is, with what it has, and
// no other.
func TestDecommission(t *testing.T) {
	s := servertest.Start(t)
	m := addMesh(t, s, "ab")
	m.hostOn(t, m.routers["b"], "far")
	must(t, m.routers["b"].Send(&wire.Frame{Type: message.TypeDecommission}))
	<-m.routers["b"].Done()
	for _, gone := range []string{"edge-routers/" + m.records["b"].ID, "routers/" + m.records["b"].ID, "terminators/far"} {
		s.Admin(t).Get(management + gone).Want(404)
	}
	s.Admin(t).Get(management + "edge-routers/" + m.records["a"].ID).Want(200)
	if _, _, err := m.dialOn(t, m.routers["a"]); !isRefused(err, message.CodeInvalidTerminator) {
		t.Errorf("its host can be dialled: %v", err)
	}
}
