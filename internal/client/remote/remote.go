// Package remote talks to a controller: where it is, why it is trusted, which
// session is used, and what its answers and errors mean. It knows nothing of
// kinds, and commands know nothing of HTTP.
package remote

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Root is where the Management API is.
const Root = "/edge/management/v1"

const (
	// patience is how long a controller may take to begin to answer. A list of
	// many changes takes a while.
	patience = 2 * time.Minute
	// dialTime is how long a connection may take, and nextTime if there is another
	// controller to be asked. That is also how long nothing may come over one before
	// the other end is asked whether it is there, and how long it may take to say so.
	dialTime = 10 * time.Second
	nextTime = 5 * time.Second
	// maxError is how much of an error's answer is read.
	maxError = 1 << 20
	// maxAnswer is more than a controller has to say at once.
	maxAnswer = 256 << 20
)

// Client is a network, at one or several controllers, and a session on it. Another
// controller is asked where the first does not answer, if that does no harm.
type Client struct {
	places   *places
	token    atomic.Pointer[string]
	revision atomic.Int64 // that was seen
	written  atomic.Int64 // that was made
	http     *http.Client
	most     int64 // bytes that an answer may have
	shown    atomic.Pointer[[]*x509.Certificate]

	// Renew, if set, gets a new session where the old one has ended. It must not
	// be set while requests are under way.
	Renew    func(ctx context.Context) (token string, err error)
	renewing sync.Mutex

	// Bearer, if set, is a JWT that the session wants to see with every request. It must
	// not be set while requests are under way.
	Bearer func(ctx context.Context) (string, error)
}

// Account is where a controller is, and what it knows us by.
type Account struct {
	// Address is where the API is, with the scheme and without a path.
	Address string `json:"address"`
	// Others is where it is at the other controllers of the network, and Prefer
	// which of all is to be asked first, if it is not that at Address.
	Others []string `json:"others,omitempty"`
	Prefer string   `json:"prefer,omitempty"`
	// Revision is what is known to have been changed.
	Revision int64 `json:"revision,omitempty"`
	// CA is the certificates that vouch for the controller, as PEM; those of
	// the system do if it is empty.
	CA string `json:"ca,omitempty"`
	// Token is what the API session is recognised by.
	Token string `json:"token,omitempty"`
	// Cert and Key are the files of a certificate to log in with, if there is
	// one; File is one identity file with both.
	Cert string `json:"cert,omitempty"`
	Key  string `json:"key,omitempty"`
	File string `json:"file,omitempty"`
	// Dialer makes connections, if not as usual.
	Dialer *net.Dialer `json:"-"`
}

// HasCertificate reports whether one logs in with a certificate.
func (a Account) HasCertificate() bool { return a.Cert != "" || a.File != "" }

// New returns a client of the controller that an account is on.
func New(a Account) (*Client, error) {
	config, err := trusting(a.CA)
	if err != nil {
		return nil, err
	}
	if a.HasCertificate() {
		pair, err := certificate(a)
		if err != nil {
			return nil, err
		}
		config.Certificates = []tls.Certificate{pair}
	}
	var c *Client
	config.VerifyConnection = func(state tls.ConnectionState) error {
		c.shown.Store(&state.PeerCertificates)
		return nil
	}
	c = WithTLS(a, config)
	return c, nil
}

// WithTLS is New with a configuration of one's own.
func WithTLS(a Account, config *tls.Config) *Client {
	c := &Client{places: newPlaces(a), most: maxAnswer}
	transport := &http.Transport{
		TLSClientConfig: config, Proxy: http.ProxyFromEnvironment, ForceAttemptHTTP2: true,
		TLSHandshakeTimeout: dialTime, ResponseHeaderTimeout: patience, WriteBufferSize: 64 << 10, ReadBufferSize: 64 << 10,
	}
	if a.Dialer != nil {
		transport.DialContext = a.Dialer.DialContext
	}
	if len(c.Places()) > 1 { // nobody waits long for one of several
		dialer := net.Dialer{}
		if a.Dialer != nil {
			dialer = *a.Dialer
		}
		dialer.Timeout = nextTime
		transport.DialContext = dialer.DialContext
		transport.TLSHandshakeTimeout = nextTime
		transport.HTTP2 = &http.HTTP2Config{SendPingTimeout: nextTime, PingTimeout: nextTime}
	}
	c.http = &http.Client{
		Transport: transport,
		// A redirect would take the token elsewhere.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	c.Use(a.Token)
	c.Since(a.Revision)
	return c
}

// Use has later calls use another session.
func (c *Client) Use(token string) { c.token.Store(&token) }

// Close lets go of connections that are kept for further requests.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// Request is one call of an operation.
type Request struct {
	Method string
	Path   string // below Root, or a whole path if it begins with two slashes
	Query  url.Values
	// Body is sent as JSON, unless it is a text or bytes; nil is none.
	Body any
	// Type is the content type of a text.
	Type string
	// Bearer is a JWT to show.
	Bearer string
	// Header is what else to send.
	Header map[string]string
	// Stranger says that no session is shown, and none is renewed for it.
	Stranger bool
	// Repeatable says that to make the request twice does no harm, though it is
	// no mere look.
	Repeatable bool

	stream bool // whether the answer goes on for as long as one likes
}

// Call makes a request and reads the answer's data into out, which may be nil.
func (c *Client) Call(ctx context.Context, r Request, out any) error {
	body, err := c.open(ctx, r)
	if err != nil {
		return err
	}
	defer body.Close()
	return c.unsure(r, c.read(body, out))
}

// unsure says of a change whose answer broke off that it may have been made.
func (c *Client) unsure(r Request, err error) error {
	if errors.Is(err, ErrUnreachable) && !r.looks() {
		return fmt.Errorf("%w; %w: look with netkeep get, or do the same again", err, ErrOpen)
	}
	return err
}

// read reads an answer's data.
func (c *Client) read(body io.Reader, out any) (err error) {
	if out == nil {
		_, err = io.Copy(io.Discard, body)
		return c.broken(err)
	}
	if text, ok := out.(*[]byte); ok {
		*text, err = io.ReadAll(body)
		return c.broken(err)
	}
	envelope := struct {
		Data any            `json:"data"`
		Meta jsontext.Value `json:"meta"`
	}{Data: out}
	return c.broken(json.UnmarshalRead(body, &envelope))
}

// Get is a Call that only looks.
func (c *Client) Get(ctx context.Context, path string, query url.Values, out any) error {
	return c.Call(ctx, Request{Method: http.MethodGet, Path: path, Query: query}, out)
}

// Post is a Call with a body.
func (c *Client) Post(ctx context.Context, path string, in, out any) error {
	return c.Call(ctx, Request{Method: http.MethodPost, Path: path, Body: in}, out)
}

// open makes a request and returns the answer's body if it is one of success.
func (c *Client) open(ctx context.Context, r Request) (io.ReadCloser, error) {
	if r.Stranger {
		return c.send(ctx, r, "")
	}
	if c.Bearer != nil && r.Bearer == "" {
		bearer, err := c.Bearer(ctx)
		if err != nil {
			return nil, err
		}
		r.Bearer = bearer
	}
	token := *c.token.Load()
	body, err := c.send(ctx, r, token)
	if !errors.Is(err, ErrDenied) {
		return body, err
	}
	switch fresh, again := c.renewed(ctx, token); {
	case again != nil:
		return nil, errors.Join(err, again)
	case fresh != token:
		return c.send(ctx, r, fresh)
	}
	return nil, err
}

// renewed returns a session in the place of one that has ended; the same if there
// is no other. Requests that find out at the same time share a new one.
func (c *Client) renewed(ctx context.Context, ended string) (string, error) {
	c.renewing.Lock()
	defer c.renewing.Unlock()
	if token := *c.token.Load(); token != ended || c.Renew == nil {
		return token, nil
	}
	renew := c.Renew
	c.Renew = nil // once is enough
	token, err := renew(ctx)
	if err == nil {
		c.Use(token)
	}
	return token, err
}

// send makes a request at the controller that answered last, or at the next if it
// does not and that does no harm.
func (c *Client) send(ctx context.Context, r Request, token string) (io.ReadCloser, error) {
	var first error
	for _, at := range c.places.all() {
		shown := c.revision.Load()
		body, next, err := c.sendTo(ctx, at, r, token, shown)
		if c.outrun(err, shown) {
			body, next, err = c.sendTo(ctx, at, r, token, 0)
		}
		if !next {
			if !errors.Is(err, ErrUnreachable) {
				c.places.prefer(at)
			}
			return body, err
		}
		if first == nil {
			first = err
		}
		if ctx.Err() != nil {
			break
		}
	}
	if all := c.Places(); len(all) > 1 && errors.Is(first, ErrUnreachable) && ctx.Err() == nil {
		return nil, fmt.Errorf("none of the %d controllers answers: %w; netkeep status --data DIR on the machine of one says what it lacks", len(all), first)
	}
	return nil, first
}

// sendTo makes a request at one controller. next says that it may be made at
// another: nobody has got it, or nobody minds to get it twice. Who is there and not
// trusted is nothing to pass over.
func (c *Client) sendTo(ctx context.Context, at string, r Request, token string, revision int64) (body io.ReadCloser, next bool, err error) {
	var left atomic.Bool // this machine
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { left.Store(true) }})
	req, err := r.request(ctx, at)
	if err != nil {
		return nil, false, err
	}
	if token != "" {
		req.Header.Set("net-session", token)
	}
	if revision > 0 {
		req.Header.Set(revisionHeader, strconv.FormatInt(revision, 10))
	}
	resp, err := c.http.Do(req)
	if err != nil {
		open := left.Load() && !r.looks()
		return nil, !open && !trustProblem(err), unreachable(at, err, open)
	}
	c.note(r, resp.Header)
	if r.stream && resp.StatusCode/100 == 2 {
		if !isStream(resp) {
			resp.Body.Close()
			return nil, false, ErrNoStream
		}
		return resp.Body, false, nil
	}
	if body = (&answer{resp.Body, at, c.most, c.most}); resp.StatusCode/100 == 2 && !r.looks() {
		return body, false, nil
	}
	defer resp.Body.Close()
	if resp.StatusCode/100 == 2 { // and may break off, which another need not
		whole, err := io.ReadAll(body)
		if err = c.broken(err); err != nil {
			return nil, errors.Is(err, ErrUnreachable), err
		}
		return io.NopCloser(bytes.NewReader(whole)), false, nil
	}
	return nil, r.looks() && resp.StatusCode == http.StatusServiceUnavailable, refusal(at, resp)
}

// answer is a body that may have so many bytes and no more: whoever is at the
// other end must not fill our memory.
type answer struct {
	io.ReadCloser
	address    string
	most, left int64
}

func (a *answer) Read(p []byte) (int, error) {
	// One byte more than may come tells whether there is more.
	n, err := a.ReadCloser.Read(p[:min(int64(len(p)), a.left+1)])
	if a.left -= int64(n); a.left < 0 {
		return 0, &tooLarge{a.address, a.most}
	}
	return n, err
}

// request is the request as one controller gets it.
func (r Request) request(ctx context.Context, address string) (*http.Request, error) {
	path, whole := strings.CutPrefix(r.Path, "//")
	if whole {
		path = "/" + path
	} else {
		path = Root + r.Path
	}
	if len(r.Query) > 0 {
		path += "?" + r.Query.Encode()
	}
	var body io.Reader
	contentType := r.Type
	switch b := r.Body.(type) {
	case nil:
	case string:
		body = strings.NewReader(b)
	case []byte:
		body = bytes.NewReader(b)
	default:
		data, err := json.Marshal(b, json.Deterministic(true))
		if err != nil {
			return nil, err
		}
		body, contentType = bytes.NewReader(data), "application/json"
	}
	req, err := http.NewRequestWithContext(ctx, r.Method, address+path, body)
	if err != nil {
		return nil, fmt.Errorf("%q is no address of a controller: %w", address, err)
	}
	req.Header.Set("Accept", "application/json")
	if contentType != "" {
		req.Header.Set("Content-Type", contentType)
	}
	for name, value := range r.Header {
		req.Header.Set(name, value)
	}
	if r.Bearer != "" {
		req.Header.Set("Authorization", "Bearer "+r.Bearer)
	}
	return req, nil
}
