// Package auth_test tests who gets in, how, and what they may do then: every
// way to authenticate, every way that must fail, and every operation against
// every kind of caller. It speaks HTTPS like any client, and reaches into the
// controller only for what no operation does yet.
package auth_test

import (
	"flag"
	"net/http"
	"testing"
	"time"

	"netkeep.internal/internal/data/state"
	"netkeep.internal/internal/lang/kind"
	"netkeep.internal/internal/model"
	"netkeep.internal/internal/ops/config"
	"netkeep.internal/internal/web/api"
	"netkeep.internal/test/servertest"
)

type M = servertest.M

var update = flag.Bool("update", false, "rewrite the list of who may call what")

// shared is the controller that all tests use. They keep apart by identities
// of their own.
var shared *servertest.Server

// All of them are at one address, and wrong more often than one may be.
func TestMain(m *testing.M) {
	servertest.Main(m, &shared, func(c *config.Config) { c.Limits.Guesses, c.OIDC.Enabled = 0, config.On })
}

// The ways to authenticate.
const (
	byPassword = "authenticate?method=password"
	byCert     = "authenticate?method=cert"
	byJWT      = "authenticate?method=ext-jwt"
)

const session = "current-api-session"

// both calls a test for each API, with the prefix of its paths.
func both(t *testing.T, test func(t *testing.T, root string)) {
	t.Helper()
	for _, root := range []string{api.ClientRoot, api.ManagementRoot} {
		t.Run(root[len("/edge/"):len(root)-len("/v1")], func(t *testing.T) { test(t, root+"/") })
	}
}

// add creates an identity and returns its id.
func add(t testing.TB, change M) string {
	t.Helper()
	body := M{"name": servertest.Unique("identity"), "type": "User", "isAdmin": false}
	for name, value := range change {
		body[name] = value
	}
	return shared.Admin(t).Post("identities", body).Want(http.StatusCreated).ID()
}

// addPassword gives an identity a user name and password.
func addPassword(t testing.TB, id, password string) (username, authenticator string) {
	t.Helper()
	username = servertest.Unique("user")
	a := shared.Admin(t).Post("authenticators", M{"identityId": id, "method": "updb", "username": username, "password": password})
	return username, a.Want(http.StatusCreated).ID()
}

// addPolicy creates an authentication policy that allows everything, unless
// changed, and returns its id.
func addPolicy(t testing.TB, change func(primary, secondary M)) string {
	t.Helper()
	primary, secondary := allowAll()
	change(primary, secondary)
	body := M{"name": servertest.Unique("policy"), "primary": primary, "secondary": secondary}
	return shared.Admin(t).Post("auth-policies", body).Want(http.StatusCreated).ID()
}

func allowAll() (primary, secondary M) {
	return M{
		"cert": M{"allowed": true, "allowExpiredCerts": false},
		"updb": M{
			"allowed": true, "minPasswordLength": 5, "requireSpecialChar": false, "requireNumberChar": false,
			"requireMixedCase": false, "maxAttempts": 0, "lockoutDurationMinutes": 0,
		},
		"extJwt": M{"allowed": true, "allowedSigners": []any{}},
	}, M{"requireTotp": false}
}

// enter logs an identity in with a token of the house, which takes no time.
func enter(t testing.TB, id string) *servertest.Client {
	t.Helper()
	c := shared.Nobody(t)
	a := c.With("Authorization", "Bearer "+house(t).token(t, M{"sub": id})).Post(byJWT, M{}).Want(http.StatusOK)
	c.Token = a.Header.Get("net-session")
	return c
}

// works fails the test unless the client's session is alive.
func works(t testing.TB, c *servertest.Client) {
	t.Helper()
	c.For(t).Get(session).Want(http.StatusOK)
}

// dead fails the test if the client's session is alive.
func dead(t testing.TB, c *servertest.Client) {
	t.Helper()
	c.For(t).Get(session).Fails(http.StatusUnauthorized, "UNAUTHORIZED", "")
}

// queries returns the types of factors that the client has yet to show.
func queries(t testing.TB, c *servertest.Client) []any {
	t.Helper()
	types := []any{}
	for _, q := range c.For(t).Get(session).Want(http.StatusOK).Data()["authQueries"].([]any) {
		types = append(types, q.(M)["typeId"])
	}
	return types
}

// edit changes a record behind the API's back.
func edit[T any](t testing.TB, k *kind.Kind[T], id string, change func(*T)) {
	t.Helper()
	err := shared.State().Update(t.Context(), state.Program("test"), func(tx *state.Tx) error {
		return k.Edit(tx, id, func(rec *T) error {
			change(rec)
			return nil
		})
	})
	if err != nil {
		t.Fatal(err)
	}
}

// sessionsOf counts the sessions that are stored for an identity.
func sessionsOf(id string) (n int) {
	for range model.APISessions.Select(shared.State().Snapshot(), "identityId", id) {
		n++
	}
	return n
}

// waitTime is how long something may take that happens by itself.
const waitTime = time.Minute
