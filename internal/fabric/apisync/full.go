package apisync

import (
	"encoding/json"
	"fmt"
	"iter"
	"time"

	"netkeep.internal/internal/data/state"
	"netkeep.internal/internal/fabric/control"
	"netkeep.internal/internal/model"
	"netkeep.internal/internal/policy/access"
	"netkeep.internal/internal/wire/message"
)

// chunk is how many API sessions one frame holds.
const chunk = 100

// start tells a router everything, from the beginning, if it is up to this
// controller.
func (s *Sync) start(r *control.Router) {
	s.mu.Lock()
	p := s.of(r)
	if !p.mine {
		s.mu.Unlock()
		r.Describe(func(p *model.Presence) { p.Sync = model.SyncDone })
		return
	}
	running := p.syncing
	p.syncing, p.again = true, running
	if running {
		p.held = nil
	}
	s.mu.Unlock()
	if !running {
		r.Describe(func(p *model.Presence) { p.Sync = model.Syncing })
		go s.tell(r, p)
	}
}

// tell sends everything, again if that was not enough, and then what changed
// meanwhile.
func (s *Sync) tell(r *control.Router, p *progress) {
	for {
		// Changes are held from here on, so none falls between.
		if err := s.sendAll(r, s.Permits.Timely(s.State.Snapshot())); err != nil {
			return // the connection is over
		}
		s.mu.Lock()
		if p.again {
			p.again, p.held = false, nil
			s.mu.Unlock()
			continue
		}
		for _, f := range p.held {
			_ = r.Send(f)
		}
		p.held, p.syncing = nil, false
		s.mu.Unlock()
		r.Describe(func(p *model.Presence) { p.Sync = model.SyncDone })
		return
	}
}

// sendAll sends the API sessions of a snapshot in chunks of one sync, whose id
// must sort behind those before.
func (s *Sync) sendAll(r *control.Router, snap *state.Snapshot) error {
	id, form := fmt.Sprintf("%019d", s.Now().UnixNano()), s.formOf(r)
	sequence := 0
	send := func(sessions []apiSession, last bool) error {
		state, err := json.Marshal(message.SyncState{ID: id, IsLast: last, Sequence: sequence})
		if err != nil {
			return err
		}
		f := form.added(sessions, true)
		f.Headers[message.HeaderSyncState] = state
		f.Headers.SetText(message.HeaderSyncStrategy, "instant")
		sequence++
		return r.SendWhenReady(f)
	}
	part := make([]apiSession, 0, chunk)
	for one := range s.usable(snap, r.ID) {
		if len(part) == chunk {
			if err := send(part, false); err != nil {
				return err
			}
			part = part[:0]
		}
		part = append(part, one)
	}
	return send(part, true)
}

// usable yields the API sessions that a router may let in, by id.
func (s *Sync) usable(snap *state.Snapshot, routerID string) iter.Seq[apiSession] {
	return func(yield func(apiSession) bool) {
		may := access.IdentitiesOfRouter(snap, routerID)
		for api := range model.APISessions.All(snap) {
			ord, ok := snap.Ordinal(model.Identities.Def, api.IdentityID)
			if !ok || api.IdentityID != routerID && (!may.Contains(ord) || !api.Told(snap)) {
				continue
			}
			if s.Sessions.Usable(snap, api) && !yield(s.describe(snap, api)) {
				return
			}
		}
	}
}

// apiSession is an API session as routers know it, which each is told in its form.
type apiSession struct {
	message.APISession
	bears bool // its holder shows access tokens
}

// describe is an API session as routers know it: with the certificates that its
// holder may show.
func (s *Sync) describe(snap *state.Snapshot, api *model.APISession) apiSession {
	return apiSession{message.APISession{
		ID: api.ID, IdentityID: api.IdentityID, Token: s.Sessions.Token(api), Fingerprints: fingerprints(snap, api, s.Now()),
	}, api.Client != ""}
}

func fingerprints(snap *state.Snapshot, api *model.APISession, now time.Time) []string {
	var all []string
	if own := api.Certificate(snap); own != "" {
		all = append(all, own)
	}
	for c := range model.SessionCertificates.Select(snap, "apiSessionId", api.ID) {
		if now.Before(c.ValidTo) {
			all = append(all, c.Fingerprint)
		}
	}
	return all
}
