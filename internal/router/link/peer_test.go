package link

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"netkeep.internal/internal/wire/message"
)

// TestLost has a link be cut: it is dialled again at once, under its id, and
// both ends tell of the loss.
func TestLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork(t)
		a, b := n.node("a", ""), n.node("b", "")
		a.meets(b)
		pass(time.Minute)
		k := a.only()
		k.sever()
		synctest.Wait()
		again := a.only()
		if again == k || again.ID() != k.ID() || again.iteration != 2 {
			t.Fatalf("%s %d comes back as %s %d", k.ID(), k.iteration, again.ID(), again.iteration)
		}
		if b.only().iteration != 2 {
			t.Error("the other end has the old one")
		}
		want := []message.Fault{{Subject: message.FaultLink, ID: k.ID(), Iteration: 1}}
		if got := a.faulted(); !slices.Equal(got, want) {
			t.Errorf("who dialled tells of %v", got)
		}
		if got := a.told(); !slices.Equal(got, []string{k.ID() + " 1", k.ID() + " 2"}) {
			t.Errorf("who dialled tells of the links %v", got)
		}
		talk(t, a, b, k.ID())
	})
}

// TestYield has a link be cut that two routers both want: who dialled it does
// so again, and the other waits for that.
func TestYield(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork(t)
		a, b := n.node("a", ""), n.node("b", "")
		a.meets(b)
		synctest.Wait()
		b.meets(a)
		pass(time.Minute)
		a.only().sever()
		pass(time.Minute)
		synctest.Wait()
		if len(n.dials) != 2 || n.dials[1].from != "a" {
			t.Errorf("dialled were %v", n.dials)
		}
		a.only()
	})
}

// waits are how long a router waited between attempts.
func (n *network) waits() (waits []time.Duration) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for i := 1; i < len(n.dials); i++ {
		waits = append(waits, n.dials[i].at.Sub(n.dials[i-1].at))
	}
	n.dials = nil
	return waits
}

// TestBackOff dials routers that are not there, for days.
func TestBackOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork(t)
		a, b := n.node("a", ""), n.node("b", "")
		b.set(func() { b.down = true })
		a.meets(b)
		pass(2 * time.Hour)
		waits := n.waits()
		if len(waits) < 24 || len(waits) > 60 || waits[0] != 5*time.Second {
			t.Errorf("of two hours the waits were %v", waits)
		}
		for i := 1; i < len(waits); i++ {
			if waits[i] < waits[i-1] || waits[i] > 2*waits[i-1] || waits[i] > 5*time.Minute {
				t.Errorf("after a wait of %v came one of %v", waits[i-1], waits[i])
			}
		}
		if last := waits[len(waits)-1]; last != 5*time.Minute {
			t.Errorf("the last wait was %v", last)
		}

		a.Peers(&message.PeerStates{Changes: []message.PeerState{{ID: "b", State: message.PeerUnhealthy}}})
		pass(24 * time.Hour)
		waits = n.waits()
		if len(waits) < 22 || len(waits) > 26 || slices.Max(waits) != time.Hour {
			t.Errorf("of a day in which no controller saw the router the waits were %v", waits)
		}

		a.meets(b) // a controller sees it again
		synctest.Wait()
		if n.mu.Lock(); len(n.dials) != 1 {
			t.Errorf("a router that is back was dialled %d times at once", len(n.dials))
		}
		n.dials = nil
		n.mu.Unlock()

		a.Peers(&message.PeerStates{Changes: []message.PeerState{{ID: "b", State: message.PeerUnhealthy}}})
		pass(50 * time.Hour)
		n.waits()
		pass(50 * time.Hour)
		if waits := n.waits(); waits != nil || a.known() > 0 {
			t.Errorf("a router that nobody saw for days is dialled still: %v", waits)
		}
		a.meets(b)
		b.set(func() { b.down = false })
		pass(time.Minute)
		a.only()
	})
}

// TestShort has a peer that closes every link soon: it is not dialled in a loop.
func TestShort(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork(t)
		a, b := n.node("a", ""), n.node("b", "")
		a.meets(b)
		for range 600 {
			pass(time.Second)
			for _, k := range b.All() {
				k.close(errTold)
			}
		}
		if waits := n.waits(); len(waits) > 15 {
			t.Errorf("in ten minutes it was dialled %d times: %v", len(waits)+1, waits)
		}
	})
}

// TestPeerChanges has a peer listen elsewhere, nowhere, in another group, and
// be removed.
func TestPeerChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork(t)
		a, b := n.node("a", ""), n.node("b", "")
		a.meets(b)
		pass(time.Minute)
		first := a.only()

		a.meets(b) // as before
		synctest.Wait()
		if a.only() != first {
			t.Fatal("a link was closed for nothing")
		}
		a.Peers(&message.PeerStates{Changes: []message.PeerState{{ID: "b", State: message.PeerUnhealthy}}})
		synctest.Wait()
		if a.only() != first {
			t.Fatal("a link was closed because a controller does not see the peer")
		}

		b.at.Address = "tls:elsewhere:1"
		n.nodes[b.at.Address] = b
		a.meets(b)
		synctest.Wait()
		moved := a.only()
		if moved == first || moved.address != b.at.Address || moved.ID() != first.ID() {
			t.Fatalf("the link to %s is %s to %s now", first.address, moved.ID(), moved.address)
		}

		pass(time.Minute)
		b.at.Groups = []string{"others"}
		a.meets(b)
		pass(time.Hour)
		if len(a.ids()) > 0 || len(b.ids()) > 0 || a.known() > 0 {
			t.Fatalf("links without a group are %v, %v", a.ids(), b.ids())
		}

		b.at.Groups = []string{"others", DefaultGroup}
		a.meets(b)
		pass(time.Minute)
		b.meets(a) // it has a reason to dial, too
		a.Peers(&message.PeerStates{Changes: []message.PeerState{{ID: "b", State: message.PeerRemoved}}})
		b.Peers(&message.PeerStates{Changes: []message.PeerState{{ID: "a", State: message.PeerRemoved}}})
		pass(time.Hour)
		if len(a.ids()) > 0 || len(b.ids()) > 0 {
			t.Fatalf("links to routers that are removed: %v, %v", a.ids(), b.ids())
		}
	})
}

// TestAbsurdPeers are told of by nobody in their right mind.
func TestAbsurdPeers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork(t)
		a := n.node("a", "")
		states := []message.PeerState{a.state(), {}, {ID: "x"}, {ID: "y", Listeners: []message.Listener{
			{Address: "tls:y:1", Protocol: "dtls", Groups: []string{DefaultGroup}}, {Address: "tls:y:1", Protocol: "tls"},
		}}}
		many := message.PeerState{ID: "z"}
		for i := range 100 {
			many.Listeners = append(many.Listeners, message.Listener{Address: "tls:z:1", Protocol: "tls", Groups: []string{DefaultGroup}, LocalBinding: string(rune('0' + i))})
		}
		a.Peers(&message.PeerStates{Changes: append(states, many)})
		synctest.Wait()
		if len(a.peers) != 1 || len(a.peers["z"].targets) != maxListeners {
			t.Errorf("peers are %v", a.peers)
		}
	})
}

// TestTold has no controller be there for a while: it hears everything later.
func TestTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork(t)
		a, b, c := n.node("a", ""), n.node("b", ""), n.node("c", "")
		a.Connected()
		synctest.Wait()
		if len(a.reports) != 1 || !a.reports[0].complete || len(a.reports[0].links) > 0 {
			t.Fatalf("a new controller hears %v", a.reports)
		}
		a.meets(b, c)
		pass(time.Minute)
		links := a.All()
		a.set(func() { a.connected, a.reports = false, nil })
		for _, k := range links {
			k.sever()
		}
		pass(time.Minute)
		if len(a.faulted()) > 0 {
			t.Fatal("nobody can have heard of faults")
		}
		a.set(func() { a.connected = true })
		a.Connected()
		synctest.Wait()
		if len(a.reports) != 1 || !a.reports[0].complete || len(a.reports[0].links) != 2 || a.reports[0].links[0].Iteration != 2 {
			t.Errorf("a controller that is back hears %+v", a.reports)
		}
		if got := a.faulted(); len(got) != 2 || got[0].Iteration != 1 || got[0].Subject != message.FaultLink {
			t.Errorf("a controller that is back hears of the faults %v", got)
		}
		pass(time.Minute)
		if len(a.faulted()) != 2 {
			t.Error("what was told is told again")
		}
	})
}
