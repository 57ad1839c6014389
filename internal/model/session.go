package model

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"time"

	"netkeep.internal/internal/lang/kind"
)

// APISession is what an identity gets for authenticating.
type APISession struct {
	kind.Meta

	IdentityID      string      `json:"identityId" kind:"server,ref=identity:cascade,as=identity,alias=identity" doc:"Id of the identity that authenticated."`
	AuthenticatorID string      `json:"authenticatorId" kind:"server,index,alias=authenticator" doc:"Id of the authenticator that was shown; for a token, extJwtId: and the id of its signer; router for an edge router that is a client itself."`
	CAID            string      `json:"caId" kind:"server,hidden,nofilter,index" doc:"Id of the CA that the certificate shown leads to; empty for the controller's own."`
	PasswordRev     int         `json:"passwordRev" kind:"server,hidden,nofilter" doc:"Which password of the authenticator was shown, as the authenticator counts them."`
	ExternalID      string      `json:"externalId" kind:"server,hidden,nofilter" doc:"External id by which the token or certificate shown names the identity; empty if it does not."`
	NotAfter        kind.Moment `json:"notAfter" kind:"server,hidden,nofilter" doc:"When the token or certificate chain shown ends; the year 1 if it does not."`
	TokenHash       string      `json:"tokenHash" kind:"server,secret,unique" doc:"Hash by which the session's token is recognised."`
	// Brought is of one that another controller has opened, whose keys are not ours.
	Brought        string      `json:"brought" kind:"server,hidden,nofilter,sealed,omit" doc:"Token of a session that was taken over; empty for others, whose tokens follow from their ids."`
	ConfigTypes    []string    `json:"configTypes" kind:"server" doc:"Ids of the config types that the client asked for, or all; services show configs of these."`
	IPAddress      string      `json:"ipAddress" kind:"server" doc:"Address that the client authenticated from."`
	IsMFARequired  bool        `json:"isMfaRequired" kind:"server" doc:"Whether the identity had a second factor to show."`
	IsMFAComplete  bool        `json:"isMfaComplete" kind:"server" doc:"Whether a one-time or recovery code has been shown."`
	LastActivityAt kind.Moment `json:"lastActivityAt" kind:"server" doc:"When the session was last known to be used, as it is stored, which is some time after the fact."`
	// What posture checks look at.
	MFAPassedAt *time.Time `json:"mfaPassedAt" kind:"server,hidden,nofilter" doc:"When a one-time or recovery code was last shown."`
	MFAID       string     `json:"mfaId" kind:"server,hidden,nofilter" doc:"Id of the second factor whose code that was."`
	// Logins by OpenID Connect.
	Login  string `json:"login" kind:"server,hidden,nofilter,index" doc:"Digest of the login by OpenID Connect that opened the session; empty if another way did."`
	Client string `json:"client" kind:"server,hidden,nofilter" doc:"Which client of OpenID Connect the session was opened for; empty if it was opened another way."`
	Turn   int    `json:"turn" kind:"server,hidden,nofilter" doc:"How often the session has given out tokens of OpenID Connect, of which the last may be refreshed."`
	// HostKey is what the client says without a router between.
	HostKey string  `json:"hostKey" kind:"server,hidden,nofilter" doc:"Public key with which the session hosts, in hexadecimal; empty if the client did not say."`
	SDKInfo SDKInfo `json:"sdkInfo" kind:"server,hidden,nofilter" doc:"What the client said of itself."`
	// What routers may know.
	Fingerprint string `json:"fingerprint" kind:"server,hidden,nofilter" doc:"SHA-1 of the certificate that the session was opened with, in hexadecimal; empty if it was opened with something else."`
	Withheld    bool   `json:"withheld" kind:"server,hidden,nofilter" doc:"Whether no router was ever told of the session: it was opened without a certificate, or at the Management API, and has asked for no certificate since."`
}

// Certificate returns the fingerprint of the certificate that a session rests
// on, as it is now: another may have taken its place. It is empty if it rests on
// something else.
func (s *APISession) Certificate(r kind.Reader) string {
	if a, ok := Authenticators.Get(r, s.AuthenticatorID); ok {
		return a.Fingerprint
	}
	return s.Fingerprint // a CA names its identity
}

// Bears reports whether the holder of a session has access tokens for it.
func (s *APISession) Bears() bool { return s.Client != "" && s.Turn > 0 }

// Told reports whether routers are told of a session, as far as that is up to
// what its holder can show them: without a certificate nobody can use it there.
func (s *APISession) Told(r kind.Reader) bool {
	if s.Withheld {
		return false
	}
	if s.Certificate(r) != "" {
		return true
	}
	for range SessionCertificates.Select(r, "apiSessionId", s.ID) {
		return true
	}
	return false
}

// AllConfigTypes is what an API session has among its config types if it wants
// the configs of every type.
const AllConfigTypes = "all"

// WantsConfig reports whether a config type is among those that were asked for.
func WantsConfig(asked []string, typeID string) bool {
	return slices.Contains(asked, typeID) || slices.Contains(asked, AllConfigTypes)
}

// SessionCertificate is a certificate that an API session asked for. It ends
// with the session.
type SessionCertificate struct {
	kind.Meta

	APISessionID string    `json:"apiSessionId" kind:"server,hidden,ref=api-session:cascade,alias=apiSession" doc:"Id of the API session with which the certificate ends."`
	Subject      string    `json:"subject" kind:"server" doc:"Whom the certificate names."`
	Fingerprint  string    `json:"fingerprint" kind:"server,unique" doc:"SHA-1 of the certificate, in hexadecimal."`
	Certificate  string    `json:"certificate" kind:"server,nofilter" doc:"The certificate itself, as PEM."`
	ValidFrom    time.Time `json:"validFrom" kind:"server" doc:"When the certificate begins."`
	ValidTo      time.Time `json:"validTo" kind:"server" doc:"When the certificate ends, if its API session has not ended before."`
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
	Name:    "api-session",
	Path:    "api-sessions",
	Doc:     "What identities got for authenticating.",
	Verbs:   kind.Lists | kind.Gets | kind.Deletes,
	Columns: []string{"id", "identity", "ipAddress", "createdAt", "lastActivityAt"},
	Lane:    kind.Session,
})

// Session is a permission to dial or host a service, given to an API session.
type Session struct {
	kind.Meta

	APISessionID string `json:"apiSessionId" kind:"server,ref=api-session:cascade,as=apiSession,alias=apiSession" doc:"Id of the API session that got it."`
	IdentityID   string `json:"identityId" kind:"server,ref=identity:cascade,alias=identity" doc:"Id of the identity that may use it."`
	ServiceID    string `json:"serviceId" kind:"server,ref=service:cascade,few,as=service,alias=service" doc:"Id of the service that it is for."`
	Type         string `json:"type" kind:"server" doc:"What it allows: Dial is to use the service, Bind to host it."`
	// Key is what there is one session for: API session, type and service.
	Key string `json:"key" kind:"server,hidden,nofilter,unique" doc:"What there is one session for: API session, type and service."`
	// Plain is whether its token is a text that says nothing, for routers that
	// take their connections from clients when such a one is over, and only then.
	Plain bool `json:"plain" kind:"server,hidden,nofilter" doc:"Whether its token is one that routers cannot read."`
	// Brought and its hash are of one that another controller has given out.
	Brought     string `json:"brought" kind:"server,hidden,nofilter,sealed,omit" doc:"Token of a session that was taken over; empty for others, whose tokens follow from what they say."`
	BroughtHash string `json:"broughtHash" kind:"server,secret,unique,omit" doc:"Hash by which that token is recognised; empty where there is none."`
	// Waits is for clients with access tokens: they have a session before they report their
	// device, which they do to routers.
	Waits bool `json:"waits" kind:"server,hidden,nofilter" doc:"Whether the device has yet to pass the posture checks; nobody dials or hosts with it until then, but at a router that judges devices itself."`
	// SignedBy tells the keys of tokens apart, one of which takes the other's place.
	SignedBy string `json:"signedBy" kind:"server,hidden,nofilter" doc:"Id of the key that makes its token; empty for the first that the network had."`
}

// Sessions is the kind.
var Sessions = kind.Define(kind.Spec[Session]{
	Name:    "session",
	Path:    "sessions",
	Doc:     "Permissions to dial or host services that API sessions hold.",
	Verbs:   kind.Lists | kind.Gets | kind.Deletes,
	Columns: []string{"id", "type", "service", "apiSession", "createdAt"},
	Lane:    kind.Session,
	Links:   []string{"route-path"},
})

// SessionKey is the key of a session.
func SessionKey(apiSession, typ, service string) string {
	return apiSession + "." + typ + "." + service
}

// TokenHash is what a token is recognised by where it is not stored, or not to be looked
// for letter by letter.
func TokenHash(token string) string {
	sum := sha256.Sum256([]byte(token))
	return hex.EncodeToString(sum[:])
}
