package grant

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/subtle"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"strings"
	"time"

	"netkeep.internal/internal/auth/token"
	"netkeep.internal/internal/lang/kind"
	"netkeep.internal/internal/model"
)

// Tokens makes the tokens of sessions and recognises them. They are JWTs,
// because routers of the second generation read them; those of plain sessions
// are not, because early routers of the first do not listen for the end of what
// looks like a JWT. The keys follow from a secret of the network and a signature
// from what is signed, so that every controller makes the same token of a
// session, at any time, and none is stored.
type Tokens struct {
	maker  *token.Maker
	plain  []byte // for plain ones
	public []byte
	keyID  string

	made made
}

// lifetime is what tokens say of themselves. A session really lives as long as
// its API session does.
const lifetime = 365 * 24 * time.Hour

// NewTokens derives the key from a secret.
func NewTokens(secret []byte) (*Tokens, error) {
	plain, err := hkdf.Key(sha256.New, secret, nil, "plain session tokens", 32)
	if err != nil {
		return nil, fmt.Errorf("deriving the key of session tokens: %w", err)
	}
	for n := 0; ; n++ {
		// One in four billion is no key: then the next is.
		raw, err := hkdf.Key(sha256.New, secret, nil, fmt.Sprint("session tokens ", n), 32)
		if err != nil {
			return nil, fmt.Errorf("deriving the key of session tokens: %w", err)
		}
		key, err := ecdsa.ParseRawPrivateKey(elliptic.P256(), raw)
		if err != nil {
			continue
		}
		t := &Tokens{plain: plain}
		if t.public, err = x509.MarshalPKIXPublicKey(key.Public()); err != nil {
			return nil, fmt.Errorf("deriving the key of session tokens: %w", err)
		}
		sum := sha1.Sum(t.public)
		t.keyID = hex.EncodeToString(sum[:])
		t.maker, err = token.NewMaker(key, t.keyID)
		return t, err
	}
}

// PublicKey is what tokens can be checked with, as PKIX, and what they call it.
func (t *Tokens) PublicKey() (pkix []byte, keyID string) { return t.public, t.keyID }

// claims are what a token says, in the words of those who read it.
type claims struct {
	Audience   []string `json:"aud"`
	Expires    int64    `json:"exp"`
	Issued     int64    `json:"iat"`
	Issuer     string   `json:"iss"`
	ID         string   `json:"jti"`
	Service    string   `json:"sub"`
	APISession string   `json:"z_asid"`
	Identity   string   `json:"z_iid"`
	Legacy     bool     `json:"z_leg"`
	Type       string   `json:"z_st"`
	Kind       string   `json:"z_t"`
}

// Of returns the token of a session.
func (t *Tokens) Of(s *model.Session) string {
	if s.Plain {
		mac := hmac.New(sha256.New, t.plain)
		mac.Write([]byte(s.ID))
		return s.ID + "." + base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
	}
	return t.made.of(factsOf(s), func() string { return t.sign(s) })
}

// sign makes the token of a session that is not plain.
func (t *Tokens) sign(s *model.Session) string {
	text, err := t.maker.Make(claims{
		Audience: []string{"openziti"}, Issuer: "netkeep", Issued: s.CreatedAt.Unix(), Expires: s.CreatedAt.Add(lifetime).Unix(),
		ID: s.ID, Service: s.ServiceID, APISession: s.APISessionID, Identity: s.IdentityID, Legacy: true, Type: s.Type, Kind: "s",
	})
	if err != nil {
		panic(err) // a key that made one token makes all
	}
	return text
}

// maxToken is how long a token may be.
const maxToken = 2048

// Find returns the session with a token. What a token says is believed of none:
// it leads to a session, and must be that session's token to the letter.
func (t *Tokens) Find(r kind.Reader, text string) (*model.Session, bool) {
	id, ok := idIn(text)
	if !ok {
		return nil, false
	}
	s, ok := model.Sessions.Get(r, id)
	if !ok || subtle.ConstantTimeCompare([]byte(t.Of(s)), []byte(text)) != 1 {
		return nil, false
	}
	return s, true
}

// idIn is the id of the session that a token names.
func idIn(text string) (string, bool) {
	if len(text) > maxToken {
		return "", false
	}
	if id, mac, plain := strings.Cut(text, "."); plain && !strings.Contains(mac, ".") {
		return id, true
	}
	var said claims
	err := token.Read(text, &said)
	return said.ID, err == nil
}
