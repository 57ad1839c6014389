package egress

import (
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"time"
)

// StatusError is an answer that is no success.
type StatusError struct {
	Status int
	// After is how long the server asks to wait; 0 if it does not say.
	After time.Duration
}

func (e *StatusError) Error() string { return fmt.Sprintf("status is %d", e.Status) }

// maxAfter is how long a server can have us wait.
const maxAfter = 5 * time.Minute

// afterwards is how long the rest of an answer may take that is known to be a success.
const afterwards = time.Second

// Post sends a body to a URL, and returns what the server answers if that is a
// success. A redirect is none: what was meant for one server goes to no other. Its
// errors are as those of Get; an answer that is no success is a [StatusError]. What was
// taken was taken, however much the server has to say of it: of an answer that is too
// long or does not end, what came is returned.
func (c *Client) Post(ctx context.Context, rawURL string, header http.Header, body []byte) ([]byte, error) {
	target, err := parse(rawURL)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	fail := func(err error) ([]byte, error) { return nil, fmt.Errorf("sending to %q: %w", target.Host, err) }
	addrs, err := c.resolve(ctx, target.Hostname(), c.strict)
	if err != nil {
		return fail(err)
	}
	resp, err := c.send(ctx, target, addrs, header, body)
	if err != nil {
		return fail(explain(err))
	}
	defer resp.Body.Close()
	if resp.StatusCode/100 != 2 {
		return fail(&StatusError{Status: resp.StatusCode, After: after(resp.Header.Get("Retry-After"))})
	}
	defer time.AfterFunc(afterwards, cancel).Stop()
	answer, _ := io.ReadAll(io.LimitReader(resp.Body, c.maxBytes))
	return answer, nil
}

// after reads how many seconds a server asks to wait.
func after(text string) time.Duration {
	seconds, err := strconv.Atoi(text)
	if err != nil || seconds < 0 {
		return 0
	}
	return min(time.Duration(seconds)*time.Second, maxAfter)
}

// send makes one request with a body.
func (c *Client) send(ctx context.Context, target *url.URL, addrs []netip.Addr, header http.Header, body []byte) (*http.Response, error) {
	req := &http.Request{
		Method: http.MethodPost, URL: target, Header: header.Clone(),
		Body: io.NopCloser(bytes.NewReader(body)), ContentLength: int64(len(body)),
	}
	req.Header.Set("User-Agent", "netkeep")
	req.Header.Set("Accept-Encoding", "identity")
	return c.transport(ctx, addrs).RoundTrip(req.WithContext(ctx))
}

// Connect opens a TLS connection to a host and port under the rules of this package.
// It lasts for as long as both sides like.
func (c *Client) Connect(ctx context.Context, address string) (*tls.Conn, error) {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return nil, fmt.Errorf("%w: malformed", ErrURL)
	}
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	fail := func(err error) (*tls.Conn, error) { return nil, fmt.Errorf("connecting to %q: %w", address, err) }
	addrs, err := c.resolve(ctx, host, c.strict)
	if err != nil {
		return fail(err)
	}
	raw, err := c.dialAny(ctx, "tcp", address, addrs)
	if err != nil {
		return fail(explain(err))
	}
	settings := c.tls.Clone()
	settings.ServerName = host
	conn := tls.Client(raw, settings)
	if err := conn.HandshakeContext(ctx); err != nil {
		_ = raw.Close()
		return fail(explain(err))
	}
	return conn, nil
}
