package grant

import (
	"crypto/x509"
	"iter"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"netkeep.internal/internal/lang/kind"
	"netkeep.internal/internal/model"
)

// one is a reader that knows a single session.
type one struct{ *model.Session }

func (o one) Lookup(_ *kind.Def, id string) (kind.Record, bool) { return o.Session, id == o.ID }
func (o one) Select(*kind.Def, string, string) iter.Seq[kind.Record] {
	return func(func(kind.Record) bool) {}
}
func (o one) All(*kind.Def) iter.Seq[kind.Record] { return o.Select(nil, "", "") }
func (o one) Len(*kind.Def) int                   { return 1 }

// TestTokens makes a token twice, has another library read it, and changes
// every letter of it.
func TestTokens(t *testing.T) {
	tokens, err := NewTokens([]byte("secret"))
	again, err2 := NewTokens([]byte("secret"))
	other, err3 := NewTokens([]byte("another"))
	if err != nil || err2 != nil || err3 != nil {
		t.Fatal(err, err2, err3)
	}
	s := &model.Session{
		Meta: kind.Meta{ID: "csession", CreatedAt: kind.MomentOf(time.Now().Add(-time.Minute))}, APISessionID: "capi", IdentityID: "identity", ServiceID: "service", Type: model.Bind,
	}
	token := tokens.Of(s)
	if token != again.Of(s) || token == other.Of(s) || !strings.HasPrefix(token, "ey") {
		t.Error("a token does not follow from the secret and the session")
	}
	pkix, keyID := tokens.PublicKeys()[0].PKIX, tokens.Current()
	public, err := x509.ParsePKIXPublicKey(pkix)
	if err != nil {
		t.Fatal(err)
	}
	read, err := jwt.Parse(token, func(*jwt.Token) (any, error) { return public, nil }, jwt.WithValidMethods([]string{"ES256"}), jwt.WithAudience("openziti"))
	if err != nil {
		t.Fatal(err)
	}
	said := read.Claims.(jwt.MapClaims)
	for name, want := range map[string]any{"sub": "service", "jti": "csession", "z_asid": "capi", "z_iid": "identity", "z_t": "s", "z_st": "Bind", "z_leg": true} {
		if said[name] != want {
			t.Errorf("%s is %v", name, said[name])
		}
	}
	if read.Header["kid"] != keyID {
		t.Errorf("kid is %v", read.Header["kid"])
	}
	recognised(t, tokens, other, s)
	plain := *s
	plain.Plain = true
	if token := tokens.Of(&plain); token != again.Of(&plain) || strings.HasPrefix(token, "ey") || strings.Count(token, ".") != 1 {
		t.Errorf("the token of a plain session is %s", token)
	}
	recognised(t, tokens, other, &plain)
	if _, ok := tokens.Find(one{&plain}, token); ok {
		t.Error("a plain session is found by a token that is not its own")
	}
}

// recognised finds a session by its token, and by no other.
func recognised(t *testing.T, tokens, other *Tokens, s *model.Session) {
	t.Helper()
	token := tokens.Of(s)
	if found, ok := tokens.Find(one{s}, token); !ok || found != s {
		t.Error("the session's own token is not found")
	}
	if _, ok := other.Find(one{s}, token); ok {
		t.Error("a token of another network is found")
	}
	for i := range token {
		forged := []byte(token)
		forged[i] ^= 1
		if _, ok := tokens.Find(one{s}, string(forged)); ok {
			t.Fatalf("with another letter at %d the token is found", i)
		}
	}
	for _, bad := range []string{"", ".", "..", "a.b.c", token + "x", token + "=", strings.ToUpper(token), token[:len(token)-1]} {
		if _, ok := tokens.Find(one{s}, bad); ok {
			t.Errorf("%.20q is found", bad)
		}
	}
}

// TestTokensTurn has one secret take the place of another: a session keeps its
// token as long as either is good.
func TestTokensTurn(t *testing.T) {
	first, next := []byte("secret"), []byte("another")
	tokens, err := NewTokens(first)
	if err != nil {
		t.Fatal(err)
	}
	sessions := map[string]*model.Session{}
	add := func(name, by string, plain bool) {
		sessions[name] = &model.Session{Meta: kind.Meta{ID: name, CreatedAt: kind.MomentOf(time.Now())}, ServiceID: "service", Type: model.Bind, SignedBy: by, Plain: plain}
	}
	add("says nothing", "", false)
	add("of before", tokens.Current(), false)
	add("plain", tokens.Current(), true)
	had := map[string]string{}
	use := func(what string, gone []string, secrets ...[]byte) {
		t.Helper()
		if err := tokens.Use(secrets[0], secrets[1], secrets[2]); err != nil {
			t.Fatal(err)
		}
		for name, s := range sessions {
			token := tokens.Of(s)
			if slices.Contains(gone, name) {
				if _, ok := tokens.Find(one{s}, had[name]); ok {
					t.Errorf("%s: the token of %q is believed", what, name)
				}
				continue
			}
			if was, ok := had[name]; ok && was != token {
				t.Errorf("%s: %q has another token", what, name)
			}
			if _, ok := tokens.Find(one{s}, token); !ok || token == "" {
				t.Errorf("%s: the token of %q is not believed", what, name)
			}
			had[name] = token
		}
	}
	use("before", nil, first, nil, nil)
	use("when the next is known", nil, first, nil, next)
	if len(tokens.PublicKeys()) != 2 {
		t.Error("routers are not told of both")
	}
	use("when it takes its place", nil, next, first, nil)
	add("of now", tokens.Current(), false)
	add("plain of now", tokens.Current(), true)
	use("with both", nil, next, first, nil)
	use("when the first is gone", []string{"says nothing", "of before", "plain"}, next, nil, nil)
}

func BenchmarkTokens(b *testing.B) {
	tokens, err := NewTokens([]byte("secret"))
	if err != nil {
		b.Fatal(err)
	}
	s := &model.Session{Meta: kind.Meta{ID: "csession"}, ServiceID: "service"}
	token := tokens.Of(s)
	b.ReportAllocs()
	for b.Loop() {
		if _, ok := tokens.Find(one{s}, token); !ok {
			b.Fatal("not found")
		}
	}
}
