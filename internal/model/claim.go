package model

import (
	"crypto/x509"
	"strings"
)

// Find returns the external id that a certificate carries, where and as the
// claim says; ok is false if it carries none.
func (x *ExternalIDClaim) Find(cert *x509.Certificate) (id string, ok bool) {
	var found []string
	for _, value := range x.values(cert) {
		value, matches := x.match(value)
		if !matches {
			continue
		}
		if x.Parser == "SPLIT" {
			found = append(found, strings.Split(value, x.ParserCriteria)...)
		} else {
			found = append(found, value)
		}
	}
	if x.Index >= len(found) || found[x.Index] == "" {
		return "", false
	}
	return found[x.Index], true
}

// values are the texts at the claim's location.
func (x *ExternalIDClaim) values(cert *x509.Certificate) []string {
	switch x.Location {
	case "COMMON_NAME":
		return []string{cert.Subject.CommonName}
	case "SAN_EMAIL":
		return cert.EmailAddresses
	case "SAN_URI":
		var uris []string
		for _, u := range cert.URIs {
			uris = append(uris, u.String())
		}
		return uris
	}
	return nil
}

// match reports whether a text is one that the claim means, and returns what
// of it counts.
func (x *ExternalIDClaim) match(value string) (string, bool) {
	switch x.Matcher {
	case "ALL":
		return value, true
	case "PREFIX":
		return strings.CutPrefix(value, x.MatcherCriteria)
	case "SUFFIX":
		return strings.CutSuffix(value, x.MatcherCriteria)
	case "SCHEME":
		scheme, rest, ok := strings.Cut(value, ":")
		return strings.TrimPrefix(rest, "//"), ok && strings.EqualFold(scheme, x.MatcherCriteria)
	}
	return "", false
}
