package sdk

import (
	"context"
	"crypto"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"sync/atomic"
	"time"

	"netkeep.internal/internal/client/remote"
	"netkeep.internal/internal/disk"
	"netkeep.internal/internal/pki"
)

const (
	// tendMost is how often one looks after a certificate at most, and
	// tendParts how often in the life of one that ends soon.
	tendMost  = time.Hour
	tendParts = 24
	// sayAgain is when it is worth to be said once more that a certificate
	// cannot be renewed.
	sayAgain = 24 * time.Hour
)

// renewal has an identity's certificate renewed in good time. Only one
// goroutine uses it, but for soon.
type renewal struct {
	client *Client
	looked time.Time
	soon   atomic.Bool // a router parted with us: it may be for the certificate
	said   string
	saidAt time.Time
}

// authenticator is what the controller knows of the certificate. Later
// controllers may ask for another one.
type authenticator struct {
	ID            string `json:"id"`
	Method        string `json:"method"`
	Fingerprint   string `json:"fingerprint"`
	ExtendWanted  bool   `json:"isExtendRequested"`
	KeyRollWanted bool   `json:"isKeyRollRequested"`
}

// life is how long the certificate that is shown is good for.
func (r *renewal) life() (life time.Duration, ends time.Time) {
	leaf := r.client.id.pair.Load().Leaf
	return leaf.NotAfter.Sub(leaf.NotBefore), leaf.NotAfter
}

// tend renews the certificate if it is time. What goes wrong with that is said
// once a while; only that the controller does not answer is an error.
func (r *renewal) tend(ctx context.Context) error {
	if r.client.opt.Account != nil {
		return r.client.api.prolong(ctx)
	}
	c, now := r.client, r.client.opt.Now()
	life, ends := r.life()
	since := now.Sub(r.looked)
	late := since < 0 || since >= min(tendMost, life/tendParts)
	if !r.soon.Swap(false) && !late {
		return nil
	}
	err := r.look(ctx, now, late)
	if errors.Is(err, disk.ErrHeld) {
		r.soon.Store(true)
		return nil
	}
	if late {
		r.looked = now
	}
	if Temporary(err) || ctx.Err() != nil {
		return err
	}
	if err == nil {
		r.said = ""
	} else if text := err.Error(); text != r.said || now.Sub(r.saidAt) >= sayAgain {
		r.said, r.saidAt = text, now
		c.log.Warn("the identity's certificate could not be renewed; it is tried again", "identity", c.Name(), "file", c.id.file, "ends", moment(ends), "error", err)
	}
	return nil
}

// look finds out which certificate counts and, if that is asked for, whether
// there should be another. Others with the same file wait meanwhile.
func (r *renewal) look(ctx context.Context, now time.Time, renew bool) error {
	c := r.client
	release, err := disk.HoldFile(c.id.file)
	if err != nil {
		return err
	}
	defer func() { _ = release() }()
	known, err := c.api.authenticator(ctx)
	if err != nil || known == nil {
		return err
	}
	if err := r.settle(known, now); err != nil {
		return err
	}
	r.keepPlaces()
	outdated := false
	if renew {
		if outdated, err = r.follow(ctx); err != nil {
			return err
		}
	}
	if renew && (outdated || known.ExtendWanted || known.KeyRollWanted || r.due(now)) {
		return r.renew(ctx, known)
	}
	return nil
}

// authenticator asks for the certificate that the controller knows the identity
// by; nil if it is known by something else.
func (a *api) authenticator(ctx context.Context) (*authenticator, error) {
	var all []*authenticator
	if err := a.call(ctx, http.MethodGet, "/current-identity/authenticators", nil, &all); err != nil {
		return nil, err
	}
	for _, one := range all {
		if one.Method == "cert" {
			return one, nil
		}
	}
	return nil, nil
}

// settle takes up the certificate in the identity's files that the controller
// knows: another program may have renewed it, or we did and were stopped before
// we knew.
func (r *renewal) settle(known *authenticator, now time.Time) error {
	c, heir := r.client, r.client.id.heir()
	for _, other := range c.id.others(now) {
		if pki.Fingerprint(other.Leaf) == known.Fingerprint {
			c.api.show(other)
		}
	}
	if pki.Fingerprint(c.id.pair.Load().Leaf) != known.Fingerprint {
		return errors.New("the controller knows the identity by another one: it was renewed or enrolled on another machine, and its file is to be used there alone; enroll an identity of its own for this one")
	}
	next, err := load(heir.Path, now)
	if err == nil && same(next.pair.Load(), c.id.pair.Load()) {
		return heir.Succeed()
	}
	return heir.Drop()
}

// due reports whether it is time for another certificate, in the last third of
// its life. Routers part with who shows another: until the last sixth, that waits
// until nothing is connected.
func (r *renewal) due(now time.Time) bool {
	life, ends := r.life()
	left := ends.Sub(now)
	return left < life/6 || left < life/3 && !r.client.busy()
}

// busy reports whether anything is connected.
func (c *Client) busy() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, a := range c.routers {
		if a.live() && a.router.carries() {
			return true
		}
	}
	return false
}

// carries reports whether a connection goes over the router.
func (r *router) carries() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, e := range r.ends {
		if _, ok := e.(*Conn); ok {
			return true
		}
	}
	return false
}

// renew gets another certificate. It is on disk before the controller is told
// that it counts; until then the old one does.
func (r *renewal) renew(ctx context.Context, known *authenticator) error {
	c, heir := r.client, r.client.id.heir()
	file, err := remote.OpenIdentity(c.id.file)
	if err != nil {
		return err
	}
	if !remote.IsInline(file.ID.Cert) {
		return errors.New("the identity's file only names it: renew it where it is from, and put it there")
	}
	place, err := heir.Prepare()
	if err != nil {
		return err
	}
	defer place.Close()
	key, err := c.id.nextKey(remote.IsInline(file.ID.Key))
	if err != nil {
		return err
	}
	pair, text, err := c.api.extend(ctx, known, key, c.id.pair.Load().Leaf)
	if err != nil {
		return err
	}
	file.ID.Cert = remote.Inline([]byte(text))
	if remote.IsInline(file.ID.Key) {
		keyText, err := pki.EncodeKey(key)
		if err != nil {
			return err
		}
		file.ID.Key = remote.Inline(keyText)
	}
	data, err := file.Encode()
	if err != nil {
		return err
	}
	if err := place.Write(data); err != nil {
		return err
	}
	c.part(true)
	err = c.api.call(ctx, http.MethodPost, "/current-identity/authenticators/"+known.ID+"/extend-verify", map[string]string{"clientCert": text}, nil)
	if err != nil {
		c.part(false)
		return err // which of them counts shows when it is looked again
	}
	c.api.show(pair)
	c.log.Info("the identity has a new certificate", "identity", c.Name(), "file", c.id.file, "ends", moment(pair.Leaf.NotAfter))
	return heir.Succeed()
}

// part says whether routers are expected to end the connections that there are.
func (c *Client) part(soon bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, a := range c.routers {
		if a.live() {
			a.router.parting.Store(soon)
		}
	}
}

// nextKey is the key of the next certificate: a new one of the same kind, unless
// the present one is kept elsewhere.
func (c *credentials) nextKey(own bool) (crypto.Signer, error) {
	present := c.pair.Load().PrivateKey.(crypto.Signer) // as all that TLS can use
	if !own {
		return present, nil
	}
	if _, is := present.(*rsa.PrivateKey); is {
		return pki.RSA3072.Generate()
	}
	return pki.P256.Generate()
}

// extend asks for a certificate of a key, like another.
func (a *api) extend(ctx context.Context, known *authenticator, key crypto.Signer, like *x509.Certificate) (*tls.Certificate, string, error) {
	csr, err := pki.NewCSR(key, x509.CertificateRequest{Subject: like.Subject})
	if err != nil {
		return nil, "", err
	}
	var got struct {
		ClientCert string `json:"clientCert"`
	}
	err = a.call(ctx, http.MethodPost, "/current-identity/authenticators/"+known.ID+"/extend", map[string]string{"clientCertCsr": string(csr)}, &got)
	if e, ok := errors.AsType[*remote.Error](err); ok && e.Status == http.StatusConflict {
		return nil, "", errors.New("the controller did not issue it: renew it where it is from, and put it in the file")
	}
	if err != nil {
		return nil, "", err
	}
	pair, err := pki.Pair(key, []byte(got.ClientCert))
	if err != nil {
		return nil, "", fmt.Errorf("what the controller issued cannot be used: %w", err)
	}
	return &pair, got.ClientCert, nil
}
