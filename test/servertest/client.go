package servertest

import (
	"bytes"
	"crypto/tls"
	"maps"
	"net/http"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"

	"netkeep.internal/internal/web/api"
)

// M is a JSON object.
type M = map[string]any

// Raw is a request body that is sent as it is.
type Raw string

// Odd is a Raw body in the words and spellings of somebody else's tool: it is
// to be accepted, though the specification does not ask anybody to send it.
type Odd string

// Client calls a controller on behalf of one test.
type Client struct {
	// Token is the session token that every request carries, if not empty.
	Token string
	// Header is sent with every request.
	Header http.Header
	// Outage says that the controller may fail for want of its store.
	Outage bool

	t      testing.TB
	server *Server
	http   *http.Client
}

// Nobody returns a client without a session.
func (s *Server) Nobody(t testing.TB) *Client {
	s.follow(t)
	return &Client{Header: http.Header{}, t: t, server: s, http: s.http}
}

// Admin returns a client that is logged in as the first admin. All share one
// session; a test that ends it must log in by itself.
func (s *Server) Admin(t testing.TB) *Client {
	t.Helper()
	s.login.Do(func() { s.token = s.Login(t, Username, Password).Token })
	c := s.Nobody(t)
	c.Token = s.token
	return c
}

// Login returns a client that is logged in.
func (s *Server) Login(t testing.TB, username, password string) *Client {
	t.Helper()
	c := s.Nobody(t)
	a := c.Post("authenticate?method=password", M{"username": username, "password": password}).Want(http.StatusOK)
	c.Token = a.Header.Get("net-session")
	return c
}

// With returns a client that sends a header, or with no values, does not.
func (c *Client) With(name string, values ...string) *Client {
	other := *c
	other.Header = maps.Clone(c.Header)
	other.Header[http.CanonicalHeaderKey(name)] = values
	return &other
}

// Presenting returns a client that shows a certificate chain, whatever the
// controller says it accepts.
func (c *Client) Presenting(cert *tls.Certificate) *Client {
	other := *c
	config := c.server.TLS()
	config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return cert, nil }
	other.http = newHTTP(config)
	c.t.Cleanup(other.http.CloseIdleConnections)
	return &other
}

// For returns a client that reports to another test, a sub-test say.
func (c *Client) For(t testing.TB) *Client {
	c.server.follow(t)
	other := *c
	other.t = t
	return &other
}

// Get reads a path: one that begins with a slash is below the server's root,
// any other below that of the Management API. So it is with all methods.
func (c *Client) Get(path string) *Answer {
	c.t.Helper()
	return c.Do(http.MethodGet, path, nil)
}

// Post sends a body, which is a value to write as JSON, or Raw or Odd.
func (c *Client) Post(path string, body any) *Answer {
	c.t.Helper()
	return c.Do(http.MethodPost, path, body)
}

// Put replaces what is at a path.
func (c *Client) Put(path string, body any) *Answer {
	c.t.Helper()
	return c.Do(http.MethodPut, path, body)
}

// Patch changes what is at a path.
func (c *Client) Patch(path string, body any) *Answer {
	c.t.Helper()
	return c.Do(http.MethodPatch, path, body)
}

// Delete removes what is at a path.
func (c *Client) Delete(path string) *Answer {
	c.t.Helper()
	return c.Do(http.MethodDelete, path, nil)
}

// Do sends a request and checks the answer against the specification. It may
// be called by several goroutines. A request without an answer fails the test
// and returns status 0.
func (c *Client) Do(method, path string, body any) *Answer {
	c.t.Helper()
	if !strings.HasPrefix(path, "/") {
		path = api.ManagementRoot + "/" + path
	}
	data := c.encode(body)
	req, err := http.NewRequest(method, c.server.URL+path, bytes.NewReader(data))
	if err != nil {
		c.t.Fatal(err)
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if c.Token != "" {
		req.Header.Set("net-session", c.Token)
	}
	maps.Copy(req.Header, c.Header)
	a := &Answer{t: c.t, what: method + " " + path}
	if err := a.receive(c.http, req); err != nil {
		c.t.Errorf("%s: %v", a.what, err)
		return a
	}
	_, odd := body.(Odd)
	c.judge(req, data, odd, a)
	c.server.ledger.note(req, data, a)
	return a
}

func (c *Client) encode(body any) []byte {
	c.t.Helper()
	switch b := body.(type) {
	case nil:
		return nil
	case Raw:
		return []byte(b)
	case Odd:
		return []byte(b)
	}
	data, err := json.Marshal(body)
	if err != nil {
		c.t.Fatal(err)
	}
	return data
}

// judge checks what came back, and that what was accepted was allowed, unless
// it is known to be odd.
func (c *Client) judge(req *http.Request, sent []byte, odd bool, a *Answer) {
	c.t.Helper()
	if a.Header.Get("Content-Type") == "application/json" && len(a.Raw) > 0 {
		if err := json.Unmarshal(a.Raw, &a.JSON); err != nil {
			c.t.Errorf("%s: the answer is not JSON: %v\n%.2000s", a.what, err, a.Raw)
			return
		}
	}
	if req.Method == http.MethodOptions {
		return
	}
	if got := a.Header.Values("Cache-Control"); len(got) != 1 || got[0] != "no-store" {
		c.t.Errorf("%s: Cache-Control is %q: somebody between may keep the answer and whatever secrets are in it", a.what, got)
	}
	if c.Outage && a.Status == http.StatusServiceUnavailable {
		return
	}
	// Who asks for some members alone does not get the others.
	some := a.Status == http.StatusOK && req.URL.Query().Has("fields")
	if err := c.server.specs.check(req.Method, req.URL.Path, a); err != nil && !some {
		c.t.Errorf("%s: status %d is not as specified: %v\n%.2000s", a.what, a.Status, err, a.Raw)
	}
	var body any
	if odd || a.Status >= 300 || len(sent) == 0 || json.Unmarshal(sent, &body) != nil {
		return
	}
	if err := c.server.specs.checkBody(req.Method, req.URL.Path, body); err != nil {
		c.t.Errorf("%s: a body was accepted that the specification forbids: %v\n%s", a.what, err, sent)
	}
}
