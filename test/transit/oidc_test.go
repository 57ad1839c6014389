package transit

import (
	"crypto/sha256"
	"crypto/tls"
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"netkeep.internal/internal/ops/config"
	"netkeep.internal/internal/wire"
	"netkeep.internal/internal/wire/message"
	"netkeep.internal/test/networktest"
	"netkeep.internal/test/servertest"
)

// tokens logs an identity in by OpenID Connect, with its certificate, and returns what
// it gets; with a refresh token it gets the next ones.
func (r *raw) tokens(refresh string) (got struct {
	Access  string `json:"access_token"`
	Refresh string `json:"refresh_token"`
}) {
	r.t.Helper()
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: r.roots, Certificates: []tls.Certificate{r.cert}}}
	defer transport.CloseIdleConnections()
	send := func(method, at string, form url.Values) *http.Response {
		req, err := http.NewRequestWithContext(r.t.Context(), method, r.n.Server.URL+at, strings.NewReader(form.Encode()))
		must(r.t, err)
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		resp, err := transport.RoundTrip(req)
		must(r.t, err)
		r.t.Cleanup(func() { _ = resp.Body.Close() })
		return resp
	}
	leads := func(resp *http.Response) url.Values {
		at, err := url.Parse(resp.Header.Get("Location"))
		must(r.t, err)
		return at.Query()
	}
	const redirect = "http://localhost:1/auth/callback"
	verifier := strings.Repeat("verifier", 6)
	sum := sha256.Sum256([]byte(verifier))
	form := url.Values{"grant_type": {"refresh_token"}, "client_id": {"openziti"}, "refresh_token": {refresh}}
	if refresh == "" {
		begun := leads(send("GET", "/oidc/authorize?"+url.Values{
			"client_id": {"openziti"}, "response_type": {"code"}, "scope": {"openid offline_access"}, "redirect_uri": {redirect},
			"code_challenge": {base64.RawURLEncoding.EncodeToString(sum[:])}, "code_challenge_method": {"S256"},
		}.Encode(), nil))
		shown := send("POST", "/oidc/login/cert", url.Values{"id": {begun.Get("authRequestID")}})
		form = url.Values{
			"grant_type": {"authorization_code"}, "client_id": {"openziti"}, "code_verifier": {verifier}, "redirect_uri": {redirect},
			"code": {leads(send("GET", shown.Header.Get("Location"), nil)).Get("code")},
		}
	}
	text, err := io.ReadAll(send("POST", "/oidc/oauth/token", form).Body)
	must(r.t, err)
	if must(r.t, json.Unmarshal(text, &got)); got.Access == "" {
		r.t.Fatalf("there are no tokens: %s", text)
	}
	return got
}

// TestAccessToken comes to a router with an access token, goes on with the next one, and
// is cut off when the session is gone that both name.
func TestAccessToken(t *testing.T) {
	n := networktest.New(t, servertest.Start(t, func(c *config.Config) { c.OIDC.Enabled = config.On }))
	router := n.AddRouter("one")
	service := n.AddService("echo", false)
	n.Echo(n.Client(n.AddIdentity("host")), service)
	identity := n.AddIdentity("me")
	me, other := login(t, n, identity), login(t, n, n.AddIdentity("other"))
	first, others := me.tokens(""), other.tokens("")

	stranger, err := other.connect(router, first.Access)
	must(t, err)
	cut(t, stranger) // the certificate is not of the session
	forged, err := me.connect(router, first.Access[:len(first.Access)-6]+"AAAAAA")
	must(t, err)
	cut(t, forged)

	conn, err := me.connect(router, first.Access)
	must(t, err)
	ask(t, conn, &wire.Frame{Type: message.TypeLatency, Seq: 1}) // it is in
	next := me.tokens(first.Refresh)
	for seq, renewal := range []struct {
		token string
		want  int32
	}{{next.Access, message.TypeTokenUpdated}, {others.Access, message.TypeTokenNotUpdated}, {"c0ffee", message.TypeTokenNotUpdated}} {
		if got := ask(t, conn, &wire.Frame{Type: message.TypeUpdateToken, Seq: int32(seq + 2), Body: []byte(renewal.token)}); got.Type != renewal.want {
			t.Errorf("another token is answered with %d, not %d: %s", got.Type, renewal.want, got.Body)
		}
	}
	mine := n.Server.Nobody(t).Presenting(&me.cert).With("Authorization", "Bearer "+next.Access)
	session := mine.Post(clientAPI+"sessions", M{"serviceId": mine.Get(clientAPI + "services").Want(200).List()[0]["id"], "type": "Dial"}).Want(201).Data()["token"].(string)
	h := wire.Headers{}
	h.SetUint32(message.HeaderConn, 7)
	if got := ask(t, conn, &wire.Frame{Type: message.TypeConnect, Seq: 10, Headers: h, Body: []byte(session)}); got.Type != message.TypeConnected {
		t.Errorf("a dial is answered with %d: %s", got.Type, got.Body)
	}
	if endSessions(n, identity) == 0 {
		t.Error("there was no session to end")
	}
	cut(t, conn)
}

// TestAccessTokenOfAnotherNetwork comes to a router with what somebody has got at another
// network.
func TestAccessTokenOfAnotherNetwork(t *testing.T) {
	network := func() (n *networktest.Network, router *networktest.Router, me *raw, service string) {
		n = networktest.New(t, servertest.Start(t, func(c *config.Config) { c.OIDC.Enabled = config.On }))
		router, service = n.AddRouter("one"), n.AddService("echo", false)
		n.Echo(n.Client(n.AddIdentity("host")), service)
		return n, router, login(t, n, n.AddIdentity("me")), service
	}
	n, router, me, service := network()
	_, _, theirs, elsewhere := network()
	mine, foreign := me.tokens(""), theirs.tokens("")
	t.Run("refused", func(t *testing.T) {
		for name, who := range map[string]*raw{
			"with the certificate of this one":  me,
			"with the certificate of the other": {t: t, n: n, cert: theirs.cert, roots: me.roots},
		} {
			for sort, token := range map[string]string{"an access token": foreign.Access, "a refresh token": foreign.Refresh, "a session's own token": theirs.token} {
				t.Run(sort+" "+name, func(t *testing.T) {
					t.Parallel() // each is looked for elsewhere for a while
					conn, err := who.connect(router, token)
					if err == nil { // or the handshake was refused
						cut(t, conn)
					}
				})
			}
		}
	})
	conn, err := me.connect(router, mine.Access)
	must(t, err)
	if got := ask(t, conn, &wire.Frame{Type: message.TypeUpdateToken, Seq: 1, Body: []byte(foreign.Access)}); got.Type != message.TypeTokenNotUpdated {
		t.Errorf("the token of another network is answered with %d: %s", got.Type, got.Body)
	}
	dial := func(conn uint32, session string) *wire.Frame {
		h := wire.Headers{}
		h.SetUint32(message.HeaderConn, conn)
		return &wire.Frame{Type: message.TypeConnect, Seq: int32(conn), Headers: h, Body: []byte(session)}
	}
	if got := ask(t, conn, dial(2, theirs.session(elsewhere, "Dial"))); got.Type == message.TypeConnected {
		t.Error("a dial with the session of another network is let through")
	}
	if got := ask(t, conn, dial(3, me.session(service, "Dial"))); got.Type != message.TypeConnected {
		t.Errorf("a dial with one's own session is answered with %d: %s", got.Type, got.Body)
	}
}
