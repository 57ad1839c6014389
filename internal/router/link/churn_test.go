package link

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"netkeep.internal/internal/wire"
	"netkeep.internal/internal/wire/channel"
	"netkeep.internal/internal/wire/message"
)

// ledger is what a controller knows of links: what routers tell, in its order.
type ledger map[string]uint32 // iterations by router that dialled and link

// hear takes what a router has told since the last time.
func (d *node) hear(known ledger) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, said := range d.said {
		switch said := said.(type) {
		case report:
			listed := map[string]bool{}
			for _, k := range said.links {
				name := d.id + " " + k.ID
				listed[name] = true
				known[name] = max(known[name], k.Iteration)
			}
			for name := range known {
				if said.complete && name[:1] == d.id && !listed[name] {
					delete(known, name)
				}
			}
		case message.Fault:
			for name, iteration := range known {
				if name[2:] == said.ID && said.Iteration >= iteration {
					delete(known, name)
				}
			}
		}
	}
	d.said = nil
}

// TestChurn has hours of mishaps between three routers: links are cut, a
// controller sees routers or does not, and is away itself. When all is well
// again there is one link between any two, and the controller knows it.
func TestChurn(t *testing.T) {
	for seed := range uint64(15) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				random := rand.New(rand.NewPCG(seed, 0))
				n := newNetwork(t)
				nodes := []*node{n.node("a", ""), n.node("b", ""), n.node("c", "")}
				for i, d := range nodes {
					d.opt.Strands = 1 + int(seed+uint64(i))%3
				}
				known := ledger{}
				any := func() *node { return nodes[random.IntN(len(nodes))] }
				for range 150 {
					n.mishap(any(), any(), random.IntN(9), random)
					pass(time.Duration(random.ExpFloat64() * float64(20*time.Second)))
					for _, d := range nodes {
						d.hear(known)
					}
				}
				for _, d := range nodes {
					was := false
					d.set(func() { was, d.connected, d.down = d.connected, true, false })
					if !was {
						d.Connected()
					}
				}
				for _, d := range nodes {
					for _, o := range nodes {
						d.Peers(&message.PeerStates{Changes: []message.PeerState{{ID: o.id, State: message.PeerUnhealthy}}})
						d.meets(o)
					}
				}
				pass(20 * time.Minute)
				want := ledger{}
				for _, d := range nodes {
					d.hear(known)
					if got := d.consistent(); got != "" {
						t.Error(got)
					}
					peers := map[string]int{}
					for _, k := range d.All() {
						peers[k.Peer()]++
						if k.bundle != nil && k.dialled && k.missing(d.opt.Strands) != "" {
							t.Errorf("%s has only %+v", k.ID(), k.conns())
						}
						if k.dialled {
							want[d.id+" "+k.ID()] = k.iteration
						}
					}
					if len(peers) != 2 || len(d.All()) != 2 {
						t.Errorf("%s is linked %v", d.id, peers)
					}
				}
				if len(want) != 3 || !maps.Equal(known, want) {
					t.Errorf("the controller knows %v, and there are %v", known, want)
				}
			})
		})
	}
}

// mishap is something that happens to two routers.
func (n *network) mishap(d, other *node, what int, random *rand.Rand) {
	switch what {
	case 0, 1: // a link breaks
		if all := d.All(); len(all) > 0 {
			all[random.IntN(len(all))].sever()
		}
	case 2: // nobody reaches it, or they do again
		d.set(func() { d.down = !d.down })
	case 3: // it loses its controller, or has it again
		back := false
		d.set(func() {
			d.connected = !d.connected
			back = d.connected
		})
		if back {
			d.Connected()
		}
	case 4, 5:
		d.meets(other)
	case 8: // one of several connections of a link breaks
		if all := d.All(); len(all) > 0 {
			s := all[random.IntN(len(all))].parts()
			if both := slices.Concat(s.data, s.acks); len(both) > 0 {
				both[random.IntN(len(both))].Close(nil)
			}
		}
	case 6:
		d.Peers(&message.PeerStates{Changes: []message.PeerState{{ID: other.id, State: message.PeerUnhealthy}}})
	case 7: // a controller has a link closed, which may be another by now
		if all := d.All(); len(all) > 0 {
			k := all[random.IntN(len(all))]
			d.Close(k.ID(), uint32(random.IntN(4)))
		}
	}
}

// consistent says what does not fit together in what a router keeps.
func (d *node) consistent() string {
	d.Links.mu.RLock()
	defer d.Links.mu.RUnlock()
	for key, k := range d.byKey {
		if d.byID[k.id] != k || k.key != key {
			return fmt.Sprintf("%s: the link %s of %s is not among its links", d.id, k.id, key)
		}
	}
	count := 0
	for peer, links := range d.byPeer {
		for k := range links {
			if count++; k.peer != peer || d.byID[k.id] != k {
				return fmt.Sprintf("%s: the link %s of %s is not among its links", d.id, k.id, peer)
			}
		}
	}
	for key, k := range d.bundles {
		if k.bundle.key() != key || d.byID[k.id] != k {
			return fmt.Sprintf("%s: connections are still added to the link %s", d.id, k.id)
		}
	}
	if count != len(d.byID) || len(d.halves) > 0 || d.gate.all > 0 {
		return fmt.Sprintf("%s: %d links of peers, %d links, %d halves, %d at the gate", d.id, count, len(d.byID), len(d.halves), d.gate.all)
	}
	return ""
}

// FuzzGreeting reads anything as a hello: what passes is short and plain.
func FuzzGreeting(f *testing.F) {
	f.Add("link", "router", "lo", "conn", "own", byte(1), []byte{1, 0, 0, 0})
	f.Add("", "own", "\n", "", "", byte(7), []byte(nil))
	f.Fuzz(func(t *testing.T, id, router, binding, conn, dialled string, split byte, iteration []byte) {
		h := wire.Headers{message.HeaderLinkIteration: iteration, message.HeaderLinkSplit: {split}}
		h.SetText(message.HeaderLinkRouter, router)
		h.SetText(message.HeaderLinkBinding, binding)
		h.SetText(message.HeaderLinkConn, conn)
		h.SetText(message.HeaderLinkDialed, dialled)
		g, err := readGreeting(&channel.Hello{ID: id, Headers: h}, "own")
		if err != nil {
			return
		}
		if g.linkID != id || g.routerID != router || router == "own" || router == "" || id == "" || dialled != "own" || g.split > splitAcks {
			t.Errorf("%+v passes", g)
		}
		if texts := []string{g.linkID, g.routerID, g.binding, g.conn}; slices.ContainsFunc(texts, func(s string) bool { return !plain(s) }) {
			t.Errorf("%+v passes", g)
		}
	})
}
