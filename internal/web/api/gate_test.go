package api

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"netkeep.internal/internal/auth/authn"
	"netkeep.internal/internal/data/state"
	"netkeep.internal/internal/data/store/storetest"
	"netkeep.internal/internal/model"
	"netkeep.internal/internal/ops/limit"
	"netkeep.internal/internal/web/rest"
)

// gated returns an API with one operation, which needs a session, and the
// token of the only one there is.
func gated(t testing.TB) (*rest.API, string) {
	t.Helper()
	memory := storetest.NewMemory()
	st, err := state.Open(t.Context(), memory, model.All, state.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		st.Close()
		if err := memory.Close(); err != nil {
			t.Error(err)
		}
	})
	if err := st.Update(t.Context(), state.Program("test"), func(tx *state.Tx) error { return model.Seed(tx) }); err != nil {
		t.Fatal(err)
	}
	hasher := authn.NewHasher()
	if err := authn.CreateAdmin(t.Context(), st, hasher, authn.FirstAdmin{Username: "admin", Password: "secret"}); err != nil {
		t.Fatal(err)
	}
	sessions := &authn.APISessions{State: st, Keys: func() [][]byte { return [][]byte{[]byte("a key for tests")} }, Timeout: time.Hour, Now: time.Now, Log: slog.New(slog.DiscardHandler)}
	passwords := authn.NewPasswords(hasher, sessions, time.Now, 0)
	proof, err := passwords.Check(t.Context(), state.Nobody, st.Snapshot(), authn.Login{Username: "admin", Password: "secret"})
	if err != nil {
		t.Fatal(err)
	}
	who, err := sessions.Open(t.Context(), state.Nobody, proof, authn.Request{})
	if err != nil {
		t.Fatal(err)
	}
	service := &Service{Sessions: sessions}
	a := &rest.API{
		State: st, Gate: service.Gate, Log: sessions.Log, Timeout: time.Minute,
		Requests: &limit.Slots{Max: 10}, Bodies: &limit.Bodies{Bytes: 1 << 20, Max: 10, Now: time.Now},
		Answers: &limit.Bodies{Bytes: 1 << 20, Max: 10, Now: time.Now},
	}
	rest.Handle(a, rest.Op{Method: http.MethodGet, Path: "/", Name: "x", Tag: "x", Doc: "X.", Auth: rest.Partial},
		func(*rest.Call, rest.None) (rest.Empty, error) { return rest.Empty{}, nil })
	return a, who.Token()
}

// FuzzSessionHeader sends two headers of each name: a caller is found if they
// agree on the token of a live session, and never otherwise.
func FuzzSessionHeader(f *testing.F) {
	a, token := gated(f)
	for _, text := range []string{
		"@", strings.ToUpper(token), token[1:], "@ ", "@\x00", "{@}", strings.ReplaceAll(token, "-", ""),
		"", "00000000-0000-0000-0000-000000000000", "@,@", "urn:uuid:@", "ﬀ", "null",
	} {
		f.Add(text, text, uint8(2))
		f.Add(text, "@", uint8(3))
		f.Add("@", text, uint8(1))
	}
	f.Fuzz(func(t *testing.T, first, second string, names uint8) {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		add := func(bit uint8, value string) {
			name := "net-session"
			if names&bit != 0 {
				name = "zt-session"
			}
			r.Header.Add(name, value)
		}
		// The token is another one in every process.
		first, second = strings.ReplaceAll(first, "@", token), strings.ReplaceAll(second, "@", token)
		add(1, first)
		add(2, second)
		w := httptest.NewRecorder()
		a.Serve(w, r, "/")
		want := http.StatusUnauthorized
		if first == token && second == token {
			want = http.StatusOK
		}
		if w.Code != want {
			t.Errorf("%q and %q: status %d, want %d", first, second, w.Code, want)
		}
		if told := w.Header().Get("expiration-seconds") != ""; told != (want == http.StatusOK) {
			t.Errorf("%q and %q: told how long a session lives: %v", first, second, told)
		}
	})
}

// TestBusy has no room for another request, and none for a body.
func TestBusy(t *testing.T) {
	a, token := gated(t)
	rest.Handle(a, rest.Op{Method: http.MethodPost, Path: "/", Name: "y", Tag: "x", Doc: "Y.", Auth: rest.Partial, MaxBody: 1 << 20},
		func(*rest.Call, rest.Raw) (rest.Empty, error) { return rest.Empty{}, nil })
	send := func(method string, body int) *httptest.ResponseRecorder {
		r := httptest.NewRequest(method, "/", strings.NewReader(strings.Repeat(" ", body)))
		r.Header.Set("net-session", token)
		w := httptest.NewRecorder()
		a.Serve(w, r, "/")
		return w
	}
	refused := func(what string, w *httptest.ResponseRecorder) {
		t.Helper()
		if w.Code != http.StatusServiceUnavailable || w.Header().Get("Retry-After") != "1" {
			t.Errorf("%s: status %d, Retry-After %q", what, w.Code, w.Header().Get("Retry-After"))
		}
	}
	served := func(what string, w *httptest.ResponseRecorder) {
		t.Helper()
		if w.Code != http.StatusOK {
			t.Errorf("%s: status %d: %s", what, w.Code, w.Body)
		}
	}
	a.Bodies = &limit.Bodies{Bytes: 16 << 10, Max: 10, Now: time.Now}
	refused("more than fits", send(http.MethodPost, 20<<10))
	for range 10 { // each gives back what it held
		served("what fits", send(http.MethodPost, 10<<10))
	}
	a.Requests = &limit.Slots{Max: 1}
	for range 3 {
		served("one at a time", send(http.MethodGet, 0))
	}
	if a.Requests.Take(limit.Party{Rank: limit.Admin}) != nil {
		t.Fatal("a request has not given its slot back")
	}
	refused("one too many", send(http.MethodGet, 0))
}
