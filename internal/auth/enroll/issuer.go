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
// tell that it comes from the server it leads to. A token is good at all
// controllers, and where there are several it says where the others are and
// whose root CA vouches for them: the key of one cannot sign for the others.
type Issuer struct {
	// Key returns the key of the certificate that is served now.
	Key func() crypto.Signer
	// Places is where the controllers of the network are, this one first.
	Places func() []Place
	// Roots are the SHA-256 fingerprints of the network's root CAs.
	Roots func() []string
}

// Place is where a controller is.
type Place struct {
	// Client is the host and port under which clients reach it, and Control the
	// one under which routers do.
	Client, Control string
}

// home is where this controller is.
func (i *Issuer) home() string { return "https://" + i.Places()[0].Client }

// claims are what an enrollment token says.
type claims struct {
	Method string `json:"em"`
	// Controllers is where a router connects, and for anybody else where the
	// controllers are if there are several. Enroll is that for routers.
	Controllers []string `json:"ctrls,omitempty"`
	Enroll      []string `json:"netkeepApis,omitempty"`
	// Roots tell the other controllers by their root CA.
	Roots    []string `json:"netkeepRoots,omitempty"`
	Issuer   string   `json:"iss,omitempty"`
	Subject  string   `json:"sub,omitempty"`
	Audience []string `json:"aud,omitempty"`
	Expires  int64    `json:"exp,omitempty"`
	ID       string   `json:"jti,omitempty"`
}

// Issue completes an enrollment: a fresh token, and a JWT that carries it.
func (i *Issuer) Issue(e *model.Enrollment, subject string) error {
	e.Token = authn.NewToken()
	c := claims{Method: e.Method, Issuer: i.home(), Subject: subject, ID: e.Token, Expires: e.ExpiresAt.Unix()}
	i.lead(&c)
	text, err := i.sign(c)
	if err != nil {
		return fmt.Errorf("sign an enrollment: %w", err)
	}
	e.JWT = text
	return nil
}

// lead says where to go.
func (i *Issuer) lead(c *claims) {
	var apis, control []string
	for _, at := range i.Places() {
		apis, control = append(apis, "https://"+at.Client), append(control, "tls:"+at.Control)
	}
	router := c.Method == model.MethodErOTT || c.Method == model.MethodTrOTT
	if router {
		c.Controllers = control
	}
	if len(apis) == 1 {
		return
	}
	c.Roots = i.Roots()
	if router {
		c.Enroll = apis
	} else {
		c.Controllers = apis
	}
}

func (i *Issuer) sign(c claims) (string, error) {
	maker, err := token.NewMaker(i.Key(), "")
	if err != nil {
		return "", err
	}
	return maker.Make(c)
}
