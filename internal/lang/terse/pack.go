package terse

import (
	"errors"

	"netkeep.internal/internal/lang/pack"
)

// Pack packs the text as it is, which means something together with the samples alone.
func (t *Text) Pack(w *pack.Writer) { w.Rare(string(*t)) }

// Unpack reads a text that is told by a sample of this program.
func (t *Text) Unpack(r *pack.Reader) {
	s := Text(r.Rare())
	if s != "" && s[0] != asIs && samples.at(s[0]) == nil {
		r.Fail(errors.New("terse: a certificate is told by one that is not there"))
		return
	}
	*t = s
}

// Samples are those by which texts are told, so that others who adopt them can read what
// was packed until now.
func Samples() [][]byte { return samples.told() }

// Adopt makes samples of another run those of this one, and reports whether that can be: it
// can as long as this one has begun with the same, or has none.
func Adopt(others [][]byte) bool { return samples.adopt(others) }

func (s *shelf) told() (all [][]byte) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	for n := range len(s.byIssuer) {
		all = append(all, s.at(byte(n+1)).der)
	}
	return all
}

func (s *shelf) adopt(others [][]byte) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(others) >= len(s.all) {
		return false
	}
	issuers := map[string]byte{}
	for i, der := range others {
		issuer, ok := issuerOf(der)
		has := s.at(byte(i + 1))
		if !ok || has != nil && string(has.der) != string(der) {
			return false
		}
		issuers[string(issuer)] = byte(i + 1)
	}
	if len(issuers) != len(others) {
		return false
	}
	for n := len(s.byIssuer); n < len(others); n++ {
		s.all[n+1].Store(newSample(others[n]))
	}
	if len(others) > len(s.byIssuer) {
		s.byIssuer = issuers
	}
	return true
}
