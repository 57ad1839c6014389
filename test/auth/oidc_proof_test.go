package auth_test

import (
	"encoding/base64"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestOIDCProof has sessions get tokens that tell routers when they showed a second factor:
// what they say is so, and they open nothing.
func TestOIDCProof(t *testing.T) {
	const path = "/edge/client/v1/current-api-session/totp-token"
	u := shared.AddUser(t, false)
	who, other := shared.Bear(t, u), shared.Bear(t, u)
	who.Post(path, M{"code": "000000"}).Want(http.StatusConflict)
	f := enroll(t, u.ID)
	for _, wrong := range []string{"", "000000", strings.Repeat("1", 3000)} {
		who.Post(path, M{"code": wrong}).Want(http.StatusBadRequest)
	}
	other.Post(path, M{"code": f.at(t, f.last)}).Want(http.StatusBadRequest) // which enrolled it, elsewhere
	code := f.code(t)
	first := who.Post(path, M{"code": code}).Want(http.StatusOK).Data()
	if again := who.Post(path, M{"code": code}).Want(http.StatusOK).Data(); again["issuedAt"] != first["issuedAt"] {
		t.Errorf("a code that is shown again was shown at %v, not at %v", again["issuedAt"], first["issuedAt"])
	}
	other.Post(path, M{"code": code}).Want(http.StatusBadRequest)

	text := first["token"].(string)
	claims, err := base64.RawURLEncoding.DecodeString(strings.Split(text, ".")[1])
	if err != nil {
		t.Fatal(err)
	}
	var said struct {
		Audience   []string `json:"aud"`
		Subject    string   `json:"sub"`
		Issued     int64    `json:"iat"`
		APISession string   `json:"z_asid"`
		Type       string   `json:"z_t"`
	}
	if err := json.Unmarshal(claims, &said); err != nil {
		t.Fatal(err)
	}
	at, err := time.Parse(time.RFC3339, first["issuedAt"].(string))
	if err != nil {
		t.Fatal(err)
	}
	session := who.Get("/edge/client/v1/current-api-session").Want(http.StatusOK).ID()
	if said.Subject != u.ID || said.APISession != session || said.Type != "t" || said.Issued != at.Unix() || !slices.Equal(said.Audience, []string{"openziti"}) {
		t.Errorf("the token says %s", claims)
	}
	connect(t, shared).with(text, "services").want(t, http.StatusUnauthorized)
	shared.Login(t, u.Username, u.Password).Post(path, M{"code": code}).Fails(http.StatusMethodNotAllowed, "METHOD_NOT_ALLOWED", "")
}
