package model

import (
	"fmt"
	"slices"
	"unicode"
	"unicode/utf8"

	"netkeep.internal/internal/lang/fault"
	"netkeep.internal/internal/lang/kind"
)

// DefaultAuthPolicy is the id of the policy that applies where none is given.
const DefaultAuthPolicy = "default"

// AuthPolicy says how identities may authenticate.
type AuthPolicy struct {
	kind.Meta

	Name      string        `json:"name" kind:"required,unique,range=1..256" doc:"What people call the policy; no two policies have the same name."`
	Primary   AuthPrimary   `json:"primary" kind:"required" doc:"By which credentials somebody may show who they are; one of them is enough."`
	Secondary AuthSecondary `json:"secondary" kind:"required" doc:"What somebody must show beside that before the session is good for more than showing it."`
	// A token is no second factor and shows none.
	MachineTokens string `json:"machineTokens" kind:"keep,enum=auto|allow|forbid,default=auto,nofilter" doc:"Whether identities may answer for tokens of machines, which show no second factor: allow, forbid, or auto, which forbids them where secondary asks for anything; auto if not given."`
}

// AllowsTokens reports whether identities with the policy may answer for tokens.
func (p *AuthPolicy) AllowsTokens() bool {
	switch p.MachineTokens {
	case "allow":
		return true
	case "forbid":
		return false
	}
	return !p.Secondary.RequireTOTP && p.Secondary.RequireExtJWTSigner == ""
}

// AuthPrimary is the methods that establish who somebody is.
type AuthPrimary struct {
	Cert   AuthCert   `json:"cert" kind:"required" doc:"Rules for client certificates."`
	UPDB   AuthUPDB   `json:"updb" kind:"required" doc:"Rules for user names and passwords."`
	ExtJWT AuthExtJWT `json:"extJwt" kind:"required" doc:"Rules for tokens of external JWT signers."`
}

// AuthCert is the rules for client certificates.
type AuthCert struct {
	Allowed           bool `json:"allowed" kind:"required" doc:"Whether a client certificate is accepted."`
	AllowExpiredCerts bool `json:"allowExpiredCerts" kind:"required" doc:"Whether a certificate is accepted past its end, so that a device that was off for long can come back."`
}

// AuthUPDB is the rules for passwords.
type AuthUPDB struct {
	Allowed                bool `json:"allowed" kind:"required" doc:"Whether a user name with its password is accepted."`
	MinPasswordLength      int  `json:"minPasswordLength" kind:"required" doc:"How many characters a new password must have; less than 5 counts as 5."`
	RequireSpecialChar     bool `json:"requireSpecialChar" kind:"required" doc:"Whether a new password must hold a character that is neither a letter nor a digit."`
	RequireNumberChar      bool `json:"requireNumberChar" kind:"required" doc:"Whether a new password must hold a digit."`
	RequireMixedCase       bool `json:"requireMixedCase" kind:"required" doc:"Whether a new password must hold lower and upper case letters."`
	MaxAttempts            int  `json:"maxAttempts" kind:"required" doc:"How many wrong passwords in a row from one address have the password not work from there, and ten times as many from all have it not work from addresses where it was never right; 0 for any number."`
	LockoutDurationMinutes int  `json:"lockoutDurationMinutes" kind:"required" doc:"For how many minutes the password then does not work; 0, or more than a hundred years, until an admin enables the identity, or for 15 minutes if that is the default admin."`
}

// Refuses says what a password lacks, or nothing.
func (u AuthUPDB) Refuses(password string) string {
	var digit, special, lower, upper bool
	for _, r := range password {
		switch {
		case unicode.IsDigit(r):
			digit = true
		case unicode.IsLower(r):
			lower = true
		case unicode.IsUpper(r):
			upper = true
		case !unicode.IsLetter(r):
			special = true
		}
	}
	switch {
	case utf8.RuneCountInString(password) < u.MinPasswordLength:
		return fmt.Sprintf("must be at least %d characters long", u.MinPasswordLength)
	case u.RequireNumberChar && !digit:
		return "must hold a digit"
	case u.RequireSpecialChar && !special:
		return "must hold a special character"
	case u.RequireMixedCase && !(lower && upper):
		return "must hold lower and upper case letters"
	}
	return ""
}

// AuthExtJWT is the rules for tokens of other issuers.
type AuthExtJWT struct {
	Allowed        bool     `json:"allowed" kind:"required" doc:"Whether a token of an external JWT signer is accepted."`
	AllowedSigners []string `json:"allowedSigners" kind:"required,ref=ext-jwt-signer:restrict" doc:"Ids of the external JWT signers whose tokens are accepted; all of them if empty."`
}

// Accepts reports whether tokens of a signer are accepted.
func (x AuthExtJWT) Accepts(signer string) bool {
	return x.Allowed && (len(x.AllowedSigners) == 0 || slices.Contains(x.AllowedSigners, signer))
}

// AuthSecondary is the further factors that are needed.
type AuthSecondary struct {
	RequireTOTP         bool   `json:"requireTotp" kind:"required" doc:"Whether a one-time code is asked for; an identity that has enrolled a second factor is asked in any case."`
	RequireExtJWTSigner string `json:"requireExtJwtSigner" kind:"nullable,ref=ext-jwt-signer:restrict" doc:"Id of an external JWT signer of which every request must carry a token; null if none is asked for."`
}

// AuthPolicies is the kind.
var AuthPolicies = kind.Define(kind.Spec[AuthPolicy]{
	Name:    "auth-policy",
	Path:    "auth-policies",
	Doc:     "Create an authentication policy: how identities may authenticate.",
	Verbs:   kind.CRUD,
	Columns: []string{"name", "primary.cert.allowed", "primary.updb.allowed", "primary.extJwt.allowed", "secondary.requireTotp"},
	InFiles: true,
})

// Fill raises a password length below what any password must have.
func (p *AuthPolicy) Fill() {
	p.Primary.UPDB.MinPasswordLength = max(MinPassword, p.Primary.UPDB.MinPasswordLength)
}

// Guard keeps the default policy.
func (p *AuthPolicy) Guard(kind.Reader) error {
	if p.ID == DefaultAuthPolicy {
		return fault.On(fault.CodeReferenced, "authPolicyId", "applies wherever no other policy is given", p.ID)
	}
	return nil
}
