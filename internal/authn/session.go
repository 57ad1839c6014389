package authn

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"netkeep/internal/fault"
	"netkeep/internal/kind"
	"netkeep/internal/model"
	"netkeep/internal/state"
)

// Caller is an identity with a live API session.
type Caller struct {
	session  *model.APISession
	identity *model.Identity
	token    string
	expires  time.Time
}

// Session returns the caller's API session.
func (c *Caller) Session() *model.APISession { return c.session }

// Identity returns who the caller is.
func (c *Caller) Identity() *model.Identity { return c.identity }

// Token returns the token that the caller itself sent.
func (c *Caller) Token() string { return c.token }

// Expires is when the session ends if the caller does nothing more.
func (c *Caller) Expires() time.Time { return c.expires }

// Complete reports whether every factor has been shown.
func (c *Caller) Complete() bool { return !c.session.IsMFARequired || c.session.IsMFAComplete }

// Sessions opens API sessions and recognises their tokens.
//
// A token is not stored: it is a keyed digest of the session's id, so that a
// copy of the store opens no session. The record holds a digest of the token,
// to find it by.
type Sessions struct {
	State   *state.State
	Key     []byte
	Timeout time.Duration
	Now     func() time.Time
	Log     *slog.Logger

	active sync.Map // session id to *atomic.Int64, the time of the last request
}

// Request is what a client asks of its new session.
type Request struct {
	ConfigTypes []string // ids or names, or "all"
	EnvInfo     *model.EnvInfo
	SDKInfo     *model.SDKInfo
	IPAddress   string
}

// Open starts a session for somebody who has shown who they are.
func (s *Sessions) Open(ctx context.Context, p Proof, req Request) (*Caller, error) {
	if err := s.remember(ctx, p, req); err != nil {
		return nil, err
	}
	var session *model.APISession
	err := s.State.UpdateSessions(ctx, "identity:"+p.identity, func(tx *state.Tx) error {
		session = &model.APISession{
			IdentityID: p.identity, AuthenticatorID: p.authenticator, IPAddress: req.IPAddress,
			ConfigTypes: ResolveConfigTypes(tx, req.ConfigTypes), LastActivityAt: tx.Now(),
		}
		session.ID = tx.NewSessionID()
		session.TokenHash = digest(s.Token(session.ID))
		return model.APISessions.Create(tx, session)
	})
	if err != nil {
		return nil, err
	}
	return s.Verify(s.State.Snapshot(), s.Token(session.ID))
}

// remember keeps what the client said of itself on its identity.
func (s *Sessions) remember(ctx context.Context, p Proof, req Request) error {
	i, ok := model.Identities.Get(s.State.Snapshot(), p.identity)
	if !ok {
		return errDenied
	}
	same := (req.EnvInfo == nil || *req.EnvInfo == i.EnvInfo) && (req.SDKInfo == nil || *req.SDKInfo == i.SDKInfo)
	if same {
		return nil
	}
	return s.State.Update(ctx, "identity:"+p.identity, func(tx *state.Tx) error {
		return model.Identities.Edit(tx, p.identity, func(i *model.Identity) error {
			if req.EnvInfo != nil {
				i.EnvInfo = *req.EnvInfo
			}
			if req.SDKInfo != nil {
				i.SDKInfo = *req.SDKInfo
			}
			return nil
		})
	})
}

// ResolveConfigTypes turns names of config types into ids and drops what does not exist.
func ResolveConfigTypes(r kind.Reader, asked []string) []string {
	if slices.Contains(asked, "all") {
		return []string{"all"}
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

// Token returns the token of a session: a keyed digest of its id in the shape
// of a random UUID.
func (s *Sessions) Token(id string) string {
	mac := hmac.New(sha256.New, s.Key)
	mac.Write([]byte(id))
	b := mac.Sum(nil)[:16]
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

func digest(token string) string {
	sum := sha256.Sum256([]byte(token))
	return hex.EncodeToString(sum[:])
}

var errNoSession = fault.New(fault.CodeUnauthorized, "there is no live session with this token; authenticate again")

// Verify returns who a token belongs to, and counts as activity.
func (s *Sessions) Verify(r kind.Reader, token string) (*Caller, error) {
	session, ok := model.APISessions.Find(r, "tokenHash", digest(token))
	if !ok {
		return nil, errNoSession
	}
	identity, ok := model.Identities.Get(r, session.IdentityID)
	now := s.Now()
	if !ok || identity.Disabled(now) || now.After(s.LastActivity(session).Add(s.Timeout)) {
		return nil, errNoSession
	}
	s.touch(session.ID, now)
	return &Caller{session: session, identity: identity, token: token, expires: now.Add(s.Timeout)}, nil
}

// LastActivity is when the session was last used.
func (s *Sessions) LastActivity(session *model.APISession) time.Time {
	if v, ok := s.active.Load(session.ID); ok {
		return time.UnixMilli(v.(*atomic.Int64).Load()).UTC()
	}
	return session.LastActivityAt
}

func (s *Sessions) touch(id string, now time.Time) {
	v, ok := s.active.Load(id)
	if !ok {
		v, _ = s.active.LoadOrStore(id, new(atomic.Int64))
	}
	v.(*atomic.Int64).Store(now.UnixMilli())
}

// End removes a session.
func (s *Sessions) End(ctx context.Context, by, id string) error {
	defer s.active.Delete(id)
	return s.State.Delete(ctx, by, model.APISessions.Def, id)
}

// EndAll removes the sessions that an index files under key.
func (s *Sessions) EndAll(ctx context.Context, by, index, key string) error {
	var ids []string
	for session := range model.APISessions.Select(s.State.Snapshot(), index, key) {
		ids = append(ids, session.ID)
	}
	for _, id := range ids {
		if err := s.End(ctx, by, id); err != nil && !fault.Is(err, fault.CodeNotFound) {
			return err
		}
	}
	return nil
}

// Sweep removes the sessions that were idle for too long or whose identity is
// gone, at every interval until ctx ends.
func (s *Sessions) Sweep(ctx context.Context, every time.Duration) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if err := s.sweep(ctx); err != nil && ctx.Err() == nil {
			s.Log.Error("removing old sessions failed", "error", err)
		}
	}
}

func (s *Sessions) sweep(ctx context.Context) error {
	snap, now := s.State.Snapshot(), s.Now()
	for session := range model.APISessions.All(snap) {
		_, known := model.Identities.Get(snap, session.IdentityID)
		if known && !now.After(s.LastActivity(session).Add(s.Timeout)) {
			continue
		}
		if err := s.End(ctx, "system", session.ID); err != nil && !fault.Is(err, fault.CodeNotFound) {
			return err
		}
	}
	return nil
}
