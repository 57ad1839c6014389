package home

import (
	"bytes"
	"crypto"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"time"

	"netkeep.internal/internal/client/enroll"
	"netkeep.internal/internal/disk"
	"netkeep.internal/internal/pki"
	"netkeep.internal/internal/router/node"
)

// Identity is who a router is, as its file has it. It is replaced as a whole,
// so that key and certificates always belong together.
type Identity struct {
	ID          string   `json:"id"`
	Controllers []string `json:"controllers"` // such as tls:host:1280
	Key         string   `json:"key"`         // PEM, as the following
	Cert        string   `json:"cert"`        // to call with
	ServerCert  string   `json:"serverCert"`  // to be called under
	CA          string   `json:"ca"`          // whom the router trusts
}

// papers is an identity that can be used.
type papers struct {
	Identity
	node.Papers
}

const maxCAs = 100

// readPapers reads a router's identity.
func readPapers(path string) (*papers, error) {
	text, err := readFile(path)
	if err != nil {
		return nil, fmt.Errorf("the router's identity: %w", err)
	}
	if info, err := os.Stat(path); err != nil || pki.Exposed(info) {
		return nil, fmt.Errorf("%s holds the router's key and is open to other users: run chmod 600 on it, and enroll the router again if they are not to be trusted", path)
	}
	var id Identity
	dec := json.NewDecoder(bytes.NewReader(text))
	if err := dec.Decode(&id); err != nil {
		return nil, fmt.Errorf("%s is damaged (%w): restore it from a backup, or enroll the router again with --force", path, err)
	}
	p, err := id.use()
	if err != nil {
		return nil, fmt.Errorf("%s is damaged: %w; restore it from a backup, or enroll the router again with --force", path, err)
	}
	return p, nil
}

// use makes an identity one that can be used.
func (i Identity) use() (*papers, error) {
	p := &papers{Identity: i}
	if i.ID == "" || len(i.Controllers) == 0 {
		return nil, errors.New("it does not say who the router is or where its controller is")
	}
	key, err := pki.ParseKey([]byte(i.Key))
	if err != nil {
		return nil, fmt.Errorf("its key: %w", err)
	}
	for _, one := range []struct {
		text string
		to   *tls.Certificate
	}{{i.Cert, &p.Client}, {i.ServerCert, &p.Server}} {
		if *one.to, err = pki.Pair(key, []byte(one.text)); err != nil {
			return nil, err
		}
	}
	if cn := p.Client.Leaf.Subject.CommonName; cn != i.ID {
		return nil, fmt.Errorf("its certificate is that of %s and not of %s", cn, i.ID)
	}
	if p.CAs, err = pki.ParseCertificates([]byte(i.CA), maxCAs); err != nil {
		return nil, fmt.Errorf("its authorities: %w", err)
	}
	return p, nil
}

// request asks for certificates like those that the router has, for a new key.
func (p *papers) request() (crypto.Signer, string, error) {
	leaf := p.Server.Leaf
	return request(x509.CertificateRequest{Subject: p.Client.Leaf.Subject, DNSNames: leaf.DNSNames, IPAddresses: leaf.IPAddresses})
}

func request(template x509.CertificateRequest) (crypto.Signer, string, error) {
	key, err := pki.P256.Generate()
	if err != nil {
		return nil, "", err
	}
	csr, err := pki.NewCSR(key, template)
	return key, string(csr), err
}

// Hosts are the names that the router's certificates must be for.
func (s Settings) Hosts() []string {
	n := s.names()
	return append(n.DNS, n.IPs...)
}

// Request makes a key, and asks for certificates of it for a router.
func (s Settings) Request(id string) (key crypto.Signer, csr string, err error) {
	template := x509.CertificateRequest{Subject: pkix.Name{CommonName: id}}
	for _, host := range s.Hosts() {
		if ip := net.ParseIP(host); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, host)
		}
	}
	return request(template)
}

// Resident is who lives in a directory.
type Resident struct {
	ID string
	// Fingerprints are those of the certificates that the controller may know
	// it by.
	Fingerprints []string
	certs        []*x509.Certificate
}

// Serves reports whether its certificates are for all of the hosts.
func (r Resident) Serves(hosts []string) bool {
	for _, host := range hosts {
		for _, cert := range r.certs {
			if cert.VerifyHostname(host) != nil {
				return false
			}
		}
	}
	return true
}

// Look says who lives in a directory. An error is of one that there is not, or
// that cannot be read.
func Look(dir string) (Resident, error) {
	p, err := readPapers(filepath.Join(dir, papersFile))
	if err != nil {
		return Resident{}, err
	}
	r := Resident{ID: p.ID}
	all := []*papers{p}
	if next, err := readPapers(filepath.Join(dir, pendingFile)); err == nil {
		all = append(all, next)
	}
	for _, p := range all {
		r.Fingerprints = append(r.Fingerprints, pki.Fingerprint(p.Client.Leaf))
		r.certs = append(r.certs, p.Server.Leaf)
	}
	return r, nil
}

// expires is when the first of the certificates runs out.
func (p *papers) expires() time.Time {
	if p.Server.Leaf.NotAfter.Before(p.Client.Leaf.NotAfter) {
		return p.Server.Leaf.NotAfter
	}
	return p.Client.Leaf.NotAfter
}

// inForce says why the router's certificate cannot be used now, if so.
func (s *Station) inForce(now time.Time) error {
	p := s.papers
	if s.pending != nil && s.pending.expires().After(p.expires()) {
		p = s.pending
	}
	switch leaf := p.Client.Leaf; {
	case now.After(p.expires()):
		return fmt.Errorf("the router's certificate expired at %s: have an admin re-enroll the router, and enroll it again with --force", p.expires().UTC().Format(time.RFC3339))
	case now.Before(leaf.NotBefore):
		return fmt.Errorf("the router's certificate is not valid before %s, and the clock of this machine says %s: set the clock", leaf.NotBefore.UTC().Format(time.RFC3339), now.UTC().Format(time.RFC3339))
	}
	return nil
}

// write puts an identity in its file.
func (i Identity) write(to *disk.File) error {
	text, err := json.MarshalIndent(i, "", "  ")
	if err != nil {
		return err
	}
	return to.Write(append(text, '\n'))
}

// identityOf is what a router was enrolled with.
func identityOf(id string, controllers []string, r *enroll.Router) Identity {
	return Identity{
		ID: id, Controllers: controllers, Key: string(r.Key), Cert: string(r.Cert), ServerCert: string(r.ServerCert), CA: string(r.CA),
	}
}

// isThere reports whether an error says that a file exists.
func isThere(err error) bool { return !errors.Is(err, fs.ErrNotExist) }
