package enroll_test

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"netkeep.internal/internal/client/enroll"
	"netkeep.internal/internal/ops/config"
	"netkeep.internal/internal/pki"
	"netkeep.internal/test/servertest"
)

// TestJoinWrongServer sends nothing to a server that did not sign the
// invitation.
func TestJoinWrongServer(t *testing.T) {
	var asked atomic.Int32
	impostor := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked.Add(1) }))
	defer impostor.Close()
	s := servertest.Start(t, func(c *config.Config) { c.Advertise = impostor.Listener.Addr().String() })
	_, text := invitation(t, s.Admin(t), M{"ott": true})
	_, _, err := meet(t, text, enroll.Options{})
	wantSentence(t, err, "did not sign this token", "ask for a new token")
	if n := asked.Load(); n != 0 {
		t.Errorf("%d requests were sent", n)
	}
}

// foreign is a server that invites by itself.
type foreign struct {
	*httptest.Server
	ca   *authority
	pair *tls.Certificate
}

// newForeign starts a server whose certificate has the names and dates of a
// template, and which tells whom to trust.
func newForeign(t *testing.T, template x509.Certificate, handler http.Handler) *foreign {
	t.Helper()
	f := &foreign{ca: newAuthority(t)}
	key := newKey(t)
	cert := f.ca.sign(&template, key.Public())
	f.pair = &tls.Certificate{Certificate: [][]byte{cert.Raw}, PrivateKey: key}
	if handler == nil {
		bundle, err := pki.PKCS7Text([]*x509.Certificate{f.ca.cert})
		if err != nil {
			t.Fatal(err)
		}
		handler = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/pkcs7-mime")
			_, _ = w.Write(bundle)
		})
	}
	f.Server = httptest.NewUnstartedServer(handler)
	f.TLS = &tls.Config{Certificates: []tls.Certificate{*f.pair}}
	f.Config.ErrorLog = log.New(io.Discard, "", 0) // clients that hang up are what is tested
	f.StartTLS()
	t.Cleanup(f.Close)
	return f
}

// invite signs an invitation.
func (f *foreign) invite(t *testing.T, claims jwt.MapClaims) string {
	t.Helper()
	all := jwt.MapClaims{"iss": f.URL, "em": "ott", "sub": "somebody", "jti": "00000000-0000-4000-8000-000000000000", "exp": time.Now().Add(time.Hour).Unix()}
	for k, v := range claims {
		all[k] = v
	}
	text, err := jwt.NewWithClaims(jwt.SigningMethodES256, all).SignedString(f.pair.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// TestJoinRefused has everything go wrong that may, and expects to be told what
// to do.
func TestJoinRefused(t *testing.T) {
	loopback := x509.Certificate{IPAddresses: []net.IP{net.ParseIP("127.0.0.1")}}
	good := newForeign(t, loopback, nil)
	past := newForeign(t, x509.Certificate{
		IPAddresses: loopback.IPAddresses, NotBefore: time.Now().Add(-3 * time.Hour), NotAfter: time.Now().Add(-2 * time.Hour),
	}, nil)
	named := newForeign(t, x509.Certificate{DNSNames: []string{"elsewhere.example.org"}}, nil)
	deaf := newForeign(t, loopback, http.NotFoundHandler())
	leading := newForeign(t, loopback, http.RedirectHandler("https://elsewhere.example.org/", http.StatusFound))
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	nowhere := "https://" + closed.Addr().String()
	_ = closed.Close()
	later := func(d time.Duration) func() time.Time { return func() time.Time { return time.Now().Add(d) } }
	for name, test := range map[string]struct {
		token string
		now   func() time.Time
		words []string
	}{
		"not a token":       {"hello", nil, []string{"no enrollment token"}},
		"enormous":          {strings.Repeat("a.", 20_000), nil, []string{"no enrollment token"}},
		"another JWT":       {good.invite(t, jwt.MapClaims{"em": ""}), nil, []string{"no enrollment token"}},
		"without a token":   {good.invite(t, jwt.MapClaims{"jti": ""}), nil, []string{"no enrollment token"}},
		"plain HTTP":        {good.invite(t, jwt.MapClaims{"iss": "http://127.0.0.1:1280"}), nil, []string{"not the https address"}},
		"no signature":      {unsigned(t, good.invite(t, nil)), nil, []string{"did not sign"}},
		"expired":           {good.invite(t, jwt.MapClaims{"exp": time.Now().Add(-time.Hour).Unix()}), nil, []string{"expired at", "refreshing"}},
		"expired router":    {good.invite(t, jwt.MapClaims{"em": "erott", "exp": 1}), nil, []string{"expired at", "re-enrolling"}},
		"expired, no one":   {good.invite(t, jwt.MapClaims{"iss": nowhere, "exp": 1}), nil, []string{"expired at"}},
		"clock ahead":       {good.invite(t, nil), later(61 * time.Minute), []string{"clock of this machine is 1h1m ", "ahead"}},
		"clock behind":      {good.invite(t, nil), later(-61 * time.Minute), []string{"clock of this machine is 1h1m ", "behind"}},
		"certificate past":  {past.invite(t, nil), nil, []string{"renew"}},
		"other name":        {named.invite(t, nil), nil, []string{"not for that name"}},
		"nobody there":      {good.invite(t, jwt.MapClaims{"iss": nowhere}), nil, []string{"cannot be reached", "nothing listens at", "is the controller running"}},
		"no such name":      {good.invite(t, jwt.MapClaims{"iss": "https://controller.invalid:1280"}), nil, []string{"controller.invalid", "is the name right?"}},
		"not a controller":  {deaf.invite(t, nil), nil, []string{"is it a controller?"}},
		"leads on":          {leading.invite(t, nil), nil, []string{"another address"}},
		"unknown way to us": {good.invite(t, jwt.MapClaims{"em": "magic"}), nil, []string{"magic", "newer version"}},
	} {
		t.Run(name, func(t *testing.T) {
			c, _, err := meet(t, test.token, enroll.Options{Now: test.now})
			if err == nil {
				_, err = c.Device(t.Context(), newKey(t), "")
			}
			wantSentence(t, err, test.words...)
			if test.token != "" && strings.Contains(err.Error(), "00000000-0000-4000") {
				t.Errorf("the error tells the token: %v", err)
			}
		})
	}
}

// unsigned takes the signature off a token.
func unsigned(t *testing.T, text string) string {
	t.Helper()
	claims := jwt.MapClaims{}
	if _, _, err := jwt.NewParser().ParseUnverified(text, claims); err != nil {
		t.Fatal(err)
	}
	none, err := jwt.NewWithClaims(jwt.SigningMethodNone, claims).SignedString(jwt.UnsafeAllowNoneSignatureType)
	if err != nil {
		t.Fatal(err)
	}
	return none
}

// TestJoinExpiredThere believes the controller, which knows best.
func TestJoinExpiredThere(t *testing.T) {
	answer := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusBadRequest)
		_, _ = w.Write([]byte(`{"error":{"code":"ENROLLMENT_EXPIRED","message":"no"}}`))
	})
	mux := http.NewServeMux()
	mux.Handle("/edge/client/v1/enroll", answer)
	f := newForeign(t, x509.Certificate{IPAddresses: []net.IP{net.ParseIP("127.0.0.1")}}, mux)
	bundle, err := pki.PKCS7Text([]*x509.Certificate{f.ca.cert})
	if err != nil {
		t.Fatal(err)
	}
	mux.HandleFunc("/edge/client/v1/.well-known/est/cacerts", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(bundle) })
	_, err = mustMeet(t, f.invite(t, nil), enroll.Options{}).Device(t.Context(), newKey(t), "")
	wantSentence(t, err, "expired at")
}

// TestJoinOtherAuthority enrolls with a controller whose TLS certificate is
// not from the network's own authority.
func TestJoinOtherAuthority(t *testing.T) {
	ca := newAuthority(t)
	key := newKey(t)
	cert := ca.sign(&x509.Certificate{IPAddresses: []net.IP{net.ParseIP("127.0.0.1")}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}}, key.Public())
	certFile, keyFile := keep(t, &tls.Certificate{Certificate: [][]byte{cert.Raw}, PrivateKey: key})
	s := servertest.Start(t, func(c *config.Config) {
		c.TLS.Cert, c.TLS.Key = strings.TrimPrefix(certFile, "file://"), strings.TrimPrefix(keyFile, "file://")
	})
	text := inviteAt(t, s, ca)
	_, _, err := meet(t, text, enroll.Options{Words: enroll.Flags})
	wantSentence(t, err, "--ca FILE")
	if _, _, err := meet(t, text, enroll.Options{}); err == nil || strings.Contains(err.Error(), "--") {
		t.Errorf("a program is told: %v", err)
	}
	who, err := mustMeet(t, text, enroll.Options{Trust: []*x509.Certificate{ca.cert}}).Device(t.Context(), newKey(t), "")
	if err != nil {
		t.Fatal(err)
	}
	if signIn(t, who) == "" {
		t.Error("nobody is logged in")
	}
}

// inviteAt invites somebody to a controller that a CA of somebody else vouches
// for.
func inviteAt(t *testing.T, s *servertest.Server, ca *authority) string {
	t.Helper()
	roots := x509.NewCertPool()
	roots.AddCert(ca.cert)
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}}
	defer transport.CloseIdleConnections()
	token := ""
	call := func(method, path, body string) M {
		req, err := http.NewRequestWithContext(t.Context(), method, s.URL+"/edge/management/v1/"+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("zt-session", token)
		resp, err := (&http.Client{Transport: transport, Timeout: time.Minute}).Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		var e struct{ Data M }
		if err := json.NewDecoder(resp.Body).Decode(&e); err != nil || resp.StatusCode > 299 {
			t.Fatalf("%s: status %d, %v", path, resp.StatusCode, err)
		}
		return e.Data
	}
	token = call("POST", "authenticate?method=password", `{"username":"`+servertest.Username+`","password":"`+servertest.Password+`"}`)["token"].(string)
	id := call("POST", "identities", `{"name":"who","type":"Device","isAdmin":false,"enrollment":{"ott":true}}`)["id"].(string)
	return call("GET", "identities/"+id, "")["enrollment"].(M)["ott"].(M)["jwt"].(string)
}
