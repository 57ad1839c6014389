package uplink

import (
	"context"
	"encoding/json"
	"log/slog"
	"slices"
	"sync"
	"time"

	"netkeep.internal/internal/wire"
	"netkeep.internal/internal/wire/channel"
	"netkeep.internal/internal/wire/message"
)

// APISession is an API session as a router knows it: by what, but not with
// what, a client shows that it has it.
type APISession struct {
	ID, IdentityID string
	// Fingerprints are those of the certificates that its holder may show.
	Fingerprints []string
}

// Allows reports whether the holder of a certificate may use the session.
func (s *APISession) Allows(fingerprint string) bool {
	return slices.Contains(s.Fingerprints, fingerprint)
}

// Sessions are the API sessions that the controller has told of. They outlast
// the connection: clients go on while the controller is away.
type Sessions struct {
	log *slog.Logger

	mu       sync.Mutex
	byDigest map[string]*entry
	byID     map[string]*entry
	waiting  map[string]chan struct{} // by digest; closed when it is there
	partial  map[string]bool          // ids that a sync under way has told of; nil if there is none
	next     int                      // sequence of the part that is missing
	overdue  *time.Timer
	full     bool // whether more came than fits
}

type entry struct {
	APISession
	digest  string
	watched map[*watch]struct{}
}

// watch is somebody who relies on a session.
type watch struct {
	fingerprint string
	ended       func()
}

// Bounds. A client that has just got its token may be here before the news of
// it, but not for longer.
const (
	awaitWait   = 5 * time.Second
	maxWaiting  = 10_000
	maxSessions = 1_000_000
	// syncWait is how long all parts of a sync may take.
	syncWait = 20 * time.Second
)

func newSessions(log *slog.Logger) *Sessions {
	return &Sessions{log: log, byDigest: map[string]*entry{}, byID: map[string]*entry{}, waiting: map[string]chan struct{}{}}
}

// Len is how many are known.
func (s *Sessions) Len() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.byID)
}

// Await returns the API session with a token. It waits a while for one that is
// not known yet.
func (s *Sessions) Await(ctx context.Context, token string) (APISession, bool) {
	digest := message.Digest(token)
	ctx, cancel := context.WithTimeout(ctx, awaitWait)
	defer cancel()
	for {
		found, there, ok := s.find(digest)
		if ok || there == nil {
			return found, ok
		}
		select {
		case <-there:
		case <-ctx.Done():
			s.giveUp(digest, there)
			return APISession{}, false
		}
	}
}

// find returns a session, or what tells when it is there; neither if too many
// wait.
func (s *Sessions) find(digest string) (APISession, chan struct{}, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if e := s.byDigest[digest]; e != nil {
		return e.APISession, nil, true
	}
	there := s.waiting[digest]
	if there == nil && len(s.waiting) < maxWaiting {
		there = make(chan struct{})
		s.waiting[digest] = there
	}
	return APISession{}, there, false
}

// giveUp forgets those who wait for a session: whoever else does comes back.
func (s *Sessions) giveUp(digest string, there chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.waiting[digest] == there {
		delete(s.waiting, digest)
		close(there)
	}
}

// Watch has ended called, once, as soon as the session is over or a certificate
// no longer belongs to it; it must not wait. It reports false if that is so
// already: nothing falls between the look at a session and the watch. stop
// ends it.
func (s *Sessions) Watch(id, fingerprint string, ended func()) (stop func(), ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.byID[id]
	if e == nil || !e.Allows(fingerprint) {
		return nil, false
	}
	w := &watch{fingerprint, ended}
	if e.watched == nil {
		e.watched = map[*watch]struct{}{}
	}
	e.watched[w] = struct{}{}
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(e.watched, w)
	}, true
}

// keep takes note of API sessions, which may be known already.
func (s *Sessions) keep(told []message.APISession) {
	s.mu.Lock()
	var over []*watch
	for _, t := range told {
		over = append(over, s.put(t)...)
	}
	s.mu.Unlock()
	end(over)
}

// put takes note of one, and returns who can rely on it no more.
func (s *Sessions) put(t message.APISession) (over []*watch) {
	e := s.byID[t.ID]
	if e == nil {
		if len(s.byID) == maxSessions {
			if !s.full {
				s.log.Error("there are more API sessions than this router can know", "most", maxSessions)
			}
			s.full = true
			return nil
		}
		e = &entry{}
		s.byID[t.ID] = e
	}
	if s.partial != nil {
		s.partial[t.ID] = true
	}
	delete(s.byDigest, e.digest)
	e.digest = t.Token
	e.APISession = APISession{ID: t.ID, IdentityID: t.IdentityID, Fingerprints: t.Fingerprints}
	s.byDigest[e.digest] = e
	for w := range e.watched {
		if !e.Allows(w.fingerprint) {
			delete(e.watched, w)
			over = append(over, w)
		}
	}
	if there := s.waiting[e.digest]; there != nil {
		delete(s.waiting, e.digest)
		close(there)
	}
	return over
}

// remove forgets API sessions, by id or by digest.
func (s *Sessions) remove(ids, digests []string) {
	s.mu.Lock()
	var over []*watch
	for _, id := range ids {
		over = append(over, s.drop(s.byID[id])...)
	}
	for _, digest := range digests {
		over = append(over, s.drop(s.byDigest[digest])...)
	}
	s.mu.Unlock()
	end(over)
}

func (s *Sessions) drop(e *entry) (over []*watch) {
	if e == nil {
		return nil
	}
	delete(s.byID, e.ID)
	delete(s.byDigest, e.digest)
	delete(s.partial, e.ID)
	for w := range e.watched {
		over = append(over, w)
	}
	e.watched = nil
	s.full = false
	return over
}

func end(over []*watch) {
	for _, w := range over {
		w.ended()
	}
}

// added hears of API sessions: new ones, or a part of all that there are.
func (u *Uplink) added(c *channel.Channel, f *wire.Frame, m *message.APISessionsAdded) {
	sessions := digested(f, m.Sessions)
	if !m.Full {
		u.sessions.keep(sessions)
		return
	}
	var state message.SyncState
	again := func(why string) { _ = c.Send(frame(message.TypeResyncRequest, &message.ResyncRequest{Reason: why})) }
	if json.Unmarshal(f.Headers[message.HeaderSyncState], &state) != nil || !u.sessions.begin(state.Sequence, func() { again("parts of it did not arrive in time") }) {
		again("a part of it did not arrive")
		return
	}
	u.sessions.keep(sessions)
	if state.IsLast {
		u.sessions.complete()
	}
}

// begin takes note of a part of a sync. It reports false if it is not the next.
func (s *Sessions) begin(sequence int, late func()) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if sequence == 0 {
		s.stop()
		s.partial, s.next = map[string]bool{}, 0
		s.overdue = time.AfterFunc(syncWait, late)
	}
	if s.partial == nil || sequence != s.next {
		return false
	}
	s.next++
	return true
}

// complete forgets whatever a sync has not told of, nor anything since it
// began.
func (s *Sessions) complete() {
	s.mu.Lock()
	var over []*watch
	for id, e := range s.byID {
		if !s.partial[id] {
			over = append(over, s.drop(e)...)
		}
	}
	s.stop()
	s.mu.Unlock()
	end(over)
}

// stop ends the sync under way.
func (s *Sessions) stop() {
	if s.overdue != nil {
		s.overdue.Stop()
	}
	s.partial, s.overdue = nil, nil
}

// abandon gives up the sync under way: its connection is over.
func (s *Sessions) abandon() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stop()
}
