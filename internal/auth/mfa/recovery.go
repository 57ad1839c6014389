package mfa

import (
	"crypto/rand"
	"crypto/subtle"
	"slices"
)

const (
	recoveryCodes  = 20
	recoveryLength = 6
)

// NewRecoveryCodes returns fresh recovery codes, no two alike.
func NewRecoveryCodes() []string {
	codes := make([]string, 0, recoveryCodes)
	for len(codes) < recoveryCodes {
		code := rand.Text()[:recoveryLength]
		if !slices.Contains(codes, code) {
			codes = append(codes, code)
		}
	}
	return codes
}

// MatchRecovery reports whether code is among codes, and where, or -1. Case
// counts. The time it takes does not depend on which code matches, if any. The
// caller removes a code that was used.
func MatchRecovery(codes []string, code string) (index int, ok bool) {
	if len(code) != recoveryLength {
		return -1, false
	}
	index = -1
	for i, c := range codes {
		same := subtle.ConstantTimeCompare([]byte(c), []byte(code))
		index = subtle.ConstantTimeSelect(same, i, index)
	}
	return index, index >= 0
}
