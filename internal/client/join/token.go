// Package join is how a controller joins a network: what the invitation says,
// and what is asked and answered. It asks nobody of whom it does not know that
// it is of that network.
package join

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"regexp"
	"strings"
	"time"
)

// tokenMark begins every token, and says of which form it is.
const tokenMark = "netkeep-join-1."

// maxToken is how long a token may be, and MaxAddresses how many controllers it
// may name.
const (
	maxToken     = 8 << 10
	MaxAddresses = 20
)

// Token is an invitation: whom to ask, how to know that it is the right one, and
// what to prove to it.
type Token struct {
	// Addresses are hosts and ports of controllers.
	Addresses []string `json:"a"`
	// Root is the SHA-256 fingerprint of the root CA that vouches for them.
	Root string `json:"r"`
	// Network is that of the root CA that the network had first, by which it is
	// known for good.
	Network string `json:"n"`
	// Served is the fingerprint of the certificate that the controller serves
	// which made the token, if that is of another authority.
	Served  string    `json:"c,omitempty"`
	ID      string    `json:"i"`
	Secret  string    `json:"s"`
	Made    time.Time `json:"m"`
	Expires time.Time `json:"e"`
}

// Text is the token as people paste it.
func (t Token) Text() string {
	text, err := json.Marshal(t)
	if err != nil {
		panic(fmt.Sprintf("join: token: %v", err)) // it is of texts and times
	}
	return tokenMark + base64.RawURLEncoding.EncodeToString(text)
}

var (
	errToken = errors.New("it is no token of netkeep cluster invite; paste all of one, in one line")

	fingerprint = regexp.MustCompile(`^[0-9a-f]{64}$`)
	word        = regexp.MustCompile(`^[A-Za-z0-9]{1,64}$`)
)

// Parse reads a token.
func Parse(text string) (t Token, err error) {
	body, ok := strings.CutPrefix(strings.TrimSpace(text), tokenMark)
	if !ok || len(body) > maxToken {
		return t, errToken
	}
	raw, err := base64.RawURLEncoding.Strict().DecodeString(body)
	if err != nil || json.Unmarshal(raw, &t) != nil {
		return Token{}, errToken
	}
	right := fingerprint.MatchString(t.Root) && fingerprint.MatchString(t.Network) && (t.Served == "" || fingerprint.MatchString(t.Served)) &&
		word.MatchString(t.ID) && word.MatchString(t.Secret) && !t.Made.IsZero() && t.Expires.After(t.Made) &&
		len(t.Addresses) > 0 && len(t.Addresses) <= MaxAddresses
	for _, at := range t.Addresses {
		host, port, err := net.SplitHostPort(at)
		right = right && err == nil && host != "" && port != "" && !strings.ContainsAny(at, "/@?# \t\r\n")
	}
	if !right {
		return Token{}, errToken
	}
	return t, nil
}

// skew is how far the clocks of two controllers may be apart when one joins.
const skew = time.Minute

// CheckTime refuses a token that is too old, or that will be made only later.
func (t Token) CheckTime(now time.Time) error {
	switch {
	case now.Before(t.Made.Add(-skew)):
		return fmt.Errorf("the token was made at %s, and the clock of this machine says %s: set it right, then try again",
			t.Made.UTC().Format(time.RFC3339), now.UTC().Format(time.RFC3339))
	case !now.Before(t.Expires):
		return fmt.Errorf("the token was good until %s, and the clock of this machine says %s: ask for another with netkeep cluster invite, or set the clock right",
			t.Expires.UTC().Format(time.RFC3339), now.UTC().Format(time.RFC3339))
	}
	return nil
}

// CheckClocks refuses to join with a clock that is not that of the others.
func CheckClocks(there, here time.Time) error {
	if d := there.Sub(here).Abs(); d > skew {
		return fmt.Errorf("the clocks of the two controllers are %s apart, which may be %s at most: set both right, then try again", d.Round(time.Second), skew)
	}
	return nil
}

// Purpose is what keys are sealed for that are handed over for a token.
func Purpose(network, id string) string { return "netkeep join 1 " + network + " " + id }
