package posture

import (
	"slices"
	"strings"

	"netkeep.internal/internal/model"
)

// passes reports whether the device passes a check of any type but MFA, which
// is about a session. A check whose type nobody knows fails.
func (f *Facts) passes(c *model.PostureCheck) bool {
	switch c.TypeID {
	case TypeOS:
		return f.os != nil && isOneOf(f.os, c.OperatingSystems)
	case TypeDomain:
		return f.domain != nil && slices.ContainsFunc(c.Domains, func(d string) bool { return strings.EqualFold(d, f.domain.Domain) })
	case TypeMAC:
		return f.mac != nil && slices.ContainsFunc(c.MACAddresses, func(listed string) bool { return hasMAC(f.mac, listed) })
	case TypeProcess:
		return c.Process != nil && runs(f.program(c), c.Process.Hashes, signersOf(c.Process))
	case TypeMulti:
		return f.runsMulti(c)
	}
	return false
}

// program is what was reported for a check on one program, or for another one
// that named its path before there was this one.
func (f *Facts) program(c *model.PostureCheck) *model.ProgramReport {
	if own := f.processes[c.ID]; own != nil || c.Process == nil {
		return own
	}
	return f.paths[c.Process.Path]
}

// isOneOf reports whether a check accepts the operating system. The last entry
// for its type decides.
func isOneOf(r *model.OSReport, accepted []model.OperatingSystem) bool {
	for _, a := range slices.Backward(accepted) {
		if strings.EqualFold(a.Type, r.Type) {
			return len(a.Versions) == 0 || slices.ContainsFunc(a.Versions, within(parseVersion(r.Version)))
		}
	}
	return false
}

// hasMAC reports whether an address that a check lists was reported.
func hasMAC(r *model.MACReport, listed string) bool {
	var buf [maxMAC]byte
	digits := appendHex(buf[:0], listed)
	_, found := slices.BinarySearchFunc(r.Addresses, digits, func(address string, digits []byte) int {
		switch {
		case address < string(digits):
			return -1
		case address > string(digits):
			return 1
		}
		return 0
	})
	return found
}

// appendHex adds the hexadecimal digits in a text, in lower case.
func appendHex(dst []byte, s string) []byte {
	for i := range len(s) {
		c := lower(s[i])
		if '0' <= c && c <= '9' || 'a' <= c && c <= 'f' {
			dst = append(dst, c)
		}
	}
	return dst
}

func lower(c byte) byte {
	if 'A' <= c && c <= 'Z' {
		c += 'a' - 'A'
	}
	return c
}

// signersOf returns who must have signed a program; nobody if it does not
// matter.
func signersOf(p *model.Process) []string {
	if p.SignerFingerprint == "" {
		return nil
	}
	return []string{p.SignerFingerprint}
}

// runsMulti judges a check on several programs. One on none fails.
func (f *Facts) runsMulti(c *model.PostureCheck) bool {
	good := func(p model.ProcessMulti) bool { return runs(f.paths[p.Path], p.Hashes, p.SignerFingerprints) }
	if c.Semantic == model.AnyOf {
		return slices.ContainsFunc(c.Processes, good)
	}
	return len(c.Processes) > 0 && !slices.ContainsFunc(c.Processes, func(p model.ProcessMulti) bool { return !good(p) })
}

// runs reports whether a program runs, has one of the hashes and is signed by
// one of the signers; those do not matter if there are none. No report says
// that it does not run.
func runs(p *model.ProgramReport, hashes, signers []string) bool {
	if p == nil || !p.Running {
		return false
	}
	if len(hashes) > 0 && !slices.ContainsFunc(hashes, func(h string) bool { return sameDigest(h, p.Hash) }) {
		return false
	}
	return len(signers) == 0 || slices.ContainsFunc(signers, func(s string) bool {
		return slices.ContainsFunc(p.Signers, func(reported string) bool { return sameDigest(s, reported) })
	})
}

// sameDigest reports whether two texts are the same digest, in letters of
// either case and with any separators. An empty one is like no other.
func sameDigest(a, b string) bool {
	for some := false; ; some = true {
		a, b = skipSeparators(a), skipSeparators(b)
		if a == "" || b == "" {
			return some && a == b
		}
		if lower(a[0]) != lower(b[0]) {
			return false
		}
		a, b = a[1:], b[1:]
	}
}

func skipSeparators(s string) string { return strings.TrimLeft(s, ":-. ") }
