package message

import (
	"crypto/sha256"
	"encoding/base64"
)

// Digest is what a token is known by where it must not be: nobody can use it in
// its place.
func Digest(token string) string {
	sum := sha256.Sum256([]byte(token))
	return base64.RawURLEncoding.EncodeToString(sum[:])
}

// ServerHello is TypeServerHello: the first word to an edge router.
type ServerHello struct {
	Version string            `pb:"1"`
	Data    map[string]string `pb:"2"`
	Bytes   map[string][]byte `pb:"3"`
}

// ClientHello is TypeClientHello: where clients reach an edge router.
type ClientHello struct {
	Version       string            `pb:"1"`
	Hostname      string            `pb:"2"`
	Protocols     []string          `pb:"3"`
	Data          map[string]string `pb:"4"`
	ProtocolPorts []string          `pb:"5"`
	Listeners     []EdgeListener    `pb:"10"`
}

// EdgeListener is where a router listens and what it tells clients.
type EdgeListener struct {
	Address   Address `pb:"10"`
	Advertise Address `pb:"20"`
}

// Address is a place in a network.
type Address struct {
	Value    string `pb:"10"`
	Protocol string `pb:"20"`
	Hostname string `pb:"30"`
	Port     int32  `pb:"40"`
}

// APISession is an API session as routers know it.
type APISession struct {
	Token        string   `pb:"1"`
	Fingerprints []string `pb:"2"`
	ID           string   `pb:"3"`
	IdentityID   string   `pb:"4"`
}

// APISessionsAdded is TypeAPISessionsAdded: new ones, or a part of all.
type APISessionsAdded struct {
	Full     bool         `pb:"1"`
	Sessions []APISession `pb:"2"`
}

// SyncState travels as JSON in a header of TypeAPISessionsAdded.
type SyncState struct {
	ID       string `json:"id"`
	IsLast   bool   `json:"isLast"`
	Sequence int    `json:"sequence"`
}

// APISessionsUpdated is TypeAPISessionsUpdated.
type APISessionsUpdated struct {
	Sessions []APISession `pb:"1"`
}

// Removed is TypeAPISessionsRemoved and TypeSessionsRemoved: both lists are of
// one length.
type Removed struct {
	Tokens []string `pb:"1"`
	IDs    []string `pb:"2"`
}

// APISessionHeartbeat is TypeAPISessionHeartbeat: who has a client connected.
type APISessionHeartbeat struct {
	Tokens []string `pb:"1"`
}

// ResyncRequest is TypeResyncRequest.
type ResyncRequest struct {
	Reason string `pb:"1"`
}

// ValidateSessions is TypeValidateSessions: tokens, or ids from newer routers.
type ValidateSessions struct {
	Sessions []string `pb:"1"`
}

// ConnectEvents is TypeConnectEvents: which identities have come and gone.
type ConnectEvents struct {
	Events []ConnectEvent `pb:"1"`
	Full   bool           `pb:"2"`
}

// ConnectEvent tells of one identity.
type ConnectEvent struct {
	IdentityID string        `pb:"1"`
	Connected  bool          `pb:"2"`
	Times      []ConnectTime `pb:"3"`
}

// ConnectTime is when a client connected, and from where.
type ConnectTime struct {
	At          int64  `pb:"1"` // ms
	Source      string `pb:"2"`
	Destination string `pb:"3"`
}

// Extend is TypeExtend: a router asks for new certificates.
type Extend struct {
	ClientCSR string `pb:"1"`
	ServerCSR string `pb:"2"`
	Verify    bool   `pb:"3"`
}

// Certificates is TypeCertificates.
type Certificates struct {
	Client string `pb:"1"`
	Server string `pb:"2"`
	CAs    string `pb:"3"`
}

// VerifyExtension is TypeVerifyExtension: the new certificate has arrived.
type VerifyExtension struct {
	Client string `pb:"1"`
}

// Error is TypeError where it answers TypeVerifyExtension; empty is success.
type Error struct {
	Code    string `pb:"1"`
	Message string `pb:"2"`
	Cause   string `pb:"3"`
}

// HealthEvent is TypeHealthEvent: how a check of a host went.
type HealthEvent struct {
	SessionToken    string   `pb:"1"`
	Fingerprints    []string `pb:"2"`
	TerminatorID    string   `pb:"3"`
	Passed          bool     `pb:"4"`
	APISessionToken string   `pb:"5"`
}
