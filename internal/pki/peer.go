package pki

import (
	"crypto"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"slices"
	"time"
)

// The files of the authority of a cluster, which all its members share, and of
// the certificate that one member has of it.
const (
	clusterKeyFile = "cluster.key"
	clusterFile    = "cluster.crt"
	peerKeyFile    = "peer.key"
	peerFile       = "peer.crt"
	peerTrustFile  = "peer.ca" // whose certificates it takes

	peerCommonName = "netkeep cluster member"
	peerLifetime   = 90 * day
)

// Peer is the certificate with which a member of a cluster shows the others that
// it is one. Its authority signs nothing else: whatever else the network has
// issued opens no way to the store.
type Peer struct {
	// Make lets the authority be made if there is none. One that was lost must
	// come from another member, which would not know a new one.
	Make     bool
	DNSNames []string
	IPs      []net.IP
	Now      func() time.Time
	Log      *slog.Logger
}

// PeerFiles are where those are, and whose certificates are taken.
type PeerFiles struct {
	CA, Cert, Key string
	Trusted       []*x509.Certificate
}

// Open makes what is not there yet in the directory of a keystore, and issues
// the certificate again when it is due, as that of a server.
func (p Peer) Open(dir string) (files PeerFiles, err error) {
	f := folder{path: dir, rename: os.Rename}
	is, err := p.open(f)
	if err != nil {
		return PeerFiles{}, fmt.Errorf("opening the certificate of a cluster's member: %w", err)
	}
	return PeerFiles{CA: f.file(peerTrustFile), Cert: f.file(peerFile), Key: f.file(peerKeyFile), Trusted: is.Trusted()}, nil
}

func (p Peer) open(f folder) (is Cluster, err error) {
	if err := f.make(); err != nil {
		return is, err
	}
	unlock, err := f.lock()
	if err != nil {
		return is, err
	}
	defer unlock()
	if err := errors.Join(f.close(), f.sweep(), f.finish()); err != nil {
		return is, err
	}
	ca, err := p.authority(f)
	if err != nil {
		return is, err
	}
	if is, err = f.cluster(); err != nil {
		return is, err
	}
	return is, errors.Join(f.writeTrust(is), p.renew(f, ca))
}

// renew sees to it that the member has a certificate of the authority.
func (p Peer) renew(f folder, ca authority) error {
	key, err := f.readKey(peerKeyFile)
	if err != nil {
		return err
	}
	chain, err := f.readCertificates(peerFile, 1)
	if err != nil {
		return err
	}
	if key != nil && len(chain) > 0 && SamePublic(key.Public(), chain[0].PublicKey) && !p.due(chain[0], ca.cert) {
		return nil
	}
	return p.issue(f, ca, key)
}

// authority reads the one of the cluster, or makes it.
func (p Peer) authority(f folder) (ca authority, err error) {
	if ca.key, err = f.readKey(clusterKeyFile); err != nil {
		return ca, err
	}
	certs, err := f.readCertificates(clusterFile, 1)
	switch {
	case err != nil:
		return ca, err
	case ca.key == nil && certs == nil && p.Make:
		return p.newAuthority(f)
	case ca.key == nil || certs == nil:
		return ca, fmt.Errorf("%s or %s is missing: copy both from the pki directory of another member", f.file(clusterFile), clusterKeyFile)
	}
	ca.cert = certs[0]
	if err := checkAuthority(ca.cert, ca.cert); err != nil {
		return ca, f.problem(clusterFile, errors.New("it is no CA of a cluster"))
	}
	if !SamePublic(ca.key.Public(), ca.cert.PublicKey) {
		return ca, f.problem(clusterKeyFile, fmt.Errorf("does not belong to %s", clusterFile))
	}
	return ca, nil
}

func (p Peer) newAuthority(f folder) (authority, error) {
	c := change{}
	ca, err := newClusterCA(c, clusterKeyFile, clusterFile, p.Now(), p.Log)
	if err != nil {
		return ca, err
	}
	return ca, f.commit(c)
}

// issue signs a certificate, for the key that there is or for a new one. Who
// reads both files in between must not find two that do not belong together.
func (p Peer) issue(f folder, ca authority, key crypto.Signer) error {
	c := change{}
	if key == nil {
		var err error
		if key, c[peerKeyFile], err = newPeerKey(); err != nil {
			return err
		}
	}
	dns, ips := serverNames(p.DNSNames, p.IPs)
	grant, err := RouterGrant(peerCommonName, Names{DNS: dns, IPs: ips}, peerLifetime)
	if err != nil {
		return err
	}
	signer := &Signer{ca: func() (authority, []*x509.Certificate) { return ca, nil }, now: p.Now, log: p.Log}
	chain, err := signer.Sign(grant, key.Public())
	if err != nil {
		return err
	}
	c[peerFile] = EncodeCertificates(chain...)
	return f.commit(c)
}

// due reports whether a member needs another certificate than it has.
func (p Peer) due(leaf, ca *x509.Certificate) bool {
	now := p.Now()
	if leaf.CheckSignatureFrom(ca) != nil || early(leaf, ca, now) || ending(leaf, ca, now) {
		return true
	}
	lacksName := func(name string) bool { return !slices.Contains(leaf.DNSNames, name) }
	lacksIP := func(ip net.IP) bool { return !slices.ContainsFunc(leaf.IPAddresses, ip.Equal) }
	dns, ips := serverNames(p.DNSNames, p.IPs)
	return slices.ContainsFunc(dns, lacksName) || slices.ContainsFunc(ips, lacksIP)
}
