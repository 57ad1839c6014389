package link

import (
	"errors"
	"fmt"
	"time"

	"netkeep.internal/internal/wire/message"
)

// Times of links that do the same. The end that dialled goes first, so that it
// is the one that says why.
const (
	spareWait    = 30 * time.Second // until one that was accepted and is not needed is closed
	leaveDialled = 60 * time.Second // for circuits to move before one that was replaced is closed
	leaveOther   = 75 * time.Second
	// maxRejected is how often a link is preferred to others that do the same.
	// A peer that tries more often has reasons not to like it.
	maxRejected = 5
	// settled is how long a link must last to be worth dialling again at once.
	settled = 10 * time.Second
	// yield is how long the end that did not dial waits for the one that did,
	// when a link is lost: else there would be two.
	yield = time.Second
)

var (
	errDuplicate = errors.New("span: there is a link that does the same")
	errLeaving   = errors.New("span: another link has taken its place")
	errSpare     = errors.New("span: it is not needed beside another")
	errRedialled = errors.New("span: it was dialled again")
	errTaken     = errors.New("the id is another link's")
	errStale     = errors.New("it was dialled again since")
	errTooMany   = errors.New("there are too many links")
	errEnded     = errors.New("it has ended already")
)

// keyOf says what a link does: two with the same key do the same. It has to be
// what peers compute, of whom each speaks of the other.
func keyOf(dialer, protocol, peer, listener string) string {
	name := func(binding string) string {
		if binding == "" {
			return "default"
		}
		return binding
	}
	return fmt.Sprintf("%s->%s:%s->%s", name(dialer), protocol, peer, name(listener))
}

// add makes a link one of the router's. If there is one that does the same, the
// one with the smaller id stays: both ends see it so. An accepted link can be
// sent over as long as it is open, whether it stays or not: the peer may have
// told a controller of it already.
func (l *Links) add(k *Link) error {
	l.mu.Lock()
	old, err := l.place(k)
	l.mu.Unlock()
	if old != nil {
		old.close(errRedialled)
	}
	l.notify()
	return err
}

// place is add, with the mutex. It returns the link that has the same id.
func (l *Links) place(k *Link) (old *Link, err error) {
	old = l.byID[k.id]
	switch {
	case l.over.Err() != nil:
		return nil, errOver
	case old != nil && (old.peer != k.peer || old.dialled != k.dialled):
		return nil, errTaken
	case old != nil && old.iteration >= k.iteration:
		return nil, errStale
	case old == nil && (len(l.byID) >= maxLinks || len(l.byPeer[k.peer]) >= maxPerPeer):
		return nil, errTooMany
	}
	current := l.byKey[k.key]
	stays := current == nil || current == old || current.id >= k.id || current.rejected >= maxRejected
	if !stays && k.dialled {
		current.rejected++
		return nil, errDuplicate
	}
	if !k.state.CompareAndSwap(linkNew, linkOpen) {
		return nil, errEnded
	}
	l.byID[k.id] = k
	l.open.Set(k.id, k)
	if k.bundle != nil && !k.dialled {
		l.bundles[k.bundle.key()] = k
	}
	if l.byPeer[k.peer] == nil {
		l.byPeer[k.peer] = map[*Link]struct{}{}
	}
	l.byPeer[k.peer][k] = struct{}{}
	if !stays {
		current.rejected++
		l.closeLater(k, spareWait, errSpare)
		return old, nil
	}
	l.byKey[k.key] = k
	if k.dialled {
		l.news.links[k.id] = k
	}
	if current != nil && current != old {
		l.replaced(current)
	}
	return old, nil
}

// replaced has a link go, after circuits had time to move.
func (l *Links) replaced(k *Link) {
	k.leaving = true
	l.news.fault(message.Fault{Subject: message.FaultDuplicateLink, ID: k.id, Iteration: k.iteration})
	wait := leaveOther
	if k.dialled {
		wait = leaveDialled
	}
	l.closeLater(k, wait, errLeaving)
}

func (l *Links) closeLater(k *Link, wait time.Duration, reason error) {
	if k.closing != nil {
		k.closing.Stop()
	}
	k.closing = time.AfterFunc(wait, func() { k.close(reason) })
}

// closed takes a link out that has ended, and has it dialled again if there
// should be one. It was not open if it was never added.
func (l *Links) closed(k *Link, open bool, reason error) {
	if open {
		l.opt.Log.Info("link closed", "link", k.id, "router", k.peer, "iteration", k.iteration, "dialled", k.dialled, "reason", reason)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if !open {
		l.dropHalf(k)
		return
	}
	if k.closing != nil {
		k.closing.Stop()
	}
	if delete(l.byPeer[k.peer], k); len(l.byPeer[k.peer]) == 0 {
		delete(l.byPeer, k.peer)
	}
	if l.news.links[k.id] == k {
		delete(l.news.links, k.id)
	}
	delete(l.news.states, k)
	if k.bundle != nil && l.bundles[k.bundle.key()] == k {
		delete(l.bundles, k.bundle.key())
	}
	if l.byID[k.id] == k {
		delete(l.byID, k.id)
		l.open.Delete(k.id)
		l.news.fault(message.Fault{Subject: message.FaultLink, ID: k.id, Iteration: k.iteration})
		l.notify()
	}
	if l.byKey[k.key] != k {
		return
	}
	delete(l.byKey, k.key)
	if l.promote(k.peer, k.key) {
		return
	}
	if t := l.target(k.peer, k.key); t != nil {
		l.lost(t, k)
	}
}

// promote has a link stay that was not needed beside one that is gone.
func (l *Links) promote(peer, key string) bool {
	for k := range l.byPeer[peer] {
		if k.key == key && !k.leaving && k.closing != nil && k.closing.Stop() {
			k.closing = nil
			l.byKey[key] = k
			return true
		}
	}
	return false
}
