package model

import (
	"time"

	"netkeep.internal/internal/lang/fault"
	"netkeep.internal/internal/lang/kind"
	"netkeep.internal/internal/pki"
)

// ExtJWTSigner is an issuer of tokens by which identities may authenticate.
type ExtJWTSigner struct {
	kind.Meta

	Name            string   `json:"name" kind:"required,unique,range=1..256" doc:"What people call the signer; no two signers have the same name."`
	Enabled         bool     `json:"enabled" kind:"required,usual=true" doc:"Whether its tokens are accepted."`
	Issuer          string   `json:"issuer" kind:"required,unique" doc:"The iss claim of its tokens, by which they are recognised; no two signers have the same."`
	Audience        string   `json:"audience" kind:"required,nullable" doc:"What the aud claim of its tokens must hold; null accepts tokens that the issuer made for any other application."`
	CertPEM         string   `json:"certPem" kind:"nullable" doc:"Certificate of the key that signs the tokens, as PEM, which counts only until it expires; either this or jwksEndpoint is given."`
	KID             string   `json:"kid" kind:"unique" doc:"The kid header of tokens signed by the key of certPem; the fingerprint of certPem if empty."`
	JWKSEndpoint    string   `json:"jwksEndpoint" kind:"nullable,format=uri,nofilter" doc:"Where the controller fetches the keys that sign the tokens, as a JSON Web Key Set; either this or certPem is given."`
	ClaimsProperty  string   `json:"claimsProperty" kind:"default=sub" doc:"Name of the claim that says whose token it is; sub if empty."`
	UseExternalID   bool     `json:"useExternalId" doc:"Whether that claim holds an identity's externalId; it holds the id otherwise."`
	ExternalAuthURL string   `json:"externalAuthUrl" kind:"nullable,format=url" doc:"Where people log in to get a token; clients are not told of the signer if it is null."`
	ClientID        string   `json:"clientId" kind:"nullable,range=0..1024" doc:"What the identity provider calls the application that people log in with, which anybody may read who can reach the Client API; null if clients know without being told."`
	Scopes          []string `json:"scopes" kind:"nofilter,range=0..100,null" doc:"Scopes that clients ask the identity provider for beyond their own, which anybody may read who can reach the Client API; none if empty."`
	TargetToken     string   `json:"targetToken" kind:"enum=ACCESS|ID,default=ACCESS" doc:"Which of the tokens that the identity provider gives a client it shows to the controller: ACCESS or ID; ACCESS if empty."`

	EnrollToCertEnabled           bool              `json:"enrollToCertEnabled" doc:"Whether somebody whom no identity stands for becomes one by a token and gets a certificate; refused without one of enrollEmailDomains, enrollGroups and enrollClaims."`
	EnrollToTokenEnabled          bool              `json:"enrollToTokenEnabled" doc:"Whether such a one becomes an identity that goes on to authenticate by tokens, also at its first login; refused without one of enrollEmailDomains, enrollGroups and enrollClaims."`
	EnrollAuthPolicyID            string            `json:"enrollAuthPolicyId" kind:"nullable,range=0..256,nofilter" doc:"Id or name of the authentication policy that those get who become identities, which has to be there when it is named, by the end of a list of changes at the latest; nobody becomes one after it is gone; default if null."`
	EnrollNameClaimsSelector      string            `json:"enrollNameClaimsSelector" kind:"range=0..256,nofilter" doc:"Claim that names those who become identities, by its name or as a JSON pointer; that of claimsProperty if empty."`
	EnrollAttributeClaimsSelector string            `json:"enrollAttributeClaimsSelector" kind:"range=0..256,nofilter" doc:"Claim that holds the groups of somebody, by its name or as a JSON pointer: at every login they become role attributes of the identity, beside its own; none do if empty."`
	EnrollAttributePrefix         string            `json:"enrollAttributePrefix" kind:"format=visible,range=0..64,nofilter" doc:"What role attributes that were groups begin with, so that they are not taken for others; none do without this or enrollAttributeAllow."`
	EnrollAttributeAllow          []string          `json:"enrollAttributeAllow" kind:"range=0..100,nofilter" doc:"Groups that become role attributes, where * stands for any characters; if empty, all do that get enrollAttributePrefix."`
	EnrollEmailDomains            []string          `json:"enrollEmailDomains" kind:"range=0..100,nofilter" doc:"Domains of which one must be that of the email claim, which the claim email_verified must vouch for, to become an identity; any if empty."`
	EnrollGroups                  []string          `json:"enrollGroups" kind:"range=0..100,nofilter" doc:"Groups of which somebody must be in one to become an identity, where * stands for any characters; none needed if empty."`
	EnrollClaims                  map[string]string `json:"enrollClaims" kind:"nofilter" doc:"What claims must say, or hold in a list, for somebody to become an identity, by the name or JSON pointer of the claim; anything if empty."`
	EnrollLimit                   int               `json:"enrollLimit" kind:"range=0..1000000,default=10000" doc:"How many identities there may be at a time that became so by this signer; 10000 if not given."`

	CommonName  string    `json:"commonName" kind:"server" doc:"Common name of certPem; empty without one."`
	Fingerprint string    `json:"fingerprint" kind:"server,unique" doc:"SHA-1 of certPem, in hexadecimal; empty without one."`
	NotBefore   time.Time `json:"notBefore" kind:"server" doc:"When certPem begins; the year 1 without one."`
	NotAfter    time.Time `json:"notAfter" kind:"server" doc:"When certPem ends; the year 1 without one."`
}

// ExtJWTSigners is the kind.
var ExtJWTSigners = kind.Define(kind.Spec[ExtJWTSigner]{
	Name:    "ext-jwt-signer",
	Path:    "external-jwt-signers",
	Doc:     "Create an external JWT signer: an issuer of tokens by which identities may authenticate.",
	Verbs:   kind.CRUD,
	Columns: []string{"name", "issuer", "audience", "enabled"},
	InFiles: true,
})

// Fill shows what the certificate says. Without a kid its fingerprint serves.
func (s *ExtJWTSigner) Fill() {
	s.CommonName, s.Fingerprint, s.NotBefore, s.NotAfter = "", "", time.Time{}, time.Time{}
	certs, err := pki.ParseCertificates([]byte(s.CertPEM), 1)
	if err != nil || len(certs) != 1 {
		return
	}
	cert := certs[0]
	s.CommonName, s.Fingerprint = cert.Subject.CommonName, pki.Fingerprint(cert)
	s.NotBefore, s.NotAfter = cert.NotBefore, cert.NotAfter
	if s.KID == "" {
		s.KID = s.Fingerprint
	}
}

// Check asks for exactly one source of keys.
func (s *ExtJWTSigner) Check(r kind.Reader, _ *ExtJWTSigner) error {
	if (s.CertPEM == "") == (s.JWKSEndpoint == "") {
		return fault.On(fault.CodeReference, "certPem", "or jwksEndpoint must be given, and not both", nil)
	}
	if s.CertPEM != "" && s.Fingerprint == "" {
		return fault.On(fault.CodeCertPEM, "certPem", "must be exactly one PEM certificate", nil)
	}
	if s.Issuer == "" {
		return fault.Invalid("issuer", "must not be empty", s.Issuer)
	}
	if s.Audience == "" {
		for binding := range RoleBindings.Select(r, "signerId", s.ID) {
			return fault.Invalid("audience", "must not be empty while the role binding "+binding.Name+" gives tokens of the signer a role", s.Audience)
		}
	}
	return s.checkPeople()
}
