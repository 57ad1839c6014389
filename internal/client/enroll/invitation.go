// Package enroll is the client's side of enrollment: it reads an invitation,
// checks it against the controller that it leads to, brings a key or a
// password into the network and writes the files that clients and routers are
// started with. Nothing that a server says is believed before the key of its
// certificate has verified the invitation. It must not import how commands look
// or what a controller is made of.
package enroll

import (
	"crypto"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"netkeep.internal/internal/lang/method"
)

// maxInvitation bounds an invitation: they have some hundred characters.
const maxInvitation = 16 << 10

// Invitation is what an enrollment token says. Nobody has said yet that it is
// true: see [Meet].
type Invitation struct {
	// Method is how to enroll, one of package method.
	Method string
	// Controller is where to, as https://host:port.
	Controller string
	// Subject is the id of who is invited; empty if that is yet to be made.
	Subject string
	// Control is where a router connects.
	Control []string
	// Expires is when it is worth nothing any more; zero if never.
	Expires time.Time

	host  string // of Controller, without the port
	token string // works once
	text  string
	// others are the other controllers of the network, and roots the
	// fingerprints of the root CAs that vouch for them.
	others, roots []string
}

// maxOthers is how many controllers one may be led to.
const maxOthers = 20

// claims are those of enrollment tokens.
type claims struct {
	Method      string   `json:"em"`
	Controllers []string `json:"ctrls"`
	Enroll      []string `json:"netkeepApis"`
	Roots       []string `json:"netkeepRoots"`
	jwt.RegisteredClaims
}

var errNoInvitation = errors.New("this is no enrollment token; it should be the JWT that was made for the identity or router, a text of three parts with dots between them")

// Read reads an enrollment token.
func Read(text string) (*Invitation, error) {
	if len(text) > maxInvitation {
		return nil, errNoInvitation
	}
	text = strings.TrimSpace(text)
	var c claims
	if _, _, err := jwt.NewParser().ParseUnverified(text, &c); err != nil || c.Method == "" {
		return nil, errNoInvitation
	}
	at, ok := placeOf(c.Issuer)
	if !ok {
		return nil, fmt.Errorf("the token leads to %q, which is not the https address of a controller; ask for another", c.Issuer)
	}
	inv := &Invitation{
		Method: c.Method, Controller: "https://" + at.Host, Subject: c.Subject, Control: c.Controllers,
		host: at.Hostname(), token: c.ID, text: text, roots: c.Roots,
	}
	inv.lead(slices.Concat(c.Enroll, c.Controllers))
	if c.ExpiresAt != nil {
		inv.Expires = c.ExpiresAt.Time
	}
	if inv.token == "" && inv.Method != method.CA {
		return nil, errNoInvitation
	}
	return inv, nil
}

// placeOf reads the address of a controller.
func placeOf(text string) (at *url.URL, ok bool) {
	at, err := url.Parse(text)
	return at, err == nil && at.Scheme == "https" && at.Hostname() != "" && at.User == nil
}

// lead notes where the other controllers are. Where routers connect begins
// otherwise.
func (i *Invitation) lead(places []string) {
	for _, text := range places {
		at, ok := placeOf(text)
		if !ok || len(i.others) == maxOthers {
			continue
		}
		if place := "https://" + at.Host; place != i.Controller && !slices.Contains(i.others, place) {
			i.others = append(i.others, place)
		}
	}
}

// at is the same invitation at another controller.
func (i *Invitation) at(place string) *Invitation {
	other := *i
	at, _ := placeOf(place) // which it is
	other.Controller, other.host = place, at.Hostname()
	other.others = slices.DeleteFunc(i.Controllers(), func(one string) bool { return one == place })
	return &other
}

// Controllers is where all controllers of the network are that the invitation
// knows of, the one that it was made by first.
func (i *Invitation) Controllers() []string { return append([]string{i.Controller}, i.others...) }

// IsRouter says whether a router is invited, and not an identity.
func (i *Invitation) IsRouter() bool {
	return i.Method == method.ErOTT || i.Method == method.TrOTT
}

// signedBy verifies that a key signed the invitation. Its dates are judged
// elsewhere, when it is known whose clock is right.
func (i *Invitation) signedBy(key crypto.PublicKey) error {
	parser := jwt.NewParser(jwt.WithoutClaimsValidation(),
		jwt.WithValidMethods([]string{"RS256", "RS384", "RS512", "ES256", "ES384", "ES512", "EdDSA"}))
	_, err := parser.ParseWithClaims(i.text, &claims{}, func(*jwt.Token) (any, error) { return key, nil })
	return err
}

// expired says when an invitation has expired, by a clock.
func (i *Invitation) expired(now time.Time) bool {
	return !i.Expires.IsZero() && !now.Before(i.Expires)
}
