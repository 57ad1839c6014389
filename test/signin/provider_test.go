package signin

import (
	"context"
	"crypto/rand"
	"encoding/pem"
	"fmt"
	"html"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/zitadel/oidc/v3/example/server/storage"
	"github.com/zitadel/oidc/v3/pkg/oidc"
	"github.com/zitadel/oidc/v3/pkg/op"
	"golang.org/x/text/language"
)

const (
	application = "netkeep"
	person      = "id2" // as the provider calls who it knows
	username    = "ann"
	password    = "verysecure"
)

// provider is an OpenID provider over TLS, with a page to log in.
type provider struct {
	*httptest.Server
	store *store
	roots string // file with the certificate that vouches for it
	away  atomic.Bool
	known atomic.Bool // whether the browser has logged in before, and is not asked again
}

// store is where the provider keeps what it knows, with lives of tokens of one's choice.
type store struct {
	*storage.Storage
	life    time.Duration
	renewed atomic.Int64 // how often newer tokens were given
	groups  atomic.Pointer[[]string]
}

// users are whom the provider knows.
type users struct{}

var ann = &storage.User{ID: person, Username: username, Password: password, FirstName: "Ann", LastName: "Example", Email: "ann@example.com", EmailVerified: true}

func (users) ExampleClientID() string { return "service" }

func (users) GetUserByID(id string) *storage.User {
	if id == ann.ID {
		return ann
	}
	return nil
}

func (users) GetUserByUsername(name string) *storage.User {
	if name == ann.Username {
		return ann
	}
	return nil
}

// GetPrivateClaimsFromScopes is what tokens say of people beside who they are.
func (s *store) GetPrivateClaimsFromScopes(context.Context, string, string, []string) (map[string]any, error) {
	return map[string]any{
		"email": ann.Email, "email_verified": ann.EmailVerified, "preferred_username": ann.Username, "realm_access": map[string]any{"roles": *s.groups.Load()},
	}, nil
}

func (s *store) CreateAccessToken(ctx context.Context, r op.TokenRequest) (string, time.Time, error) {
	id, _, err := s.Storage.CreateAccessToken(ctx, r)
	return id, time.Now().Add(s.life), err
}

func (s *store) CreateAccessAndRefreshTokens(ctx context.Context, r op.TokenRequest, old string) (string, string, time.Time, error) {
	if old != "" {
		s.renewed.Add(1)
	}
	id, fresh, _, err := s.Storage.CreateAccessAndRefreshTokens(ctx, r, old)
	return id, fresh, time.Now().Add(s.life), err
}

func (s *store) GetClientByClientID(ctx context.Context, id string) (op.Client, error) {
	c, err := s.Storage.GetClientByClientID(ctx, id)
	if err != nil {
		return nil, err
	}
	return laptop{c, s.life}, nil
}

// laptop is an application without a secret, whose tokens others can read.
type laptop struct {
	op.Client
	life time.Duration
}

func (l laptop) LoginURL(id string) string           { return "/login?id=" + url.QueryEscape(id) }
func (l laptop) AccessTokenType() op.AccessTokenType { return op.AccessTokenTypeJWT }
func (l laptop) IDTokenLifetime() time.Duration      { return l.life }
func (l laptop) GrantTypes() []oidc.GrantType {
	return []oidc.GrantType{oidc.GrantTypeCode, oidc.GrantTypeRefreshToken, oidc.GrantTypeDeviceCode}
}

func newProvider(t *testing.T, life time.Duration) *provider {
	t.Helper()
	p := &provider{}
	server := httptest.NewUnstartedServer(nil)
	issuer := "https://" + server.Listener.Addr().String()
	p.store = &store{Storage: storage.NewStorage(users{}), life: life}
	p.store.groups.Store(&[]string{"eng-web", "ops", "lunch"})
	config := &op.Config{
		CodeMethodS256: true, GrantTypeRefreshToken: true, SupportedUILocales: []language.Tag{language.English}, DefaultLogoutRedirectURI: "/out",
		DeviceAuthorization: op.DeviceAuthorizationConfig{Lifetime: 5 * time.Minute, PollInterval: time.Second, UserFormPath: "/device", UserCode: op.UserCodeBase20},
	}
	_, _ = rand.Read(config.CryptoKey[:])
	handler, err := op.NewProvider(config, p.store, op.StaticIssuer(issuer), op.WithLogger(slog.New(slog.DiscardHandler)))
	if err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.Handle("/", handler)
	back := op.AuthCallbackURL(handler)
	mux.Handle("GET /login", op.NewIssuerInterceptor(handler.IssuerFromRequest).HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if id := r.FormValue("id"); p.known.Load() && p.store.CheckUsernamePassword(username, password, id) == nil {
			http.Redirect(w, r, back(r.Context(), id), http.StatusFound)
			return
		}
		fmt.Fprintf(w, `<form method="post" action="/login"><input type="hidden" name="id" value="%s"><input name="username"><input name="password" type="password"><button>In</button></form>`,
			html.EscapeString(r.FormValue("id")))
	}))
	mux.Handle("POST /login", op.NewIssuerInterceptor(handler.IssuerFromRequest).HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		id := r.FormValue("id")
		if err := p.store.CheckUsernamePassword(r.FormValue("username"), r.FormValue("password"), id); err != nil {
			http.Error(w, err.Error(), http.StatusForbidden)
			return
		}
		http.Redirect(w, r, back(r.Context(), id), http.StatusFound)
	}))
	server.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if p.away.Load() {
			panic(http.ErrAbortHandler)
		}
		mux.ServeHTTP(w, r)
	})
	server.StartTLS()
	t.Cleanup(server.Close)
	p.Server = server
	p.roots = filepath.Join(t.TempDir(), "roots.pem")
	if err := os.WriteFile(p.roots, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	return p
}

// actsAsBrowser is the variable by which this program knows that it was started as one.
const actsAsBrowser = "NETKEEP_TEST_BROWSER"

var hidden = regexp.MustCompile(`name="id" value="([^"]*)"`)

// browse is a browser with a person at it: it logs in at an address, and follows where that
// leads to.
func browse(address string) error {
	roots, err := os.ReadFile(os.Getenv("SSL_CERT_FILE"))
	if err != nil || !slices.Contains(os.Args, address) || len(roots) == 0 {
		return fmt.Errorf("there is nobody to trust: %w", err)
	}
	client := &http.Client{Timeout: time.Minute}
	resp, err := client.Get(address)
	if err != nil {
		return err
	}
	page, _ := io.ReadAll(resp.Body)
	_ = resp.Body.Close()
	form := hidden.FindSubmatch(page)
	if form == nil {
		return fmt.Errorf("there is no form to log in: %s", page)
	}
	at := *resp.Request.URL
	at.Path, at.RawQuery = "/login", ""
	resp, err = client.PostForm(at.String(), url.Values{"id": {html.UnescapeString(string(form[1]))}, "username": {username}, "password": {password}})
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	page, _ = io.ReadAll(resp.Body)
	if where := resp.Request.URL; where.Hostname() != "127.0.0.1" || where.Path != "/auth/callback" || !strings.Contains(string(page), "You may close this page") {
		return fmt.Errorf("the browser ends at %s: %s", where, page)
	}
	return nil
}

func TestMain(m *testing.M) {
	if os.Getenv(actsAsBrowser) != "" {
		if err := browse(os.Args[len(os.Args)-1]); err != nil {
			_ = os.WriteFile(os.Getenv(actsAsBrowser), []byte(err.Error()), 0o600)
			os.Exit(1)
		}
		os.Exit(0)
	}
	storage.RegisterClients(storage.NativeClient(application, "http://127.0.0.1/auth/callback"))
	os.Exit(m.Run())
}
