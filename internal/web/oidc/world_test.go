package oidc

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	jose "github.com/go-jose/go-jose/v4"
	"go.uber.org/goleak"

	"netkeep.internal/internal/auth/authn"
	"netkeep.internal/internal/auth/token"
	"netkeep.internal/internal/data/state"
	"netkeep.internal/internal/data/store/storetest"
	"netkeep.internal/internal/model"
	"netkeep.internal/internal/ops/limit"
)

// Nothing that a test starts may outlive it.
func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// keys sign what they are asked to, as those of a network do.
type keys struct {
	id    string
	maker *token.Maker
	key   crypto.PublicKey
}

// newKeys makes keys of a seed, so that one that is found to be badly checked can be
// made again.
func newKeys(t testing.TB, id string, seed byte) keys {
	t.Helper()
	raw := make([]byte, 32)
	raw[31] = seed
	key, err := ecdsa.ParseRawPrivateKey(elliptic.P256(), raw)
	if err != nil {
		t.Fatal(err)
	}
	maker, err := token.NewMaker(key, id)
	if err != nil {
		t.Fatal(err)
	}
	return keys{id, maker, key.Public()}
}

func (k keys) Sign(claims any) (string, error) { return k.maker.Make(claims) }

func (k keys) Key(id string) crypto.PublicKey {
	if id != k.id {
		return nil
	}
	return k.key
}

// world is a provider in memory, with somebody who has a password.
type world struct {
	t testing.TB
	*Provider
	handler  http.Handler
	stolen   int
	verifier string
}

const (
	itsName, itsPassword = "somebody", "a long password"
	itsRedirect          = "http://localhost:1/auth/callback"
	// How long sessions last that are not used, and that are.
	idle, lifetime = 30 * time.Minute, 2 * time.Hour
)

func newWorld(t testing.TB) *world {
	t.Helper()
	memory := storetest.NewMemory()
	st, err := state.Open(context.Background(), memory, model.All, state.Options{Frozen: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		st.Close()
		if err := memory.Close(); err != nil {
			t.Error(err)
		}
	})
	log := slog.New(slog.DiscardHandler)
	signers := newKeys(t, "ours", 1)
	sessions := &authn.APISessions{
		State: st, Keys: func() [][]byte { return [][]byte{[]byte("a key for tests")} }, Signers: signers, Timeout: idle, Lifetime: lifetime, Now: time.Now, Log: log,
	}
	issuers := authn.NewTokens(func(context.Context, string) ([]byte, http.Header, error) {
		return nil, nil, errors.New("nobody is asked")
	}, time.Now, log)
	w := &world{t: t, verifier: strings.Repeat("verifier", 6)}
	w.Provider = &Provider{
		State: st, Sessions: sessions, Passwords: authn.NewPasswords(authn.NewHasher(), sessions, time.Now, 0), Tokens: issuers,
		Certs: &authn.Certificates{Bundle: func() []*x509.Certificate { return nil }, Now: time.Now, Log: log}, Factors: &authn.Factors{State: st, Now: time.Now}, Address: "controller.example",
		Keys: func() ([][]byte, error) { return [][]byte{make([]byte, 32)}, nil }, Public: func() []jose.JSONWebKey { return nil },
		IDs:  &token.Derived{Secrets: func() ([][]byte, error) { return [][]byte{[]byte("a secret for tests")}, nil }},
		View: func(snap *state.Snapshot) *state.Snapshot { return snap }, Logins: new(limit.Rate[limit.Party]), Requests: &limit.Slots{Max: 100, Share: 1, Each: 100},
		Bodies: &limit.Bodies{Bytes: 10 << 20, Max: 100, Share: 1, Now: time.Now}, Pace: limit.Pace{First: time.Minute},
		Tried: func(Attempt, error) {}, Coded: func(state.Author, *model.Identity, error) {},
		Stolen: func(state.Author, *model.APISession, string) { w.stolen++ }, Now: time.Now, Log: log,
	}
	w.handler = w.Handler()
	w.seed()
	return w
}

func (w *world) seed() {
	w.t.Helper()
	hash, err := authn.NewHasher().Hash(context.Background(), authn.Claim{}, itsPassword)
	if err != nil {
		w.t.Fatal(err)
	}
	err = w.State.Update(context.Background(), state.Program("test"), func(tx *state.Tx) error {
		if err := model.Seed(tx); err != nil {
			return err
		}
		i := model.Identities.New()
		i.Name, i.Type = itsName, "User"
		if err := model.Identities.Create(tx, i); err != nil {
			return err
		}
		return model.Authenticators.Create(tx, model.NewPassword(i.ID, itsName, hash))
	})
	if err != nil {
		w.t.Fatal(err)
	}
}

// answered is a recorder that lets itself be given times, which it has no use for.
type answered struct{ *httptest.ResponseRecorder }

func (answered) SetReadDeadline(time.Time) error { return nil }

// send sends a request, with a form if there is one.
func (w *world) send(method, at string, form url.Values) *httptest.ResponseRecorder {
	return w.sendBody(method, at, "application/x-www-form-urlencoded", form.Encode())
}

func (w *world) sendBody(method, at, contentType, body string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, at, strings.NewReader(body))
	r.Header.Set("Content-Type", contentType)
	out := answered{httptest.NewRecorder()}
	w.handler.ServeHTTP(out, r)
	return out.ResponseRecorder
}

// begin begins a login and returns its id.
func (w *world) begin() string {
	w.t.Helper()
	return w.lead(w.send("GET", Root+"/authorize?"+url.Values{
		"client_id": {"native"}, "response_type": {"code"}, "scope": {"openid offline_access"}, "redirect_uri": {itsRedirect},
		"code_challenge": {challenge(w.verifier)}, "code_challenge_method": {"S256"},
	}.Encode(), nil)).Query().Get("authRequestID")
}

// lead is where an answer leads to.
func (w *world) lead(out *httptest.ResponseRecorder) *url.URL {
	w.t.Helper()
	at, err := url.Parse(out.Header().Get("Location"))
	if err != nil || out.Code != http.StatusFound {
		w.t.Fatalf("the answer is %d, and leads to %q: %s", out.Code, out.Header().Get("Location"), out.Body)
	}
	return at
}

// show shows the password.
func (w *world) show(id string) *httptest.ResponseRecorder {
	return w.send("POST", Root+"/login/username", url.Values{"id": {id}, "username": {itsName}, "password": {itsPassword}})
}

// tokens are what somebody has got.
type tokens struct {
	Access  string `json:"access_token"`
	Refresh string `json:"refresh_token"`
	ID      string `json:"id_token"`
}

// trade exchanges a code, and reports whether there was anything for it.
func (w *world) trade(code string) (tokens, bool) {
	return w.ask(url.Values{"grant_type": {"authorization_code"}, "client_id": {"native"}, "code_verifier": {w.verifier}, "code": {code}, "redirect_uri": {itsRedirect}})
}

func (w *world) refresh(text string) (tokens, bool) {
	return w.ask(url.Values{"grant_type": {"refresh_token"}, "client_id": {"native"}, "refresh_token": {text}})
}

func (w *world) ask(form url.Values) (got tokens, ok bool) {
	w.t.Helper()
	out := w.send("POST", Root+"/oauth/token", form)
	if err := json.Unmarshal(out.Body.Bytes(), &got); err != nil {
		w.t.Fatalf("the answer is %d: %s", out.Code, out.Body)
	}
	return got, out.Code == http.StatusOK && got.Access != ""
}

// enter logs in, whole.
func (w *world) enter() tokens {
	w.t.Helper()
	got, ok := w.trade(w.lead(w.send("GET", w.lead(w.show(w.begin())).String(), nil)).Query().Get("code"))
	if !ok {
		w.t.Fatal("there is nothing for a good code")
	}
	return got
}

// lets reports whether an access token lets somebody in, as the APIs ask.
func (w *world) lets(access string) bool {
	who, err := w.Sessions.Verify(context.Background(), w.State.Snapshot(), authn.Credentials{Token: access})
	return err == nil && who.Complete()
}

// challenge is what a login is begun with for a verifier.
func challenge(verifier string) string {
	sum := sha256.Sum256([]byte(verifier))
	return base64.RawURLEncoding.EncodeToString(sum[:])
}
