package auth_test

import (
	"encoding/base64"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"

	"netkeep.internal/test/servertest"
)

func jsonText(text string, v any) error { return json.Unmarshal([]byte(text), v) }

// bearing tries to log in with headers of which none, or more than one, is a
// token.
func bearing(name string, values ...string) attempt {
	return attempt{name, func(t *testing.T) *servertest.Answer {
		return shared.Nobody(t).With("Authorization", values...).Post(byJWT, M{})
	}}
}

// forgedBearers are a good token that is not sent as it should be.
func forgedBearers(t *testing.T) []attempt {
	i, good := target(t, "ES256")
	text := i.token(t, good)
	return []attempt{
		bearing("no header"),
		bearing("empty header", ""),
		bearing("scheme only", "Bearer"),
		bearing("scheme and space", "Bearer "),
		bearing("no scheme", text),
		bearing("lower-case scheme", "bearer "+text),
		bearing("upper-case scheme", "BEARER "+text),
		bearing("other scheme", "JWT "+text),
		bearing("basic", "Basic "+base64.StdEncoding.EncodeToString([]byte("x:"+text))),
		bearing("two spaces", "Bearer  "+text),
		bearing("tab", "Bearer\t"+text),
		bearing("colon", "Bearer: "+text),
		bearing("the header twice", "Bearer "+text, "Bearer "+text),
		bearing("two in one header", "Bearer "+text+", Bearer "+text),
		bearing("something before", "Bearer x "+text),
		bearing("something behind", "Bearer "+text+" x"),
		{"both header names", func(t *testing.T) *servertest.Answer {
			return shared.Nobody(t).With("Authorization", "Bearer "+text).With("Authentication", "Bearer "+text).Post(byJWT, M{})
		}},
		{"in the body", func(t *testing.T) *servertest.Answer {
			return shared.Nobody(t).Post(byJWT, M{"token": text, "jwt": text, "id_token": text})
		}},
		{"in the query", func(t *testing.T) *servertest.Answer { return shared.Nobody(t).Post(byJWT+"&access_token="+text, M{}) }},
		{"in a cookie", func(t *testing.T) *servertest.Answer {
			return shared.Nobody(t).With("Cookie", "Authorization=Bearer "+text).Post(byJWT, M{})
		}},
	}
}

// forgedForms are a good token that was taken apart.
func forgedForms(t *testing.T) []attempt {
	i, good := target(t, "ES256")
	text := i.token(t, good)
	parts := strings.Split(text, ".")
	foreign := strings.Split(i.token(t, M{"sub": "somebody"}), ".")
	padded := func(part string) string { return part + strings.Repeat("=", (4-len(part)%4)%4) }
	standard := strings.NewReplacer("-", "+", "_", "/")
	flipped := []byte(text)
	flipped[len(parts[0])+5] ^= 1
	big := i.token(t, M{"sub": good["sub"], "padding": strings.Repeat("x", 20<<10)})
	return []attempt{
		token("one segment", parts[0]),
		token("two segments", parts[0]+"."+parts[1]),
		token("four segments", text+".x"),
		token("four segments, one empty", text+"."),
		token("five segments", strings.Join(append(slices.Clone(parts), "x", "y"), ".")),
		token("empty segments", ".."),
		token("leading dot", "."+text),
		token("signature stripped", parts[0]+"."+parts[1]+"."),
		token("signature cut", text[:len(text)-4]),
		token("signature extended", text+"AAAA"),
		token("signature of another payload", parts[0]+"."+parts[1]+"."+foreign[2]),
		token("payload of another", parts[0]+"."+foreign[1]+"."+parts[2]),
		token("payload changed", string(flipped)),
		token("segments turned", parts[1]+"."+parts[0]+"."+parts[2]),
		token("header for payload", parts[0]+"."+parts[0]+"."+parts[2]),
		token("padding", padded(parts[0])+"."+padded(parts[1])+"."+padded(parts[2])),
		token("padded signature", parts[0]+"."+parts[1]+"."+parts[2]+"=="),
		token("standard alphabet", "+"+standard.Replace(text)),
		token("space inside", text[:10]+" "+text[10:]),
		token("percent", strings.ReplaceAll(text, ".", "%2e")),
		token("oversized", big),
		token("dots", strings.Repeat(".", 8<<10)),
		token("braces", strings.Repeat("{", 8<<10)),
		token("deep", deep(t, i)),
		token("not base64", "!!!.###.$$$"),
		token("plain JSON", `{"alg":"ES256"}.{"sub":"x"}.x`),
		token("session token", enter(t, add(t, nil)).Token),
	}
}

// deep has claims that are nested without end.
func deep(t *testing.T, i *issuer) string {
	t.Helper()
	return sign(t, "ES256", i.key, encode(t, i.header(nil)), `{"a":`+strings.Repeat("[", 5000)+strings.Repeat("]", 5000)+"}")
}

// forgedSigners are good tokens of signers that do not count.
func forgedSigners(t *testing.T) []attempt {
	admin := shared.Admin(t)
	of := func(name string, change func(i *issuer, id string)) attempt {
		i, good := target(t, "ES256")
		change(i, good["sub"].(string))
		return token(name, i.token(t, good))
	}
	restricted := func(edit func(jwt M)) string {
		return addPolicy(t, func(primary, _ M) { edit(primary["extJwt"].(M)) })
	}
	none := restricted(func(jwt M) { jwt["allowed"] = false })
	house := restricted(func(jwt M) { jwt["allowedSigners"] = []any{house(t).id} })
	patch := func(change M) func(i *issuer, _ string) {
		return func(i *issuer, _ string) { admin.Patch("external-jwt-signers/"+i.id, change).Want(http.StatusOK) }
	}
	external := servertest.Unique("external")
	add(t, M{"externalId": external})
	return []attempt{
		of("disabled", patch(M{"enabled": false})),
		of("deleted", func(i *issuer, _ string) { admin.Delete("external-jwt-signers/" + i.id).Want(http.StatusOK) }),
		of("other audience", patch(M{"audience": servertest.Unique("audience")})),
		of("other issuer", patch(M{"issuer": servertest.Unique("https://issuer")})),
		of("other kid", patch(M{"kid": servertest.Unique("kid")})),
		of("other certificate", patch(M{"certPem": certify(t, newKey(t), nil, nil).text()})),
		of("other claim", patch(M{"claimsProperty": "email"})),
		of("external ids", patch(M{"useExternalId": true})),
		of("method not allowed", func(_ *issuer, id string) { admin.Patch("identities/"+id, M{"authPolicyId": none}).Want(http.StatusOK) }),
		of("signer not allowed", func(_ *issuer, id string) {
			admin.Patch("identities/"+id, M{"authPolicyId": house}).Want(http.StatusOK)
		}),
		of("identity deleted", func(_ *issuer, id string) { admin.Delete("identities/" + id).Want(http.StatusOK) }),
		token("external id where an id is meant", newIssuer(t, "ES256", newKey(t), nil).token(t, M{"sub": external})),
		token("signed before the signer was", newIssuer(t, "ES256", newKey(t), nil).token(t, M{"sub": add(t, nil), "exp": time.Now().Unix() - 60})),
	}
}
