package auth_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"netkeep.internal/internal/model"
	"netkeep.internal/test/servertest"
)

// naming is somebody else's way to say who somebody is.
type naming struct {
	issuer string                                                     // id of the CA or signer
	login  func(t *testing.T, id, external string) *servertest.Answer // as this identity
}

// namings are a CA and a signer that name identities by external id, and a
// signer that names them by id, each new.
func namings(t *testing.T) map[string]naming {
	root := newRoot(t)
	byExternal, byID := newIssuer(t, "ES256", newKey(t), M{"useExternalId": true}), newIssuer(t, "ES256", newKey(t), nil)
	withToken := func(i *issuer, sub func(id, external string) string) func(*testing.T, string, string) *servertest.Answer {
		return func(t *testing.T, id, external string) *servertest.Answer {
			return shared.Nobody(t).With("Authorization", "Bearer "+i.token(t, M{"sub": sub(id, external)})).Post(byJWT, M{})
		}
	}
	return map[string]naming{
		"CA": {register(t, root, M{"externalIdClaim": byName()}), func(t *testing.T, _, external string) *servertest.Answer {
			return present(t, root.issue(t, named(external)).with())
		}},
		"signer":       {byExternal.id, withToken(byExternal, func(_, external string) string { return external })},
		"signer by id": {byID.id, withToken(byID, func(id, _ string) string { return id })},
	}
}

// TestWhoMayName has issuers name identities of every sort, with and without a
// word of an admin.
func TestWhoMayName(t *testing.T) {
	soon := time.Now().Add(time.Hour).UTC().Format(time.RFC3339)
	for sort, test := range map[string]struct {
		make func(t *testing.T, id string)
		byCA bool // whether any CA may name such an identity; any signer may
	}{
		"nothing of its own": {func(*testing.T, string) {}, true},
		"an admin":           {func(t *testing.T, id string) { shared.Admin(t).Patch("identities/"+id, M{"isAdmin": true}).Want(200) }, false},
		"an admin role": {func(t *testing.T, id string) {
			shared.Admin(t).Patch("identities/"+id, M{"adminRoles": []string{"viewer"}}).Want(200)
		}, false},
		"an admin role by an attribute": {func(t *testing.T, id string) {
			attribute := servertest.Unique("attribute")
			shared.Admin(t).Patch("identities/"+id, M{"roleAttributes": []string{attribute}}).Want(200)
			shared.Admin(t).Post("role-bindings", M{
				"name": servertest.Unique("binding"), "semantic": "AnyOf", "identityRoles": []string{"#" + attribute}, "roleId": "viewer",
			}).Want(201)
		}, false},
		"a password": {func(t *testing.T, id string) { addPassword(t, id, "a long password") }, false},
		"a certificate": {func(t *testing.T, id string) {
			leaf, _ := ours(t, newKey(t), time.Hour)
			addCertificate(t, id, leaf)
		}, false},
		"an invitation": {func(t *testing.T, id string) {
			shared.Admin(t).Post("enrollments", M{"identityId": id, "method": "ott", "expiresAt": soon}).Want(201)
		}, false},
	} {
		for kind, n := range namings(t) {
			t.Run(sort+" named by "+kind, func(t *testing.T) {
				external := servertest.Unique("external")
				id := add(t, M{"externalId": external})
				test.make(t, id)
				n.ties(t, namings(t)[kind], id, external, test.byCA || kind != "CA")
			})
		}
	}
}

// ties lets an issuer alone say who an identity is, then another one, then
// both. untied is whether it may if the identity lists no issuers.
func (n naming) ties(t *testing.T, other naming, id, external string, untied bool) {
	t.Helper()
	tie := func(issuers ...any) {
		shared.Admin(t).Patch("identities/"+id, M{"externalIdIssuers": append([]any{}, issuers...)}).Want(200)
	}
	login := func(allowed bool) *servertest.Answer {
		t.Helper()
		if !allowed {
			return n.login(t, id, external).Fails(http.StatusUnauthorized, "INVALID_AUTH", "")
		}
		a := n.login(t, id, external).Want(http.StatusOK)
		if got := a.Data()["identityId"]; got != id {
			t.Errorf("the session is of %v, want %s", got, id)
		}
		return a
	}
	a := login(untied)
	tie(n.issuer)
	tied := using(t, login(true))
	works(t, tied)
	tie(other.issuer)
	login(false)
	dead(t, tied)
	if untied {
		dead(t, using(t, a))
	}
	gone(t, id)
	tie(other.issuer, n.issuer)
	login(true)
	tie()
	login(untied)
}

// TestNamedNoMore gives an identity a way in of its own: it is not for others
// to say any more that somebody is it.
func TestNamedNoMore(t *testing.T) {
	n, external := namings(t)["CA"], servertest.Unique("external")
	id := add(t, M{"externalId": external})
	c := using(t, n.login(t, id, external))
	works(t, c)
	addPassword(t, id, "a long password")
	dead(t, c)
	gone(t, id)
}

// TestIssuersExist wants ids of issuers, and stands by those that are gone:
// nobody else gets their place.
func TestIssuersExist(t *testing.T) {
	admin, external := shared.Admin(t), servertest.Unique("external")
	ways := namings(t)
	n, other := ways["CA"], ways["signer"]
	id := add(t, M{"externalId": external})
	if got := admin.Get("identities/" + id).Data()["externalIdIssuers"].([]any); len(got) != 0 {
		t.Errorf("externalIdIssuers are %v before anybody has set them", got)
	}
	admin.Patch("identities/"+id, M{"externalIdIssuers": []any{n.issuer, "nope"}}).Fails(404, "NOT_FOUND", "externalIdIssuers")
	admin.Patch("identities/"+id, M{"externalIdIssuers": []any{n.issuer}}).Want(200)
	// A client that does not know the field leaves it as it is.
	admin.Put("identities/"+id, M{"name": servertest.Unique("who"), "type": "User", "isAdmin": false, "externalId": external}).Want(200)
	other.login(t, id, external).Fails(401, "INVALID_AUTH", "")
	admin.Delete("cas/" + n.issuer).Want(200)
	admin.Patch("identities/"+id, M{"name": servertest.Unique("who")}).Want(200)
	other.login(t, id, external).Fails(401, "INVALID_AUTH", "")
	if got := admin.Get("identities/" + id).Data()["externalIdIssuers"].([]any); !slices.Equal(got, []any{n.issuer}) {
		t.Errorf("externalIdIssuers are %v", got)
	}
}

// TestRefusedNamingIsLogged looks for who named whom in the log.
func TestRefusedNamingIsLogged(t *testing.T) {
	ways := namings(t)
	for kind, n := range ways {
		external := servertest.Unique("external")
		id := add(t, M{"externalId": external, "isAdmin": true})
		if kind != "CA" {
			shared.Admin(t).Patch("identities/"+id, M{"externalIdIssuers": []any{ways["CA"].issuer}}).Want(200)
		}
		n.login(t, id, external).Fails(401, "INVALID_AUTH", "")
		if !slices.ContainsFunc(shared.Log(), func(line string) bool {
			return strings.Contains(line, `"WARN"`) && strings.Contains(line, id) && strings.Contains(line, n.issuer) && strings.Contains(line, "externalIdIssuers")
		}) {
			t.Errorf("%s: the log does not tell who named whom, and what to do", kind)
		}
	}
}

// TestOwnCertificateOfCA has a certificate with an external id that is its
// holder's authenticator, too.
func TestOwnCertificateOfCA(t *testing.T) {
	root, external := newRoot(t), servertest.Unique("external")
	register(t, root, M{"externalIdClaim": byName()})
	id := add(t, M{"externalId": external, "isAdmin": true})
	leaf := root.issue(t, named(external))
	authenticator := addCertificate(t, id, leaf)
	if got := present(t, leaf.with()).Want(200).Data(); got["identityId"] != id || got["authenticatorId"] != authenticator {
		t.Errorf("the session is %v", got)
	}
	present(t, root.issue(t, named(external)).with()).Fails(401, "INVALID_AUTH", "")
	edit(t, model.Identities, id, func(i *model.Identity) { i.IsAdmin = false })
	present(t, root.issue(t, named(external)).with()).Fails(401, "INVALID_AUTH", "") // its own certificate is another way in
}
