package model

import (
	"slices"
	"time"

	"netkeep.internal/internal/lang/kind"
)

// ClientInfo is what the client of an identity last said of itself when it logged
// in, and showed, and the day that it was last there. It has the id of the identity and
// goes with it. It is a record of its own since it is written by logins, which change
// nothing of the identity, and since most identities of a large network never say anything.
type ClientInfo struct {
	kind.Meta

	IdentityID string  `json:"identityId" kind:"server,ref=identity:cascade" doc:"Id of the identity whose client it is."`
	EnvInfo    EnvInfo `json:"envInfo" kind:"server,nofilter" doc:"What its client last said of the machine it runs on."`
	SDKInfo    SDKInfo `json:"sdkInfo" kind:"server,nofilter" doc:"What its client last said of itself."`
	Tokens     []Shown `json:"tokens" kind:"server,nofilter" doc:"The newest token of each signer that was shown for the identity, of those whose groups become role attributes."`
	// No write is made for them alone: they go along with that of a login, or of how long
	// sessions are used, once a day.
	SeenAt    time.Time `json:"seenAt" kind:"server,nofilter" doc:"When the identity was last seen, up to a day before it was; the year 1 if nobody noted it."`
	SeenSince time.Time `json:"seenSince" kind:"server,nofilter" doc:"When it was first noted that the identity was seen; the year 1 if it never was."`
}

// SeenEvery is how long after it was last noted that an identity was seen it is noted
// again.
const SeenEvery = 24 * time.Hour

// Shown is a token that somebody has shown.
type Shown struct {
	SignerID string    `json:"signerId" doc:"Id of the external JWT signer."`
	At       time.Time `json:"at" doc:"When the token was made."`
}

// ClientInfos is the kind.
var ClientInfos = kind.Define(kind.Spec[ClientInfo]{
	Name: "client-info",
	Path: "client-infos",
	Doc:  "What the clients of identities last said of themselves, and when they were seen.",
	Lane: kind.Session,
})

// EnvInfo is what a client says of the machine it runs on.
type EnvInfo struct {
	Arch      string `json:"arch" kind:"omit" doc:"Architecture of the processor, such as amd64."`
	Domain    string `json:"domain" kind:"omit" doc:"Domain that the machine belongs to."`
	Hostname  string `json:"hostname" kind:"omit" doc:"Name of the machine."`
	OS        string `json:"os" kind:"omit" doc:"Operating system, such as linux."`
	OSRelease string `json:"osRelease" kind:"omit" doc:"Release of the operating system."`
	OSVersion string `json:"osVersion" kind:"omit" doc:"Version of the operating system."`
}

// SDKInfo is what a client says of itself.
type SDKInfo struct {
	AppID      string `json:"appId" kind:"omit" doc:"Name of the application."`
	AppVersion string `json:"appVersion" kind:"omit" doc:"Version of the application."`
	Branch     string `json:"branch" kind:"omit" doc:"Branch from which the client library was built."`
	Revision   string `json:"revision" kind:"omit" doc:"Commit from which the client library was built."`
	Type       string `json:"type" kind:"omit" doc:"Name of the client library."`
	Version    string `json:"version" kind:"omit" doc:"Version of the client library."`
}

// ClientInfoOf returns what the client of an identity last said; nothing if it
// never did.
func ClientInfoOf(r kind.Reader, identityID string) (env EnvInfo, sdk SDKInfo) {
	if info, ok := ClientInfos.Get(r, identityID); ok {
		return info.EnvInfo, info.SDKInfo
	}
	return env, sdk
}

// Remembered reports whether what a client says of itself is what it last said;
// nil is nothing new.
func Remembered(r kind.Reader, identityID string, env *EnvInfo, sdk *SDKInfo) bool {
	lastEnv, lastSDK := ClientInfoOf(r, identityID)
	return (env == nil || *env == lastEnv) && (sdk == nil || *sdk == lastSDK)
}

// Remember keeps what the client of an identity says of itself, and that it was there.
// It writes nothing if it said so before and was seen within the day.
func Remember(w kind.Writer, identityID string, env *EnvInfo, sdk *SDKInfo, at time.Time) error {
	if Remembered(w, identityID, env, sdk) && at.Sub(noted(w, identityID)) < SeenEvery {
		return nil
	}
	return ClientInfos.Upsert(w, identityID, func(c *ClientInfo) {
		c.IdentityID = identityID
		if env != nil {
			c.EnvInfo = *env
		}
		if sdk != nil {
			c.SDKInfo = *sdk
		}
		if at.After(c.SeenAt) {
			c.SeenAt = at
		}
		if c.SeenSince.IsZero() {
			c.SeenSince = at
		}
	})
}

// noted is when an identity was last seen, as far as that was noted.
func noted(r kind.Reader, identityID string) (at time.Time) {
	if info, ok := ClientInfos.Get(r, identityID); ok {
		at = info.SeenAt
	}
	return at
}

// LastSeen is when an identity was last there, as far as it is stored: to some minutes
// while it has an API session, to the day afterwards; zero if nobody knows.
func LastSeen(r kind.Reader, identityID string) time.Time {
	at := noted(r, identityID)
	for session := range APISessions.Select(r, "identityId", identityID) {
		if session.LastActivityAt.Time().After(at) {
			at = session.LastActivityAt.Time()
		}
	}
	return at
}

// NewestToken is when the newest token of a signer was made that was shown for an
// identity; zero if none was.
func NewestToken(r kind.Reader, identityID, signerID string) (at time.Time) {
	if info, ok := ClientInfos.Get(r, identityID); ok {
		for _, t := range info.Tokens {
			if t.SignerID == signerID {
				at = t.At
			}
		}
	}
	return at
}

// NoteToken keeps when a token was made, unless a newer one was shown, and forgets
// those of signers that are gone.
func NoteToken(w kind.Writer, identityID, signerID string, at time.Time) error {
	if !at.After(NewestToken(w, identityID, signerID)) {
		return nil
	}
	return ClientInfos.Upsert(w, identityID, func(c *ClientInfo) {
		c.IdentityID = identityID
		c.Tokens = append(slices.DeleteFunc(slices.Clone(c.Tokens), func(t Shown) bool {
			_, there := ExtJWTSigners.Get(w, t.SignerID)
			return !there || t.SignerID == signerID
		}), Shown{signerID, at})
	})
}
