package pki

import (
	"crypto/x509"
	"errors"
	"fmt"
	"slices"
	"time"

	"netkeep.internal/internal/lang/fault"
)

// maxPresented bounds how many certificates of a peer are looked at.
const maxPresented = 10

// Roots is a set of trust anchors. It does not change and is safe for use by
// several goroutines. The zero Roots trusts nobody.
type Roots struct {
	pool    *x509.CertPool
	anchors map[string]*x509.Certificate // by DER
}

// NewRoots returns a set that trusts the given certificates. They need not be
// self-signed: an intermediate CA can be an anchor too.
func NewRoots(anchors []*x509.Certificate) *Roots {
	r := &Roots{pool: x509.NewCertPool(), anchors: make(map[string]*x509.Certificate, len(anchors))}
	for _, a := range anchors {
		r.pool.AddCert(timeless(a))
		r.anchors[string(a.Raw)] = a
	}
	return r
}

// VerifyOptions says how to verify a chain.
type VerifyOptions struct {
	// Now decides between several chains: one that is in force at this time
	// is preferred. It never makes verification fail.
	Now time.Time

	// Usages are the extended key usages of which the leaf must have one.
	// None means that any will do.
	Usages []x509.ExtKeyUsage
}

// VerifiedLeaf is proof that a certificate chains to a trust anchor. Only
// [Roots.VerifyLeaf] makes one; the zero value has expired. It says nothing of
// who holds the key: that is what the TLS handshake proves, for the first
// certificate of the peer and no other.
type VerifiedLeaf struct {
	chain               []*x509.Certificate // leaf first, anchor last
	notBefore, notAfter time.Time           // when all of chain is in force
}

// VerifyLeaf verifies that the first of the presented certificates chains to a
// trust anchor. The others are hints for building the chain, in any order, and
// are never themselves the reason to believe the first. Signatures, CA flags,
// path lengths, name constraints and the strength of the presented keys are
// always checked. Dates are not: ask the result. Errors carry [fault.CodeChain].
func (r *Roots) VerifyLeaf(presented []*x509.Certificate, opt VerifyOptions) (VerifiedLeaf, error) {
	leaf, err := r.verify(presented, opt)
	if err != nil {
		return VerifiedLeaf{}, fault.Wrap(fault.CodeChain, fmt.Errorf("verifying certificate: %w", err))
	}
	return leaf, nil
}

func (r *Roots) verify(presented []*x509.Certificate, opt VerifyOptions) (VerifiedLeaf, error) {
	switch {
	case r == nil || r.pool == nil:
		// Without a pool, the standard library would turn to the system's.
		return VerifiedLeaf{}, errors.New("no trust anchors")
	case len(presented) == 0:
		return VerifiedLeaf{}, errors.New("no certificate presented")
	case len(presented) > maxPresented:
		return VerifiedLeaf{}, fmt.Errorf("%d certificates presented: at most %d are considered", len(presented), maxPresented)
	case slices.Contains(presented, nil):
		return VerifiedLeaf{}, errors.New("missing certificate")
	case r.anchors[string(presented[0].Raw)] != nil:
		return VerifiedLeaf{}, errors.New("a trust anchor cannot stand for a peer")
	}
	if err := checkPublic(presented[0].PublicKey); err != nil {
		return VerifiedLeaf{}, err
	}
	// A weak key in between would let anyone who breaks it make leaves, and
	// an enormous one would let the peer spend our time.
	hints := x509.NewCertPool()
	for _, c := range presented[1:] {
		if checkPublic(c.PublicKey) == nil {
			hints.AddCert(timeless(c))
		}
	}
	usages := opt.Usages
	if len(usages) == 0 {
		usages = []x509.ExtKeyUsage{x509.ExtKeyUsageAny}
	}
	chains, err := timeless(presented[0]).Verify(x509.VerifyOptions{
		Roots:         r.pool,
		Intermediates: hints,
		CurrentTime:   always,
		KeyUsages:     usages,
	})
	if err != nil {
		return VerifiedLeaf{}, err
	}
	return r.choose(chains, presented, opt.Now), nil
}

// always is the one instant at which a timeless certificate is in force.
var always = time.Unix(0, 0).UTC()

// timeless returns a copy that the standard library finds in force at always,
// whatever its dates. This takes dates out of chain building: no single time
// would do, since the certificates of one chain may have no instant in common.
// What the signature covers, the raw bytes, is untouched.
func timeless(c *x509.Certificate) *x509.Certificate {
	t := *c
	t.NotBefore, t.NotAfter = always, always
	return &t
}

// choose picks one chain: in force if possible, else the shortest, so that the
// anchor nearest to the leaf is the one reported.
func (r *Roots) choose(chains [][]*x509.Certificate, presented []*x509.Certificate, now time.Time) VerifiedLeaf {
	var best VerifiedLeaf
	for i, chain := range chains {
		if l := r.dated(chain, presented); i == 0 || l.betterThan(best, now) {
			best = l
		}
	}
	return best
}

func (l VerifiedLeaf) betterThan(other VerifiedLeaf, now time.Time) bool {
	if a, b := l.inForce(now), other.inForce(now); a != b {
		return a
	}
	return len(l.chain) < len(other.chain)
}

func (l VerifiedLeaf) inForce(now time.Time) bool {
	return !l.Expired(now) && !l.NotYetValid(now)
}

// dated puts the certificates with their real dates back into a chain.
func (r *Roots) dated(chain, presented []*x509.Certificate) VerifiedLeaf {
	var l VerifiedLeaf
	for i, t := range chain {
		c := r.anchors[string(t.Raw)]
		if i < len(chain)-1 {
			c = presented[slices.IndexFunc(presented, t.Equal)]
		}
		l.chain = append(l.chain, c)
		if i == 0 || c.NotBefore.After(l.notBefore) {
			l.notBefore = c.NotBefore
		}
		if i == 0 || c.NotAfter.Before(l.notAfter) {
			l.notAfter = c.NotAfter
		}
	}
	return l
}

// Certificate returns the proven certificate.
func (l VerifiedLeaf) Certificate() *x509.Certificate {
	if len(l.chain) == 0 {
		return nil
	}
	return l.chain[0]
}

// Chain returns the proven certificate, those between, and the anchor.
func (l VerifiedLeaf) Chain() []*x509.Certificate { return slices.Clone(l.chain) }

// Expired reports whether the certificate, or any other of its chain, has ended
// before now.
func (l VerifiedLeaf) Expired(now time.Time) bool { return now.After(l.notAfter) }

// NotAfter is when the first of the certificate and the others of its chain
// ends.
func (l VerifiedLeaf) NotAfter() time.Time { return l.notAfter }

// NotYetValid reports whether the certificate, or any other of its chain,
// begins after now.
func (l VerifiedLeaf) NotYetValid(now time.Time) bool { return now.Before(l.notBefore) }
