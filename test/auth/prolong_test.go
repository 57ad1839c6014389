package auth_test

import (
	"net/http"
	"net/url"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"netkeep.internal/internal/model"
	"netkeep.internal/test/servertest"
)

// TestProlong has a session rest on a newer token of the same signer for the same identity,
// and on no other.
func TestProlong(t *testing.T) {
	const client = "/edge/client/v1/"
	i, other, id, somebody := newIssuer(t, "ES256", newKey(t), nil), newIssuer(t, "ES256", newKey(t), nil), add(t, nil), add(t, nil)
	in := func(d time.Duration) float64 { return float64(time.Now().Add(d).Unix()) }
	c := shared.Nobody(t)
	session, _ := c.With("Authorization", "Bearer "+i.token(t, M{"sub": id, "exp": in(3 * time.Minute)})).Post(client+byJWT, M{}).Want(200).Data()["token"].(string)
	c = c.With("zt-session", session)
	ends := func() time.Time {
		t.Helper()
		at, err := time.Parse(time.RFC3339, c.Get(client + "current-api-session").Want(200).Data()["expiresAt"].(string))
		if err != nil {
			t.Fatal(err)
		}
		return at
	}
	show := func(c *servertest.Client, token string) *servertest.Answer {
		return c.With("Authorization", "Bearer "+token).Post(client+"current-api-session/prolong", nil)
	}
	first := ends()
	for name, token := range map[string]string{
		"somebody else's": i.token(t, M{"sub": somebody, "exp": in(time.Hour)}), "of another signer": other.token(t, M{"sub": id, "exp": in(time.Hour)}),
	} {
		show(c, token).Want(http.StatusBadRequest)
		if now := ends(); now.After(first) {
			t.Errorf("a token that is %s makes it last until %v", name, now)
		}
	}
	show(c, "nonsense").Want(http.StatusUnauthorized)
	show(c, i.token(t, M{"sub": id, "exp": in(-time.Minute)})).Want(http.StatusUnauthorized)
	show(c, i.token(t, M{"sub": id, "exp": in(time.Minute)})).Want(http.StatusOK)
	if now := ends(); now.Before(first.Add(-time.Second)) {
		t.Errorf("a token that ends sooner makes it end at %v", now)
	}
	show(c, i.token(t, M{"sub": id, "exp": in(10 * time.Minute)})).Want(http.StatusOK)
	if now := ends(); now.Before(first.Add(5 * time.Minute)) {
		t.Errorf("a newer token makes it last until %v, after %v", now, first)
	}
	show(shared.Nobody(t), i.token(t, M{"sub": id})).Want(http.StatusUnauthorized)
	show(shared.Admin(t), i.token(t, M{"sub": id})).Want(http.StatusBadRequest) // with a password
}

// TestProlongOfOthers shows that a token of somebody else changes nothing of them: nobody
// appears by it, nobody's groups follow it, and no entry says otherwise.
func TestProlongOfOthers(t *testing.T) {
	const client = "/edge/client/v1/"
	i := welcoming(t, nil)
	bob, nobody := person(servertest.Unique("sub"), servertest.Unique("bob"), "eng"), person(servertest.Unique("sub"), servertest.Unique("new"), "eng")
	id := show(t, i.token(t, bob)).Want(200).Data()["identityId"].(string)
	ann, password := shared.Nobody(t), shared.Admin(t)
	ann.Token = ann.With("Authorization", "Bearer "+i.token(t, person(servertest.Unique("sub"), servertest.Unique("ann")))).Post(client+byJWT, M{}).Want(200).Data()["token"].(string)
	for name, c := range map[string]*servertest.Client{"of a token": ann, "of a password": password} {
		for whom, token := range map[string]string{
			"somebody else": i.token(t, claimSet(bob).with("realm", M{"roles": []any{"ops"}})), "somebody new": i.token(t, nobody),
		} {
			if got := c.With("Authorization", "Bearer "+token).Post(client+"current-api-session/prolong", nil); got.Status != http.StatusBadRequest {
				t.Errorf("a session %s with a token of %s: %d", name, whom, got.Status)
			}
		}
	}
	if _, there := model.Identities.Find(shared.State().Snapshot(), "externalId", nobody["sub"].(string)); there {
		t.Error("somebody became an identity in a session of somebody else")
	}
	if got := identityOf(t, id)["roleAttributes"]; !cmp.Equal(got, []any{"idp:eng"}) {
		t.Errorf("the attributes of somebody else are %v", got)
	}
	filter := url.QueryEscape(`targetId = "` + id + `" and event = "updated"`)
	if got := shared.Admin(t).Get("audit-entries?filter=" + filter).Want(200).List(); len(got) > 0 {
		t.Errorf("there are entries: %v", got)
	}
	// One's own token is followed as at a login.
	mine := identityOf(t, ann.Get("current-identity").Want(200).ID())
	claims := person(mine["externalId"].(string), mine["name"].(string), "ops")
	ann.With("Authorization", "Bearer "+i.token(t, claims)).Post(client+"current-api-session/prolong", nil).Want(http.StatusOK)
	if got := identityOf(t, mine["id"])["roleAttributes"]; !cmp.Equal(got, []any{"idp:ops"}) {
		t.Errorf("the attributes are %v", got)
	}
}
