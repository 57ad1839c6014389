// Package mfa is the second factor: time-based one-time codes (RFC 6238), the
// picture that hands their secret to an authenticator app, and the recovery
// codes that stand in for a lost one. It owns their formats and how they are
// compared. It keeps nothing: who enrolled, which step was used last and which
// recovery codes are left is for the caller to store. Of our packages it may
// import only fault.
package mfa

import (
	"crypto/rand"
	"crypto/subtle"
	"encoding/base32"
	"net/url"
	"strings"
	"time"

	"github.com/pquerna/otp/hotp"
)

// What authenticator apps assume unless told otherwise, and not all of them
// can be told.
const (
	digits = 6
	period = 30 // seconds per step
)

const (
	skew        = 2  // steps that a clock may be off, either way
	secretBytes = 20 // as long as the output of the hash, as RFC 4226 advises
	minSecret   = 10 // bytes; older enrollments have no more
)

// NewSecret returns a random secret in base32.
func NewSecret() string {
	key := make([]byte, secretBytes)
	rand.Read(key) // never fails
	return base32.StdEncoding.EncodeToString(key)
}

// ProvisioningURL returns the text that enrols an account in an authenticator
// app. It holds the secret.
func ProvisioningURL(issuer, account, secret string) string {
	issuer, account = escape(issuer), escape(account)
	return "otpauth://totp/" + issuer + ":" + account + "?issuer=" + issuer + "&secret=" + escape(secret)
}

// escape makes text safe in the path and in the query alike. Apps show a plus
// sign as it is rather than as a space, and take the first colon for the end
// of the issuer.
func escape(text string) string {
	return strings.ReplaceAll(url.QueryEscape(text), "+", "%20")
}

// Verify reports whether code is right for the secret at the time, give or take
// two steps, and to which step it belongs. A code of the last used step or an
// earlier one is refused, so that nobody can use it a second time: the caller
// stores the step of each accepted code and passes it next time, and zero
// before the first.
func Verify(secret, code string, now time.Time, last uint64) (step uint64, ok bool) {
	key, err := base32.StdEncoding.DecodeString(secret)
	if err != nil || len(key) < minSecret || !wellFormed(code) {
		return 0, false
	}
	// All steps are tried and the latest match counts, so that the time taken
	// tells nothing and the same digits cannot pass again for a later step.
	found := 0
	current := now.Unix() / period
	for candidate := max(current-skew, 1); candidate <= current+skew; candidate++ {
		if uint64(candidate) <= last {
			continue
		}
		want, err := hotp.GenerateCode(secret, uint64(candidate))
		if err != nil {
			return 0, false
		}
		same := subtle.ConstantTimeCompare([]byte(want), []byte(code))
		found = subtle.ConstantTimeSelect(same, int(candidate), found)
	}
	return uint64(found), found != 0
}

func wellFormed(code string) bool {
	for i := range len(code) {
		if code[i] < '0' || code[i] > '9' {
			return false
		}
	}
	return len(code) == digits
}
