package server

import (
	"net/http"

	jose "github.com/go-jose/go-jose/v4"

	"netkeep.internal/internal/auth/token"
	"netkeep.internal/internal/data/state"
	"netkeep.internal/internal/model"
	"netkeep.internal/internal/ops/audit"
	"netkeep.internal/internal/ops/limit"
	"netkeep.internal/internal/web/api"
	"netkeep.internal/internal/web/oidc"
)

// newOIDC lets clients log in by OpenID Connect; nil if that is not to be.
func (s *Server) newOIDC(svc *api.Service, requests *limit.Slots, bodies *limit.Bodies) http.Handler {
	if !s.cfg.OIDC.Enabled.Maybe() {
		return nil
	}
	p := &oidc.Provider{
		State: s.state, Sessions: svc.Sessions, Passwords: svc.Passwords, Certs: svc.Certs, Tokens: svc.Tokens, Factors: svc.Factors,
		Address: s.Address(), Keys: s.loginKeys, Public: s.publicKeys, IDs: &token.Derived{Secrets: s.idKeys}, View: s.validity.View,
		Logins: &svc.Logins, Requests: requests, Bodies: bodies, Pace: limit.Pace{First: s.cfg.Timeouts.Body},
		Tried: func(a oidc.Attempt, err error) {
			svc.NoteAttempt(api.Attempt{By: a.By, Snap: s.validity.View(s.state.Snapshot()), Method: a.Method, Username: a.Username, Certificates: a.Certificates, Who: a.Who}, err)
			s.figures.Login(a.Method, err)
		},
		Coded:  svc.NoteFactor,
		Stolen: s.noteStolen,
		Now:    s.clock.Now, Log: s.log,
	}
	return p.Handler()
}

// noteStolen has the audit log tell that a session was ended whose token was used twice.
func (s *Server) noteStolen(by state.Author, session *model.APISession, what string) {
	f := audit.Fact{Event: audit.TokenRefused, By: by, Reason: what + "; its session is ended"}
	if who, ok := model.Identities.Get(s.state.Snapshot(), session.IdentityID); ok {
		f.Target = audit.To(model.Identities.Def, who)
	}
	s.recorder.Note(f)
}

// loginKeys seal what clients carry while they log in.
func (s *Server) loginKeys() ([][]byte, error) {
	keys, err := s.keys.MACKeys("logins by OpenID Connect")
	return keys.All(), err
}

// idKeys are what the keys of ID tokens follow from.
func (s *Server) idKeys() ([][]byte, error) {
	keys, err := s.keys.MACKeys("ID tokens")
	return keys.All(), err
}

// publicKeys are those that tokens are checked with, for who reads them.
func (s *Server) publicKeys() (keys []jose.JSONWebKey) {
	for _, one := range s.sessionTokens.PublicKeys() {
		if key := s.sessionTokens.Key(one.ID); key != nil {
			keys = append(keys, jose.JSONWebKey{Key: key, KeyID: one.ID, Algorithm: string(jose.ES256), Use: "sig"})
		}
	}
	return keys
}
