package edge

import (
	"cmp"
	"slices"
)

// Host is a terminator of this router as who looks into it is shown it: without what
// the client showed to host.
type Host struct {
	ID         string `json:"id"`
	State      string `json:"state"`
	Instance   string `json:"instance"`
	Listener   string `json:"listenerId"`
	Cost       uint32 `json:"cost"`
	Numbers    bool   `json:"assignIds"`
	Flow       bool   `json:"useSdkXgress"`
	Inspects   bool   `json:"supportsInspect"`
	IdentityID string `json:"identityId"`
}

// Hosted are the terminators of this router.
func (d *Door) Hosted() []Host {
	d.hosts.mu.Lock()
	defer d.hosts.mu.Unlock()
	all := []Host{}
	for id, b := range d.hosts.byID {
		state := "establishing"
		if b.state == hosted {
			state = "established"
		}
		all = append(all, Host{
			ID: id, State: state, Instance: b.instance, Listener: b.listener, Cost: b.cost, Numbers: b.numbers, Flow: b.flow, Inspects: b.inspects, IdentityID: b.client.entry.IdentityID,
		})
	}
	slices.SortFunc(all, func(a, b Host) int { return cmp.Compare(a.ID, b.ID) })
	return all
}

// Client is somebody who is connected to this router.
type Client struct{ ID, IdentityID, Address string }

// Clients are those who are connected.
func (d *Door) Clients() (all []Client) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for id, c := range d.clients {
		all = append(all, Client{id, c.entry.IdentityID, c.ch.Remote()})
	}
	slices.SortFunc(all, func(a, b Client) int { return cmp.Compare(a.ID, b.ID) })
	return all
}
