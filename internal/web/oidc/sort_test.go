package oidc

import (
	"crypto"
	"crypto/rsa"
	"encoding/base64"
	"encoding/json"
	"math/big"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"netkeep.internal/internal/auth/authn"
	"netkeep.internal/internal/auth/token"
)

// TestSorts looks at the tokens that somebody gets as clients do which are picky: some take
// an ID token of an RSA key alone, and some keep no refresh token of which they cannot read
// when it ends.
func TestSorts(t *testing.T) {
	w := newWorld(t)
	got := w.enter()
	var keys struct {
		Keys []struct {
			ID      string `json:"kid"`
			Type    string `json:"kty"`
			Modulus string `json:"n"`
		}
	}
	if err := json.Unmarshal(w.send("GET", Root+"/keys", nil).Body.Bytes(), &keys); err != nil {
		t.Fatal(err)
	}
	told := func(id string) crypto.PublicKey {
		for _, one := range keys.Keys {
			n, err := base64.RawURLEncoding.DecodeString(one.Modulus)
			if own, is := w.IDs.Key(id).(*rsa.PublicKey); one.ID == id && one.Type == "RSA" && err == nil && is && own.N.Cmp(new(big.Int).SetBytes(n)) == 0 {
				return own
			}
		}
		return nil
	}
	if _, err := token.Check(got.ID, time.Now, func(_, keyID string) crypto.PublicKey { return told(keyID) }); err != nil {
		t.Errorf("the ID token is signed with none of the RSA keys that are told: %s", got.ID)
	}
	if found := w.send("GET", Root+"/.well-known/openid-configuration", nil).Body.String(); !strings.Contains(found, `"id_token_signing_alg_values_supported":["RS256"]`) {
		t.Errorf("it is not told how ID tokens are signed: %s", found)
	}
	var said struct {
		Issuer  string `json:"iss"`
		Expires int64  `json:"exp"`
	}
	if err := token.Read(got.Refresh, &said); err != nil || said.Issuer != w.issuer() {
		t.Errorf("the refresh token cannot be read: %v: %s", err, got.Refresh)
	}
	if left := time.Until(time.Unix(said.Expires, 0)); left < idle || left > idle+accessTime {
		t.Errorf("the refresh token ends in %s", left)
	}
	if out := w.send("POST", Root+"/end_session", url.Values{"id_token_hint": {got.ID}}); out.Code != http.StatusOK || w.lets(got.Access) {
		t.Errorf("the ID token ends nothing: %d", out.Code)
	}
}

// TestSwapped shows each of the tokens in the place of another.
func TestSwapped(t *testing.T) {
	w := newWorld(t)
	got := w.enter()
	for name, text := range map[string]string{"an ID token": got.ID, "a refresh token": got.Refresh} {
		if w.lets(text) {
			t.Errorf("%s lets somebody in", name)
		}
	}
	for name, text := range map[string]string{"an ID token": got.ID, "an access token": got.Access} {
		if _, ok := w.refresh(text); ok {
			t.Errorf("%s is refreshed", name)
		}
	}
	for name, text := range map[string]string{"a refresh token": got.Refresh, "an access token": got.Access} {
		if out := w.send("POST", Root+"/end_session", url.Values{"id_token_hint": {text}}); out.Code == http.StatusOK {
			t.Errorf("%s is taken for an ID token", name)
		}
	}
	// Signed by the keys of ID tokens, whatever it says, it is neither of the others.
	said := map[string]any{"iss": w.issuer(), "aud": []string{"openziti"}, "exp": time.Now().Add(time.Hour).Unix(), "jti": "1"}
	session, _, _ := w.Sessions.ReadRefresh(got.Refresh)
	said["z_asid"] = session
	for _, sort := range []string{authn.BearerType, "r"} {
		said["z_t"] = sort
		text, err := w.IDs.Sign(said)
		if err != nil {
			t.Fatal(err)
		}
		if _, ok := w.refresh(text); ok || w.lets(text) {
			t.Errorf("a token of the wrong key with type %s is good", sort)
		}
	}
	if next, ok := w.refresh(got.Refresh); !ok || !w.lets(next.Access) {
		t.Error("after all that the refresh token is good for nothing")
	}
}
