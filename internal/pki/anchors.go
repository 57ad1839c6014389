package pki

import (
	"crypto/x509"
	"slices"
)

// anchorsFile holds CAs that are trusted besides those of the network's own making: a
// network that was another controller's brings them. They may lie between the
// intermediate CA and the root. Nothing is ever signed with them.
const anchorsFile = "anchors.crt"

// maxAnchors bounds how many there may be.
const maxAnchors = 20

// way returns the CAs by which one leads to a root, out of those that may lie between:
// none if the root has signed it itself. It reports false if nothing leads there.
func way(ca, root *x509.Certificate, through []*x509.Certificate) (between []*x509.Certificate, ok bool) {
	for checkAuthority(ca, root) != nil {
		next := slices.IndexFunc(through, func(by *x509.Certificate) bool {
			return !by.Equal(ca) && !slices.ContainsFunc(between, by.Equal) && checkAuthority(ca, by) == nil
		})
		if next < 0 || len(between) == maxPresented-3 { // a leaf, its CA and a root vouched for are in a chain besides
			return nil, false
		}
		ca = through[next]
		between = append(between, ca)
	}
	return between, true
}

// leads reports whether a CA is one of a root, or of one below it.
func (a *Authorities) leads(ca, root *x509.Certificate) bool {
	_, ok := way(ca, root, a.Anchors)
	return ok
}

// checkLeads is checkAuthority with what may lie between.
func (a *Authorities) checkLeads(ca, root *x509.Certificate) error {
	err := checkAuthority(ca, root)
	if err != nil && a.leads(ca, root) {
		return nil
	}
	return err
}
