package auth_test

import (
	"net/http"
	"testing"
	"time"

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
