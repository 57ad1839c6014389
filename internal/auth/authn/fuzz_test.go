package authn

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"strings"
	"testing"

	"netkeep.internal/internal/data/state"
	"netkeep.internal/internal/model"
)

// FuzzDecodeHash checks that a stored hash has one form only.
func FuzzDecodeHash(f *testing.F) {
	good := encodeHash(hashCost, make([]byte, saltLen), make([]byte, keyLen))
	f.Add(good)
	f.Add(strings.Replace(good, "p=1", "p=1,x", 1))
	f.Add(strings.Replace(good, "m=", "m=+", 1))
	f.Add("$argon2id$v=19$m=1,t=1,p=1$$")
	f.Add("$$$$$")
	f.Fuzz(func(t *testing.T, text string) {
		c, salt, key, err := decodeHash(text)
		if err != nil {
			return
		}
		if again := encodeHash(c, salt, key); again != text {
			t.Errorf("%q is read like %q", text, again)
		}
		if c.memory > maxMemory || c.time == 0 || c.time > maxTime || c.threads == 0 || len(key) != keyLen {
			t.Errorf("%q asks for %+v and %d bytes", text, c, len(key))
		}
	})
}

// FuzzParseKeySet checks that only keys come out that may be used.
func FuzzParseKeySet(f *testing.F) {
	ec, _ := ecJWK(f, "a", elliptic.P256(), same)
	for _, key := range []string{
		ec, rsaJWK("b", 2048, 3), rsaJWK("c", 512, 3), `{"kty":"OKP","crv":"Ed25519","kid":"d","x":"` + b64(make([]byte, 32)) + `"}`,
		`{"kty":"RSA","kid":"e","x5c":["MIIB"]}`, `{}`, `null`,
	} {
		f.Add([]byte(`{"keys":[` + key + `]}`))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		keys, err := parseKeySet(data)
		if err != nil && keys != nil {
			t.Error("there are keys and an error")
		}
		for kid, key := range keys {
			if kid == "" || !acceptable(key) {
				t.Errorf("key %q is %v", kid, key)
			}
		}
	})
}

// FuzzVerifyToken changes tokens of an issuer: nothing counts but what it
// signed. The key and what is signed are the same in every process, so that
// one finds what another has made of a good token.
func FuzzVerifyToken(f *testing.F) {
	w, i := newWorld(f), newIssuer(f)
	key, err := ecdsa.ParseRawPrivateKey(elliptic.P256(), bytes.Repeat([]byte{1}, 32))
	if err != nil {
		f.Fatal(err)
	}
	i.keys["first"] = key
	visitor, signer := w.add(f, "visitor"), w.trust(f)
	update(f, w.State, func(tx *state.Tx) error {
		return model.ExtJWTSigners.Edit(tx, signer.ID, func(s *model.ExtJWTSigner) error {
			s.UseExternalID = true
			return nil
		})
	})
	tokens := i.tokens(f)
	check := func(t testing.TB, token string) (Proof, error) {
		return tokens.Check(t.Context(), w.State.Snapshot(), token)
	}
	sub, exp := visitor.ExternalID, 4_000_000_000
	signed := map[string]bool{}
	for _, c := range []claims{
		{}, {"aud": []string{"x", "netkeep"}}, {"nbf": 1}, {"extra": map[string]any{"a": []any{1, nil}}},
	} {
		c["sub"], c["exp"] = sub, exp
		token := i.token(f, c)
		if _, err := check(f, token); err != nil {
			f.Fatalf("%v: %v", c, err)
		}
		signed[token[:strings.LastIndex(token, ".")]] = true
		f.Add(token)
	}
	f.Add(newIssuer(f).token(f, claims{"sub": sub, "exp": exp}))
	for _, c := range []claims{
		{"sub": sub, "exp": 1}, {"sub": sub, "exp": exp, "iss": "x"}, {"sub": sub, "exp": exp, "aud": "x"}, {"sub": "nobody", "exp": exp}, {"sub": 1, "exp": exp},
	} {
		f.Add(i.token(f, c))
	}
	f.Add("eyJhbGciOiJub25lIiwia2lkIjoiZmlyc3QifQ.e30.")
	f.Add("..")
	f.Fuzz(func(t *testing.T, token string) {
		proof, err := check(t, token)
		if err != nil {
			return
		}
		if end := strings.LastIndex(token, "."); !signed[token[:end]] || proof.identity.ID != visitor.ID {
			t.Errorf("%q is good for %s", token, proof.identity.Name)
		}
	})
}
