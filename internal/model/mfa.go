package model

import (
	"time"

	"netkeep.internal/internal/lang/kind"
)

// MFA is the second factor of an identity: a shared key for one-time codes,
// and recovery codes for when the device is lost.
type MFA struct {
	kind.Meta

	IdentityID    string   `json:"identityId" kind:"server,hidden,ref=identity:cascade" doc:"Id of the identity whose second factor it is."`
	IsVerified    bool     `json:"isVerified" kind:"server" doc:"Whether a code has been shown; only then is the factor asked for."`
	Secret        string   `json:"secret" kind:"server,secret,sealed" doc:"Key that one-time codes are made from."`
	RecoveryCodes []string `json:"recoveryCodes" kind:"server,secret,sealed" doc:"Codes that work once each in place of a one-time code."`
	LastStep      int64    `json:"lastStep" kind:"server,secret" doc:"Time of the last one-time code, so that none works twice."`
	RenewedBy     string   `json:"renewedBy" kind:"server,secret" doc:"Id of the API session that has replaced the recovery codes with the last one-time code and has not read them yet."`
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

// ShowFactor notes that an API session shows its identity's second factor now.
func (s *APISession) ShowFactor(w kind.Writer) {
	now := w.Now()
	s.IsMFAComplete, s.MFAPassedAt = true, &now
	if m, has := MFAOf(w, s.IdentityID); has {
		s.MFAID = m.ID
	}
}

// FactorShown returns when an API session last showed the second factor that
// its identity has; nil if it has not. What was shown of one that is gone does
// not count, not for the next one either.
func (s *APISession) FactorShown(r kind.Reader) *time.Time {
	m, has := MFAOf(r, s.IdentityID)
	if !has || !m.IsVerified || m.ID != s.MFAID {
		return nil
	}
	return s.MFAPassedAt
}
