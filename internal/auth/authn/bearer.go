package authn

import (
	"context"
	"crypto"
	"strconv"
	"strings"
	"time"

	"netkeep.internal/internal/auth/token"
	"netkeep.internal/internal/data/state"
	"netkeep.internal/internal/lang/fault"
	"netkeep.internal/internal/lang/kind"
	"netkeep.internal/internal/model"
)

// Clients that log in by OpenID Connect show a JWT, the access token, in place of
// the session's own token. It names an API session, whose record stays the truth:
// the JWT is worth something for a while, and nothing once the record is gone.
// With the refresh token, which works once, such a client gets the next two.

// Signers make and check JWTs of this network. Every controller has the same keys.
type Signers interface {
	// Sign returns a JWT that says what the claims do.
	Sign(claims any) (string, error)
	// Key returns a key by its id; nil if it is none of ours.
	Key(id string) crypto.PublicKey
}

// What an access token says of itself, so that nothing else that the keys sign is
// taken for one.
const (
	// BearerType is the claim z_t of an access token.
	BearerType = "a"
	// bearerAudience is for whom an access token is.
	bearerAudience = "openziti"
	// IssuerPath is where on a controller those JWTs come from.
	IssuerPath = "/oidc"
)

// BearerTime is how long an access token is good for, as long as its session is.
const BearerTime = 15 * time.Minute

// Bearer is what an access token says, in the words of those who read it.
type Bearer struct {
	Issuer       string   `json:"iss"`
	Subject      string   `json:"sub"`
	Audience     []string `json:"aud"`
	Expires      int64    `json:"exp"`
	Issued       int64    `json:"iat"`
	NotBefore    int64    `json:"nbf"`
	AuthTime     int64    `json:"auth_time"`
	ID           string   `json:"jti"`
	Client       string   `json:"client_id"`
	Scopes       []string `json:"scopes"`
	Methods      []string `json:"amr"`
	APISession   string   `json:"z_asid"`
	Type         string   `json:"z_t"`
	Application  string   `json:"z_aid"`
	ExternalID   string   `json:"z_eid,omitempty"`
	ConfigTypes  []string `json:"z_ct,omitempty"`
	Fingerprints []string `json:"z_cfs"`
}

// Bear returns an access token for a session until some time. Whether its holder is
// an admin it does not say: that is looked up with every request.
func (s *APISessions) Bear(r kind.Reader, session *model.APISession, issuer string, scopes []string, until time.Time) (string, error) {
	now := s.Now().Unix()
	said := Bearer{
		Issuer: issuer, Subject: session.IdentityID, Audience: []string{bearerAudience}, Expires: until.Unix(), Issued: now, NotBefore: now,
		AuthTime: session.CreatedAt.Time().Unix(), ID: NewToken(), Client: session.Client, Application: session.Client, Scopes: scopes,
		Methods: shown(session), APISession: session.ID, Type: BearerType, ConfigTypes: session.ConfigTypes, Fingerprints: []string{},
	}
	if i, ok := model.Identities.Get(r, session.IdentityID); ok {
		said.ExternalID = i.ExternalID
	}
	if own := session.Certificate(r); own != "" {
		said.Fingerprints = append(said.Fingerprints, own)
	}
	return s.Signers.Sign(said)
}

// proof is what a token says of a second factor.
type proof struct {
	Issuer     string   `json:"iss"`
	Subject    string   `json:"sub"`
	Audience   []string `json:"aud"`
	Issued     int64    `json:"iat"`
	ID         string   `json:"jti"`
	APISession string   `json:"z_asid"`
	Type       string   `json:"z_t"`
}

// proofType is the claim z_t of a token that says when a second factor was shown.
const proofType = "t"

// Prove returns a token that says when a session showed a second factor, for routers that
// judge that themselves. It opens nothing, and stays true.
func (s *APISessions) Prove(session *model.APISession, address string, at time.Time) (string, error) {
	return s.Signers.Sign(proof{
		Issuer: "https://" + address + IssuerPath, Subject: session.IdentityID, Audience: []string{bearerAudience},
		Issued: at.Unix(), ID: NewToken(), APISession: session.ID, Type: proofType,
	})
}

// IsBearer reports whether a text is a JWT of our own making, or made to look like
// one: whoever else has JWTs has other keys, of other names.
func (s *APISessions) IsBearer(text string) bool {
	return s.Signers != nil && token.KeyID(text) != "" && s.Signers.Key(token.KeyID(text)) != nil
}

// Named returns the API session that an access token names; ok is false if nobody
// here has made it, or if its time is over.
func (s *APISessions) Named(text string) (id string, ok bool) {
	said, ok := s.ours(text, BearerType)
	return said.Text("z_asid"), ok
}

// ours checks a JWT that must be of one sort that we make.
func (s *APISessions) ours(text, sort string) (said token.Claims, ok bool) {
	return s.oursAt(text, sort, s.Now)
}

// oursAt is ours by some other clock.
func (s *APISessions) oursAt(text, sort string, now func() time.Time) (said token.Claims, ok bool) {
	if !s.IsBearer(text) {
		return said, false
	}
	said, err := token.Check(text, now, func(issuer, keyID string) crypto.PublicKey {
		if !strings.HasPrefix(issuer, "https://") || !strings.HasSuffix(issuer, IssuerPath) {
			return nil
		}
		return s.Signers.Key(keyID)
	})
	return said, err == nil && said.Text("z_t") == sort && said.For(bearerAudience)
}

// Recall returns the API session that a token is of, its own or one that names it,
// whether it is still good or not.
func (s *APISessions) Recall(r kind.Reader, text string) (session *model.APISession, ok bool) {
	id, bears := s.Named(text)
	if !bears {
		return byToken(r, text)
	}
	session, ok = model.APISessions.Get(r, id)
	return session, ok && session.Client != ""
}

// RecallFormer is Recall for what early routers say of a client: they hold on to the access
// token that it came with, though it has shown them others since. So its time may be over;
// but it must be ours.
func (s *APISessions) RecallFormer(r kind.Reader, text string) (session *model.APISession, ok bool) {
	said, ok := s.oursAt(text, BearerType, func() time.Time { return token.Issued(text) })
	if !ok {
		return nil, false
	}
	session, ok = model.APISessions.Get(r, said.Text("z_asid"))
	return session, ok && session.Client != ""
}

// May reports whether a text may be the token of a session that is not known here.
func (s *APISessions) May(text string) bool {
	_, bears := s.Named(text)
	return bears || !strings.Contains(text, ".")
}

// errReplayed is for a code or a refresh token that was used already.
var errReplayed = fault.New(fault.CodeUnauthorized, "it was used already")

// Replayed reports whether an error is that something was used already which works
// once.
func Replayed(err error) bool { return err == errReplayed }

// Turn has a session give out its next tokens, if it has given out as many as
// whoever asks says. Of several who ask at once, at any controller, it is one.
func (s *APISessions) Turn(ctx context.Context, by state.Author, id string, turn int) (next *model.APISession, err error) {
	err = s.State.UpdateSessions(ctx, by, func(tx *state.Tx) error {
		return model.APISessions.Edit(tx, id, func(a *model.APISession) error {
			if a.Turn != turn {
				return errReplayed
			}
			a.Turn++
			next = a
			return nil
		})
	})
	if err != nil {
		return nil, err
	}
	s.touch(id, s.Now())
	return next, nil
}

// refreshType is the claim z_t of a refresh token.
const refreshType = "r"

// renewal is what a refresh token says. It is a JWT, as those of others are: there are
// clients that read its end, and keep none that they cannot read.
type renewal struct {
	Issuer     string   `json:"iss"`
	Subject    string   `json:"sub"`
	Audience   []string `json:"aud"`
	Expires    int64    `json:"exp"`
	Issued     int64    `json:"iat"`
	ID         string   `json:"jti"`
	APISession string   `json:"z_asid"`
	Type       string   `json:"z_t"`
}

// RefreshToken returns the refresh token of a session's turn, which works once, as the
// session counts its turns. It ends when a session would that was used last with the
// access token that it comes with.
func (s *APISessions) RefreshToken(session *model.APISession, issuer string) (string, error) {
	now := s.Now()
	return s.Signers.Sign(renewal{
		Issuer: issuer, Subject: session.IdentityID, Audience: []string{bearerAudience}, Expires: now.Add(BearerTime + s.Timeout).Unix(), Issued: now.Unix(),
		ID: strconv.Itoa(session.Turn), APISession: session.ID, Type: refreshType,
	})
}

// ReadRefresh returns the session that a refresh token is of, and of which turn of it;
// ok is false if no controller has made it, or if its time is over.
func (s *APISessions) ReadRefresh(text string) (id string, turn int, ok bool) {
	said, ok := s.ours(text, refreshType)
	if !ok {
		return "", 0, false
	}
	turn, err := strconv.Atoi(said.Text("jti"))
	return said.Text("z_asid"), turn, err == nil
}

// OfLogin returns the session that a login by OpenID Connect has opened, as long as
// it has given out no tokens.
func (s *APISessions) OfLogin(r kind.Reader, login string) (found *model.APISession, ok bool) {
	for one := range model.APISessions.Select(r, "login", login) {
		if found != nil {
			return nil, false // two who raced at two controllers: let both begin anew
		}
		found = one
	}
	return found, found != nil && found.Turn == 0
}

// Resume returns who holds a session, for whoever has shown that otherwise than by
// its token. It counts as activity.
func (s *APISessions) Resume(ctx context.Context, r kind.Reader, session *model.APISession, bearer string) (*Caller, error) {
	return s.Verify(ctx, r, Credentials{Token: s.Token(session), Bearer: bearer})
}
