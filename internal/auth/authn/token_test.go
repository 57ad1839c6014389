package authn

import (
	"testing"
	"time"
)

// TestTokenTimes walks over the edges of a token's life.
func TestTokenTimes(t *testing.T) {
	w, i := newWorld(t), newIssuer(t)
	w.trust(t)
	now := time.Unix(2_000_000_000, 0)
	tokens := NewTokens(i.get, func() time.Time { return now }, w.Log)
	id := w.proof.identity.ID
	for _, test := range []struct {
		claims claims
		want   bool
	}{
		{claims{"exp": now.Unix() + 1}, true},
		{claims{"exp": now.Unix()}, false},
		{claims{"exp": float64(now.Unix()) + 1.5}, true},
		{claims{"exp": float64(now.Unix()) - 0.5}, false},
		{claims{"exp": now.Unix() + 1, "nbf": now.Unix()}, true},
		{claims{"exp": now.Unix() + 9, "nbf": now.Unix() + 1}, false},
		{claims{"exp": now.Unix() + 9, "nbf": 1e300}, false},
		{claims{"exp": 1e300}, false},
		{claims{"exp": nil}, false},
		{claims{"exp": "2100-01-01"}, false},
	} {
		test.claims["sub"] = id
		_, err := tokens.Check(t.Context(), w.State.Snapshot(), i.token(t, test.claims))
		if (err == nil) != test.want {
			t.Errorf("%v: %v", test.claims, err)
		}
	}
}
