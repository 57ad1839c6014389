package enroll

import (
	"cmp"
	"context"
	"crypto"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"time"

	"github.com/go-json-experiment/json"

	"netkeep.internal/internal/client/remote"
	"netkeep.internal/internal/lang/method"
	"netkeep.internal/internal/pki"
)

// identity is what everybody's file has.
func (c *Controller) identity() *remote.Identity {
	i := &remote.Identity{API: c.inv.Controller + clientRoot}
	if all := c.inv.Controllers(); len(all) > 1 {
		for _, at := range all {
			i.Own = append(i.Own, at+clientRoot)
		}
	}
	i.ID.CA = remote.Inline(pki.EncodeCertificates(c.vouches...))
	return i
}

// certs is what comes with a certificate.
type certs struct {
	CA         string `json:"ca"`
	Cert       string `json:"cert"`
	ServerCert string `json:"serverCert"`
}

// maxChain is how many certificates lead from an issued one to its authority.
const maxChain = 10

// Device enrolls an identity with a key, for which the controller issues a
// certificate. kept is where the key is, after "file://"; the file holds the
// key itself if it is empty.
func (c *Controller) Device(ctx context.Context, key crypto.Signer, kept string) (*remote.Identity, error) {
	if err := c.wrongWay(method.OTT); err != nil {
		return nil, err
	}
	i := c.identity()
	if i.ID.Key = kept; kept == "" {
		text, err := pki.EncodeKey(key)
		if err != nil {
			return nil, err
		}
		i.ID.Key = remote.Inline(text)
	}
	csr, err := pki.NewCSR(key, x509.CertificateRequest{Subject: pkix.Name{CommonName: c.inv.Subject}})
	if err != nil {
		return nil, err
	}
	var got certs
	if err := c.enroll(ctx, "application/x-pem-file", csr, &got); err != nil {
		return nil, err
	}
	if err := c.issued(got.Cert, key); err != nil {
		return nil, err
	}
	i.ID.Cert = remote.Inline([]byte(got.Cert))
	return i, nil
}

// Certificate enrolls with the certificate that Options.Show has: an identity
// that was invited with the CA of it, or a new one, for which name is a wish.
// The files stay where they are; cert and key are their places, after
// "file://".
func (c *Controller) Certificate(ctx context.Context, name, cert, key string) (*remote.Identity, error) {
	if err := c.wrongWay(method.OTTCA, method.CA); err != nil {
		return nil, err
	}
	if c.opt.Show == nil {
		return nil, c.opt.Words.needCert()
	}
	body := map[string]string{}
	if name != "" && c.inv.Method == method.CA {
		body["name"] = name
	}
	if err := c.enrollJSON(ctx, body, new(struct{})); err != nil {
		return nil, err
	}
	i := c.identity()
	i.ID.Cert, i.ID.Key = cert, key
	return i, nil
}

// Password enrolls an identity with a password. The user name counts only if
// the invitation was made without one. The file says where the controller is
// and whom to trust; it does not hold the password.
func (c *Controller) Password(ctx context.Context, username, password string) (who *remote.Identity, account string, err error) {
	if err := c.wrongWay(method.Password); err != nil {
		return nil, "", err
	}
	body := map[string]string{"password": password}
	if username != "" {
		body["username"] = username
	}
	var said struct {
		Username string `json:"username"`
	}
	if err := c.enrollJSON(ctx, body, &said); err != nil {
		return nil, "", err
	}
	return c.identity(), cmp.Or(said.Username, username), nil
}

func (c *Controller) enrollJSON(ctx context.Context, body, out any) error {
	text, err := json.Marshal(body)
	if err != nil {
		return err
	}
	return c.enroll(ctx, "application/json", text, out)
}

// issued makes sure that a certificate is for our key and from the authority
// that we were told to trust.
func (c *Controller) issued(text string, key crypto.Signer) error {
	return genuine(c.inv.Controller, text, key, c.vouches, c.opt.Now())
}

// genuine is the same for a controller by its address.
func genuine(at, text string, key crypto.Signer, vouches []*x509.Certificate, now time.Time) error {
	chain, err := pki.ParseCertificates([]byte(text), maxChain)
	if err != nil {
		return fmt.Errorf("the certificate that %s issued cannot be read: %w", at, err)
	}
	if pub, ok := key.Public().(interface{ Equal(crypto.PublicKey) bool }); !ok || !pub.Equal(chain[0].PublicKey) {
		return fmt.Errorf("the certificate that %s issued is for another key than ours", at)
	}
	if _, err := pki.NewRoots(vouches).VerifyLeaf(chain, pki.VerifyOptions{Now: now}); err != nil {
		return fmt.Errorf("the certificate that %s issued is not from its own authority: %w", at, err)
	}
	return nil
}
