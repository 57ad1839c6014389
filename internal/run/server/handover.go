package server

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"

	"netkeep.internal/internal/data/keyring"
	"netkeep.internal/internal/data/owner"
	"netkeep.internal/internal/fabric/roster"
	"netkeep.internal/internal/pki"
)

const (
	// handoverWait is how long a start waits until another controller has sealed
	// the keys that this one lacks, and handoverAgain how often it looks.
	handoverWait  = time.Minute
	handoverAgain = 250 * time.Millisecond
	// shareTime is how long the store may take.
	shareTime = 5 * time.Second
)

// catchUp gets the keys that other controllers have shared while this one was
// away, before anything is read with those that it has.
func (s *Server) catchUp(ctx context.Context) error {
	dir := s.dir.sub(keysDir)
	if !s.cfg.Shared() {
		if pki.Shares(dir) {
			return pki.StopSharing(dir)
		}
		return nil
	}
	id, err := os.ReadFile(s.dir.sub(controllerFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil // it was never one of several; it does so when it is known which it is
	}
	if err != nil {
		return fmt.Errorf("data directory: %w", err)
	}
	keys, err := pki.Read(dir)
	if err != nil || keys == nil {
		return err
	}
	root, err := owner.Root(ctx, s.store)
	if err != nil || root != rootName(keys.Origin) {
		return err // of which more is said later
	}
	return s.settleKeys(ctx, strings.TrimSpace(string(id)))
}

// settleKeys says which keys this controller has, and returns when it has those of
// the network. Nobody goes further without it from then on.
func (s *Server) settleKeys(ctx context.Context, id string) (err error) {
	if !s.cfg.Shared() {
		return nil
	}
	if s.handover == nil {
		if s.handover, err = pki.OpenHandover(s.dir.sub(keysDir)); err != nil {
			return err
		}
	}
	late := time.Now().Add(handoverWait)
	if s.keepsAlone(ctx) {
		late = time.Now()
	}
	for ; ; waitFor(ctx, handoverAgain) {
		own, err := pki.ReadBundle(s.dir.sub(keysDir))
		if err != nil {
			return err
		}
		ring, err := s.tell(ctx, id, own)
		if err == nil && ring.Generation <= own.Generation() || errors.Is(err, errRemoved) {
			return err
		}
		took := false
		if err == nil {
			took, err = s.takeShared(ctx, id, ring, own)
		}
		switch {
		case ctx.Err() != nil:
			return errors.Join(err, ctx.Err())
		case err == nil && took || time.Now().Before(late): // the store may be without a leader for a moment
		case err != nil:
			return err
		case ring.Generation == own.Generation()+1:
			s.log.Warn("the keys of the network have changed, and no other controller is there to hand the new ones over: this one goes on with those it has, which are still good")
			return nil
		default:
			return fmt.Errorf("the keys in %s are of before the last changes (%d, and the network has %d), and no other controller has handed over those of now: start one that has them; if there is none, put a later backup of its pki directory there", s.dir.sub(keysDir), own.Generation(), ring.Generation)
		}
	}
}

// keepsAlone reports whether this controller keeps the store and no other does, so
// that there is nobody to wait for.
func (s *Server) keepsAlone(ctx context.Context) bool {
	own := s.members()
	if own == nil {
		return false
	}
	all, err := own.Members(ctx)
	return err == nil && len(all) == 1
}

// tell says to the others which keys this controller has.
func (s *Server) tell(ctx context.Context, id string, own pki.Bundle) (keyring.Ring, error) {
	return keyring.Change(ctx, s.store, time.Now(), func(r *keyring.Ring) (bool, error) {
		if slices.Contains(r.Removed, id) {
			return false, errRemoved
		}
		return s.say(r, id, own), nil
	})
}

// say notes which keys this controller has.
func (s *Server) say(r *keyring.Ring, id string, own pki.Bundle) bool {
	a := own.Authorities()
	changed := r.Say(id, keyring.Holder{
		Key: s.handover.Public(), Proof: s.handover.Proof(id, s.handover.Public()), Generation: own.Generation(), Digest: own.Digest(),
		Keys: keyring.Names{
			Root: rootName(a.Root), Intermediate: rootName(a.Intermediate),
			Session: own.SecretID(pki.SessionSecret), Seal: own.SecretID(pki.SealSecret), Cluster: clusterName(own),
		},
		Trusts: strings.Join(s.trusts, " "),
	})
	if r.Digest == "" && r.Generation == own.Generation() {
		r.Digest, changed = own.Digest(), true
	}
	return changed
}

// clusterName is by what people know the CA between members of the store; empty if
// there is none.
func clusterName(b pki.Bundle) string {
	if ca := b.Cluster().Current; ca != nil {
		return rootName(ca)
	}
	return ""
}

// handoverPurpose is what keys are sealed for.
func handoverPurpose(network, id string, generation int) string {
	return fmt.Sprintf("netkeep keys 1 %s %s %d", network, id, generation)
}

// takeShared takes over what is sealed for this controller; it is false if nothing
// is, or nothing that can be used.
func (s *Server) takeShared(ctx context.Context, id string, ring keyring.Ring, own pki.Bundle) (bool, error) {
	sealed := ring.Sealed[id]
	if sealed == nil {
		return false, nil
	}
	network := rootName(own.Authorities().Origin)
	next, err := s.handover.Open(sealed, handoverPurpose(network, id, ring.Generation))
	if err == nil && (next.Generation() != ring.Generation || next.Digest() != ring.Digest || rootName(next.Authorities().Origin) != network) {
		err = errors.New("they are not those that the others have")
	}
	if err != nil {
		s.log.Warn("keys that were handed over cannot be used; another controller has to seal them anew", "error", err)
		_, err = keyring.Change(ctx, s.store, time.Now(), func(r *keyring.Ring) (bool, error) {
			_, there := r.Sealed[id]
			delete(r.Sealed, id)
			return there, nil
		})
		return false, err
	}
	if err := next.Write(s.dir.sub(keysDir)); err != nil {
		return false, err
	}
	// At once, also while it starts: when the CA of before is trusted no more, a member
	// with a certificate of that could not reach the others.
	if err := s.renewPeer(); err != nil {
		s.peerLate.Store(true)
		return false, err
	}
	s.log.Info("keys were handed over by another controller", "generation", next.Generation(), "by", ring.By)
	return true, nil
}

// round is what is known when keys are looked after.
type round struct {
	own      pki.Bundle
	proposal pki.Bundle
	force    bool
	proposed bool
	list     []string // of all controllers
	now      time.Time
	bad      error // why what is proposed cannot be read
	refused  error // why it is not made
}

// shareKeys has all controllers get what has changed: what a command on this
// machine wants to change, what they lack, and what is to be used when all have it.
func (s *Server) shareKeys(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, shareTime)
	defer cancel()
	dir := s.dir.sub(keysDir)
	r := round{now: time.Now()}
	var err error
	if r.own, err = pki.ReadBundle(dir); err != nil {
		return err
	}
	r.proposal, r.force, r.proposed, r.bad = pki.Proposal(dir)
	all, _ := roster.List(s.state.Snapshot())
	for _, c := range all {
		r.list = append(r.list, c.ID)
	}
	ring, err := keyring.Change(ctx, s.store, r.now, func(ring *keyring.Ring) (bool, error) { return s.shareIn(ring, &r) })
	if err != nil {
		return err
	}
	if ring.Generation > r.own.Generation() {
		took, bad := s.takeShared(ctx, s.roster.ID(), ring, r.own)
		if err = errors.Join(err, bad); took {
			s.takeKeys(ctx)
			s.attest() // also of a CA between members, which nothing else follows
		}
	}
	err = errors.Join(err, s.sayKeys(ring, &r))
	if r.proposed { // whoever waits for that reads what was said
		err = errors.Join(err, pki.DropProposal(dir))
	}
	return err
}

// shareIn is what this controller changes of the record.
func (s *Server) shareIn(ring *keyring.Ring, r *round) (changed bool, err error) {
	changed = s.say(ring, s.roster.ID(), r.own)
	current := ring.Has(s.roster.ID())
	switch {
	case r.own.Generation() > ring.Generation: // it was changed while nobody could be told
		changed, err = true, s.publish(ring, r, r.own)
	case !current && s.keepsKeys(ring, r):
		s.log.Warn("keys of the network are lost with the controllers that had them: those of this controller are the network's from now on, and what was changed last has to be changed again", "lost", ring.Generation, "has", r.own.Generation())
		own, bad := r.own.After(ring.Generation)
		if bad != nil {
			return changed, bad
		}
		changed, err = true, s.publish(ring, r, own)
	case r.proposed:
		if r.refused = refuses(ring, r); r.refused == nil {
			changed, err = true, s.publish(ring, r, r.proposal)
		}
	case current && r.own.Next() != "" && len(ring.Lacking(r.list, r.now)) == 0 && usable(ring, r):
		next, bad := r.own.Advance()
		if bad != nil {
			return changed, bad
		}
		changed, err = true, s.publish(ring, r, next)
	case current: // any of those who have them does
		for id, h := range ring.Holders {
			if ring.Sealed[id] == nil && h.Generation < ring.Generation {
				sealed, bad := s.sealFor(ring, id, r.own)
				changed, err = changed || sealed, errors.Join(err, bad)
			}
		}
	}
	return ring.Tidy(r.list, r.now) || changed, err
}

// usable reports whether what waits can be used when all have it. Members of the
// store trust each other by what they were started with.
func usable(ring *keyring.Ring, r *round) bool {
	if r.own.Next() != pki.ClusterCA {
		return true
	}
	next := rootName(r.own.Cluster().Next)
	for id, h := range ring.Holders {
		if !h.Trusting(next) && (slices.Contains(r.list, id) || !h.Gone(r.now)) {
			return false
		}
	}
	return true
}

// keepsKeys reports whether nobody is left who could hand over what the record says
// that the network has, as after a snapshot was put back beside keys of before it.
func (s *Server) keepsKeys(ring *keyring.Ring, r *round) bool {
	id := s.roster.ID()
	for other, h := range ring.Holders {
		if other != id && !h.Gone(r.now) {
			return false
		}
	}
	return slices.Equal(r.list, []string{id}) && ring.Sealed[id] == nil && r.own.Generation()+1 >= ring.Generation
}

// refuses says why what a command wants to change cannot be.
func refuses(ring *keyring.Ring, r *round) error {
	lacking := ring.Lacking(r.list, r.now)
	switch {
	case r.bad != nil:
		return r.bad
	case r.proposal.Generation() != ring.Generation+1 || r.own.Generation() != ring.Generation:
		return errors.New("the keys were changed at another controller at the same moment: see netkeep keys status, and decide anew")
	case len(lacking) > 0 && !r.force:
		return errLacking(lacking)
	}
	return nil
}

// errLacking names controllers without which keys are not changed.
func errLacking(lacking []string) error {
	return fmt.Errorf("%s lacks the keys that were changed last, and would be cut off: start it, which gets them by itself, or take it out with netkeep cluster remove if it is gone for good", strings.Join(lacking, ", "))
}

// publish hands keys over to all controllers, this one among them.
func (s *Server) publish(ring *keyring.Ring, r *round, b pki.Bundle) error {
	ring.Generation, ring.Digest, ring.Next, ring.By, ring.At = b.Generation(), b.Digest(), b.Next(), s.roster.ID(), r.now.UTC().Truncate(time.Second)
	ring.Sealed = map[string][]byte{}
	var err error
	for id := range ring.Holders {
		_, bad := s.sealFor(ring, id, b)
		err = errors.Join(err, bad)
	}
	s.log.Info("the keys of the network change", "generation", b.Generation(), "waits", b.Next())
	return err
}

// sealFor seals keys for a controller; it is false if that has not shown that it is
// one.
func (s *Server) sealFor(ring *keyring.Ring, id string, b pki.Bundle) (bool, error) {
	h := ring.Holders[id]
	if !s.handover.Proven(id, h.Key, h.Proof) {
		s.log.Debug("a controller is not handed keys: what it says of itself is not proven with those that it should have", "controller", id)
		return false, nil
	}
	sealed, err := s.handover.SealFor(b, h.Key, handoverPurpose(rootName(b.Authorities().Origin), id, b.Generation()))
	if err != nil {
		return false, err
	}
	if ring.Sealed == nil {
		ring.Sealed = map[string][]byte{}
	}
	ring.Sealed[id] = sealed
	return true, nil
}
