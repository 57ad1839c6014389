package auth_test

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"netkeep.internal/test/servertest"
)

// attempt is a credential that must not be let in.
type attempt struct {
	name string
	// try shows it. There is no answer if TLS has refused it already.
	try func(t *testing.T) *servertest.Answer
}

// TestForged tries every forged, broken and outdated credential.
func TestForged(t *testing.T) {
	t.Parallel()
	tried := map[string]bool{}
	for group, list := range map[string]func(t *testing.T) []attempt{
		"session":     forgedSessions,
		"ended":       endedSessions,
		"password":    forgedPasswords,
		"account":     forgedAccounts,
		"certificate": forgedCertificates,
		"chain":       forgedChains,
		"CA":          forgedCAs,
		"algorithm":   forgedAlgorithms,
		"header":      forgedHeaders,
		"claims":      forgedClaims,
		"bearer":      forgedBearers,
		"form":        forgedForms,
		"signer":      forgedSigners,
		"code":        forgedCodes,
		"second JWT":  forgedSecondJWTs,
	} {
		attempts := list(t)
		for _, a := range attempts {
			if name := group + "/" + a.name; tried[name] {
				t.Errorf("%s is there twice", name)
			} else {
				tried[name] = true
			}
		}
		t.Run(group, func(t *testing.T) {
			for _, a := range attempts {
				t.Run(a.name, func(t *testing.T) { refused(t, a.try(t)) })
			}
		})
	}
	if len(tried) < 150 {
		t.Errorf("only %d forgeries were tried", len(tried))
	}
}

// refused reports an answer that lets somebody in, or in which something
// broke.
func refused(t *testing.T, a *servertest.Answer) {
	t.Helper()
	if a == nil {
		return
	}
	if a.Status != http.StatusUnauthorized && a.Status != http.StatusBadRequest {
		t.Errorf("status %d: %s", a.Status, a.Raw)
	}
	if a.Header.Get("net-session") != "" || a.Header.Get("zt-session") != "" || a.At("data") != nil {
		t.Errorf("the answer gives something: %v, %s", a.Header, a.Raw)
	}
}

// headers tries to use a session with headers.
func headers(name string, pairs ...string) attempt {
	return attempt{name, func(t *testing.T) *servertest.Answer {
		c := shared.Nobody(t)
		all := http.Header{}
		for i := 0; i < len(pairs); i += 2 {
			all.Add(pairs[i], pairs[i+1])
		}
		for name, values := range all {
			c = c.With(name, values...)
		}
		return c.Get(session)
	}}
}

func forgedSessions(t *testing.T) []attempt {
	admin := add(t, M{"isAdmin": true})
	c, other := enter(t, admin), enter(t, admin)
	token := c.Token
	data := c.Get(session).Want(http.StatusOK).Data()
	id := data["id"].(string)
	attempts := []attempt{
		headers("none"),
		headers("two that differ", "net-session", token, "net-session", other.Token),
		headers("two names that differ", "net-session", token, "zt-session", other.Token),
		headers("two names that differ, turned", "zt-session", token, "net-session", other.Token),
		headers("one of three differs", "net-session", token, "net-session", other.Token, "zt-session", token),
		headers("an empty one first", "net-session", "", "zt-session", token),
		headers("an empty one last", "net-session", token, "zt-session", ""),
		headers("bearer", "Authorization", "Bearer "+token),
		headers("basic", "Authorization", "Basic "+base64.StdEncoding.EncodeToString([]byte(token+":"))),
		headers("cookie", "Cookie", "net-session="+token+"; zt-session="+token),
		headers("other header", "session", token, "x-session", token, "x-net-session", token, "api-session", token),
		headers("forwarded", "X-Forwarded-User", admin, "X-Remote-User", admin, "identity", admin),
		{"query", func(t *testing.T) *servertest.Answer {
			return shared.Nobody(t).Get(session + "?net-session=" + token + "&zt-session=" + token + "&token=" + token)
		}},
		headers("password", "net-session", servertest.Password),
		headers("JWT", "net-session", house(t).token(t, M{"sub": admin})),
	}
	for name, value := range map[string]string{
		"random": randomUUID(), "nil UUID": "00000000-0000-0000-0000-000000000000", "max UUID": "ffffffff-ffff-ffff-ffff-ffffffffffff",
		"upper case": strings.ToUpper(token), "cut": token[:len(token)-1], "cut in front": token[1:], "extended": token + "0",
		"no dashes": strings.ReplaceAll(token, "-", ""), "braces": "{" + token + "}", "URN": "urn:uuid:" + token, "quotes": `"` + token + `"`,
		"list": token + "," + token, "list with spaces": token + ", " + other.Token, "semicolon": token + ";", "space inside": token[:8] + " " + token[9:],
		"tab inside": token[:8] + "\t" + token[8:], "non-breaking space": token + "\u00a0", "wide digit": token[:35] + "０",
		"other dash": strings.ReplaceAll(token, "-", "‐"), "Cyrillic": strings.NewReplacer("a", "а", "e", "е", "c", "с").Replace(token) + "а",
		"byte order mark": "\ufeff" + token, "zero width": token[:4] + "\u200b" + token[4:], "not UTF-8": token + "\xff",
		"last digit": token[:35] + other.Token[35:] + "", "halves of two": token[:18] + other.Token[18:], "reversed": reversed(token),
		"session id": id, "identity id": admin, "stored hash": digest(token), "hash as UUID": asUUID(digest(token)),
		"hash of the id": asUUID(digest(id)), "MAC with no key": macUUID(nil, id), "MAC with zeros": macUUID(make([]byte, 32), id),
		"MAC with the id": macUUID([]byte(id), id), "base64": base64.StdEncoding.EncodeToString([]byte(token)),
		"hex": hex.EncodeToString([]byte(token)), "bearer in the header": "Bearer " + token, "path": "../" + token, "wildcard": "*",
		"filter": `" or true or token = "`, "null": "null", "undefined": "undefined", "zero": "0", "JSON": `{"token":"` + token + `"}`,
		"long": strings.Repeat("a", 30<<10), "long of tokens": strings.Repeat(token, 500), "percent": strings.ReplaceAll(token, "-", "%2d"),
	} {
		if value == token {
			continue // as one in sixteen that share their last digit
		}
		attempts = append(attempts, headers(name, "net-session", value), headers(name+" as alias", "zt-session", value))
	}
	return attempts
}

func randomUUID() string {
	b := make([]byte, 16)
	rand.Read(b)
	return asUUID(hex.EncodeToString(b))
}

// asUUID gives hex digits the shape that tokens have.
func asUUID(digits string) string {
	d := []byte(digits[:32])
	d[12], d[16] = '4', "89ab"[d[16]%4]
	return fmt.Sprintf("%s-%s-%s-%s-%s", d[:8], d[8:12], d[12:16], d[16:20], d[20:])
}

func digest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

func macUUID(key []byte, id string) string {
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(id))
	return asUUID(hex.EncodeToString(mac.Sum(nil)))
}

func reversed(text string) string {
	b := []byte(text)
	for i, j := 0, len(b)-1; i < j; i, j = i+1, j-1 {
		b[i], b[j] = b[j], b[i]
	}
	return string(b)
}

// endedSessions are tokens that were good.
func endedSessions(t *testing.T) []attempt {
	admin := shared.Admin(t)
	gone := func(name string, end func(id string, c *servertest.Client)) attempt {
		id := add(t, nil)
		c := enter(t, id)
		works(t, c)
		end(id, c)
		return headers(name, "net-session", c.Token)
	}
	password := rand.Text()
	id := add(t, nil)
	username, authenticator := addPassword(t, id, password)
	byAuthenticator := shared.Login(t, username, password)
	admin.Delete("authenticators/" + authenticator).Want(http.StatusOK)
	return []attempt{
		gone("logged out", func(_ string, c *servertest.Client) { c.Delete(session).Want(http.StatusOK) }),
		gone("ended by an admin", func(_ string, c *servertest.Client) {
			admin.Delete("api-sessions/" + c.Get(session).ID()).Want(http.StatusOK)
		}),
		gone("deleted identity", func(id string, _ *servertest.Client) { admin.Delete("identities/" + id).Want(http.StatusOK) }),
		gone("disabled identity", func(id string, _ *servertest.Client) {
			admin.Post("identities/"+id+"/disable", M{"durationMinutes": 0}).Want(http.StatusOK)
		}),
		gone("disabled and enabled identity", func(id string, _ *servertest.Client) {
			admin.Post("identities/"+id+"/disable", M{"durationMinutes": 1}).Want(http.StatusOK)
			admin.Post("identities/"+id+"/enable", nil).Want(http.StatusOK)
		}),
		headers("deleted authenticator", "net-session", byAuthenticator.Token),
	}
}
