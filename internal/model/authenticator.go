package model

import (
	"time"

	"netkeep.internal/internal/lang/fault"
	"netkeep.internal/internal/lang/kind"
	"netkeep.internal/internal/lang/method"
	"netkeep.internal/internal/lang/terse"
)

// The lengths of a password, in characters.
const (
	MinPassword = 5
	MaxPassword = 100
)

// Methods of an authenticator.
const (
	MethodUPDB = method.Password
	MethodCert = method.Cert
)

// Authenticator is a credential of an identity.
type Authenticator struct {
	kind.Meta
	_ kind.Uncopied `json:"-"`

	IdentityID  string      `json:"identityId" kind:"required=create,fixed,ref=identity:cascade,link,as=identity,alias=identity" doc:"Id of the identity that authenticates with it."`
	Method      string      `json:"method" kind:"required=create,fixed,enum=updb|cert" doc:"What it is: updb is a user name with a password, cert a client certificate."`
	CertPEM     terse.Text  `json:"certPem" kind:"server,omit,when=method:cert" doc:"The client certificate, as PEM."`
	Fingerprint string      `json:"fingerprint" kind:"server,unique,omit,when=method:cert,alias=certFingerprint" doc:"SHA-1 of the client certificate, in hexadecimal; no two authenticators have the same."`
	NotAfter    kind.Moment `json:"notAfter" kind:"server,hidden,nofilter" doc:"When the client certificate ends."`

	*SeldomAuthenticator
}

// SeldomAuthenticator is what certificates that this network issued mostly have nothing of.
type SeldomAuthenticator struct {
	Username     string `json:"username" kind:"unique,omit,range=4..100,when=method:updb,alias=updbUsername,format=visible" doc:"User name to log in with; no two authenticators have the same."`
	PasswordHash string `json:"passwordHash" kind:"server,secret,when=method:updb" doc:"Hash by which a password is recognised."`
	PasswordRev  int    `json:"passwordRev" kind:"server,hidden,nofilter" doc:"How many times the password was set anew; API sessions opened with an earlier one have ended."`

	// What an admin has asked the holder of a certificate for.
	IsExtendRequested    bool       `json:"isExtendRequested" kind:"server,when=method:cert" doc:"Whether its holder is asked to have the certificate extended now, before it is time."`
	IsKeyRollRequested   bool       `json:"isKeyRollRequested" kind:"server,when=method:cert" doc:"Whether its holder is asked to make a new key for that."`
	ExtendRequestedAt    *time.Time `json:"extendRequestedAt" kind:"server,omit,when=method:cert" doc:"When that was last asked for; left out if it never was."`
	LastExtendRolledKeys bool       `json:"lastExtendRolledKeys" kind:"server,when=method:cert" doc:"Whether the certificate came with a new key when it was last extended."`

	// A certificate that was issued in place of the present one, which stays
	// until its holder shows to have received it.
	PendingCertPEM terse.Text `json:"pendingCertPem" kind:"server,hidden,nofilter" doc:"Certificate that was issued in place of the present one, until its holder shows to have it."`

	CAID string `json:"caId" kind:"server,hidden,nofilter,ref=ca:cascade,few" doc:"Id of the CA that the client certificate leads to; empty if that is the controller's own."`
}

// Authenticators is the kind.
var Authenticators = kind.Define(kind.Spec[Authenticator]{
	Name:    "authenticator",
	Path:    "authenticators",
	Doc:     "Create an authenticator: a password or a client certificate of an identity.",
	Verbs:   kind.CRUD,
	Columns: []string{"id", "method", "identity", "username", "fingerprint"},
})

// NewPassword is an authenticator by which an identity logs in with a user name.
func NewPassword(identityID, username, hash string) *Authenticator {
	return &Authenticator{
		IdentityID: identityID, Method: MethodUPDB,
		SeldomAuthenticator: &SeldomAuthenticator{Username: username, PasswordHash: hash},
	}
}

// IssuedHere reports whether it is a certificate that this network issued.
func (a *Authenticator) IssuedHere() bool { return a.Method == MethodCert && a.CAID == "" }

// SetPassword gives it another password. Sessions that rest on the one before
// do not stand any more.
func (a *Authenticator) SetPassword(hash string) {
	a.PasswordHash = hash
	a.PasswordRev++
}

// Check lets nobody add a second credential of a method to an identity, and none to
// routers: they have certificates of their own. An identity that has several from
// elsewhere keeps them.
func (a *Authenticator) Check(r kind.Reader, old *Authenticator) error {
	if i, ok := Identities.Get(r, a.IdentityID); ok && i.Type == TypeRouter {
		return fault.Invalid("identityId", "must not be a router, which cannot have authenticators", a.IdentityID)
	}
	if old != nil {
		return nil // neither the identity nor the method changes
	}
	for other := range Authenticators.Select(r, "identityId", a.IdentityID) {
		if other.ID != a.ID && other.Method == a.Method {
			return fault.On(fault.CodeMethodTaken, "method", "is taken: the identity has an authenticator of this method", a.Method)
		}
	}
	return nil
}
