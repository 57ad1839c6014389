package auth_test

import (
	"crypto/rand"
	"net/http"
	"testing"
	"time"

	"netkeep.internal/internal/model"
	"netkeep.internal/internal/ops/config"
	"netkeep.internal/test/servertest"
)

// using returns the client of a login.
func using(t *testing.T, a *servertest.Answer) *servertest.Client {
	t.Helper()
	c := shared.Nobody(t)
	c.Token = a.Want(http.StatusOK).Header.Get("net-session")
	return c
}

// withdrawal is something that a session rests on and that is taken back.
type withdrawal func(t *testing.T) (id string, c *servertest.Client, withdraw func())

// withdrawals are all that an admin can take back but what is deleted whole.
func withdrawals() map[string]withdrawal {
	return map[string]withdrawal{
		"CA that names identities": func(t *testing.T) (string, *servertest.Client, func()) {
			root, external := newRoot(t), servertest.Unique("external")
			ca, id := register(t, root, M{"externalIdClaim": byName()}), add(t, M{"externalId": external})
			return id, using(t, present(t, root.issue(t, named(external)).with())), func() {
				shared.Admin(t).Patch("cas/"+ca, M{"isAuthEnabled": false}).Want(200)
			}
		},
		"CA of a certificate": func(t *testing.T) (string, *servertest.Client, func()) {
			root, id := newRoot(t), add(t, nil)
			ca, leaf := register(t, root, nil), root.issue(t)
			addCertificate(t, id, leaf)
			return id, using(t, present(t, leaf.with())), func() {
				shared.Admin(t).Patch("cas/"+ca, M{"isAuthEnabled": false}).Want(200)
			}
		},
		"external id": func(t *testing.T) (string, *servertest.Client, func()) {
			i, external := newIssuer(t, "ES256", newKey(t), M{"useExternalId": true}), servertest.Unique("external")
			id := add(t, M{"externalId": external})
			return id, using(t, show(t, i.token(t, M{"sub": external}))), func() {
				shared.Admin(t).Patch("identities/"+id, M{"externalId": servertest.Unique("external")}).Want(200)
			}
		},
		"signer": func(t *testing.T) (string, *servertest.Client, func()) {
			i, id := newIssuer(t, "ES256", newKey(t), nil), add(t, nil)
			return id, using(t, show(t, i.token(t, M{"sub": id}))), func() {
				shared.Admin(t).Patch("external-jwt-signers/"+i.id, M{"enabled": false}).Want(200)
			}
		},
		"signer in a policy": func(t *testing.T) (string, *servertest.Client, func()) {
			i, policy := newIssuer(t, "ES256", newKey(t), nil), addPolicy(t, func(M, M) {})
			id := add(t, M{"authPolicyId": policy})
			return id, using(t, show(t, i.token(t, M{"sub": id}))), func() {
				forbid(t, policy, M{"extJwt": M{"allowedSigners": []any{house(t).id}}})
			}
		},
		"tokens in a policy": func(t *testing.T) (string, *servertest.Client, func()) {
			policy := addPolicy(t, func(M, M) {})
			id := add(t, M{"authPolicyId": policy})
			return id, enter(t, id), func() { forbid(t, policy, M{"extJwt": M{"allowed": false}}) }
		},
		"certificates in a policy": func(t *testing.T) (string, *servertest.Client, func()) {
			policy := addPolicy(t, func(M, M) {})
			id, leaf := certified(t, M{"authPolicyId": policy})
			return id, using(t, present(t, leaf.with())), func() { forbid(t, policy, M{"cert": M{"allowed": false}}) }
		},
		"expired certificates in a policy": func(t *testing.T) (string, *servertest.Client, func()) {
			policy := addPolicy(t, func(primary, _ M) { primary["cert"].(M)["allowExpiredCerts"] = true })
			root, external := newRoot(t), servertest.Unique("external")
			register(t, root, M{"externalIdClaim": byName()})
			id := add(t, M{"externalId": external, "authPolicyId": policy})
			return id, using(t, present(t, root.issue(t, named(external), expired).with())), func() {
				forbid(t, policy, M{"cert": M{"allowExpiredCerts": false}})
			}
		},
		"passwords in a policy": func(t *testing.T) (string, *servertest.Client, func()) {
			policy, password := addPolicy(t, func(M, M) {}), rand.Text()
			id := add(t, M{"authPolicyId": policy})
			username, _ := addPassword(t, id, password)
			return id, shared.Login(t, username, password), func() {
				forbid(t, policy, M{"updb": M{"allowed": false}})
			}
		},
		"policy": func(t *testing.T) (string, *servertest.Client, func()) {
			id := add(t, nil)
			other := addPolicy(t, func(primary, _ M) { primary["extJwt"].(M)["allowed"] = false })
			return id, enter(t, id), func() { shared.Admin(t).Patch("identities/"+id, M{"authPolicyId": other}).Want(200) }
		},
		"password": func(t *testing.T) (string, *servertest.Client, func()) {
			id, password := add(t, nil), rand.Text()
			username, a := addPassword(t, id, password)
			return id, shared.Login(t, username, password), func() {
				shared.Admin(t).Patch("authenticators/"+a, M{"password": rand.Text()}).Want(200)
			}
		},
	}
}

// forbid changes the rules of a policy.
func forbid(t *testing.T, policy string, primary M) {
	t.Helper()
	shared.Admin(t).Patch("auth-policies/"+policy, M{"primary": primary}).Want(200)
}

// dial gives an identity a service and has its client ask for a session to
// dial it.
func dial(t *testing.T, id string, c *servertest.Client) {
	t.Helper()
	admin := shared.Admin(t)
	service := admin.Post("services", M{"name": servertest.Unique("service"), "encryptionRequired": true}).Want(201).ID()
	router := admin.Post("edge-routers", M{"name": servertest.Unique("router")}).Want(201).ID()
	admin.Post("service-policies", M{
		"name": servertest.Unique("policy"), "type": "Dial", "semantic": "AnyOf", "identityRoles": []any{"@" + id}, "serviceRoles": []any{"@" + service},
	}).Want(201)
	admin.Post("edge-router-policies", M{
		"name": servertest.Unique("policy"), "semantic": "AnyOf", "identityRoles": []any{"@" + id}, "edgeRouterRoles": []any{"@" + router},
	}).Want(201)
	admin.Post("service-edge-router-policies", M{
		"name": servertest.Unique("policy"), "semantic": "AnyOf", "serviceRoles": []any{"@" + service}, "edgeRouterRoles": []any{"@" + router},
	}).Want(201)
	c.Post("/edge/client/v1/sessions", M{"serviceId": service, "type": "Dial"}).Want(201)
}

// gone waits until neither API sessions nor sessions of an identity are stored.
func gone(t *testing.T, id string) {
	t.Helper()
	servertest.Eventually(t, waitTime, "the removal of the sessions", func() bool {
		_, dials := model.Sessions.Find(shared.State().Snapshot(), "identityId", id)
		return sessionsOf(id) == 0 && !dials
	})
}

// TestWithdrawn takes back what sessions rest on: they end at the next request
// and are gone, with the sessions to dial that they hold, seconds later.
func TestWithdrawn(t *testing.T) {
	bystander := enter(t, add(t, nil))
	for what, test := range withdrawals() {
		t.Run(what, func(t *testing.T) {
			id, c, withdraw := test(t)
			dial(t, id, c)
			works(t, c)
			withdraw()
			dead(t, c)
			gone(t, id)
			works(t, bystander)
		})
	}
}

// TestOwnPasswordEndsOthers changes a password by a session that stays, while
// others of the password end and one that rests on something else does not.
func TestOwnPasswordEndsOthers(t *testing.T) {
	id, password := add(t, nil), rand.Text()
	username, a := addPassword(t, id, password)
	other, own, elsewhere := shared.Login(t, username, password), shared.Login(t, username, password), enter(t, id)
	path := "/edge/client/v1/current-identity/authenticators/" + a
	own.Patch(path, M{"username": username, "currentPassword": password}).Want(200) // nothing that a session rests on
	works(t, other)
	fresh := rand.Text()
	own.Patch(path, M{"password": fresh, "currentPassword": password}).Want(200)
	dead(t, other)
	works(t, own)
	works(t, elsewhere)
	servertest.Eventually(t, waitTime, "the removal of the other session", func() bool { return sessionsOf(id) == 2 })
	elsewhere.Patch(path, M{"password": rand.Text(), "currentPassword": fresh}).Want(200)
	dead(t, own)
	works(t, elsewhere)
}

// TestSessionEndsWithToken waits for the end of a token.
func TestSessionEndsWithToken(t *testing.T) {
	id := add(t, nil)
	end := time.Now().Add(3 * time.Second).Truncate(time.Second)
	c := using(t, show(t, house(t).token(t, M{"sub": id, "exp": end.Unix()})))
	dial(t, id, c)
	got := c.Get(session).Want(200)
	if at := got.At("data.expiresAt"); at != end.UTC().Format("2006-01-02T15:04:05.000Z") && at != end.UTC().Format(time.RFC3339) {
		t.Errorf("the session says that it expires at %v, and its token ends at %v", at, end)
	}
	if left := got.At("data.expirationSeconds").(float64); left > 3 {
		t.Errorf("the session says that it has %v seconds", left)
	}
	gone(t, id)
	dead(t, c)
}

// TestLifetime bounds sessions however much they are used.
func TestLifetime(t *testing.T) {
	s := servertest.Start(t, func(c *config.Config) { c.Session.Lifetime = time.Minute })
	u := s.AddUser(t, false)
	c := s.Login(t, u.Username, u.Password)
	if left := c.Get(session).Want(200).At("data.expirationSeconds").(float64); left > 60 {
		t.Errorf("the session says that it has %v seconds", left)
	}
}
