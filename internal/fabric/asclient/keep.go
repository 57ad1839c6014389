package asclient

import (
	"context"
	"iter"
	"time"

	"netkeep.internal/internal/data/state"
	"netkeep.internal/internal/fabric/control"
	"netkeep.internal/internal/fabric/permit"
	"netkeep.internal/internal/fabric/terminator"
	"netkeep.internal/internal/model"
	"netkeep.internal/internal/wire"
	"netkeep.internal/internal/wire/message"
)

// Routers that go by the data model know nothing of sessions: they host as long
// as they know of nothing else. So their sessions are kept in use here as long
// as they are connected, and replaced when they end though the router still may.

// often is how often sessions are used, which must be before the shortest that
// there may be have ended.
const often = 20 * time.Second

// Keep keeps the sessions of connected routers in use, until ctx ends.
func (t *Tunnels) Keep(ctx context.Context) {
	tick := time.NewTicker(often)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		snap := t.State.Snapshot()
		for r := range t.ignorant() {
			if clientOnce(snap, r.ID) {
				r.Go(func(ctx context.Context) { t.use(ctx, r) })
			}
		}
	}
}

// ignorant yields the connected routers that know nothing of sessions. They may
// host without having said so on this connection.
func (t *Tunnels) ignorant() iter.Seq[*control.Router] {
	return func(yield func(*control.Router) bool) {
		for _, r := range t.Routers.All() {
			if r.Modelled() && !yield(r) {
				return
			}
		}
	}
}

// clientOnce reports whether a router has an API session of its own, and so has
// been a client.
func clientOnce(snap *state.Snapshot, routerID string) bool {
	for range model.APISessions.Select(snap, "identityId", routerID) {
		return true
	}
	return false
}

// use counts as use of a router's API session. One that may have none any more
// needs none.
func (t *Tunnels) use(ctx context.Context, r *control.Router) {
	_, err := t.enter(ctx, r, r.Author("keepTunnelSession", new(wire.Frame)))
	if _, refused := permit.AsRefusal(err); err != nil && !refused {
		t.Log.Warn("the session of a router was not kept in use; that is tried again", "router", r.ID, "error", err)
	}
}

// renew has a router go on that hosts with a session that has ended, if it may.
func (t *Tunnels) renew(snap *state.Snapshot, r *control.Router, s *model.Session) {
	for host := range model.Terminators.Select(snap, "sessionId", s.ID) {
		t.offerAgain(r, host)
	}
}

// Review has routers go on that host with sessions that have ended unheard.
func (t *Tunnels) Review(snap *state.Snapshot) {
	for r := range t.ignorant() {
		for host := range model.Terminators.Select(snap, "router", r.ID) {
			if _, there := model.Sessions.Get(snap, host.SessionID); !there {
				t.offerAgain(r, host)
			}
		}
	}
}

// offerAgain does what a router would do that learned that its session is over.
func (t *Tunnels) offerAgain(r *control.Router, host *model.Terminator) {
	if host.RouterID != r.ID || !own(r)(host) {
		return
	}
	offer := terminator.Offer{
		Address: host.Address, Cost: uint32(host.Cost), Precedence: message.PrecedenceOf(host.Precedence),
		InstanceID: host.Identity, InstanceSecret: host.IdentitySecret, PeerData: map[uint32][]byte{},
	}
	for _, d := range host.PeerData {
		offer.PeerData[uint32(d.Key)] = d.Value
	}
	started := r.Go(func(ctx context.Context) {
		_, err := t.host(ctx, r, new(wire.Frame), request{serviceID: host.ServiceID}, offer)
		if _, refused := permit.AsRefusal(err); err != nil && !refused {
			t.startOver(r, err)
		}
	})
	if !started {
		t.startOver(r, nil)
	}
}

// startOver has a router connect again, upon which it says what it hosts.
func (t *Tunnels) startOver(r *control.Router, err error) {
	t.Log.Warn("what a router hosts could not be written down with another session; it has to connect again", "router", r.ID, "error", err)
	t.Routers.Drop(r.ID, "")
}
