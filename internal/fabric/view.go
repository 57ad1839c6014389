package fabric

import (
	"context"

	"netkeep.internal/internal/fabric/circuit"
	"netkeep.internal/internal/fabric/link"
	"netkeep.internal/internal/fabric/seam"
)

// View is the fabric as the rest of the program sees it.
func (f *Fabric) View() seam.Fabric { return view{f} }

// view is a Fabric in the words of the seam.
type view struct{ fabric *Fabric }

func (v view) Links() []seam.Link {
	all := v.fabric.Links.All()
	links := make([]seam.Link, len(all))
	for i := range all {
		links[i] = v.link(&all[i])
	}
	return links
}

func (v view) Link(id string) (seam.Link, bool) {
	l, ok := v.fabric.Links.Get(id)
	if !ok {
		return seam.Link{}, false
	}
	return v.link(&l), true
}

func (v view) link(l *link.Link) seam.Link {
	conns := make([]seam.Conn, len(l.Conns))
	for i, c := range l.Conns {
		conns[i] = seam.Conn{Type: c.Type, Source: c.Local, Dest: c.Remote}
	}
	return seam.Link{
		ID: l.ID, From: l.From, To: l.To, Protocol: l.Protocol, Address: l.Address, Iteration: l.Iteration, Latency: l.Latency,
		Cost: l.Cost(), StaticCost: link.StaticCost, Since: l.Since, Usable: v.fabric.Links.Usable(*l), Conns: conns,
	}
}

func (v view) Circuits() []seam.Circuit {
	all := v.fabric.Circuits.All()
	circuits := make([]seam.Circuit, len(all))
	for i, c := range all {
		circuits[i] = circuitOf(c)
	}
	return circuits
}

func (v view) Circuit(id string) (seam.Circuit, bool) {
	c, ok := v.fabric.Circuits.Get(id)
	if !ok {
		return seam.Circuit{}, false
	}
	return circuitOf(c), true
}

func circuitOf(c *circuit.Circuit) seam.Circuit {
	return seam.Circuit{
		ID: c.ID, SessionID: c.SessionID, TerminatorID: c.TerminatorID, ServiceID: c.ServiceID, IdentityID: c.IdentityID, HostID: c.HostID,
		Tags: c.Tags(), Path: seam.Path{Cost: c.Cost, Routers: c.Path, Links: linksOf(c)}, Made: c.Made, Moved: c.Moved,
	}
}

// linksOf is one link between each two routers of a circuit; those are empty of
// one that is older than this controller until they are known.
func linksOf(c *circuit.Circuit) []string {
	if len(c.Links) == len(c.Path)-1 {
		return c.Links
	}
	links := make([]string, max(0, len(c.Path)-1))
	copy(links, c.Links)
	return links
}

// EndCircuit does not wait for what is on its way: a router would wait until
// nobody uses the circuit any more, and go on with one that is out of our hands.
func (v view) EndCircuit(id string) bool { return v.fabric.Circuits.End(id, true) }

func (v view) Path(from, to string) (seam.Path, bool) {
	p, ok := v.fabric.graph.Between(from, to)
	return seam.Path(p), ok
}

func (v view) Counts() (links, circuits int) { return v.fabric.Links.Len(), v.fabric.Circuits.Len() }

func (v view) Inspect(ctx context.Context, routerID string, names []string) (seam.Inspected, error) {
	r, ok := v.fabric.Get(routerID)
	if !ok {
		return seam.Inspected{}, seam.ErrAway
	}
	return r.InspectAll(ctx, names)
}
