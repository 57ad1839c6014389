package link

import (
	mathrand "math/rand/v2"
	"slices"
	"time"

	"netkeep.internal/internal/wire/channel"
	"netkeep.internal/internal/wire/message"
)

// protocol is the only one that links are made over.
const protocol = "tls"

// peer is another router that this one has reasons to dial.
type peer struct {
	id      string
	version string
	healthy bool
	since   time.Time          // that it is not
	targets map[string]*target // by key
}

// target is a link that there should be. It stays as long as the peer listens.
type target struct {
	peer     *peer
	key      string
	linkID   string
	listener message.Listener
	dialer   Dialer
	attempts uint32
	delay    time.Duration // after the last failure; 0 if it did not fail
	next     *time.Timer   // the next attempt
	dialling bool
	gone     bool
}

// forget stops all attempts.
func (t *target) forget() {
	t.gone = true
	if t.next != nil {
		t.next.Stop()
	}
}

// backOff is how attempts to dial are spaced.
type backOff struct {
	first, most time.Duration
	factor      float64
}

// Of a peer that a controller sees, and of one that it does not.
var (
	backOffHealthy   = backOff{5 * time.Second, 5 * time.Minute, 1.5}
	backOffUnhealthy = backOff{time.Minute, time.Hour, 10}
)

// after is how long to wait after one more failure. No two routers that fail
// at the same time try again at the same time.
func (b backOff) after(last time.Duration) time.Duration {
	factor := max(1, b.factor+mathrand.Float64()-0.5)
	return min(max(time.Duration(float64(last)*factor), b.first), b.most)
}

// forgetAfter is how long a peer is dialled that no controller sees: it may
// have been deleted when this router was not there to hear it.
const forgetAfter = 48 * time.Hour

// Peers takes note of how other routers are: of healthy ones also where they
// listen, all of it.
func (l *Links) Peers(m *message.PeerStates) {
	var closing []*Link
	l.mu.Lock()
	for i := range m.Changes {
		c := &m.Changes[i]
		switch {
		case c.ID == "" || c.ID == l.opt.ID || len(c.ID) > maxText || l.over.Err() != nil:
		case c.State == message.PeerHealthy:
			closing = append(closing, l.healthy(c)...)
		case c.State == message.PeerUnhealthy:
			l.unhealthy(c.ID)
		case c.State == message.PeerRemoved:
			closing = append(closing, l.removed(c.ID)...)
		}
	}
	l.mu.Unlock()
	for _, k := range closing {
		k.close(errUnwanted)
	}
}

// healthy has links made to where a peer listens, and returns those that are no
// longer wanted.
func (l *Links) healthy(c *message.PeerState) (closing []*Link) {
	wanted := l.wanted(c)
	p := l.peers[c.ID]
	if p == nil {
		if len(wanted) == 0 || len(l.peers) >= maxPeers {
			return nil
		}
		p = &peer{id: c.ID, targets: map[string]*target{}}
		l.peers[c.ID] = p
	}
	returned := !p.healthy
	p.healthy, p.version = true, clip(c.Version)
	for key, t := range p.targets {
		if wanted[key] == nil {
			t.forget()
			delete(p.targets, key)
			closing = append(closing, l.dialledBy(t)...)
		}
	}
	for key, t := range wanted {
		old := p.targets[key]
		switch {
		case old == nil:
			t.peer = p
			p.targets[key] = t
			l.schedule(t, 0)
		case old.listener.Address != t.listener.Address:
			old.listener, old.delay = t.listener, 0
			closing = append(closing, l.dialledBy(old)...)
			l.schedule(old, 0)
		case returned:
			old.delay = 0
			l.schedule(old, 0)
		}
	}
	if len(p.targets) == 0 {
		delete(l.peers, c.ID)
	}
	return closing
}

// wanted are the links that there should be to a peer, by key.
func (l *Links) wanted(c *message.PeerState) map[string]*target {
	wanted := map[string]*target{}
	for _, listener := range c.Listeners[:min(len(c.Listeners), maxListeners)] {
		if listener.Protocol != protocol || len(listener.Address) > maxText || len(listener.LocalBinding) > maxText {
			continue
		}
		for _, d := range l.opt.Dialers {
			key := keyOf(d.Binding, listener.Protocol, c.ID, listener.LocalBinding)
			if wanted[key] == nil && slices.ContainsFunc(d.Groups, func(g string) bool { return slices.Contains(listener.Groups, g) }) {
				wanted[key] = &target{key: key, linkID: channel.NewID(), listener: listener, dialer: d}
			}
		}
	}
	return wanted
}

// dialledBy is the link that was made for a target, if there is one. One that
// the peer has dialled does not depend on where the peer listens.
func (l *Links) dialledBy(t *target) []*Link {
	if k := l.byKey[t.key]; k != nil && k.dialled {
		return []*Link{k}
	}
	return nil
}

// unhealthy notes that no controller sees a peer. Its links stay.
func (l *Links) unhealthy(id string) {
	if p := l.peers[id]; p != nil && p.healthy {
		p.healthy, p.since = false, l.opt.Now()
	}
}

// removed forgets a peer that is in the network no more, and returns its links.
func (l *Links) removed(id string) (closing []*Link) {
	if p := l.peers[id]; p != nil {
		for _, t := range p.targets {
			t.forget()
		}
		delete(l.peers, id)
	}
	for k := range l.byPeer[id] {
		closing = append(closing, k)
	}
	return closing
}

// target is the one that a link was made for, nil if there is none.
func (l *Links) target(peerID, key string) *target {
	if p := l.peers[peerID]; p != nil {
		return p.targets[key]
	}
	return nil
}

// lost has a link made again that has ended: at once, unless it was hardly
// there.
func (l *Links) lost(t *target, k *Link) {
	switch {
	case l.opt.Now().Sub(k.since) < settled:
		l.failed(t)
	case k.dialled:
		t.delay = 0
		l.schedule(t, 0)
	default:
		t.delay = 0
		l.schedule(t, yield)
	}
}

// failed has a target dialled later.
func (l *Links) failed(t *target) {
	p := t.peer
	how := backOffHealthy
	if !p.healthy {
		how = backOffUnhealthy
		if l.opt.Now().Sub(p.since) > forgetAfter && len(l.byPeer[p.id]) == 0 {
			l.removed(p.id)
			return
		}
	}
	t.delay = how.after(t.delay)
	l.schedule(t, t.delay)
}

// schedule has a target dialled after a while, whatever was planned before.
func (l *Links) schedule(t *target, wait time.Duration) {
	if t.next != nil {
		t.next.Stop()
	}
	if !t.gone {
		t.next = time.AfterFunc(wait, func() { l.dial(t) })
	}
}
