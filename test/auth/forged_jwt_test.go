package auth_test

import (
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"math"
	"net/http"
	"strings"
	"testing"
	"time"

	"netkeep.internal/test/servertest"
)

// token tries to log in with a JWT.
func token(name, text string) attempt {
	return attempt{name, func(t *testing.T) *servertest.Answer { return show(t, text) }}
}

// target is an issuer, and somebody for whom its tokens are good.
func target(t *testing.T, alg string) (*issuer, M) {
	t.Helper()
	i := newIssuer(t, alg, newKey(t), nil)
	good := M{"sub": add(t, nil)}
	if a := show(t, i.token(t, good)); a.Status != http.StatusOK {
		t.Fatalf("the token that is copied does not work: %s", a.Raw)
	}
	return i, good
}

// forgedAlgorithms sign in ways that the key is not for.
func forgedAlgorithms(t *testing.T) []attempt {
	i, good := target(t, "ES256")
	claims := encode(t, i.claims(good))
	rsaKey, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKIXPublicKey(i.key.Public())
	if err != nil {
		t.Fatal(err)
	}
	var attempts []attempt
	unsigned := func(alg any) string {
		text := sign(t, "ES256", newKey(t), encode(t, i.header(M{"alg": alg})), claims)
		return text[:strings.LastIndex(text, ".")+1]
	}
	for _, alg := range []any{"none", "None", "NONE", "nOnE", "none ", "", nil, 0, []any{"none"}, true} {
		attempts = append(attempts, token("unsigned as "+encode(t, alg), unsigned(alg)))
	}
	for name, secret := range map[string]string{
		"certificate": i.cert.text(), "certificate without newline": strings.TrimSpace(i.cert.text()), "certificate DER": string(i.cert.Raw),
		"public key": string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})), "public key DER": string(der),
		"JWK": ecJWK(t, i.kid, newKey(t)), "kid": i.kid, "nothing": "", "fingerprint": digest(string(i.cert.Raw)), "audience": i.audience,
	} {
		attempts = append(attempts, token("HS256 with the "+name, sign(t, "HS256", []byte(secret), encode(t, i.header(M{"alg": "HS256"})), claims)))
	}
	for _, alg := range []string{"HS384", "HS512"} {
		attempts = append(attempts, token(alg+" with the certificate", sign(t, alg, []byte(i.cert.text()), encode(t, i.header(M{"alg": alg})), claims)))
	}
	for _, alg := range []string{"ES384", "ES512", "RS256", "PS256", "EdDSA", "ES256K", "HS256", "es256"} {
		attempts = append(attempts, token("ES256 called "+alg, sign(t, "ES256", i.key, encode(t, i.header(M{"alg": alg})), claims)))
	}
	return append(attempts,
		token("another key", sign(t, "ES256", newKey(t), encode(t, i.header(nil)), claims)),
		token("RSA key", sign(t, "RS256", rsaKey, encode(t, i.header(M{"alg": "RS256"})), claims)),
		token("RSA key called ES256", sign(t, "RS256", rsaKey, encode(t, i.header(nil)), claims)),
		token("zero signature", zeroSignature(sign(t, "ES256", i.key, encode(t, i.header(nil)), claims))),
	)
}

// zeroSignature has both numbers of the signature 0, which once passed for
// anybody's in some implementations.
func zeroSignature(token string) string {
	size := 2 * (elliptic.P256().Params().BitSize / 8)
	return token[:strings.LastIndex(token, ".")+1] + base64.RawURLEncoding.EncodeToString(make([]byte, size))
}

// forgedHeaders bring or name keys of their own.
func forgedHeaders(t *testing.T) []attempt {
	i, good := target(t, "ES256")
	other, _ := target(t, "ES256")
	mine := newKey(t)
	claims := encode(t, i.claims(good))
	own := certify(t, mine, nil, nil)
	var published M
	if err := jsonText(ecJWK(t, i.kid, mine), &published); err != nil {
		t.Fatal(err)
	}
	signed := func(name string, change M) attempt {
		return token(name, sign(t, "ES256", mine, encode(t, i.header(change)), claims))
	}
	right := func(name string, change M) attempt {
		return token(name, sign(t, "ES256", i.key, encode(t, i.header(change)), claims))
	}
	return []attempt{
		signed("jwk", M{"jwk": published}),
		signed("jwk without kid", M{"jwk": published, "kid": nil}),
		signed("jku", M{"jku": "http://127.0.0.1:1/keys"}),
		signed("x5u", M{"x5u": "http://127.0.0.1:1/cert"}),
		signed("x5c", M{"x5c": []any{base64.StdEncoding.EncodeToString(own.Raw)}}),
		signed("x5t", M{"x5t": digest(string(i.cert.Raw)), "x5t#S256": digest(string(i.cert.Raw))}),
		signed("kid as path", M{"kid": "../../../../dev/null"}),
		signed("kid as filter", M{"kid": `" or true or kid = "`}),
		signed("kid of the other's key", M{"kid": other.kid}),
		right("no kid", M{"kid": nil}),
		right("empty kid", M{"kid": ""}),
		token("kid null", sign(t, "ES256", i.key, `{"alg":"ES256","kid":null}`, claims)),
		right("unknown kid", M{"kid": servertest.Unique("kid")}),
		right("other case", M{"kid": strings.ToUpper(i.kid)}),
		right("kid of another signer", M{"kid": other.kid}),
		right("kid a number", M{"kid": 1}),
		right("kid a list", M{"kid": []any{i.kid}}),
		right("kid with a NUL", M{"kid": i.kid + "\x00"}),
		right("signer instead of kid", M{"kid": i.id}),
		right("critical extension", M{"crit": []any{"exp"}}),
		right("critical unencoded", M{"crit": []any{"b64"}, "b64": false}),
		right("no critical extension", M{"crit": []any{}}),
		token("key of the other signer", sign(t, "ES256", other.key, encode(t, i.header(nil)), claims)),
		token("key and kid of the other signer", sign(t, "ES256", other.key, encode(t, other.header(nil)), claims)),
		token("header twice", sign(t, "ES256", i.key, `{"alg":"none","alg":"ES256","kid":"`+i.kid+`"}`, claims)),
		token("kid twice", sign(t, "ES256", i.key, `{"alg":"ES256","kid":"x","kid":"`+i.kid+`"}`, claims)),
		token("header a list", sign(t, "ES256", i.key, `["ES256"]`, claims)),
		token("header null", sign(t, "ES256", i.key, `null`, claims)),
		token("header with more behind", sign(t, "ES256", i.key, encode(t, i.header(nil))+"{}", claims)),
	}
}

// forgedClaims are signed as they should be, and say what does not count.
func forgedClaims(t *testing.T) []attempt {
	i, good := target(t, "ES256")
	other, _ := target(t, "ES256")
	sub, disabled := good["sub"].(string), add(t, nil)
	shared.Admin(t).Post("identities/"+disabled+"/disable", M{"durationMinutes": 5}).Want(http.StatusOK)
	var attempts []attempt
	for name, change := range map[string]M{
		"iss unknown": {"iss": servertest.Unique("https://issuer")}, "iss missing": {"iss": nil}, "iss empty": {"iss": ""}, "iss a list": {"iss": []any{i.name}},
		"iss a number": {"iss": 1}, "iss of the other": {"iss": other.name}, "iss in upper case": {"iss": strings.ToUpper(i.name)},
		"iss with a slash": {"iss": i.name + "/"}, "iss with a space": {"iss": i.name + " "}, "iss the signer's id": {"iss": i.id},
		"aud wrong": {"aud": servertest.Unique("audience")}, "aud missing": {"aud": nil}, "aud empty": {"aud": ""}, "aud an empty list": {"aud": []any{}},
		"aud a list without": {"aud": []any{"a", other.audience}}, "aud a number": {"aud": 1}, "aud an object": {"aud": M{"a": i.audience}},
		"aud a list of lists": {"aud": []any{[]any{i.audience}}}, "aud a prefix": {"aud": i.audience[:len(i.audience)-1]}, "aud longer": {"aud": i.audience + "x"},
		"aud a text of a list": {"aud": "[" + i.audience + "]"}, "aud several in one text": {"aud": i.audience + " other"}, "aud in upper case": {"aud": strings.ToUpper(i.audience)},
		"exp missing": {"exp": nil}, "exp past": {"exp": time.Now().Add(-time.Second).Unix()}, "exp long past": {"exp": 1}, "exp zero": {"exp": 0},
		"exp negative": {"exp": -1}, "exp past with a fraction": {"exp": float64(time.Now().Unix()) - 1.5}, "exp a text": {"exp": "4000000000"},
		"exp a date": {"exp": "2100-01-01T00:00:00Z"}, "exp huge": {"exp": 1e300}, "exp beyond all numbers": {"exp": uint64(math.MaxUint64)}, "exp in milliseconds": {"exp": time.Now().Add(time.Hour).UnixMilli() * 1000},
		"exp true": {"exp": true}, "exp a list": {"exp": []any{time.Now().Add(time.Hour).Unix()}},
		"nbf future": {"nbf": time.Now().Add(time.Minute).Unix()}, "nbf far future": {"nbf": 1e300}, "nbf a text": {"nbf": "0"}, "iat huge": {"iat": 1e300},
		"sub missing": {"sub": nil}, "sub empty": {"sub": ""}, "sub a number": {"sub": 1}, "sub a list": {"sub": []any{sub}}, "sub unknown": {"sub": "unknown"},
		"sub with a space": {"sub": sub + " "}, "sub with a NUL": {"sub": sub + "\x00"}, "sub disabled": {"sub": disabled}, "sub in other case": {"sub": swapCase(sub)},
		"sub a name": {"sub": "Default Admin"}, "sub a filter": {"sub": `" or true or id = "`}, "another claim": {"sub": nil, "Sub": sub, "email": sub},
	} {
		claims := M{"sub": sub}
		for claim, value := range change {
			claims[claim] = value
		}
		attempts = append(attempts, token(name, i.token(t, claims)))
	}
	twice := strings.TrimSuffix(encode(t, i.claims(M{"sub": "nobody"})), "}") + `,"sub":"` + sub + `"}`
	nested := strings.TrimSuffix(encode(t, i.claims(good)), "}") + `,"deep":{"a":[{"b":1,"b":2}]}}`
	header := encode(t, i.header(nil))
	return append(attempts,
		token("sub twice", sign(t, "ES256", i.key, header, twice)),
		token("nested twice", sign(t, "ES256", i.key, header, nested)),
		token("claims null", sign(t, "ES256", i.key, header, "null")),
		token("claims a list", sign(t, "ES256", i.key, header, "[]")),
		token("claims a text", sign(t, "ES256", i.key, header, `"x"`)),
		token("claims nothing", sign(t, "ES256", i.key, header, "")),
		token("claims with more behind", sign(t, "ES256", i.key, header, encode(t, i.claims(good))+"{}")),
		token("claims not UTF-8", sign(t, "ES256", i.key, header, strings.TrimSuffix(encode(t, i.claims(good)), "}")+",\"x\":\"\xff\"}")))
}
