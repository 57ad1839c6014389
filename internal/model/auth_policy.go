package model

import (
	"fmt"
	"unicode"
	"unicode/utf8"

	"netkeep/internal/lang/fault"
	"netkeep/internal/lang/kind"
)

// DefaultAuthPolicy is the id of the policy that applies where none is given.
const DefaultAuthPolicy = "default"

// AuthPolicy says how identities may authenticate.
type AuthPolicy struct {
	kind.Meta

	Name      string        `json:"name" kind:"required,unique,range=1..256"`
	Primary   AuthPrimary   `json:"primary" kind:"required"`
	Secondary AuthSecondary `json:"secondary" kind:"required"`
}

// AuthPrimary is the methods that establish who somebody is.
type AuthPrimary struct {
	Cert   AuthCert   `json:"cert" kind:"required"`
	UPDB   AuthUPDB   `json:"updb" kind:"required"`
	ExtJWT AuthExtJWT `json:"extJwt" kind:"required"`
}

// AuthCert is the rules for client certificates.
type AuthCert struct {
	Allowed           bool `json:"allowed" kind:"required"`
	AllowExpiredCerts bool `json:"allowExpiredCerts" kind:"required"`
}

// AuthUPDB is the rules for passwords.
type AuthUPDB struct {
	Allowed                bool `json:"allowed" kind:"required"`
	MinPasswordLength      int  `json:"minPasswordLength" kind:"required"`
	RequireSpecialChar     bool `json:"requireSpecialChar" kind:"required"`
	RequireNumberChar      bool `json:"requireNumberChar" kind:"required"`
	RequireMixedCase       bool `json:"requireMixedCase" kind:"required"`
	MaxAttempts            int  `json:"maxAttempts" kind:"required"`
	LockoutDurationMinutes int  `json:"lockoutDurationMinutes" kind:"required"`
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
	Allowed        bool     `json:"allowed" kind:"required"`
	AllowedSigners []string `json:"allowedSigners" kind:"required,ref=ext-jwt-signer:restrict"`
}

// AuthSecondary is the further factors that are needed.
type AuthSecondary struct {
	RequireTOTP         bool   `json:"requireTotp" kind:"required"`
	RequireExtJWTSigner string `json:"requireExtJwtSigner" kind:"nullable,ref=ext-jwt-signer:restrict"`
}

// AuthPolicies is the kind.
var AuthPolicies = kind.Define(kind.Spec[AuthPolicy]{
	Name: "auth-policy",
	Path: "auth-policies",
	Doc:  "Create an authentication policy: how identities may authenticate.",
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
