package authn

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"netkeep.internal/internal/data/state"
	"netkeep.internal/internal/model"
)

type claims = jwt.MapClaims

// issuer signs tokens and publishes its keys.
type issuer struct {
	mu      sync.Mutex
	keys    map[string]*ecdsa.PrivateKey // by kid
	kid     string                       // of the key in use
	fetches int
	fail    error
	hang    chan struct{} // a fetch ends when it is closed, unless nil
}

func newIssuer(t testing.TB) *issuer {
	t.Helper()
	i := &issuer{keys: map[string]*ecdsa.PrivateKey{}}
	i.rotate(t, "first")
	return i
}

// rotate replaces all keys with a new one.
func (i *issuer) rotate(t testing.TB, kid string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	i.keys, i.kid = map[string]*ecdsa.PrivateKey{kid: key}, kid
}

// set is the issuer's key set as JSON.
func (i *issuer) set() string {
	i.mu.Lock()
	defer i.mu.Unlock()
	var keys []string
	for kid, key := range i.keys {
		point, err := key.PublicKey.Bytes()
		if err != nil {
			panic(err) // every point of our own is on its curve
		}
		b64 := base64.RawURLEncoding.EncodeToString
		keys = append(keys, fmt.Sprintf(`{"kty":"EC","crv":"P-256","kid":%q,"x":%q,"y":%q}`, kid, b64(point[1:33]), b64(point[33:])))
	}
	return `{"keys":[` + strings.Join(keys, ",") + `]}`
}

// get serves the key set.
func (i *issuer) get(ctx context.Context, _ string) ([]byte, http.Header, error) {
	i.mu.Lock()
	i.fetches++
	hang, fail := i.hang, i.fail
	i.mu.Unlock()
	if hang != nil {
		select {
		case <-hang:
		case <-ctx.Done():
			return nil, nil, ctx.Err()
		}
	}
	if fail != nil {
		return nil, nil, fail
	}
	return []byte(i.set()), nil, nil
}

func (i *issuer) breaks(err error, hang chan struct{}) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.fail, i.hang = err, hang
}

func (i *issuer) fetched(t testing.TB, want int) {
	t.Helper()
	synctest.Wait()
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.fetches != want {
		t.Errorf("the keys were fetched %d times, want %d", i.fetches, want)
	}
}

func (i *issuer) tokens(t testing.TB) *Tokens {
	t.Helper()
	return NewTokens(i.get, time.Now, slog.New(slog.DiscardHandler))
}

// token returns a good token with claims changed.
func (i *issuer) token(t testing.TB, change claims) string {
	t.Helper()
	i.mu.Lock()
	key, kid := i.keys[i.kid], i.kid
	i.mu.Unlock()
	return sign(t, key, kid, change)
}

func sign(t testing.TB, key *ecdsa.PrivateKey, kid string, change claims) string {
	t.Helper()
	all := claims{"iss": "https://issuer.example", "aud": "netkeep", "exp": time.Now().Add(time.Hour).Unix()}
	for name, value := range change {
		all[name] = value
	}
	token := jwt.NewWithClaims(jwt.SigningMethodES256, all)
	token.Header["kid"] = kid
	text, err := token.SignedString(key)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// trust makes issuers of these tests a signer.
func (w *world) trust(t testing.TB) *model.ExtJWTSigner {
	t.Helper()
	var s *model.ExtJWTSigner
	update(t, w.State, func(tx *state.Tx) error {
		s = &model.ExtJWTSigner{
			Name: "issuer", Enabled: true, Issuer: "https://issuer.example", Audience: "netkeep",
			JWKSEndpoint: "https://issuer.example/keys",
		}
		return model.ExtJWTSigners.Create(tx, s)
	})
	return s
}

// keyring returns an issuer and how to ask for one of its keys.
func keyring(t *testing.T) (*issuer, func(ctx context.Context, kid string) bool) {
	t.Helper()
	i := newIssuer(t)
	tokens, signer := i.tokens(t), &model.ExtJWTSigner{JWKSEndpoint: "https://issuer.example/keys"}
	return i, func(ctx context.Context, kid string) bool { return tokens.sets.key(ctx, signer, kid) != nil }
}

func TestKeysAreFetchedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		i, has := keyring(t)
		var all sync.WaitGroup
		for range 50 {
			all.Go(func() {
				if !has(t.Context(), "first") {
					t.Error("a key that was published is unknown")
				}
			})
		}
		all.Wait()
		i.fetched(t, 1)
	})
}

// TestKeyLimiter makes up key ids: whatever strangers ask for, the issuer is
// asked once in a while only.
func TestKeyLimiter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		i, has := keyring(t)
		for n := range 600 { // a minute, ten in a second
			if has(t.Context(), fmt.Sprint("made up ", n)) {
				t.Fatal("a made up key exists")
			}
			time.Sleep(100 * time.Millisecond)
		}
		i.fetched(t, 12)
	})
}

func TestKeyRotation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		i, has := keyring(t)
		if !has(t.Context(), "first") {
			t.Fatal("the first key is unknown")
		}
		i.rotate(t, "second")
		if has(t.Context(), "second") {
			t.Error("the limiter let a fetch through")
		}
		time.Sleep(fetchEvery)
		if !has(t.Context(), "second") || has(t.Context(), "first") {
			t.Error("an unknown key did not bring the new set")
		}
		i.breaks(errors.New("down"), nil)
		time.Sleep(time.Minute)
		if has(t.Context(), "third") || !has(t.Context(), "second") {
			t.Error("an endpoint that is down took the old keys away")
		}
		time.Sleep(keepKeys)
		if !has(t.Context(), "second") {
			t.Error("an endpoint that stays down took the old keys away")
		}
		time.Sleep(staleKeys - keepKeys - time.Minute)
		if !has(t.Context(), "second") {
			t.Error("an endpoint that was down for less than a day took the old keys away")
		}
		time.Sleep(time.Minute)
		if has(t.Context(), "second") {
			t.Error("keys count that their issuer has not shown for a day")
		}
		i.breaks(nil, nil)
		time.Sleep(fetchEvery)
		if !has(t.Context(), "second") {
			t.Error("an endpoint that is back did not bring its keys back")
		}
		i.rotate(t, "third")
		if !has(t.Context(), "second") {
			t.Error("a key was asked for again too soon")
		}
		time.Sleep(keepKeys)
		if has(t.Context(), "second") {
			t.Error("a key that its issuer withdrew counts for ever")
		}
	})
}

// TestGHSA_whjr_3j94_gw3c has an endpoint that never answers: whoever waits
// for it is let go, and whoever needs nothing from it does not wait.
func TestGHSA_whjr_3j94_gw3c(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		i, has := keyring(t)
		if !has(t.Context(), "first") {
			t.Fatal("the first key is unknown")
		}
		time.Sleep(fetchEvery)
		i.breaks(nil, make(chan struct{}))
		start := time.Now()
		var waiting sync.WaitGroup
		waiting.Go(func() {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			if has(ctx, "unknown") || time.Since(start) != time.Second {
				t.Errorf("a request waited for %s", time.Since(start))
			}
		})
		waiting.Go(func() {
			if has(t.Context(), "unknown") || time.Since(start) != fetchTime {
				t.Errorf("the fetch took %s", time.Since(start))
			}
		})
		synctest.Wait()
		if !has(t.Context(), "first") || time.Since(start) != 0 {
			t.Errorf("a known key took %s", time.Since(start))
		}
		waiting.Wait()
	})
}

// TestFetchOutlivesItsRequest starts a fetch and hangs up: those who wait for
// it get their key all the same.
func TestFetchOutlivesItsRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		i, has := keyring(t)
		hang := make(chan struct{})
		i.breaks(nil, hang)
		gone, cancel := context.WithCancel(t.Context())
		var all sync.WaitGroup
		all.Go(func() {
			if has(gone, "first") {
				t.Error("who hung up got a key")
			}
		})
		synctest.Wait()
		all.Go(func() {
			if !has(t.Context(), "first") {
				t.Error("somebody else hung up, and the key is unknown")
			}
		})
		synctest.Wait()
		cancel()
		synctest.Wait()
		close(hang)
		all.Wait()
		i.fetched(t, 1)
	})
}

func TestKeySetsAreBounded(t *testing.T) {
	i := newIssuer(t)
	tokens := i.tokens(t)
	for n := range maxSets + 10 {
		tokens.sets.set(fmt.Sprint("https://issuer.example/", n))
	}
	if n := len(tokens.sets.sets); n > maxSets {
		t.Errorf("%d endpoints are remembered", n)
	}
}
