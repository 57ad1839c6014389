package pki

import (
	"bytes"
	"crypto/x509"
	"slices"
	"time"
)

// Succession is whom to trust after those that are trusted at present have said
// so, over a connection on which the controller showed its own certificate. The
// present ones stay beside the others if that would not be believed otherwise:
// an operator may have it from somebody else.
func Succession(present, told, shown []*x509.Certificate, now time.Time) []*x509.Certificate {
	next := slices.Clone(told)
	if _, err := NewRoots(next).VerifyLeaf(shown, VerifyOptions{Now: now}); err == nil {
		return next
	}
	for _, cert := range present {
		if !slices.ContainsFunc(next, cert.Equal) {
			next = append(next, cert)
		}
	}
	return next
}

// Outdated reports whether a certificate is of an authority among those that one
// is told to trust, and not under the root that signs now, which they begin with.
func Outdated(leaf *x509.Certificate, told []*x509.Certificate) bool {
	if len(told) < 2 {
		return false
	}
	return slices.ContainsFunc(told, func(ca *x509.Certificate) bool {
		return len(ca.SubjectKeyId) > 0 && bytes.Equal(ca.SubjectKeyId, leaf.AuthorityKeyId) && !under(ca, told[1], told[2:])
	})
}

// under reports whether a CA is one of a root, as far as one is told of those between.
func under(ca, root *x509.Certificate, told []*x509.Certificate) bool {
	_, ok := way(ca, root, told)
	return ok
}

// Vouched returns the roots among those that one is told of which are trusted at
// present, or whose key one of the trusted has signed, as the chain that was
// shown proves.
func Vouched(present, told, shown []*x509.Certificate) []*x509.Certificate {
	var next []*x509.Certificate
	for _, root := range SelfSigned(told) {
		vouched := func(link *x509.Certificate) bool {
			return SamePublic(link.PublicKey, root.PublicKey) && slices.ContainsFunc(present, func(by *x509.Certificate) bool {
				return checkAuthority(link, by) == nil
			})
		}
		if slices.ContainsFunc(present, root.Equal) || slices.ContainsFunc(shown, vouched) {
			next = append(next, root)
		}
	}
	return next
}

// SelfSigned returns those of certificates that are roots.
func SelfSigned(certs []*x509.Certificate) []*x509.Certificate {
	return slices.DeleteFunc(slices.Clone(certs), func(c *x509.Certificate) bool { return checkAuthority(c, c) != nil })
}

// SameSet reports whether two lists hold the same certificates.
func SameSet(a, b []*x509.Certificate) bool {
	within := func(a, b []*x509.Certificate) bool {
		return !slices.ContainsFunc(a, func(c *x509.Certificate) bool { return !slices.ContainsFunc(b, c.Equal) })
	}
	return within(a, b) && within(b, a)
}
