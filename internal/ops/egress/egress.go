// Package egress is the only way out of the program: the HTTP client that
// fetches what others publish, such as the keys of a token issuer, and that sends
// what an operator wants elsewhere. Whoever may
// set such an address could otherwise aim the program at its own network or
// hang it on a silent server, so the client owns the rules on which addresses
// may be reached, and bounds time, size and redirects. The one thing that goes
// another way is traces, to where the operator says. It imports nothing of
// ours.
package egress

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"
)

const (
	defaultTimeout  = 5 * time.Second
	defaultMaxBytes = 1 << 20
	maxHeaderBytes  = 64 << 10
	maxRedirects    = 3
)

// The reasons for which a fetch fails on purpose. Failures of the network keep
// their own errors, and a missed deadline is [context.DeadlineExceeded].
var (
	ErrURL      = errors.New("URL is not acceptable")
	ErrAddress  = errors.New("address is refused")
	ErrRedirect = errors.New("redirect is refused")
	ErrStatus   = errors.New("status is not 200")
	ErrEncoding = errors.New("content encoding was not asked for")
	ErrTooLarge = errors.New("answer is too large")
	ErrResponse = errors.New("answer is not valid HTTP")
)

// Options says how a [Client] behaves. The zero value is ready to use.
type Options struct {
	// Strict refuses private and loopback addresses too.
	Strict bool
	// Timeout bounds a whole fetch, redirects and body included; 5 s unless
	// positive.
	Timeout time.Duration
	// MaxBytes bounds the body; 1 MiB unless positive.
	MaxBytes int64
	// Roots are believed besides the system's roots, and Trust in the place of both.
	Roots []*x509.Certificate
	Trust *x509.CertPool
	// Certificate is shown to servers that ask for one.
	Certificate func(*tls.CertificateRequestInfo) (*tls.Certificate, error)
	// Resolver finds the addresses of a name; the system's resolver if nil.
	Resolver func(ctx context.Context, network, host string) ([]netip.Addr, error)
	// DialContext connects to an address that has passed the rules; the
	// system's dialer if nil.
	DialContext func(ctx context.Context, network, address string) (net.Conn, error)
}

// Client fetches URLs under the rules of this package. It keeps no
// connections, cookies or other state, uses no proxy, and is safe for
// concurrent use.
type Client struct {
	strict   bool
	timeout  time.Duration
	maxBytes int64
	tls      *tls.Config
	lookup   func(ctx context.Context, network, host string) ([]netip.Addr, error)
	dial     func(ctx context.Context, network, address string) (net.Conn, error)
}

// New returns a client that behaves as the options say.
func New(o Options) *Client {
	c := &Client{
		strict:   o.Strict,
		timeout:  o.Timeout,
		maxBytes: o.MaxBytes,
		tls:      &tls.Config{MinVersion: tls.VersionTLS12},
		lookup:   o.Resolver,
		dial:     o.DialContext,
	}
	if c.timeout <= 0 {
		c.timeout = defaultTimeout
	}
	if c.maxBytes <= 0 {
		c.maxBytes = defaultMaxBytes
	}
	if c.lookup == nil {
		c.lookup = net.DefaultResolver.LookupNetIP
	}
	if c.dial == nil {
		c.dial = new(net.Dialer).DialContext
	}
	c.tls.GetClientCertificate = o.Certificate
	switch {
	case o.Trust != nil:
		c.tls.RootCAs = o.Trust
	case len(o.Roots) > 0:
		c.tls.RootCAs = poolWith(o.Roots)
	}
	return c
}

// poolWith returns the system's roots and more. Where the system's cannot be
// read only the others count, which can refuse a server but never admit one.
func poolWith(more []*x509.Certificate) *x509.CertPool {
	pool, err := x509.SystemCertPool()
	if err != nil {
		pool = x509.NewCertPool()
	}
	for _, cert := range more {
		pool.AddCert(cert)
	}
	return pool
}

// Get fetches a URL and returns the whole body and the header of a 200 answer.
// Its errors name the host and the reason, but never the path or query of the
// URL or anything the server wrote.
func (c *Client) Get(ctx context.Context, rawURL string) ([]byte, http.Header, error) {
	target, err := parse(rawURL)
	if err != nil {
		return nil, nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	return c.fetch(ctx, target, c.strict, maxRedirects)
}

// parse reads a URL and refuses what this package does not fetch. The parser's
// own errors quote the URL and are dropped.
func parse(rawURL string) (*url.URL, error) {
	u, err := url.Parse(rawURL)
	if err != nil {
		return nil, fmt.Errorf("%w: malformed", ErrURL)
	}
	return u, check(u)
}

// Judge says why nothing can ever be sent to a URL, as far as that can be told without
// asking anybody: the addresses of a name are judged whenever something is sent.
func (c *Client) Judge(rawURL string) error {
	target, err := parse(rawURL)
	if err != nil {
		return err
	}
	host := target.Hostname()
	if strings.EqualFold(strings.TrimSuffix(host, "."), "localhost") {
		host = "127.0.0.1"
	}
	if literal, err := netip.ParseAddr(host); err == nil {
		return judge(plain(literal), c.strict)
	}
	return nil
}

func check(u *url.URL) error {
	switch {
	case u.Scheme != "http" && u.Scheme != "https":
		return fmt.Errorf("%w: scheme must be http or https", ErrURL)
	case u.Hostname() == "":
		return fmt.Errorf("%w: no host", ErrURL)
	case u.User != nil:
		return fmt.Errorf("%w: credentials for %q", ErrURL, u.Host)
	}
	return nil
}

// fetch visits the target and the redirects it leads to. Once publicOnly is
// set it stays set, so that no detour leads from outside to an inner address.
func (c *Client) fetch(ctx context.Context, target *url.URL, publicOnly bool, redirects int) ([]byte, http.Header, error) {
	fail := func(err error) ([]byte, http.Header, error) {
		return nil, nil, fmt.Errorf("fetching from %q: %w", target.Host, err)
	}
	addrs, err := c.resolve(ctx, target.Hostname(), publicOnly)
	if err != nil {
		return fail(err)
	}
	resp, err := c.exchange(ctx, target, addrs)
	if err != nil {
		return fail(explain(err))
	}
	defer resp.Body.Close()
	if isRedirect(resp.StatusCode) {
		next, err := follow(resp, target, redirects)
		if err != nil {
			return fail(err)
		}
		resp.Body.Close()
		return c.fetch(ctx, next, publicOnly || slices.ContainsFunc(addrs, isPublic), redirects-1)
	}
	body, err := c.read(resp)
	if err != nil {
		return fail(err)
	}
	return body, resp.Header, nil
}

// resolve returns the addresses of a host, each of which has passed the rules:
// a single bad one among them is enough to refuse the host.
func (c *Client) resolve(ctx context.Context, host string, publicOnly bool) ([]netip.Addr, error) {
	var addrs []netip.Addr
	if literal, err := netip.ParseAddr(host); err == nil {
		addrs = append(addrs, literal)
	} else if addrs, err = c.lookup(ctx, "ip", host); err != nil {
		return nil, fmt.Errorf("resolving the host: %w", err)
	}
	judged := make([]netip.Addr, 0, len(addrs))
	for _, a := range addrs {
		a = plain(a)
		if err := judge(a, publicOnly); err != nil {
			return nil, err
		}
		judged = append(judged, a)
	}
	if len(judged) == 0 {
		return nil, fmt.Errorf("%w: host has none", ErrAddress)
	}
	return judged, nil
}

// exchange sends one request to one of the addresses and returns once the
// header of the answer is there.
func (c *Client) exchange(ctx context.Context, target *url.URL, addrs []netip.Addr) (*http.Response, error) {
	req := &http.Request{
		Method: http.MethodGet,
		URL:    target,
		Header: http.Header{"User-Agent": {"netkeep"}, "Accept-Encoding": {"identity"}},
	}
	return c.transport(ctx, addrs).RoundTrip(req.WithContext(ctx))
}

// transport carries one exchange with one of the addresses.
func (c *Client) transport(ctx context.Context, addrs []netip.Addr) *http.Transport {
	return &http.Transport{
		// The transport detaches its dials from the request, so they are bound
		// to this fetch here, and to addresses that were judged rather than to
		// a name that would be resolved again.
		DialContext: func(_ context.Context, network, address string) (net.Conn, error) {
			return c.dialAny(ctx, network, address, addrs)
		},
		TLSClientConfig:        c.tls.Clone(),
		TLSHandshakeTimeout:    c.timeout,
		DisableKeepAlives:      true,
		DisableCompression:     true,
		MaxResponseHeaderBytes: maxHeaderBytes,
	}
}

// dialAny connects to the first address that answers. Each gets its share of
// the time, so that a dead one does not hide the next.
func (c *Client) dialAny(ctx context.Context, network, address string, addrs []netip.Addr) (net.Conn, error) {
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	for _, a := range addrs {
		share, cancel := context.WithTimeout(ctx, c.timeout/time.Duration(len(addrs)))
		var conn net.Conn
		conn, err = c.dial(share, network, net.JoinHostPort(a.String(), port))
		cancel()
		if err == nil {
			return conn, nil
		}
	}
	return nil, err
}

func isRedirect(status int) bool {
	switch status {
	case http.StatusMovedPermanently, http.StatusFound, http.StatusSeeOther,
		http.StatusTemporaryRedirect, http.StatusPermanentRedirect:
		return true
	}
	return false
}

// follow returns where a redirect leads, if it may be followed at all. The
// address behind it is judged when it is visited.
func follow(resp *http.Response, from *url.URL, left int) (*url.URL, error) {
	if left == 0 {
		return nil, fmt.Errorf("%w: more than %d", ErrRedirect, maxRedirects)
	}
	location := resp.Header.Get("Location")
	if location == "" {
		return nil, fmt.Errorf("%w: no target", ErrRedirect)
	}
	next, err := from.Parse(location)
	if err != nil {
		return nil, fmt.Errorf("%w: malformed target", ErrRedirect)
	}
	if err := check(next); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrRedirect, err)
	}
	if from.Scheme == "https" && next.Scheme == "http" {
		return nil, fmt.Errorf("%w: from https to http", ErrRedirect)
	}
	return next, nil
}

// read returns the whole body of a good answer. A body that was cut short is
// an error like one that is too long.
func (c *Client) read(resp *http.Response) ([]byte, error) {
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%w: %d", ErrStatus, resp.StatusCode)
	}
	encoding := resp.Header.Get("Content-Encoding")
	if encoding != "" && !strings.EqualFold(encoding, "identity") {
		return nil, ErrEncoding
	}
	body, err := io.ReadAll(http.MaxBytesReader(nil, resp.Body, c.maxBytes))
	if _, over := errors.AsType[*http.MaxBytesError](err); over {
		return nil, fmt.Errorf("%w: over %d bytes", ErrTooLarge, c.maxBytes)
	}
	if err != nil {
		return nil, explain(err)
	}
	return body, nil
}

// explain keeps what the network and TLS say of a failed exchange and drops
// the rest, in which the transport quotes the peer: a banner of a service that
// nobody outside should see, or our own query sent back.
func explain(err error) error {
	if e, ok := errors.AsType[net.Error](err); ok && e.Timeout() {
		return fmt.Errorf("no complete answer in time: %w", context.DeadlineExceeded)
	}
	_, network := errors.AsType[*net.OpError](err)
	_, certificate := errors.AsType[*tls.CertificateVerificationError](err)
	_, record := errors.AsType[tls.RecordHeaderError](err)
	switch {
	case network, certificate, record, errors.Is(err, context.Canceled):
		return err
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return fmt.Errorf("connection ended early: %w", io.ErrUnexpectedEOF)
	}
	return ErrResponse
}
