package token

import (
	"crypto"
	"encoding/base64"
	"encoding/json"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/golang-jwt/jwt/v5"
)

// Claims are what a token says whose signature and dates were checked. Who made
// it, for whom and about whom is for the reader to judge.
type Claims struct{ said jwt.MapClaims }

// Text returns a claim that is a text; empty if there is none.
func (c Claims) Text(name string) string {
	text, _ := c.said[name].(string)
	return text
}

// For reports whether the token is for an audience, among others.
func (c Claims) For(audience string) bool {
	all, err := c.said.GetAudience()
	if err != nil {
		return false
	}
	for _, one := range all {
		if one == audience {
			return true
		}
	}
	return false
}

// Ends is when the token is worth nothing any more.
func (c Claims) Ends() time.Time {
	end, err := c.said.GetExpirationTime()
	if err != nil || end == nil {
		return time.Time{} // which Check lets nobody have
	}
	return end.Time
}

// Begun is when the token was made; zero if it does not say.
func (c Claims) Begun() time.Time {
	at, err := c.said.GetIssuedAt()
	if err != nil || at == nil {
		return time.Time{}
	}
	return at.Time
}

// signatures are the methods that any key may use. A shared secret and none
// are not among them.
var signatures = []string{"RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"}

// Check makes every check on every path: that all read the same in the token, a
// signature by the key that key returns for an issuer and the id of a key (nil
// for none), a method that fits the key, and its dates.
func Check(text string, now func() time.Time, key func(issuer, keyID string) crypto.PublicKey) (Claims, error) {
	if len(text) > MaxLen || !unambiguous(text) {
		return Claims{}, ErrBad
	}
	claims := jwt.MapClaims{}
	parser := jwt.NewParser(jwt.WithExpirationRequired(), jwt.WithTimeFunc(now),
		jwt.WithValidMethods(signatures), jwt.WithStrictDecoding())
	_, err := parser.ParseWithClaims(text, claims, func(parsed *jwt.Token) (any, error) {
		issuer, err := claims.GetIssuer()
		keyID, _ := parsed.Header["kid"].(string)
		_, critical := parsed.Header["crit"] // we know no extension that could be
		if err != nil || issuer == "" || keyID == "" || critical || !datable(claims) {
			return nil, ErrBad
		}
		if found := key(issuer, keyID); fits(found, parsed.Method) {
			return found, nil
		}
		return nil, ErrBad
	})
	if err != nil {
		return Claims{}, ErrBad
	}
	return Claims{claims}, nil
}

// KeyID is what a token says of the key that has signed it. Nothing of it is to be
// believed.
func KeyID(text string) string {
	header, _, _ := strings.Cut(text, ".")
	if len(text) > MaxLen {
		return ""
	}
	raw, err := base64.RawURLEncoding.DecodeString(header)
	if err != nil {
		return ""
	}
	var said struct {
		KeyID string `json:"kid"`
	}
	if json.Unmarshal(raw, &said) != nil {
		return ""
	}
	return said.KeyID
}

// Issued is when a token says that it was made; zero if it does not. Nothing of it is to be
// believed before its signature is checked.
func Issued(text string) time.Time {
	claims := jwt.MapClaims{}
	if _, _, err := jwt.NewParser().ParseUnverified(text, claims); len(text) > MaxLen || err != nil || !datable(claims) {
		return time.Time{}
	}
	return Claims{claims}.Begun()
}

// unambiguous reports whether everybody reads the same in a token. Of two
// members with one name, readers differ in which they believe.
func unambiguous(text string) bool {
	header, rest, _ := strings.Cut(text, ".")
	claims, _, _ := strings.Cut(rest, ".")
	for _, part := range []string{header, claims} {
		text, err := base64.RawURLEncoding.DecodeString(part)
		if err != nil || !jsontext.Value(text).IsValid() {
			return false
		}
	}
	return !strings.ContainsAny(text, "\r\n") // which the decoder would skip
}

// lastDate is the end of the year 9999.
const lastDate = 253402300799

// datable reports whether the times of a token are times. Larger numbers
// would wrap around, and a beginning in the far future lie in the past.
func datable(claims jwt.MapClaims) bool {
	for _, name := range []string{"exp", "nbf", "iat"} {
		if at, ok := claims[name].(float64); ok && (at < 0 || at > lastDate) {
			return false
		}
	}
	return true
}

// At returns what the claim says that a selector names: the name of a claim, or a
// JSON pointer into one. ok is false if there is no such claim.
func (c Claims) At(selector string) (said any, ok bool) {
	if !strings.HasPrefix(selector, "/") {
		said, ok = c.said[selector]
		return said, ok
	}
	said = map[string]any(c.said)
	for name := range strings.SplitSeq(selector[1:], "/") {
		name = strings.NewReplacer("~1", "/", "~0", "~").Replace(name)
		switch in := said.(type) {
		case map[string]any:
			if said, ok = in[name]; !ok {
				return nil, false
			}
		case []any:
			n, err := strconv.Atoi(name)
			if err != nil || n < 0 || n >= len(in) || strconv.Itoa(n) != name {
				return nil, false
			}
			said = in[n]
		default:
			return nil, false
		}
	}
	return said, true
}
