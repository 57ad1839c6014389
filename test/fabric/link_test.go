package fabric

import (
	"context"
	"strings"
	"testing"
	"time"

	"netkeep.internal/internal/model"
	"netkeep.internal/internal/wire"
	"netkeep.internal/internal/wire/message"
	"netkeep.internal/test/scripted"
	"netkeep.internal/test/servertest"
)

// mesh is routers with links between them, and a service.
type mesh struct {
	*network
	t       *testing.T
	records map[string]*router
	routers map[string]*scripted.Router
}

// addMesh makes routers with names of one letter that are linked as said: "ab
// bc" has b in the middle.
func addMesh(t *testing.T, s *servertest.Server, links ...string) *mesh {
	t.Helper()
	m := &mesh{t: t, records: map[string]*router{}, routers: map[string]*scripted.Router{}}
	for _, name := range strings.Split(strings.Join(links, ""), "") {
		if m.routers[name] == nil {
			m.records[name] = addRouter(t, s)
			m.connect(name)
		}
	}
	m.network = addNetwork(t, s)
	for _, link := range links {
		m.link(link, 1)
	}
	return m
}

// connect has a router connect, with what it had if it was there before.
func (m *mesh) connect(name string, change ...func(*scripted.Options)) {
	m.t.Helper()
	opt := append([]func(*scripted.Options){func(o *scripted.Options) { o.Listener = "tls:127.0.0.1:6262" }}, change...)
	m.routers[name] = m.records[name].Connect(m.t, opt...)
}

// link has the first of two routers tell of a link to the second, and both of
// how long it takes.
func (m *mesh) link(name string, milliseconds int) {
	m.t.Helper()
	from, to := name[:1], name[1:]
	must(m.t, m.routers[from].Link(message.Link{ID: m.id(name), Destination: m.records[to].ID, Protocol: "tls", DialAddress: "tls:127.0.0.1:6262", Iteration: 1}))
	m.settled(from)
	m.measure(from, name, milliseconds)
	m.measure(to, name, milliseconds)
}

// id is a link's.
func (m *mesh) id(name string) string { return name + "-" + m.service }

// settled returns when the controller has heard what a router has said.
func (m *mesh) settled(name string) {
	m.t.Helper()
	ctx, cancel := context.WithTimeout(m.t.Context(), soon)
	defer cancel()
	_, err := m.routers[name].Request(ctx, &wire.Frame{Type: message.TypePing})
	must(m.t, err)
}

func (m *mesh) measure(router, link string, milliseconds int) {
	m.t.Helper()
	must(m.t, m.routers[router].Send(&wire.Frame{Type: message.TypeMetrics, Body: message.Marshal(&message.Metrics{
		Histograms: map[string]message.Histogram{"link." + m.id(link) + ".latency": {Count: 1, Mean: float64(milliseconds) * 1e6}},
	})}))
	m.settled(router)
}

func (m *mesh) fault(router, link string) {
	m.t.Helper()
	must(m.t, m.routers[router].Fault(message.Fault{Subject: message.FaultLink, ID: m.id(link), Iteration: 1}))
	m.settled(router)
}

// carries waits until a router forwards a circuit between two of its links, or
// a link and an end if one of them is empty.
func (m *mesh) carries(name, id, from, to string) {
	m.t.Helper()
	await(m.t, m.routers[name], name+" leads the circuit from "+from+" to "+to, func(k scripted.Known) bool {
		route := k.Circuits[id]
		if route == nil || len(route.Forwards) != 2 {
			return false
		}
		there, back := route.Forwards[0], route.Forwards[1]
		ends := func(link, address string) bool { return link == "" || m.id(link) == address }
		return ends(from, there.From) && ends(to, there.To) && there.From == back.To && there.To == back.From
	})
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// TestPeers has routers told of each other.
func TestPeers(t *testing.T) {
	s := servertest.Start(t)
	first, second := addRouter(t, s), addRouter(t, s)
	listen := func(at string) func(*scripted.Options) {
		return func(o *scripted.Options) { o.Listener = at }
	}
	a := first.Connect(t, listen("tls:127.0.0.1:1001"))
	b := second.Connect(t, listen("tls:127.0.0.1:1002"), func(o *scripted.Options) { o.Grouped = true })
	healthy := func(c *scripted.Router, id, at string) {
		t.Helper()
		await(t, c, "it is told of the other", func(k scripted.Known) bool {
			p := k.Peers[id]
			return p.State == message.PeerHealthy && len(p.Listeners) == 1 && p.Listeners[0].Address == at && p.Version == "v1.6.20"
		})
	}
	healthy(a, second.ID, "tls:127.0.0.1:1002")
	healthy(b, first.ID, "tls:127.0.0.1:1001")
	is := func(c *scripted.Router, id string, state message.PeerHealth) {
		t.Helper()
		await(t, c, "it is told what became of the other", func(k scripted.Known) bool { return k.Peers[id].State == state })
	}
	b.Close()
	is(a, second.ID, message.PeerUnhealthy)
	b = second.Connect(t, listen("tls:127.0.0.1:1003"))
	healthy(a, second.ID, "tls:127.0.0.1:1003")
	await(t, b, "it is not told of itself", func(k scripted.Known) bool { return len(k.Peers) == 1 })
	s.Admin(t).Patch(management+"edge-routers/"+second.ID, M{"disabled": true}).Want(200)
	is(a, second.ID, message.PeerRemoved)
	s.Admin(t).Patch(management+"edge-routers/"+second.ID, M{"disabled": false}).Want(200)
	second.Connect(t, listen("tls:127.0.0.1:1003"))
	is(a, second.ID, message.PeerHealthy)
	s.Admin(t).Delete(management + "edge-routers/" + second.ID).Want(200)
	is(a, second.ID, message.PeerRemoved)
}

// TestPath dials over several routers, on the cheapest way.
func TestPath(t *testing.T) {
	m := addMesh(t, servertest.Start(t), "ab", "bc", "cd", "ae", "ed")
	m.link("ae", 1)
	m.measure("a", "ae", 50) // so the longer way is the better
	m.hostOn(t, m.routers["d"], servertest.Unique("t"))
	id, h, err := m.dialOn(t, m.routers["a"])
	must(t, err)
	m.carries("a", id, "", "ab")
	m.carries("b", id, "ab", "bc")
	m.carries("c", id, "bc", "cd")
	m.carries("d", id, "cd", "")
	await(t, m.routers["a"], "the dialer is told its own address", func(k scripted.Known) bool {
		return k.Circuits[id].Forwards[0].From == h.Text(message.HeaderCircuitAddress) && k.Circuits[id].Egress == nil
	})
	await(t, m.routers["d"], "the last router reaches the host", func(k scripted.Known) bool { return k.Circuits[id].Egress != nil })
	must(t, m.routers["d"].Fault(message.Fault{Subject: message.FaultEgress, ID: id}))
	for _, name := range []string{"a", "b", "c", "d"} {
		await(t, m.routers[name], "the circuit ends everywhere", func(k scripted.Known) bool { return len(k.Circuits) == 0 })
	}

	// What must not be passed through is not.
	m.Admin(t).Patch(management+"edge-routers/"+m.records["b"].ID, M{"noTraversal": true}).Want(200)
	servertest.Eventually(t, soon, "the way is around a router that takes no traffic of others", func() bool {
		id, _, err = m.dialOn(t, m.routers["a"])
		return err == nil && m.over(id, "e")
	})
}

// over reports whether a router carries a circuit.
func (m *mesh) over(id, name string) (does bool) {
	m.t.Helper()
	await(m.t, m.routers[name], "it is asked", func(k scripted.Known) bool {
		does = k.Circuits[id] != nil
		return true
	})
	return does
}

// TestReroute loses links and routers under a circuit.
func TestReroute(t *testing.T) {
	m := addMesh(t, servertest.Start(t), "ab", "bd", "ac", "cd")
	m.measure("a", "ac", 20)
	m.hostOn(t, m.routers["d"], servertest.Unique("t"))
	id, _, err := m.dialOn(t, m.routers["a"])
	must(t, err)
	m.carries("b", id, "ab", "bd")

	// A router that only cannot talk to us goes on.
	m.routers["b"].Close()
	m.offline("b")
	m.carries("a", id, "", "ab")
	carried := map[string]*message.Route{id: {CircuitID: id, Forwards: []message.Forward{{From: m.id("ab"), To: m.id("bd")}, {From: m.id("bd"), To: m.id("ab")}}}}
	links := map[string]message.Link{}
	for _, link := range []string{"ab", "bd"} {
		links[m.id(link)] = message.Link{ID: m.id(link), Destination: m.records["d"].ID, Iteration: 1}
	}
	m.connect("b", func(o *scripted.Options) { o.Circuits, o.Links = carried, links })

	m.fault("a", "ab")
	m.carries("a", id, "", "ac")
	m.carries("c", id, "ac", "cd")
	m.carries("d", id, "cd", "")
	await(t, m.routers["b"], "who is not on the path any more is told", func(k scripted.Known) bool {
		_, has := k.Links[m.id("ab")]
		return len(k.Circuits) == 0 && !has
	})

	// The last way is lost, and comes back.
	m.fault("c", "cd")
	m.link("ab", 1)
	m.carries("b", id, "ab", "bd")
	m.carries("a", id, "", "ab")

	// A better way does not tear it up.
	m.link("ac", 0)
	must(t, m.routers["c"].Link(message.Link{ID: m.id("cd"), Destination: m.records["d"].ID, Iteration: 2}))
	m.settled("c")
	m.carries("a", id, "", "ab")

	// A router that begins anew knows nothing of it, and is told again.
	m.connect("b", func(o *scripted.Options) { o.Links = links })
	servertest.Eventually(t, soon, "it is led somewhere", func() bool { return m.over(id, "b") || m.over(id, "c") })

	// A router goes for good.
	m.Admin(t).Delete(management + "edge-routers/" + m.records["b"].ID).Want(200)
	m.carries("c", id, "ac", "cd")

	// And the one where it is hosted.
	m.Admin(t).Delete(management + "edge-routers/" + m.records["d"].ID).Want(200)
	await(t, m.routers["a"], "the circuit ends", func(k scripted.Known) bool { return len(k.Circuits) == 0 })
}

// offline waits until the controller knows that a router is away.
func (m *mesh) offline(name string) {
	m.t.Helper()
	servertest.Eventually(m.t, soon, "the router is away", func() bool {
		return m.Admin(m.t).Get(management + "edge-routers/" + m.records[name].ID).Want(200).Data()["isOnline"] == false
	})
}

// TestForgottenForward has a router on the way ask again how a circuit goes.
func TestForgottenForward(t *testing.T) {
	m := addMesh(t, servertest.Start(t), "ab", "bc")
	m.hostOn(t, m.routers["c"], servertest.Unique("t"))
	id, _, err := m.dialOn(t, m.routers["a"])
	must(t, err)
	routes := make(chan *message.Route, 10)
	m.routers["b"].Heard(func(f *wire.Frame) {
		if route, err := message.Unmarshal[message.Route](f.Body); f.Type == message.TypeRoute && err == nil {
			routes <- route
		}
	})
	must(t, m.routers["b"].Fault(message.Fault{Subject: message.FaultForward, ID: id + " unknown"}))
	select {
	case route := <-routes:
		if route.CircuitID != id || route.Egress != nil || route.Attempt != 99969996 {
			t.Errorf("it is told %+v", route)
		}
	case <-time.After(soon):
		t.Error("it is not told again")
	}
}

// TestAdopted has routers tell a controller of a circuit that it does not know,
// as after its restart: it is put together again, and can be led elsewhere.
func TestAdopted(t *testing.T) {
	m := addMesh(t, servertest.Start(t), "ab", "bc", "ad", "dc")
	id := m.older()
	m.connect("a", m.carrying(id, "in.1", m.id("ab"), "ab", "ad"))
	m.connect("b", m.carrying(id, m.id("ab"), m.id("bc"), "ab", "bc"))
	m.connect("c", m.carrying(id, m.id("bc"), "out.1", "bc", "dc"))
	again := uint32(1)
	servertest.Eventually(t, soon, "the circuit is led elsewhere", func() bool {
		again++
		must(t, m.routers["b"].Link(message.Link{ID: m.id("bc"), Destination: m.records["c"].ID, Iteration: again}))
		must(t, m.routers["b"].Fault(message.Fault{Subject: message.FaultLink, ID: m.id("bc"), Iteration: again}))
		m.settled("b")
		return m.over(id, "d")
	})
	m.carries("a", id, "", "ad")
	m.carries("c", id, "dc", "")
	await(t, m.routers["b"], "who is not on the path any more is told", func(k scripted.Known) bool { return len(k.Circuits) == 0 })
}

// TestAdoptedInPart has the ends of a circuit come back to a controller that does
// not know it, and the router between them never: it is led around that.
func TestAdoptedInPart(t *testing.T) {
	m := addMesh(t, servertest.Start(t), "ab", "bc", "ad", "dc")
	id := m.older()
	m.routers["b"].Close()
	m.offline("b")
	m.connect("c", m.carrying(id, m.id("bc"), "out.1", "dc"))
	m.connect("a", m.carrying(id, "in.1", m.id("ab"), "ab", "ad"), func(o *scripted.Options) {
		// What it cannot forward it says before anything else.
		o.Then = func(r *scripted.Router) { must(t, r.Fault(message.Fault{Subject: message.FaultForward, ID: id})) }
	})
	servertest.Eventually(t, soon, "the circuit is led around", func() bool {
		must(t, m.routers["a"].Fault(message.Fault{Subject: message.FaultForward, ID: id}))
		m.settled("a")
		return m.over(id, "d")
	})
	m.carries("a", id, "", "ad")
	m.carries("c", id, "dc", "")
}

// older is the id of a circuit that the controller does not know.
func (m *mesh) older() string {
	m.t.Helper()
	session := func(typ string) string {
		list := m.Admin(m.t).Get(management + `sessions?filter=service="` + m.service + `"+and+type="` + typ + `"`).Want(200).List()
		return list[0]["id"].(string)
	}
	return "abcdefghijkl." + session(model.Dial) + "." + session(model.Bind)
}

// carrying has a router say that it leads a circuit from one address to another,
// and that it has some links.
func (m *mesh) carrying(id, from, to string, links ...string) func(*scripted.Options) {
	return func(o *scripted.Options) {
		o.Circuits = map[string]*message.Route{id: {CircuitID: id, Forwards: []message.Forward{{From: from, To: to}, {From: to, To: from}}}}
		o.Links = map[string]message.Link{}
		for _, name := range links {
			o.Links[m.id(name)] = message.Link{ID: m.id(name), Destination: m.records[name[1:]].ID, Iteration: 1}
		}
	}
}

// TestLinksOfOthers has a router lie about links.
func TestLinksOfOthers(t *testing.T) {
	m := addMesh(t, servertest.Start(t), "ab", "bc")
	liar := addRouter(t, m.Server)
	l := liar.Connect(t)
	m.hostOn(t, m.routers["c"], servertest.Unique("t"))
	id, _, err := m.dialOn(t, m.routers["a"])
	must(t, err)
	ping := func() {
		ctx, cancel := context.WithTimeout(t.Context(), soon)
		defer cancel()
		_, err := l.Request(ctx, &wire.Frame{Type: message.TypePing})
		must(t, err)
	}
	// It has no say about the link of others, nor about its latency.
	must(t, l.Fault(message.Fault{Subject: message.FaultLink, ID: m.id("ab"), Iteration: 9}))
	must(t, l.Link(message.Link{ID: m.id("ab"), Destination: m.records["b"].ID, Iteration: 9}))
	must(t, l.Fault(message.Fault{Subject: message.FaultIngress, ID: id}))
	must(t, l.Fault(message.Fault{Subject: message.FaultForward, ID: id}))
	// A link to somebody who is not there ends.
	must(t, l.Link(message.Link{ID: "to-nobody", Destination: "nobody", Iteration: 1}))
	await(t, l, "a link to nobody ends", func(k scripted.Known) bool { return k.Links["to-nobody"].ID == "" })
	ping()
	m.carries("a", id, "", "ab")
	again, _, err := m.dialOn(t, m.routers["a"])
	must(t, err)
	m.carries("b", again, "ab", "bc")

	// A short way that only one end knows of is none to prefer.
	must(t, l.Link(message.Link{ID: "short1", Destination: m.records["a"].ID, Iteration: 1}))
	must(t, l.Link(message.Link{ID: "short2", Destination: m.records["c"].ID, Iteration: 1}))
	must(t, l.Send(&wire.Frame{Type: message.TypeMetrics, Body: message.Marshal(&message.Metrics{
		Histograms: map[string]message.Histogram{"link.short1.latency": {Count: 1, Mean: 1}, "link.short2.latency": {Count: 1, Mean: 1}},
	})}))
	ping()
	again, _, err = m.dialOn(t, m.routers["a"])
	must(t, err)
	m.carries("b", again, "ab", "bc")

	// When it is shut out its links end, whoever dialled them.
	m.routers["a"].Close()
	m.offline("a")
	m.Admin(t).Delete(management + "edge-routers/" + liar.ID).Want(200)
	m.connect("a", func(o *scripted.Options) {
		o.Links = map[string]message.Link{"short1": {ID: "short1", Destination: liar.ID}}
	})
	await(t, m.routers["a"], "a neighbour that was away hears of it when it is back", func(k scripted.Known) bool {
		return k.Peers[liar.ID].State == message.PeerRemoved
	})
}

// TestVerifyRouter has a router ask who dials it: only the certificate that the
// dialling router showed counts, and only that of a router that may be there.
func TestVerifyRouter(t *testing.T) {
	s := servertest.Start(t)
	first, second, third := addRouter(t, s), addRouter(t, s), addRouter(t, s)
	c := first.Connect(t)
	shown := func(r *router) string { return r.Fingerprint(t) }
	is := func(fingerprints ...string) bool {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), soon)
		defer cancel()
		ask := &message.VerifyRouter{RouterID: second.ID, Fingerprints: fingerprints}
		reply, err := c.Request(ctx, &wire.Frame{Type: message.TypeVerifyRouter, Body: message.Marshal(ask)})
		must(t, err)
		return reply.Type == message.TypeResult && reply.Headers.Bool(message.HeaderSuccess)
	}
	switch {
	case !is(shown(second)):
		t.Error("a router is not believed its own certificate")
	case is(shown(third)) || is() || is(""):
		t.Error("a router passes for another")
	case is(shown(third), shown(second)):
		t.Error("a certificate counts that nobody has shown to hold")
	}
	s.Admin(t).Patch(management+"edge-routers/"+second.ID, M{"disabled": true}).Want(200)
	if is(shown(second)) {
		t.Error("a disabled router may dial others")
	}
}
