// Package enroll is how identities and routers come into the network: the
// tokens that invite them and what happens when one is used. It must not
// import rest or api.
package enroll

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rsa"
	"fmt"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"netkeep.internal/internal/auth/authn"
	"netkeep.internal/internal/model"
)

// Lifetime is how long an enrollment is good for unless somebody says
// otherwise.
const Lifetime = 180 * time.Minute

// Issuer signs enrollment tokens. They are signed with the key of the TLS
// certificate served at the address in them, so that whoever holds one can
// tell that it comes from the server it leads to.
type Issuer struct {
	// Key returns the key of the certificate that is served now.
	Key func() crypto.Signer
	// Address is the host and port under which clients reach the controller,
	// and Control the one under which routers do.
	Address, Control string
}

// claims are what an enrollment token says.
type claims struct {
	Method string `json:"em"`
	// Controllers is where a router connects.
	Controllers []string `json:"ctrls,omitempty"`
	jwt.RegisteredClaims
}

// Issue completes an enrollment: a fresh token, and a JWT that carries it.
func (i *Issuer) Issue(e *model.Enrollment, subject string) error {
	e.Token = authn.NewToken()
	c := claims{Method: e.Method, RegisteredClaims: jwt.RegisteredClaims{
		Issuer: "https://" + i.Address, Subject: subject, ID: e.Token, ExpiresAt: jwt.NewNumericDate(e.ExpiresAt),
	}}
	if e.Method == model.MethodErOTT || e.Method == model.MethodTrOTT {
		c.Controllers = []string{"tls:" + i.Control}
	}
	text, err := i.sign(c)
	if err != nil {
		return fmt.Errorf("sign an enrollment: %w", err)
	}
	e.JWT = text
	return nil
}

func (i *Issuer) sign(c claims) (string, error) {
	key := i.Key()
	method, err := methodFor(key.Public())
	if err != nil {
		return "", err
	}
	return jwt.NewWithClaims(method, c).SignedString(key)
}

// methodFor is how a key of this kind signs.
func methodFor(pub crypto.PublicKey) (jwt.SigningMethod, error) {
	switch k := pub.(type) {
	case *rsa.PublicKey:
		return jwt.SigningMethodRS256, nil
	case ed25519.PublicKey:
		return jwt.SigningMethodEdDSA, nil
	case *ecdsa.PublicKey:
		switch k.Curve.Params().BitSize {
		case 256:
			return jwt.SigningMethodES256, nil
		case 384:
			return jwt.SigningMethodES384, nil
		case 521:
			return jwt.SigningMethodES512, nil
		}
	}
	return nil, fmt.Errorf("no signing method for a key of type %T", pub)
}
