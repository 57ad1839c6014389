package terse

import (
	"sync"
	"sync/atomic"

	"golang.org/x/crypto/cryptobyte"
	"golang.org/x/crypto/cryptobyte/asn1"
)

// samples are those of this program, which everybody shares: they stay as long as any Text
// may be told by them.
var samples shelf

// shelf is samples by issuer, the first certificate that was met of each. Those of issuers
// that it has no room for are told as they are.
type shelf struct {
	mu       sync.RWMutex
	byIssuer map[string]byte
	all      [256]atomic.Pointer[sample] // from 1 on
}

// at is the sample with a number that of returned.
func (s *shelf) at(n byte) *sample { return s.all[n].Load() }

// of is the number of the sample that a certificate is told by. One whose issuer has none
// becomes it; asIs if there is no room, or it is no certificate.
func (s *shelf) of(der []byte) byte {
	issuer, ok := issuerOf(der)
	if !ok {
		return asIs
	}
	s.mu.RLock()
	n, known := s.byIssuer[string(issuer)]
	full := len(s.byIssuer) == len(s.all)-1
	s.mu.RUnlock()
	if known || full {
		return n
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	n, known = s.byIssuer[string(issuer)]
	if known || len(s.byIssuer) == len(s.all)-1 {
		return n
	}
	if s.byIssuer == nil {
		s.byIssuer = map[string]byte{}
	}
	n = byte(len(s.byIssuer) + 1)
	s.all[n].Store(newSample(der))
	s.byIssuer[string(issuer)] = n
	return n
}

// issuerOf finds who issued a certificate.
func issuerOf(der []byte) (issuer []byte, ok bool) {
	var cert, inside, name cryptobyte.String
	input := cryptobyte.String(der)
	ok = input.ReadASN1(&cert, asn1.SEQUENCE) && cert.ReadASN1(&inside, asn1.SEQUENCE) &&
		inside.SkipOptionalASN1(asn1.Tag(0).ContextSpecific().Constructed()) && // version
		inside.SkipASN1(asn1.INTEGER) && // serial number
		inside.SkipASN1(asn1.SEQUENCE) && // how it is signed
		inside.ReadASN1(&name, asn1.SEQUENCE)
	return name, ok
}
