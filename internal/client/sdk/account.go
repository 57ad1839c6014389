package sdk

import (
	"context"
	"crypto"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"netkeep.internal/internal/client/remote"
	"netkeep.internal/internal/pki"
)

// Account is somebody without a file: who it is, a token says that somebody else gives.
type Account struct {
	// Address is where the controller is, with the scheme, and Others where the others
	// of the network are.
	Address string
	Others  []string
	// CA is the certificates that vouch for the controller, as PEM; those of the system
	// do if it is empty.
	CA string
	// Token returns a token to show, as often as there has to be one, and its end.
	Token func(context.Context) (token string, ends time.Time, err error)
	// Left is an error once whoever signed in has signed out, until somebody signs in; it
	// may be nil.
	Left func() error
}

// credentials is what there is of an account before it is logged in.
func (a *Account) credentials() (*credentials, error) {
	at, err := url.Parse(a.Address)
	if err != nil || at.Scheme != "https" || at.Host == "" {
		return nil, fmt.Errorf("%q is no address of a controller; it looks like https://controller.example.com:1280", a.Address)
	}
	c := &credentials{address: "https://" + at.Host, root: clientRoot, tls: &tls.Config{MinVersion: tls.VersionTLS12}}
	for _, other := range a.Others {
		c.also = append(c.also, other+clientRoot)
	}
	c.pair.Store(&tls.Certificate{})
	c.tls.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return c.pair.Load(), nil }
	if a.CA != "" {
		cas, err := pki.ParseCertificates([]byte(a.CA), maxAuthorities)
		if err != nil || len(cas) == 0 {
			return nil, errors.New("the CA of the controller holds no certificate; log in again")
		}
		c.trust.Store(newTrust(cas))
	}
	return c, nil
}

// signIn opens a session with a token, and gets a certificate for it, which routers want
// to see.
func (a *api) signIn(ctx context.Context) error {
	token, ends, err := a.opt.Account.Token(ctx)
	if err != nil {
		return err
	}
	s, err := a.authenticate(ctx, "ext-jwt", token)
	if unauthorized(err) {
		return say(ErrDenied, "the controller at %s does not let in who signed in: have an admin see whether there is an identity for that account, and whether it is disabled", a.id.address)
	}
	if err != nil {
		return plainly(err)
	}
	if err := a.complete(ctx, s); err != nil {
		return err
	}
	key, err := pki.P256.Generate()
	if err != nil {
		return err
	}
	pair, err := a.certify(ctx, s.Token, key)
	if err != nil {
		return plainly(err)
	}
	a.id.pair.Store(pair)
	a.session.Store(s)
	a.remote().Use(s.Token)
	a.rests = ends
	return nil
}

// certify gets a certificate that ends with a session. A session that has one gets another
// for the same key.
func (a *api) certify(ctx context.Context, session string, key crypto.Signer) (*tls.Certificate, error) {
	csr, err := pki.NewCSR(key, x509.CertificateRequest{})
	if err != nil {
		return nil, err
	}
	var got struct {
		Certificate string `json:"certificate"`
	}
	err = a.remote().Call(ctx, remote.Request{
		Method: http.MethodPost, Path: a.path("/current-api-session/certificates"), Stranger: true, Header: map[string]string{"zt-session": session},
		Body: map[string]string{"csr": string(csr)},
	}, &got)
	if err != nil {
		return nil, err
	}
	pair, err := pki.Pair(key, []byte(got.Certificate))
	if err != nil {
		return nil, fmt.Errorf("what the controller issued cannot be used: %w", err)
	}
	return &pair, nil
}

// left ends the session of who has signed out, and all that is connected by it: there is
// another when somebody signs in.
func (a *api) left(ctx context.Context, session string) error {
	if a.opt.Account.Left == nil {
		return nil
	}
	err := a.opt.Account.Left()
	if err == nil || session == a.given {
		return err
	}
	gone := a.remote().Call(ctx, remote.Request{
		Method: http.MethodDelete, Path: a.path("/current-api-session"), Stranger: true, Header: map[string]string{"zt-session": session}, Repeatable: true,
	}, nil)
	if gone != nil && !unauthorized(gone) {
		return gone // and is tried again
	}
	a.given = session
	return err
}

const (
	// prolongIn is how long before its end a newer token is shown.
	prolongIn = 45 * time.Second
)

// prolong shows a newer token before the one that the session rests on ends, and gets a
// newer certificate before that does: connections then go on. A session that is lost all
// the same is opened anew.
func (a *api) prolong(ctx context.Context) error {
	a.opening.Lock()
	defer a.opening.Unlock()
	now, session := a.opt.Now(), a.session.Load().Token
	if err := a.left(ctx, session); err != nil {
		return err
	}
	if a.rests.IsZero() || now.Before(a.rests.Add(-prolongIn)) {
		return nil
	}
	token, ends, err := a.opt.Account.Token(ctx)
	if err != nil || !ends.After(a.rests) {
		return err
	}
	err = a.remote().Call(ctx, remote.Request{
		Method: http.MethodPost, Path: a.path("/current-api-session/prolong"), Stranger: true, Header: map[string]string{"zt-session": session}, Bearer: token,
	}, nil)
	if e, refused := errors.AsType[*remote.Error](err); refused && e.Status == http.StatusNotFound {
		a.rests = time.Time{} // a controller of others: the session ends, and there is another
		return nil
	}
	if err != nil {
		return err
	}
	a.rests = ends
	leaf := a.id.pair.Load().Leaf
	if life := leaf.NotAfter.Sub(leaf.NotBefore); leaf.NotAfter.Sub(now) > life/3 {
		return nil
	}
	pair, err := a.certify(ctx, session, a.id.pair.Load().PrivateKey.(crypto.Signer))
	if err == nil {
		a.id.pair.Store(pair)
	}
	return err
}
