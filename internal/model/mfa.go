package model

import "netkeep/internal/lang/kind"

// MFA is the second factor of an identity: a shared key for one-time codes,
// and recovery codes for when the device is lost.
type MFA struct {
	kind.Meta

	IdentityID    string   `json:"identityId" kind:"server,hidden,ref=identity:cascade"`
	IsVerified    bool     `json:"isVerified" kind:"server"`
	Secret        string   `json:"secret" kind:"server,secret"`
	RecoveryCodes []string `json:"recoveryCodes" kind:"server,secret"`
	LastStep      int64    `json:"lastStep" kind:"server,secret"`
}

// MFAs is the kind.
var MFAs = kind.Define(kind.Spec[MFA]{
	Name: "mfa",
	Path: "mfas",
	Doc:  "Second factors of identities.",
})

// MFAOf returns the second factor of an identity, if it has one.
func MFAOf(r kind.Reader, identityID string) (*MFA, bool) {
	return MFAs.Find(r, "identityId", identityID)
}
