package model

import (
	"time"

	"netkeep/internal/lang/kind"
)

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
	// What posture checks look at.
	MFAPassedAt *time.Time `json:"mfaPassedAt" kind:"server,hidden,nofilter"`
	SDKInfo     SDKInfo    `json:"sdkInfo" kind:"server,hidden,nofilter"`
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

// Session is a permission to dial or host a service, given to an API session.
type Session struct {
	kind.Meta

	APISessionID string `json:"apiSessionId" kind:"server,ref=api-session:cascade,as=apiSession,alias=apiSession"`
	IdentityID   string `json:"identityId" kind:"server,ref=identity:cascade,alias=identity"`
	ServiceID    string `json:"serviceId" kind:"server,ref=service:cascade,as=service,alias=service"`
	Type         string `json:"type" kind:"server"`
	// Key is what there is one session for: API session, type and service.
	Key string `json:"key" kind:"server,hidden,nofilter,unique"`
}

// Sessions is the kind.
var Sessions = kind.Define(kind.Spec[Session]{
	Name:  "session",
	Path:  "sessions",
	Doc:   "Permissions to dial or host services that API sessions hold.",
	Lane:  kind.Session,
	Links: []string{"route-path"},
})

// SessionKey is the key of a session.
func SessionKey(apiSession, typ, service string) string {
	return apiSession + "." + typ + "." + service
}
