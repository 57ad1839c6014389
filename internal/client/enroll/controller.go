package enroll

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"net/url"
	"slices"
	"sync/atomic"
	"time"

	"github.com/go-json-experiment/json"

	"netkeep.internal/internal/client/remote"
	"netkeep.internal/internal/pki"
)

const (
	clientRoot = "/edge/client/v1"
	// maxAnswer and maxAuthorities bound what a controller may say.
	maxAnswer      = 1 << 20
	maxAuthorities = 100
	// patience is how long one answer may take.
	patience = 30 * time.Second
	// skew is by how much clocks may differ before it is worth a word.
	skew = time.Minute
)

// Options is what joining depends on besides the invitation.
type Options struct {
	Now func() time.Time
	// Trust is further certificates that vouch for the controller, for those
	// whose TLS certificate is not from the network's own authority.
	Trust []*x509.Certificate
	// Show is the certificate that the client shows, for the ways to enroll
	// that need one.
	Show  *tls.Certificate
	Words Words
}

// Controller is one whose certificate has verified the invitation. Only [Meet]
// makes one.
type Controller struct {
	inv  *Invitation
	root *x509.Certificate // that vouches for it; nil if it signed the invitation
	opt  Options
	http *http.Client

	leaf    atomic.Pointer[tls.ConnectionState] // of the last connection
	clock   time.Duration                       // what its clock shows, less ours
	vouches []*x509.Certificate                 // for it and for everybody in the network
}

// Meet connects to the controller that an invitation leads to. Every connection
// is given up unless the key of the server's certificate has signed the
// invitation; over such a connection come the certificates of the network's
// authority. If that controller does not answer, the others are tried that the
// invitation names: those are believed whose certificate comes from the root CA
// that it names too.
func Meet(ctx context.Context, inv *Invitation, opt Options) (*Controller, error) {
	c, err := meet(ctx, inv, nil, opt)
	if err == nil || !absent(err) || len(inv.others) == 0 {
		return c, err
	}
	var also error
	for _, place := range inv.others {
		c, failed := inv.at(place).meetOther(ctx, opt)
		if failed == nil {
			return c, nil
		}
		also = errors.Join(also, failed)
	}
	return nil, fmt.Errorf("%w; nor is there another controller that answers: %w", err, also)
}

// meetOther connects to a controller that did not sign the invitation.
func (i *Invitation) meetOther(ctx context.Context, opt Options) (*Controller, error) {
	root, err := i.authority(ctx)
	if err != nil {
		return nil, err
	}
	return meet(ctx, i, root, opt)
}

// absent reports whether an error is of a controller that gives no answer, or
// cannot answer at present.
func absent(err error) bool {
	e, said := errors.AsType[*away](err)
	return errors.Is(err, remote.ErrUnreachable) || said && e.status >= http.StatusInternalServerError
}

// away says that a controller does not do what every controller does.
type away struct {
	status int
	text   string
}

func (a *away) Error() string { return a.text }

// meetTime is how long another controller may take to say whom to trust.
const meetTime = 10 * time.Second

// authority returns the root CA of a controller that did not sign the invitation,
// if the invitation names that.
func (i *Invitation) authority(ctx context.Context) (*x509.Certificate, error) {
	ctx, cancel := context.WithTimeout(ctx, meetTime)
	defer cancel()
	root, err := remote.OwnAuthority(ctx, i.Controller)
	if err != nil {
		return nil, err
	}
	if !slices.Contains(i.roots, remote.Fingerprint(root)) {
		return nil, &suspicion{fmt.Sprintf("the server at %s is not of the network that the token is for, so nothing was sent to it", i.Controller)}
	}
	return root, nil
}

// meet connects to one controller, which root vouches for if it did not sign the
// invitation.
func meet(ctx context.Context, inv *Invitation, root *x509.Certificate, opt Options) (*Controller, error) {
	c := &Controller{inv: inv, root: root, opt: opt}
	config := &tls.Config{
		MinVersion: tls.VersionTLS12,
		// The usual check needs an authority that is not known yet. What takes
		// its place is the invitation.
		InsecureSkipVerify: true,
		VerifyConnection:   c.verify,
	}
	if opt.Show != nil {
		// Whatever the server says it accepts: it is the one that was asked for.
		config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return opt.Show, nil }
	}
	if root != nil {
		config.NextProtos = remote.OwnProtocols
	}
	dialer := &net.Dialer{}
	if len(inv.others) > 0 {
		dialer.Timeout = meetTime // there is somebody else to ask
	}
	c.http = &http.Client{
		Transport: &http.Transport{TLSClientConfig: config, ForceAttemptHTTP2: root == nil, Proxy: http.ProxyFromEnvironment, DialContext: dialer.DialContext},
		Timeout:   patience,
		CheckRedirect: func(*http.Request, []*http.Request) error {
			return errors.New("it leads on to another address, which enrollment never does")
		},
	}
	err := c.authorities(ctx)
	if err == nil && root != nil {
		err = c.servedToOthers(ctx)
	}
	if err != nil {
		c.Close()
		if inv.expired(opt.Now()) && !errors.As(err, new(*suspicion)) {
			return nil, c.tooLate()
		}
		return nil, err
	}
	if inv.expired(opt.Now()) || inv.expired(opt.Now().Add(c.clock)) {
		c.Close()
		return nil, c.tooLate()
	}
	return c, nil
}

// Close ends the connections.
func (c *Controller) Close() { c.http.CloseIdleConnections() }

// suspicion is a reason not to believe a server.
type suspicion struct{ text string }

func (s *suspicion) Error() string { return s.text }

// verify decides whether a server is the one that the invitation is from.
func (c *Controller) verify(state tls.ConnectionState) error {
	leaf := state.PeerCertificates[0]
	if c.root != nil {
		if err := c.ofRoot(state.PeerCertificates); err != nil {
			return err
		}
	} else if c.inv.signedBy(leaf.PublicKey) != nil {
		return &suspicion{fmt.Sprintf("the server at %s did not sign this token, so nothing was sent to it: check that the address leads to your controller; "+
			"if its key was replaced since the token was made, ask for a new token", c.inv.Controller)}
	}
	if err := leaf.VerifyHostname(c.inv.host); err != nil {
		return &suspicion{fmt.Sprintf("the certificate of %s is not for that name (%v): the controller must be served under the address it advertises", c.inv.Controller, err)}
	}
	c.leaf.Store(&state)
	return nil
}

// ofRoot decides whether a server is vouched for by the root CA that the
// invitation names. No router has a certificate for the name of a controller.
func (c *Controller) ofRoot(shown []*x509.Certificate) error {
	roots, between := x509.NewCertPool(), x509.NewCertPool()
	roots.AddCert(c.root)
	for _, cert := range shown[1:] {
		between.AddCert(cert)
	}
	if _, err := shown[0].Verify(x509.VerifyOptions{Roots: roots, Intermediates: between, CurrentTime: c.opt.Now()}); err != nil {
		return &suspicion{fmt.Sprintf("the server at %s is not of the network that the token is for (%v), so nothing was sent to it", c.inv.Controller, err)}
	}
	return nil
}

// authorities asks for the certificates to trust, and notes what time it is
// there.
func (c *Controller) authorities(ctx context.Context) error {
	a, err := c.ask(ctx, http.MethodGet, "/.well-known/est/cacerts", nil, "", nil)
	if err != nil {
		return err
	}
	if date, err := http.ParseTime(a.header.Get("Date")); err == nil {
		c.clock = date.Sub(c.opt.Now())
	}
	if a.status != http.StatusOK {
		return &away{a.status, fmt.Sprintf("%s does not say whom to trust (status %d): is it a controller?", c.inv.Controller, a.status)}
	}
	c.vouches, err = pki.ParsePKCS7Text(a.body, maxAuthorities)
	if err != nil {
		return fmt.Errorf("%s does not say whom to trust: %w", c.inv.Controller, err)
	}
	return c.vouched()
}

// vouched makes sure that those who have only the identity's file will trust
// the controller, before the token is spent.
func (c *Controller) vouched() error {
	state := c.leaf.Load()
	leaf := state.PeerCertificates[0]
	now := c.opt.Now()
	if now.Before(leaf.NotBefore) || now.After(leaf.NotAfter) {
		if c.clock.Abs() > skew {
			return c.wrongClock()
		}
		return fmt.Errorf("the certificate of %s is good from %s to %s only: its operator must renew it", c.inv.Controller, when(leaf.NotBefore), when(leaf.NotAfter))
	}
	between := x509.NewCertPool()
	for _, cert := range state.PeerCertificates[1:] {
		between.AddCert(cert)
	}
	for _, cert := range c.opt.Trust {
		if !slices.ContainsFunc(c.vouches, cert.Equal) {
			c.vouches = append(c.vouches, cert)
		}
	}
	ours := x509.NewCertPool()
	for _, cert := range c.vouches {
		ours.AddCert(cert)
	}
	options := x509.VerifyOptions{Roots: ours, Intermediates: between, CurrentTime: now}
	if _, err := leaf.Verify(options); err == nil {
		return nil
	}
	// A certificate of a public authority: what this machine trusts for it is
	// what the identity's file names.
	options.Roots = nil
	chains, err := leaf.Verify(options)
	if err != nil {
		return fmt.Errorf("the certificate of %s is neither from the network's own authority nor from one that this machine knows: give that authority's certificate%s", c.inv.Controller, with(c.opt.Words.CA))
	}
	c.vouches = append(c.vouches, chains[0][len(chains[0])-1])
	return nil
}

// servedToOthers is vouched for the certificate that a controller serves, if that is
// another than it has of its network. Which it is the controller has to say itself:
// somebody in between may have one that this machine trusts.
func (c *Controller) servedToOthers(ctx context.Context) error {
	told, err := c.told(ctx)
	if err != nil || told == nil || told.Equal(c.leaf.Load().PeerCertificates[0]) {
		return err
	}
	var shown tls.ConnectionState
	plain := &http.Client{Timeout: patience, Transport: &http.Transport{
		Proxy: http.ProxyFromEnvironment, DisableKeepAlives: true,
		TLSClientConfig: &tls.Config{
			MinVersion: tls.VersionTLS12, InsecureSkipVerify: true, // VerifyConnection does
			VerifyConnection: func(state tls.ConnectionState) error {
				shown = state
				if !told.Equal(state.PeerCertificates[0]) {
					return &suspicion{fmt.Sprintf("the certificate of %s is not the one that the controller says it serves, so nothing was sent to it", c.inv.Controller)}
				}
				return nil
			},
		},
	}}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, c.inv.Controller+clientRoot+"/version", nil)
	if err != nil {
		return err
	}
	resp, err := plain.Do(req)
	if err != nil {
		return c.unreachable(err)
	}
	_ = resp.Body.Close()
	if err := told.VerifyHostname(c.inv.host); err != nil {
		return &suspicion{fmt.Sprintf("the certificate of %s is not for that name (%v): the controller must be served under the address it advertises", c.inv.Controller, err)}
	}
	c.leaf.Store(&shown)
	return c.vouched()
}

// told is the certificate that a controller says it serves at the address where it was
// met; nil if it says nothing.
func (c *Controller) told(ctx context.Context) (*x509.Certificate, error) {
	a, err := c.ask(ctx, http.MethodGet, "/controllers", nil, "", nil)
	if err != nil || a.status != http.StatusOK {
		return nil, err
	}
	var list struct {
		Data []struct {
			Cert string `json:"certPem"`
			At   map[string][]struct {
				URL string `json:"url"`
			} `json:"apiAddresses"`
		} `json:"data"`
	}
	if err := json.Unmarshal(a.body, &list); err != nil {
		return nil, fmt.Errorf("%s gave an answer that cannot be read: %w", c.inv.Controller, err)
	}
	for _, one := range list.Data {
		for _, at := range one.At["edge-client"] {
			if at.URL != c.inv.Controller+clientRoot {
				continue
			}
			certs, err := pki.ParseCertificates([]byte(one.Cert), 1)
			if err != nil {
				return nil, fmt.Errorf("%s does not say which certificate it serves: %w", c.inv.Controller, err)
			}
			return certs[0], nil
		}
	}
	return nil, nil
}

// answer is what a controller answered.
type answer struct {
	status int
	header http.Header
	body   []byte
}

// ask makes a request of the Client API.
func (c *Controller) ask(ctx context.Context, method, path string, query url.Values, contentType string, body []byte) (*answer, error) {
	at := c.inv.Controller + clientRoot + path
	if query != nil {
		at += "?" + query.Encode()
	}
	req, err := http.NewRequestWithContext(ctx, method, at, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Accept", "application/json, */*;q=0.5")
	if contentType != "" {
		req.Header.Set("Content-Type", contentType)
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, c.unreachable(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil {
		return nil, c.unreachable(err)
	}
	return &answer{resp.StatusCode, resp.Header, text}, nil
}

// enroll spends the token, and reads what it brought.
func (c *Controller) enroll(ctx context.Context, contentType string, body []byte, out any) error {
	query := url.Values{"method": {c.inv.Method}}
	if c.inv.token != "" {
		query.Set("token", c.inv.token)
	}
	a, err := c.ask(ctx, http.MethodPost, "/enroll", query, contentType, body)
	if errors.Is(err, remote.ErrUnreachable) {
		return fmt.Errorf("%w; whether the token was used is not known: try again, and if it was, %s", err, c.another())
	}
	if err != nil {
		return err
	}
	if a.status != http.StatusOK {
		return c.refusal(a)
	}
	if kind, _, _ := mime.ParseMediaType(a.header.Get("Content-Type")); kind != "application/json" {
		return fmt.Errorf("%s answered with %q where JSON was expected", c.inv.Controller, kind)
	}
	var e struct {
		Data any `json:"data"`
	}
	e.Data = out
	if err := json.Unmarshal(a.body, &e); err != nil {
		return fmt.Errorf("%s gave an answer that cannot be read: %w", c.inv.Controller, err)
	}
	return nil
}
