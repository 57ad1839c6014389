package fabric

import (
	"encoding/base64"
	"encoding/json"
	"strings"
	"sync"
	"testing"

	"netkeep.internal/internal/model"
	"netkeep.internal/test/scripted"
	"netkeep.internal/test/servertest"
)

// TestTokenNamesAPISession has one identity log in many times at once, as old
// clients do that dial many times before they have logged in. Routers of the
// second generation compare two things, and turn away whoever's differ: the API
// session that a session's token names, and the id that they were told of the
// API session that the client connected with.
func TestTokenNamesAPISession(t *testing.T) {
	s := servertest.Start(t)
	r := addRouter(t, s).Connect(t, grouped)
	n := addNetwork(t, s)
	type login struct{ id, token, session string }
	logins := make([]login, 20)
	var done sync.WaitGroup
	for i := range logins {
		done.Go(func() {
			who := n.Nobody(t).Post(client+"authenticate?method=password", M{"username": n.dialUser.Username, "password": n.dialUser.Password})
			l := login{id: who.ID(), token: who.Data()["token"].(string)}
			me := n.Nobody(t).With("zt-session", l.token)
			me.Post(client+"current-api-session/certificates", M{"csr": csrOf(t, newKey(t))})
			l.session, _ = me.Post(client+"sessions", M{"serviceId": n.service, "type": model.Dial}).Data()["token"].(string)
			logins[i] = l
		})
	}
	done.Wait()
	for _, l := range logins {
		claims := claimsOf(t, l.session)
		if claims.APISession != l.id {
			t.Errorf("the session of API session %s is said to be one of %q", l.id, claims.APISession)
		}
		await(t, r, "it knows the API session", func(k scripted.Known) bool { return k.Sessions[l.id].Token == l.token })
	}
}

// claims are what the token of a session says.
type claims struct {
	ID         string `json:"jti"`
	APISession string `json:"z_asid"`
}

func claimsOf(t *testing.T, token string) (said claims) {
	t.Helper()
	_, rest, _ := strings.Cut(token, ".")
	payload, _, _ := strings.Cut(rest, ".")
	text, err := base64.RawURLEncoding.DecodeString(payload)
	must(t, err)
	must(t, json.Unmarshal(text, &said))
	return said
}
