package authn

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"fmt"
	"iter"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"netkeep.internal/internal/data/state"
	"netkeep.internal/internal/lang/fault"
	"netkeep.internal/internal/lang/kind"
	"netkeep.internal/internal/model"
)

// Caller is an identity with a live API session.
type Caller struct {
	session  *model.APISession
	identity *model.Identity
	token    string
	expires  time.Time
	lasts    time.Duration
	queries  []Query
}

// Session returns the caller's API session.
func (c *Caller) Session() *model.APISession { return c.session }

// Identity returns who the caller is.
func (c *Caller) Identity() *model.Identity { return c.identity }

// Token returns the token that the caller itself sent.
func (c *Caller) Token() string { return c.token }

// Expires is when the session ends if the caller does nothing more.
func (c *Caller) Expires() time.Time { return c.expires }

// Lasts is how long that is.
func (c *Caller) Lasts() time.Duration { return c.lasts }

// Queries are the factors that are still to be shown.
func (c *Caller) Queries() []Query { return c.queries }

// Complete reports whether every factor has been shown.
func (c *Caller) Complete() bool { return len(c.queries) == 0 }

// APISessions opens API sessions and recognises their tokens.
//
// A token is not stored: it is a keyed digest of the session's id, so that a
// copy of the store opens no session. The record holds a digest of the token,
// to find it by.
type APISessions struct {
	State  *state.State
	Tokens *Tokens
	// Keys are those of tokens: the first makes them, and sessions whose tokens the
	// others made are good too.
	Keys func() [][]byte
	// Signers make access tokens, which name sessions; nil if nobody logs in by
	// OpenID Connect.
	Signers Signers
	Timeout time.Duration
	// Lifetime is how long sessions last however much they are used; 0 for any
	// time.
	Lifetime time.Duration
	// Most is how many sessions one identity may have; 0 for any number.
	Most int
	// Mine, if set, reports whether it is this controller, of several, that removes
	// sessions which are over. Others step in when it does not.
	Mine func() bool
	Now  func() time.Time
	Log  *slog.Logger

	active sync.Map    // session id to *atomic.Int64, the time of the last request
	unsure atomic.Bool // whether what sessions rest on is to be looked at for all of them
}

// Request is what a client asks of its new session.
type Request struct {
	ConfigTypes []string // ids or names, or "all"
	EnvInfo     *model.EnvInfo
	SDKInfo     *model.SDKInfo
	Bearer      string // a JWT that came with the request
	// Apart has no router told of the session: it is for the APIs alone.
	Apart bool
	// Login is the login by OpenID Connect that the session is opened for, if it is,
	// and Client the program that has begun it. A login opens one session.
	Login, Client string
}

// Credentials is what a request shows of its sender.
type Credentials struct {
	Token  string
	Bearer string
}

// Open starts a session for somebody who has shown who they are.
func (s *APISessions) Open(ctx context.Context, by state.Author, p Proof, req Request) (*Caller, error) {
	if p.identity == nil {
		return nil, errDenied
	}
	by = By(p.identity).On(by)
	session, err := s.create(ctx, by, p, req)
	if fault.Is(err, fault.CodeNotFound) {
		return nil, errDenied // the identity was deleted meanwhile
	}
	if err != nil {
		return nil, err
	}
	s.makeRoom(ctx, session)
	return s.Verify(ctx, s.State.Snapshot(), Credentials{Token: s.Token(session), Bearer: req.Bearer})
}

// create stores a session, and in the same write what the client said of itself,
// unless the identity was shut out or lost its credential since it showed it.
func (s *APISessions) create(ctx context.Context, by state.Author, p Proof, req Request) (session *model.APISession, err error) {
	err = s.State.UpdateSessions(ctx, by, func(tx *state.Tx) (err error) {
		session, err = s.createIn(tx, by, p, req)
		return err
	})
	return session, err
}

func (s *APISessions) createIn(tx *state.Tx, by state.Author, p Proof, req Request) (*model.APISession, error) {
	session := *p.session
	if req.Login != "" {
		for range model.APISessions.Select(tx, "login", req.Login) {
			return nil, errReplayed
		}
		session.Login, session.Client = req.Login, req.Client
	}
	if _, flaw := stand(tx, &session, s.Now()); flaw != "" {
		return nil, flaw.denied()
	}
	mfa, has := model.MFAOf(tx, p.identity.ID)
	session.IPAddress, session.LastActivityAt = by.Source, kind.MomentOf(tx.Now())
	session.ConfigTypes = ResolveConfigTypes(tx, req.ConfigTypes)
	session.IsMFARequired = has && mfa.IsVerified
	session.Withheld = req.Apart || session.Fingerprint == ""
	if req.SDKInfo != nil {
		session.SDKInfo = *req.SDKInfo
	}
	session.ID = tx.NewSessionID()
	session.TokenHash = digest(KeyedToken(s.Keys()[0], session.ID))
	if err := model.Remember(tx, session.IdentityID, req.EnvInfo, req.SDKInfo, tx.Now()); err != nil {
		return nil, err
	}
	return &session, model.APISessions.Create(tx, &session)
}

// ResolveConfigTypes turns names of config types into ids and drops what does not exist.
func ResolveConfigTypes(r kind.Reader, asked []string) []string {
	if slices.Contains(asked, model.AllConfigTypes) {
		return []string{model.AllConfigTypes}
	}
	ids := []string{}
	for _, a := range asked {
		t, ok := model.ConfigTypes.Get(r, a)
		if !ok {
			t, ok = model.ConfigTypes.Find(r, "name", a)
		}
		if ok && !slices.Contains(ids, t.ID) {
			ids = append(ids, t.ID)
		}
	}
	return ids
}

// Token returns the token of a session: the one that it was taken over with, or the one
// by the key that made it.
func (s *APISessions) Token(session *model.APISession) (token string) {
	if session.Brought != "" {
		return session.Brought
	}
	keys := s.Keys()
	for _, key := range keys {
		token = KeyedToken(key, session.ID)
		if len(keys) == 1 || digest(token) == session.TokenHash {
			return token
		}
	}
	return token // which nobody has
}

// Aged reports whether the token of a session was made by another key than tokens
// are now, or by another controller that nobody asks any more.
func (s *APISessions) Aged(session *model.APISession) bool {
	return digest(KeyedToken(s.Keys()[0], session.ID)) != session.TokenHash
}

// KeyedToken returns the token that goes with an id: a keyed digest in the
// shape of a random UUID. Who knows ids but not the key cannot make it up.
func KeyedToken(key []byte, id string) string {
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(id))
	return uuid([16]byte(mac.Sum(nil)))
}

// NewToken returns a random UUID.
func NewToken() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails
	return uuid(b)
}

// uuid writes sixteen bytes, random or as good as that, as a random UUID.
func uuid(b [16]byte) string {
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

func digest(token string) string { return model.TokenHash(token) }

var errNoSession = fault.New(fault.CodeUnauthorized, "there is no live session with this token; authenticate again")

// Verify returns who a token belongs to, and counts as activity.
func (s *APISessions) Verify(ctx context.Context, r kind.Reader, shown Credentials) (*Caller, error) {
	session, ok := s.Recall(r, shown.Token)
	if !ok {
		return nil, errNoSession
	}
	now := s.Now()
	proof, flaw := s.alive(r, session, now)
	if flaw != "" {
		return nil, errNoSession
	}
	s.touch(session.ID, now)
	who := &Caller{
		session: session, identity: proof.identity, token: shown.Token, lasts: s.Timeout,
		queries: s.outstanding(ctx, r, proof, session, shown.Bearer),
	}
	if end := s.end(proof); !end.IsZero() {
		who.lasts = min(who.lasts, end.Sub(now))
	}
	who.expires = now.Add(who.lasts)
	return who, nil
}

// byToken returns the API session with a token of its own, whether it is still good
// or not.
func byToken(r kind.Reader, token string) (*model.APISession, bool) {
	return model.APISessions.Find(r, "tokenHash", digest(token))
}

// IDOf returns the id of the API session with a token, whether it is still good
// or not.
func (s *APISessions) IDOf(r kind.Reader, token string) (id string, ok bool) {
	session, ok := s.Recall(r, token)
	if !ok {
		return "", false
	}
	return session.ID, true
}

// LastActivity is when the session was last used. Another controller may have
// written down a later time than we know of.
func (s *APISessions) LastActivity(session *model.APISession) time.Time {
	if v, ok := s.active.Load(session.ID); ok {
		if at := time.UnixMilli(v.(*atomic.Int64).Load()).UTC(); at.After(session.LastActivityAt.Time()) {
			return at
		}
	}
	return session.LastActivityAt.Time()
}

// LastSeen is when an identity was last there, as far as this controller knows; zero if
// it does not.
func (s *APISessions) LastSeen(r kind.Reader, identityID string) time.Time {
	at := model.LastSeen(r, identityID)
	for session := range model.APISessions.Select(r, "identityId", identityID) {
		if used := s.LastActivity(session); used.After(at) {
			at = used
		}
	}
	return at
}

func (s *APISessions) touch(id string, now time.Time) {
	v, ok := s.active.Load(id)
	if !ok {
		v, _ = s.active.LoadOrStore(id, new(atomic.Int64))
	}
	v.(*atomic.Int64).Store(now.UnixMilli())
}

// End removes a session.
func (s *APISessions) End(ctx context.Context, by state.Author, id string) error {
	err := s.State.Delete(ctx, by, model.APISessions.Def, id)
	if err == nil {
		s.active.Delete(id)
	}
	return err
}

// EndAll removes the sessions that an index files under key.
func (s *APISessions) EndAll(ctx context.Context, by state.Author, index, key string) error {
	return s.endThese(ctx, by, model.APISessions.Select(s.State.Snapshot(), index, key))
}

// endGroup is how many sessions are ended at a time. Writes that wait together
// share a commit.
const endGroup = 64

// endThese removes sessions, those that are gone already left out, and returns
// what went wrong with any of them.
func (s *APISessions) endThese(ctx context.Context, by state.Author, sessions iter.Seq[*model.APISession]) error {
	var (
		wg     sync.WaitGroup
		turns  = make(chan struct{}, endGroup)
		failed atomic.Pointer[error]
	)
	for session := range sessions {
		turns <- struct{}{}
		wg.Go(func() {
			defer func() { <-turns }()
			if err := s.End(ctx, by, session.ID); err != nil && !fault.Is(err, fault.CodeNotFound) {
				failed.Store(&err)
			}
		})
	}
	wg.Wait()
	if err := failed.Load(); err != nil {
		return *err
	}
	return nil
}
