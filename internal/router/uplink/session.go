package uplink

import (
	"context"
	"encoding/json"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"netkeep.internal/internal/wire"
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

// Sessions are the API sessions that controllers have told of: one table, in
// which the last word counts. They outlast the connections: clients go on while
// controllers are away.
type Sessions struct {
	now func() time.Time
	log *slog.Logger
	// ask, if set, has a controller asked for the API session with a token; it
	// does not wait.
	ask func(token string)

	mu       sync.Mutex
	byDigest map[string]*entry
	byID     map[string]*entry
	waiting  map[string]chan struct{} // by digest; closed when it is there
	syncs    map[string]*partial      // under way, by controller
	full     bool                     // whether more came than fits
}

type entry struct {
	APISession
	digest  string
	from    string    // the controller that has told of it last
	told    time.Time // when that was
	watched map[*watch]struct{}
}

// partial is a controller's list of all API sessions, of which parts have come.
type partial struct {
	ids     map[string]bool // that were told of since it began, by anybody
	began   time.Time
	next    int // sequence of the part that is missing
	overdue *time.Timer
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
	// behind is how much older a controller's list of all may be than what another
	// one has told: what was told later is not gone because it is not in the list.
	behind = 30 * time.Second
)

// askAfter is when controllers are asked for an API session that none has told
// of.
var askAfter = []time.Duration{200 * time.Millisecond, 800 * time.Millisecond, 2 * time.Second}

func newSessions(now func() time.Time, log *slog.Logger) *Sessions {
	return &Sessions{
		now: now, log: log,
		byDigest: map[string]*entry{}, byID: map[string]*entry{}, waiting: map[string]chan struct{}{}, syncs: map[string]*partial{},
	}
}

// Len is how many are known.
func (s *Sessions) Len() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.byID)
}

// Await returns the API session with a token. It waits a while for one that is
// not known yet, and has controllers asked for it: who tells this router of API
// sessions may not know it yet, or be gone.
func (s *Sessions) Await(ctx context.Context, token string) (APISession, bool) {
	digest := message.Digest(token)
	ctx, cancel := context.WithTimeout(ctx, awaitWait)
	defer cancel()
	var later *time.Timer
	var ask <-chan time.Time
	for asked := 0; ; {
		found, there, ok := s.find(digest)
		if ok || there == nil {
			return found, ok
		}
		if later == nil && s.ask != nil {
			later = time.NewTimer(firstAsk(token))
			defer later.Stop()
			ask = later.C
		}
		select {
		case <-there:
		case <-ask:
			s.ask(token)
			if asked++; asked < len(askAfter) {
				later.Reset(askAfter[asked])
			}
		case <-ctx.Done():
			s.giveUp(digest, there)
			return APISession{}, false
		}
	}
}

// firstAsk is when controllers are asked for the API session with a token first: at
// once for one that names its session, of which none tells by itself.
func firstAsk(token string) time.Duration {
	if strings.Contains(token, ".") {
		return 0
	}
	return askAfter[0]
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

// keep takes note of API sessions that a controller tells of, which may be known
// already.
func (s *Sessions) keep(from string, told []message.APISession) {
	s.mu.Lock()
	now := s.now()
	var over []*watch
	for _, t := range told {
		over = append(over, s.put(from, now, t)...)
	}
	s.mu.Unlock()
	end(over)
}

// put takes note of one, and returns who can rely on it no more.
func (s *Sessions) put(from string, now time.Time, t message.APISession) (over []*watch) {
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
	for _, p := range s.syncs {
		p.ids[t.ID] = true
	}
	delete(s.byDigest, e.digest)
	e.digest, e.from, e.told = t.Token, from, now
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
	for _, p := range s.syncs {
		delete(p.ids, e.ID)
	}
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
func (u *Uplink) added(l *line, f *wire.Frame, m *message.APISessionsAdded) {
	sessions := digested(f, m.Sessions)
	if !m.Full {
		u.sessions.keep(l.id, sessions)
		return
	}
	var state message.SyncState
	again := func(why string) { _ = l.Send(frame(message.TypeResyncRequest, &message.ResyncRequest{Reason: why})) }
	if json.Unmarshal(f.Headers[message.HeaderSyncState], &state) != nil || !u.sessions.begin(l.id, state.Sequence, func() { again("parts of it did not arrive in time") }) {
		again("a part of it did not arrive")
		return
	}
	u.sessions.keep(l.id, sessions)
	if state.IsLast && u.sessions.complete(l.id) {
		// What others have told lately may be gone or not.
		time.AfterFunc(behind, func() { again("other controllers told of more") })
	}
}

// begin takes note of a part of a controller's sync. It reports false if it is
// not the next.
func (s *Sessions) begin(from string, sequence int, late func()) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if sequence == 0 {
		s.stop(from)
		s.syncs[from] = &partial{ids: map[string]bool{}, began: s.now(), overdue: time.AfterFunc(syncWait, late)}
	}
	p := s.syncs[from]
	if p == nil || sequence != p.next {
		return false
	}
	p.next++
	return true
}

// complete forgets whatever a controller's sync has not told of, nor anybody
// since it began. What another controller has told shortly before it may not have
// heard of: that stays, and unsure is true.
func (s *Sessions) complete(from string) (unsure bool) {
	s.mu.Lock()
	p := s.syncs[from]
	var over []*watch
	for id, e := range s.byID {
		switch {
		case p.ids[id]:
		case e.from != from && p.began.Sub(e.told) < behind:
			unsure = true
		default:
			over = append(over, s.drop(e)...)
		}
	}
	s.stop(from)
	s.mu.Unlock()
	end(over)
	return unsure
}

// stop ends a controller's sync that is under way.
func (s *Sessions) stop(from string) {
	if p := s.syncs[from]; p != nil {
		p.overdue.Stop()
		delete(s.syncs, from)
	}
}

// abandon gives up a controller's sync that is under way: its connection is over.
func (s *Sessions) abandon(from string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stop(from)
}

// maxFinding is how many API sessions controllers are asked for at once. Whoever
// shows tokens that there are not must not keep them from other work.
const maxFinding = 32

// findAPISession asks a controller for the API session with a token, unless it
// asks for too many.
func (u *Uplink) findAPISession(token string) {
	select {
	case u.finding <- struct{}{}:
	default:
		return
	}
	go func() {
		defer func() { <-u.finding }()
		var asked []*line
		for {
			l := u.quickest(asked)
			if l == nil {
				return
			}
			if asked = append(asked, l); l.finds && u.findAt(l, token) {
				return
			}
		}
	}()
}

// findAt asks one controller, and reports whether it has answered.
func (u *Uplink) findAt(l *line, token string) bool {
	ctx, cancel := context.WithTimeout(l.Context(), patience)
	defer cancel()
	f := &wire.Frame{Type: message.TypeFindAPISession, Headers: wire.Headers{}}
	f.Headers.SetText(message.HeaderAPISessionToken, token)
	reply, err := l.request(ctx, f)
	if err != nil {
		return false
	}
	if reply.Type == message.TypeAPISessionsAdded {
		if m, err := message.Unmarshal[message.APISessionsAdded](reply.Body); err == nil {
			u.sessions.keep(l.id, digested(reply, m.Sessions))
		}
	}
	return true
}
