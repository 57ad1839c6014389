package enroll

import (
	"context"
	"crypto"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"

	"netkeep.internal/internal/client/remote"
	"netkeep.internal/internal/disk"
	"netkeep.internal/internal/pki"
)

// Person is somebody who enrolls by a token of an identity provider, without an invitation.
// The controller is one that is trusted already.
type Person struct {
	Client *remote.Client
	Token  string
	Signer string // id of whose token it is
	// CA is who vouches for the controller, as PEM; empty if the machine trusts it anyway.
	CA string
}

// Enroll makes an identity of who signed in, and returns its name. With a file to write to
// it gets a certificate; without one it goes on to log in by tokens.
func (p Person) Enroll(ctx context.Context, r Request) (name string, err error) {
	if r.Cert != "" || r.Name != "" || r.Username != "" {
		return "", errors.New("who signs in is named by the identity provider, and gets a certificate of the network: leave certificate and names out")
	}
	if r.Output == "" {
		got, err := p.ask(ctx, nil)
		return got.Name, err
	}
	key, kept, err := r.key()
	if err != nil {
		return "", err
	}
	out, err := disk.NewFile(r.Output, r.Force)
	if err != nil {
		return "", err
	}
	defer out.Close()
	csr, err := pki.NewCSR(key, x509.CertificateRequest{})
	if err != nil {
		return "", err
	}
	got, err := p.ask(ctx, csr)
	if err != nil {
		return "", err
	}
	who, err := p.identity(got, key, kept, r)
	if err != nil {
		return got.Name, err
	}
	data, err := who.Encode()
	if err != nil {
		return got.Name, err
	}
	return got.Name, out.Write(data)
}

// key is that of the identity, and how its file names it.
func (r Request) key() (key crypto.Signer, kept string, err error) {
	if r.Key != "" {
		if kept, err = fileURL(r.Key); err != nil {
			return nil, "", err
		}
		key, err = readKey(r.Key)
		return key, kept, err
	}
	if key, err = NewKey(r.Algorithm); err != nil {
		return nil, "", err
	}
	text, err := pki.EncodeKey(key)
	return key, remote.Inline(text), err
}

// became is who somebody is now.
type became struct {
	Name string `json:"name"`
	CA   string `json:"ca"`
	Cert string `json:"cert"`
}

// ask has the controller make the identity.
func (p Person) ask(ctx context.Context, csr []byte) (got became, err error) {
	body := map[string]string{}
	if csr != nil {
		body["clientCsr"] = string(csr)
	}
	header := map[string]string{}
	if p.Signer != "" {
		header["ziti-token-issuer-id"] = p.Signer
	}
	err = p.Client.Call(ctx, remote.Request{
		Method: http.MethodPost, Path: "/" + clientRoot + "/enroll/token", Stranger: true, Bearer: p.Token, Header: header, Body: body,
	}, &got)
	said, refused := errors.AsType[*remote.Error](err)
	switch {
	case !refused:
		return got, err
	case said.Status == http.StatusNotFound:
		return got, fmt.Errorf("%s does not let people enroll by signing in: have an admin invite you", p.Client.Address())
	case said.Status == http.StatusUnauthorized:
		return got, fmt.Errorf("%s does not take the token of the identity provider, or does not let who has it enroll: have an admin look at the signer", p.Client.Address())
	}
	return got, err
}

// identity is the file of who has enrolled.
func (p Person) identity(got became, key crypto.Signer, kept string, r Request) (*remote.Identity, error) {
	at := p.Client.Address()
	vouches, err := pki.ParseCertificates([]byte(got.CA+p.CA), maxAuthorities)
	if err != nil {
		return nil, fmt.Errorf("%s does not say whom to trust: %w", at, err)
	}
	if err := genuine(at, got.Cert, key, vouches, r.Now()); err != nil {
		return nil, err
	}
	who := &remote.Identity{API: at + clientRoot}
	if all := p.Client.Places(); len(all) > 1 {
		for _, place := range all {
			who.Own = append(who.Own, place+clientRoot)
		}
	}
	if r.Several {
		who.APIs = who.Own
	}
	who.ID.CA = remote.Inline(pki.EncodeCertificates(distinct(vouches)...))
	who.ID.Cert, who.ID.Key = remote.Inline([]byte(got.Cert)), kept
	return who, nil
}

// distinct leaves out what is there twice.
func distinct(all []*x509.Certificate) (list []*x509.Certificate) {
	seen := map[string]bool{}
	for _, cert := range all {
		if !seen[string(cert.Raw)] {
			seen[string(cert.Raw)] = true
			list = append(list, cert)
		}
	}
	return list
}
