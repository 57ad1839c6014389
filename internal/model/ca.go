package model

import (
	"crypto/x509"

	"netkeep.internal/internal/lang/fault"
	"netkeep.internal/internal/lang/kind"
	"netkeep.internal/internal/pki"
)

// CA is a certificate authority of somebody else, whose certificates may
// enroll and authenticate once it is verified.
type CA struct {
	kind.Meta

	Name                      string           `json:"name" kind:"required,unique,range=1..256" doc:"What people call the CA; no two CAs have the same name."`
	CertPEM                   string           `json:"certPem" kind:"required=create,fixed,nofilter" doc:"Certificate of the CA as PEM; more may follow it, ten in all at most."`
	Fingerprint               string           `json:"fingerprint" kind:"server,index" doc:"SHA-1 of the CA's certificate, in hexadecimal."`
	IsVerified                bool             `json:"isVerified" kind:"server" doc:"Whether somebody has shown to hold the CA's key; until then its certificates count for nothing."`
	VerificationToken         string           `json:"verificationToken" kind:"server,omit" doc:"Common name of the certificate that the CA must sign to be verified."`
	IsAuthEnabled             bool             `json:"isAuthEnabled" kind:"required,usual=true" doc:"Whether identities may authenticate with certificates of this CA."`
	IsAutoCAEnrollmentEnabled bool             `json:"isAutoCaEnrollmentEnabled" kind:"required" doc:"Whether everybody with a certificate of this CA may enroll as a new identity."`
	IsOTTCAEnrollmentEnabled  bool             `json:"isOttCaEnrollmentEnabled" kind:"required" doc:"Whether enrollments of the method ottca may use certificates of this CA."`
	IdentityRoles             []string         `json:"identityRoles" kind:"required,nofilter" doc:"Role attributes of the identities that enroll by themselves with a certificate of this CA."`
	IdentityNameFormat        string           `json:"identityNameFormat" kind:"required=replace,default=[caName]-[commonName],nofilter" doc:"Name of those identities, with [caName], [caId], [commonName], [requestedName] and [identityId] filled in; [caName]-[commonName] if empty."`
	ExternalIDClaim           *ExternalIDClaim `json:"externalIdClaim" kind:"omit,nofilter" doc:"Where a certificate carries an external id, so that every certificate with it is as good; without this, a certificate stands for itself."`
}

// ExternalIDClaim says where in a certificate an identity's external id is.
type ExternalIDClaim struct {
	Location        string `json:"location" kind:"required,enum=COMMON_NAME|SAN_URI|SAN_EMAIL" doc:"Where in the certificate the id is: its common name, its URIs or its email addresses."`
	Matcher         string `json:"matcher" kind:"required,enum=ALL|PREFIX|SUFFIX|SCHEME" doc:"Which of the texts there count: all of them, names and addresses with a prefix or suffix, or URIs with a scheme."`
	MatcherCriteria string `json:"matcherCriteria" kind:"required,nullable" doc:"The prefix or suffix, which is cut off, or the scheme, which stays; null for the matcher ALL, which needs none."`
	Parser          string `json:"parser" kind:"required,enum=NONE|SPLIT" doc:"Whether a text is an id as it is (NONE) or holds several parts (SPLIT)."`
	ParserCriteria  string `json:"parserCriteria" kind:"required,nullable" doc:"What separates the parts; null for the parser NONE, which needs none."`
	Index           int    `json:"index" kind:"required,range=0..1000" doc:"Which of all that was found is the id, counted from 0."`
}

// CAs is the kind.
var CAs = kind.Define(kind.Spec[CA]{
	Name:    "ca",
	Path:    "cas",
	Doc:     "Register a certificate authority of somebody else. It counts for nothing until it is verified.",
	Verbs:   kind.CRUD,
	Columns: []string{"name", "isVerified", "isAuthEnabled", "isAutoCaEnrollmentEnabled", "isOttCaEnrollmentEnabled", "identityRoles"},
	InFiles: true,
})

// maxCertificates bounds the chain that a CA is registered with.
const maxCertificates = 10

// Fill recognises the certificate.
func (c *CA) Fill() {
	if cert, err := c.Certificate(); err == nil {
		c.Fingerprint = pki.Fingerprint(cert)
	}
}

// Check refuses what is not the certificate of a new CA.
func (c *CA) Check(r kind.Reader, _ *CA) error {
	cert, err := c.Certificate()
	if err != nil {
		return fault.Invalid("certPem", "must be a PEM certificate: "+err.Error(), nil)
	}
	if !cert.IsCA {
		return fault.Invalid("certPem", "must be the certificate of a CA", cert.Subject.String())
	}
	for other := range CAs.Select(r, "fingerprint", c.Fingerprint) {
		if other.ID != c.ID {
			return fault.Invalid("certPem", "is registered already, as "+other.Name, c.Fingerprint)
		}
	}
	for _, role := range c.IdentityRoles {
		if role == "" || role[0] == '#' || role[0] == '@' {
			return fault.Invalid("identityRoles", "must be plain texts that do not start with # or @", role)
		}
	}
	return c.ExternalIDClaim.check()
}

// Certificate returns the CA's own certificate, the first in its PEM.
func (c *CA) Certificate() (*x509.Certificate, error) {
	certs, err := pki.ParseCertificates([]byte(c.CertPEM), maxCertificates)
	if err != nil {
		return nil, err
	}
	return certs[0], nil
}

func (x *ExternalIDClaim) check() error {
	switch {
	case x == nil:
		return nil
	case x.Matcher == "SCHEME" && x.Location != "SAN_URI":
		return fault.On(fault.CodeReference, "externalIdClaim.matcher", "must not be SCHEME unless the location is SAN_URI", x.Matcher)
	case x.Matcher != "ALL" && x.MatcherCriteria == "":
		return fault.Invalid("externalIdClaim.matcherCriteria", "is required by the matcher "+x.Matcher, nil)
	case x.Parser == "SPLIT" && x.ParserCriteria == "":
		return fault.Invalid("externalIdClaim.parserCriteria", "is required by the parser SPLIT", nil)
	}
	return nil
}
