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

	Name            string    `json:"name" kind:"required,unique,range=1..256" doc:"What people call the signer; no two signers have the same name."`
	Enabled         bool      `json:"enabled" kind:"required,usual=true" doc:"Whether its tokens are accepted."`
	Issuer          string    `json:"issuer" kind:"required,unique" doc:"The iss claim of its tokens, by which they are recognised; no two signers have the same."`
	Audience        string    `json:"audience" kind:"required,nullable" doc:"What the aud claim of its tokens must hold; null accepts tokens that the issuer made for any other application."`
	CertPEM         string    `json:"certPem" kind:"nullable" doc:"Certificate of the key that signs the tokens, as PEM, which counts only until it expires; either this or jwksEndpoint is given."`
	KID             string    `json:"kid" kind:"unique" doc:"The kid header of tokens signed by the key of certPem; the fingerprint of certPem if empty."`
	JWKSEndpoint    string    `json:"jwksEndpoint" kind:"nullable,format=uri,nofilter" doc:"Where the controller fetches the keys that sign the tokens, as a JSON Web Key Set; either this or certPem is given."`
	ClaimsProperty  string    `json:"claimsProperty" kind:"default=sub" doc:"Name of the claim that says whose token it is; sub if empty."`
	UseExternalID   bool      `json:"useExternalId" doc:"Whether that claim holds an identity's externalId; it holds the id otherwise."`
	ExternalAuthURL string    `json:"externalAuthUrl" kind:"nullable,format=url" doc:"Where people log in to get a token; clients are not told of the signer if it is null."`
	ClientID        string    `json:"clientId" kind:"nullable,range=0..1024" doc:"What the identity provider calls the application that people log in with, which anybody may read who can reach the Client API; null if clients know without being told."`
	Scopes          []string  `json:"scopes" kind:"nofilter,range=0..100" doc:"Scopes that clients ask the identity provider for beyond their own, which anybody may read who can reach the Client API; none if empty."`
	TargetToken     string    `json:"targetToken" kind:"enum=ACCESS|ID,default=ACCESS" doc:"Which of the tokens that the identity provider gives a client it shows to the controller: ACCESS or ID; ACCESS if empty."`
	CommonName      string    `json:"commonName" kind:"server" doc:"Common name of certPem; empty without one."`
	Fingerprint     string    `json:"fingerprint" kind:"server,unique" doc:"SHA-1 of certPem, in hexadecimal; empty without one."`
	NotBefore       time.Time `json:"notBefore" kind:"server" doc:"When certPem begins; the year 1 without one."`
	NotAfter        time.Time `json:"notAfter" kind:"server" doc:"When certPem ends; the year 1 without one."`
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
func (s *ExtJWTSigner) Check(_ kind.Reader, _ *ExtJWTSigner) error {
	if (s.CertPEM == "") == (s.JWKSEndpoint == "") {
		return fault.On(fault.CodeReference, "certPem", "or jwksEndpoint must be given, and not both", nil)
	}
	if s.CertPEM != "" && s.Fingerprint == "" {
		return fault.On(fault.CodeCertPEM, "certPem", "must be exactly one PEM certificate", nil)
	}
	if s.Issuer == "" {
		return fault.Invalid("issuer", "must not be empty", s.Issuer)
	}
	return nil
}
