package model

import (
	"time"

	"netkeep/internal/fault"
	"netkeep/internal/kind"
)

// The lengths of a password, in characters.
const (
	MinPassword = 5
	MaxPassword = 100
)

// Methods of an authenticator.
const (
	MethodUPDB = "updb"
	MethodCert = "cert"
)

// Authenticator is a credential of an identity.
type Authenticator struct {
	kind.Meta

	IdentityID   string    `json:"identityId" kind:"required=create,fixed,ref=identity:cascade,as=identity,alias=identity"`
	Method       string    `json:"method" kind:"required=create,fixed,enum=updb|cert"`
	Username     string    `json:"username" kind:"unique,omit,range=4..100,when=method:updb,alias=updbUsername"`
	PasswordHash string    `json:"passwordHash" kind:"server,secret,when=method:updb"`
	CertPEM      string    `json:"certPem" kind:"server,omit,when=method:cert"`
	Fingerprint  string    `json:"fingerprint" kind:"server,unique,omit,when=method:cert,alias=certFingerprint"`
	NotAfter     time.Time `json:"notAfter" kind:"server,hidden,nofilter"`
	CAID         string    `json:"caId" kind:"server,hidden,nofilter,ref=ca:cascade"`

	// A certificate that was issued in place of the present one, which stays
	// until its holder shows to have received it.
	PendingCertPEM string `json:"pendingCertPem" kind:"server,hidden,nofilter"`
}

// Authenticators is the kind.
var Authenticators = kind.Define(kind.Spec[Authenticator]{
	Name: "authenticator",
	Path: "authenticators",
	Doc:  "Create an authenticator: a password or a client certificate of an identity.",
})

// Check allows one credential of a method for each identity, and none for
// routers: they have certificates of their own.
func (a *Authenticator) Check(r kind.Reader, _ *Authenticator) error {
	if i, ok := Identities.Get(r, a.IdentityID); ok && i.Type == TypeRouter {
		return fault.Invalid("identityId", "must not be a router, which cannot have authenticators", a.IdentityID)
	}
	for other := range Authenticators.Select(r, "identityId", a.IdentityID) {
		if other.ID != a.ID && other.Method == a.Method {
			return fault.On(fault.CodeMethodTaken, "method", "is taken: the identity has an authenticator of this method", a.Method)
		}
	}
	return nil
}

// APISession is what an identity gets for authenticating.
type APISession struct {
	kind.Meta

	IdentityID      string    `json:"identityId" kind:"server,ref=identity:cascade,as=identity,alias=identity"`
	AuthenticatorID string    `json:"authenticatorId" kind:"server,index,alias=authenticator"`
	CAID            string    `json:"caId" kind:"server,hidden,nofilter"`
	TokenHash       string    `json:"tokenHash" kind:"server,secret,unique"`
	ConfigTypes     []string  `json:"configTypes" kind:"server"`
	IPAddress       string    `json:"ipAddress" kind:"server"`
	IsMFARequired   bool      `json:"isMfaRequired" kind:"server"`
	IsMFAComplete   bool      `json:"isMfaComplete" kind:"server"`
	LastActivityAt  time.Time `json:"lastActivityAt" kind:"server"`
}

// SessionCertificate is a certificate that an API session asked for. It ends
// with the session.
type SessionCertificate struct {
	kind.Meta

	APISessionID string    `json:"apiSessionId" kind:"server,hidden,ref=api-session:cascade,alias=apiSession"`
	Subject      string    `json:"subject" kind:"server"`
	Fingerprint  string    `json:"fingerprint" kind:"server,unique"`
	Certificate  string    `json:"certificate" kind:"server,nofilter"`
	ValidFrom    time.Time `json:"validFrom" kind:"server"`
	ValidTo      time.Time `json:"validTo" kind:"server"`
}

// SessionCertificates is the kind.
var SessionCertificates = kind.Define(kind.Spec[SessionCertificate]{
	Name: "api-session-certificate",
	Path: "current-api-session/certificates",
	Doc:  "Certificates that API sessions asked for.",
	Lane: kind.Session,
})

// APISessions is the kind.
var APISessions = kind.Define(kind.Spec[APISession]{
	Name:  "api-session",
	Path:  "api-sessions",
	Doc:   "What identities got for authenticating.",
	Lane:  kind.Session,
	Links: []string{"sessions"},
})
