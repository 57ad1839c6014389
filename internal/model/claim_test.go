package model_test

import (
	"crypto/x509"
	"crypto/x509/pkix"
	"net/url"
	"testing"

	"netkeep.internal/internal/model"
)

// bearer is a certificate with something in every place where a claim may
// look.
func bearer(t *testing.T) *x509.Certificate {
	t.Helper()
	cert := &x509.Certificate{
		Subject:        pkix.Name{CommonName: "dev/laptop/7"},
		EmailAddresses: []string{"root@example.org", "dev.laptop@example.com"},
	}
	for _, text := range []string{"https://example.org/about", "spiffe://td.org/users/ann", "SPIFFE://other.org/users/bob"} {
		u, err := url.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		cert.URIs = append(cert.URIs, u)
	}
	return cert
}

// TestClaims goes through every place, matcher and parser. An empty id is one
// that is not found.
func TestClaims(t *testing.T) {
	cert := bearer(t)
	for _, test := range []struct {
		location, matcher, criteria string
		whole                       []string // without a parser, by index
		separator                   string
		parts                       []string // with one
	}{
		{"COMMON_NAME", "ALL", "", []string{"dev/laptop/7", ""}, "/", []string{"dev", "laptop", "7", ""}},
		{"COMMON_NAME", "ALL", "", []string{"dev/laptop/7"}, "|", []string{"dev/laptop/7", ""}},
		{"COMMON_NAME", "PREFIX", "dev/", []string{"laptop/7", ""}, "/", []string{"laptop", "7", ""}},
		{"COMMON_NAME", "PREFIX", "dev", []string{"/laptop/7"}, "/", []string{"", "laptop", "7", ""}},
		{"COMMON_NAME", "PREFIX", "Dev/", []string{""}, "/", []string{""}},
		{"COMMON_NAME", "PREFIX", "dev/laptop/7", []string{""}, "/", []string{""}},
		{"COMMON_NAME", "SUFFIX", "/7", []string{"dev/laptop", ""}, "/", []string{"dev", "laptop", ""}},
		{"COMMON_NAME", "SUFFIX", "/8", []string{""}, "/", []string{""}},
		{"COMMON_NAME", "SCHEME", "dev", []string{""}, "/", []string{""}},

		{"SAN_EMAIL", "ALL", "", []string{"root@example.org", "dev.laptop@example.com", ""}, "@",
			[]string{"root", "example.org", "dev.laptop", "example.com", ""}},
		{"SAN_EMAIL", "PREFIX", "dev.", []string{"laptop@example.com", ""}, "@", []string{"laptop", "example.com", ""}},
		{"SAN_EMAIL", "SUFFIX", "@example.com", []string{"dev.laptop", ""}, ".", []string{"dev", "laptop", ""}},
		{"SAN_EMAIL", "SUFFIX", "@example.net", []string{""}, ".", []string{""}},
		{"SAN_EMAIL", "SCHEME", "root", []string{""}, "@", []string{""}},

		{"SAN_URI", "ALL", "", []string{"https://example.org/about", "spiffe://td.org/users/ann", "spiffe://other.org/users/bob", ""}, "/",
			[]string{"https:", "", "example.org", "about", "spiffe:", "", "td.org", "users", "ann", "spiffe:", "", "other.org", "users", "bob", ""}},
		{"SAN_URI", "SCHEME", "spiffe", []string{"spiffe://td.org/users/ann", "spiffe://other.org/users/bob", ""}, "/",
			[]string{"spiffe:", "", "td.org", "users", "ann", "spiffe:", "", "other.org", "users", "bob", ""}},
		{"SAN_URI", "SCHEME", "spiffe", []string{"spiffe://td.org/users/ann"}, "/users/", []string{"spiffe://td.org", "ann", "spiffe://other.org", "bob", ""}},
		{"SAN_URI", "SCHEME", "https", []string{"https://example.org/about", ""}, "://", []string{"https", "example.org/about", ""}},
		{"SAN_URI", "SCHEME", "http", []string{""}, "/", []string{""}},
		{"SAN_URI", "PREFIX", "spiffe://td.org/", []string{""}, "/", []string{""}}, // for texts alone
		{"SAN_URI", "SUFFIX", "/ann", []string{""}, "/", []string{""}},

		{"ELSEWHERE", "ALL", "", []string{""}, "/", []string{""}},
		{"COMMON_NAME", "SOMEHOW", "", []string{""}, "/", []string{""}},
	} {
		find := func(parser, separator string, want []string) {
			for i, id := range want {
				claim := &model.ExternalIDClaim{
					Location: test.location, Matcher: test.matcher, MatcherCriteria: test.criteria,
					Parser: parser, ParserCriteria: separator, Index: i,
				}
				if got, ok := claim.Find(cert); got != id || ok != (id != "") {
					t.Errorf("%+v found %q, want %q", *claim, got, id)
				}
			}
		}
		find("NONE", "", test.whole)
		find("SPLIT", test.separator, test.parts)
	}
	if id, ok := (&model.ExternalIDClaim{Location: "SAN_URI", Matcher: "ALL", Parser: "NONE"}).Find(&x509.Certificate{}); ok {
		t.Errorf("a certificate without URIs has %q", id)
	}
}
