package grant

import (
	"crypto"
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
	"maps"
	"slices"
	"strings"
	"sync/atomic"
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
//
// Of one secret that takes the place of another, both are good: the record of a
// session says whose its token is.
type Tokens struct {
	signers atomic.Pointer[signers]
	made    made
}

// signers are the keys that there are.
type signers struct {
	current, former *signer // the latter may be nil
	by              map[string]*signer
}

// signer is the keys that follow from one secret.
type signer struct {
	maker  *token.Maker
	plain  []byte // for plain ones
	public PublicKey
	key    crypto.PublicKey
}

// Sign returns a JWT of the network that says what the claims do. Those that are not
// of sessions to dial and host say so themselves.
func (t *Tokens) Sign(claims any) (string, error) { return t.signers.Load().current.maker.Make(claims) }

// Key returns the key that a JWT of the network can be checked with; nil if it is of
// no such name.
func (t *Tokens) Key(id string) crypto.PublicKey {
	if by := t.signers.Load().by[id]; by != nil {
		return by.key
	}
	return nil
}

// PublicKey is what tokens can be checked with, as PKIX, and what they call it.
type PublicKey struct {
	PKIX []byte
	ID   string
}

// lifetime is what tokens say of themselves. A session really lives as long as
// its API session does.
const lifetime = 365 * 24 * time.Hour

// NewTokens derives the key from a secret.
func NewTokens(secret []byte) (*Tokens, error) {
	t := new(Tokens)
	return t, t.Use(secret, nil, nil)
}

// Use has tokens made with one secret from now on, and those believed that were
// made with it, with the one before, or with the next one. The latter two may be
// nil.
func (t *Tokens) Use(current, former, next []byte) error {
	all := &signers{by: map[string]*signer{}}
	for _, secret := range [][]byte{current, former, next} {
		if secret == nil {
			continue
		}
		made, err := newSigner(secret)
		if err != nil {
			return fmt.Errorf("deriving the key of session tokens: %w", err)
		}
		all.by[made.public.ID] = made
		if all.current == nil {
			all.current = made
		} else if former != nil && all.former == nil {
			all.former = made
		}
	}
	t.signers.Store(all)
	return nil
}

func newSigner(secret []byte) (*signer, error) {
	plain, err := hkdf.Key(sha256.New, secret, nil, "plain session tokens", 32)
	if err != nil {
		return nil, err
	}
	for n := 0; ; n++ {
		// One in four billion is no key: then the next is.
		raw, err := hkdf.Key(sha256.New, secret, nil, fmt.Sprint("session tokens ", n), 32)
		if err != nil {
			return nil, err
		}
		key, err := ecdsa.ParseRawPrivateKey(elliptic.P256(), raw)
		if err != nil {
			continue
		}
		s := &signer{plain: plain, key: key.Public()}
		if s.public.PKIX, err = x509.MarshalPKIXPublicKey(key.Public()); err != nil {
			return nil, err
		}
		sum := sha1.Sum(s.public.PKIX)
		s.public.ID = hex.EncodeToString(sum[:])
		s.maker, err = token.NewMaker(key, s.public.ID)
		return s, err
	}
}

// PublicKeys is what tokens can be checked with, the current one first.
func (t *Tokens) PublicKeys() (keys []PublicKey) {
	all := t.signers.Load()
	keys = append(keys, all.current.public)
	for _, id := range slices.Sorted(maps.Keys(all.by)) {
		if id != all.current.public.ID {
			keys = append(keys, all.by[id].public)
		}
	}
	return keys
}

// Current is the id of the key that makes the tokens of new sessions.
func (t *Tokens) Current() string { return t.signers.Load().current.public.ID }

// of is whose the token of a session is; nil if that is not believed any more. One
// that does not say is of the first key that the network had.
func (t *Tokens) of(s *model.Session) *signer {
	all := t.signers.Load()
	switch {
	case s.SignedBy != "":
		return all.by[s.SignedBy]
	case all.former != nil:
		return all.former
	}
	return all.current
}

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

// Of returns the token of a session; empty if the key that made it has gone. One that was
// taken over has the token that it came with.
func (t *Tokens) Of(s *model.Session) string {
	if s.Brought != "" {
		return s.Brought
	}
	by := t.of(s)
	if by == nil {
		return ""
	}
	if s.Plain {
		mac := hmac.New(sha256.New, by.plain)
		mac.Write([]byte(s.ID))
		return s.ID + "." + base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
	}
	return t.made.of(factsOf(s, by.public.ID), func() string { return by.sign(s) })
}

// sign makes the token of a session that is not plain.
func (by *signer) sign(s *model.Session) string {
	text, err := by.maker.Make(claims{
		Audience: []string{"openziti"}, Issuer: "netkeep", Issued: s.CreatedAt.Time().Unix(), Expires: s.CreatedAt.Time().Add(lifetime).Unix(),
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
	if brought, ok := broughtWith(r, text); ok {
		return brought, true
	}
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

// broughtWith returns the session that was taken over with a token. Such a token has no parts.
func broughtWith(r kind.Reader, text string) (*model.Session, bool) {
	if len(text) > maxToken || strings.Contains(text, ".") {
		return nil, false
	}
	return model.Sessions.Find(r, "broughtHash", model.TokenHash(text))
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
