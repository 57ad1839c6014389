// Package enroll is how identities and routers come into the network: the
// tokens that invite them and what happens when one is used. It must not
// import rest or api.
package enroll

import (
	"crypto"
	"fmt"
	"time"

	"netkeep.internal/internal/auth/authn"
	"netkeep.internal/internal/auth/token"
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
	Issuer      string   `json:"iss,omitempty"`
	Subject     string   `json:"sub,omitempty"`
	Audience    []string `json:"aud,omitempty"`
	Expires     int64    `json:"exp,omitempty"`
	ID          string   `json:"jti,omitempty"`
}

// Issue completes an enrollment: a fresh token, and a JWT that carries it.
func (i *Issuer) Issue(e *model.Enrollment, subject string) error {
	e.Token = authn.NewToken()
	c := claims{Method: e.Method, Issuer: "https://" + i.Address, Subject: subject, ID: e.Token, Expires: e.ExpiresAt.Unix()}
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
	maker, err := token.NewMaker(i.Key(), "")
	if err != nil {
		return "", err
	}
	return maker.Make(c)
}
