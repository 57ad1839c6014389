package model

import (
	"time"

	"netkeep/internal/lang/fault"
	"netkeep/internal/lang/kind"
	"netkeep/internal/pki"
)

// ExtJWTSigner is an issuer of tokens by which identities may authenticate.
type ExtJWTSigner struct {
	kind.Meta

	Name            string    `json:"name" kind:"required,unique,range=1..256"`
	Enabled         bool      `json:"enabled" kind:"required"`
	Issuer          string    `json:"issuer" kind:"required,unique"`
	Audience        string    `json:"audience" kind:"required,nullable"`
	CertPEM         string    `json:"certPem" kind:"nullable"`
	KID             string    `json:"kid" kind:"unique"`
	JWKSEndpoint    string    `json:"jwksEndpoint" kind:"nullable,format=uri,nofilter"`
	ClaimsProperty  string    `json:"claimsProperty" kind:"default=sub"`
	UseExternalID   bool      `json:"useExternalId"`
	ExternalAuthURL string    `json:"externalAuthUrl" kind:"format=url,nofilter"`
	CommonName      string    `json:"commonName" kind:"server"`
	Fingerprint     string    `json:"fingerprint" kind:"server,unique"`
	NotBefore       time.Time `json:"notBefore" kind:"server"`
	NotAfter        time.Time `json:"notAfter" kind:"server"`
}

// ExtJWTSigners is the kind.
var ExtJWTSigners = kind.Define(kind.Spec[ExtJWTSigner]{
	Name: "ext-jwt-signer",
	Path: "external-jwt-signers",
	Doc:  "Create an external JWT signer: an issuer of tokens by which identities may authenticate.",
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
