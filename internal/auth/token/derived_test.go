package token

import (
	"crypto"
	"crypto/rsa"
	"testing"
	"time"
)

// TestDerived makes keys of secrets as two controllers of a network do, and checks the
// tokens of one at the other while one secret takes the other's place.
func TestDerived(t *testing.T) {
	first, second := []byte("a secret of thirty-two bytes....."), []byte("another secret of thirty-two bytes")
	of := func(secrets ...[]byte) *Derived {
		return &Derived{Secrets: func() ([][]byte, error) { return secrets, nil }}
	}
	here, there, stranger := of(first), of(second, first), of(second)
	text, err := here.Sign(map[string]any{"iss": "us", "exp": time.Now().Add(time.Hour).Unix()})
	if err != nil {
		t.Fatal(err)
	}
	for who, one := range map[string]struct {
		keys *Derived
		good bool
	}{"the same": {here, true}, "one that has the next secret too": {there, true}, "one of another network": {stranger, false}} {
		_, err := Check(text, time.Now, func(_, keyID string) crypto.PublicKey { return one.keys.Key(keyID) })
		if (err == nil) != one.good {
			t.Errorf("a token is checked by %s: %v", who, err)
		}
	}
	key, is := here.Public()[0].Key.(*rsa.PublicKey)
	if !is || key.N.BitLen() != 2048 {
		t.Errorf("the key is %T", here.Public()[0].Key)
	}
	// A controller of another version makes the same.
	if id := here.Public()[0].ID; id != "af117bcb78d5912c21069e58ab9755d2fab62339" {
		t.Errorf("the key of this secret is %s", id)
	}
	if now := there.Public(); len(now) != 2 || now[0].ID == here.Public()[0].ID || now[1].ID != here.Public()[0].ID {
		t.Errorf("the keys are %v", now)
	}
}

// TestUnderived asks for keys of no secret.
func TestUnderived(t *testing.T) {
	none := &Derived{Secrets: func() ([][]byte, error) { return nil, nil }}
	if text, err := none.Sign(map[string]any{}); err == nil || len(none.Public()) != 0 {
		t.Errorf("a token is made of nothing: %s", text)
	}
}
