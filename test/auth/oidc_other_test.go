package auth_test

import (
	"net/http"
	"net/url"
	"testing"

	"netkeep.internal/internal/ops/config"
	"netkeep.internal/internal/web/api"
	"netkeep.internal/test/servertest"
)

// namesake creates somebody at a controller who is called as somebody at another, with the
// same password.
func namesake(t *testing.T, s *servertest.Server, of servertest.User) {
	t.Helper()
	admin := s.Admin(t)
	id := admin.Post("identities", M{"name": of.Username, "type": "User", "isAdmin": true}).Want(http.StatusCreated).ID()
	admin.Post("authenticators", M{"identityId": id, "method": "updb", "username": of.Username, "password": of.Password}).Want(http.StatusCreated)
}

// TestOIDCOfAnotherNetwork shows all that somebody carries who has logged in at one network
// to another, where somebody has the same names: it is nothing there, and as good as before
// where it is from.
func TestOIDCOfAnotherNetwork(t *testing.T) {
	u := shared.AddUser(t, true)
	other := servertest.Start(t, func(c *config.Config) { c.OIDC.Enabled = config.On })
	namesake(t, other, u)
	here, there := connect(t, shared), connect(t, other)
	there.verifier = here.verifier
	mine, _ := here.enters(u.Username, u.Password)
	got := there.trade(there.code(there.begin().password(u.Username, u.Password))).want(t, http.StatusOK).json
	access, refresh, identity := got["access_token"].(string), got["refresh_token"].(string), got["id_token"].(string)

	for name, token := range map[string]string{"access": access, "refresh": refresh, "ID": identity} {
		for _, path := range []string{api.ClientRoot + "/" + session, api.ClientRoot + "/services", api.ManagementRoot + "/identities", api.FabricRoot + "/routers"} {
			for _, header := range [][]string{{"Authorization", "Bearer " + token}, {"zt-session", token}} {
				if a := here.send("GET", path, nil, header...); a.status != http.StatusUnauthorized {
					t.Errorf("the %s token of another network as %s at %s: %d %s", name, header[0], path, a.status, a.text)
				}
			}
		}
		for _, wanted := range []string{"access_token", "refresh_token", "id_token"} {
			here.refresh(token, wanted).want(t, http.StatusBadRequest)
		}
		here.send("POST", "/oidc/oauth/token", url.Values{"grant_type": {"refresh_token"}, "client_id": {here.client}, "refresh_token": {token}}).want(t, http.StatusBadRequest)
		here.send("POST", "/oidc/revoke", url.Values{"client_id": {here.client}, "token": {token}})
		here.send("GET", "/oidc/end_session?id_token_hint="+token, nil)
	}
	code := there.code(there.begin().password(u.Username, u.Password))
	here.trade(code).want(t, http.StatusBadRequest)
	there.begin()
	here.id = there.id
	if a := here.password(u.Username, u.Password); a.status == http.StatusFound {
		t.Errorf("a login of another network goes on: %s", a.header.Get("Location"))
	}
	there.password(u.Username, u.Password).want(t, http.StatusFound)
	if a := here.send("GET", "/oidc/authorize/callback?id="+there.id, nil); a.status == http.StatusFound {
		t.Errorf("a login of another network ends here: %s", a.header.Get("Location"))
	}

	if n := sessionsOf(u.ID); n != 1 {
		t.Errorf("there are %d sessions", n)
	}
	here.with(mine, session).want(t, http.StatusOK)
	there.with(access, session).want(t, http.StatusOK)
	there.refresh(refresh, "refresh_token").want(t, http.StatusOK)
	there.trade(code).want(t, http.StatusOK)
}
