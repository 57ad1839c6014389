package model

import (
	"crypto/x509"
	"net/url"
	"strings"
)

// Find returns the external id that a certificate carries, where and as the
// claim says; ok is false if it carries none.
func (x *ExternalIDClaim) Find(cert *x509.Certificate) (id string, ok bool) {
	var found []string
	for _, value := range x.values(cert) {
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

// values are those of the texts at the claim's location that it means.
func (x *ExternalIDClaim) values(cert *x509.Certificate) []string {
	switch x.Location {
	case "COMMON_NAME":
		return x.texts([]string{cert.Subject.CommonName})
	case "SAN_EMAIL":
		return x.texts(cert.EmailAddresses)
	case "SAN_URI":
		return x.uris(cert.URIs)
	}
	return nil
}

// texts are what counts of the texts that the claim means: what it looks for
// at their ends does not.
func (x *ExternalIDClaim) texts(list []string) []string {
	var meant []string
	for _, value := range list {
		var ok bool
		switch x.Matcher {
		case "ALL":
			ok = true
		case "PREFIX":
			value, ok = strings.CutPrefix(value, x.MatcherCriteria)
		case "SUFFIX":
			value, ok = strings.CutSuffix(value, x.MatcherCriteria)
		}
		if ok {
			meant = append(meant, value)
		}
	}
	return meant
}

// uris are the addresses that the claim means. All of each counts, its scheme
// too. One cannot be looked for by its ends.
func (x *ExternalIDClaim) uris(list []*url.URL) []string {
	var meant []string
	for _, u := range list {
		if x.Matcher == "ALL" || x.Matcher == "SCHEME" && strings.EqualFold(u.Scheme, x.MatcherCriteria) {
			meant = append(meant, u.String())
		}
	}
	return meant
}
