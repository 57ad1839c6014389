package state

import (
	"crypto/rand"
	"strconv"
	"strings"
	"time"
)

const (
	base62 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
	base36 = "0123456789abcdefghijklmnopqrstuvwxyz"
)

// NewID returns a random id of eleven letters and digits, 65 bits.
func NewID() string { return random(base62, 11) }

// newSessionID returns an id of 25 characters that starts with c and sorts by
// time.
func newSessionID(now time.Time) string {
	stamp := strconv.FormatInt(now.UnixMilli(), 36)
	return "c" + strings.Repeat("0", max(0, 9-len(stamp))) + stamp + random(base36, 15)
}

// random draws n characters of an alphabet without favouring any.
func random(alphabet string, n int) string {
	out := make([]byte, 0, n)
	limit := 256 - 256%len(alphabet)
	for buf := make([]byte, 2*n); ; {
		_, _ = rand.Read(buf) // never fails
		for _, b := range buf {
			if int(b) >= limit {
				continue
			}
			if out = append(out, alphabet[int(b)%len(alphabet)]); len(out) == n {
				return string(out)
			}
		}
	}
}
