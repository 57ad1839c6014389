package pki

import (
	"bytes"
	"crypto"
	"crypto/x509"
	"errors"
	"log/slog"
	"time"
)

// ClusterCA is the CA between members of a cluster, as commands name it.
const ClusterCA = "cluster"

// The files of one that takes the place of another. Of the one before only the
// certificate is kept: it signs no more, and is trusted until it is finished.
const (
	nextClusterKeyFile = "next-cluster.key"
	nextClusterFile    = "next-cluster.crt"
	formerClusterFile  = "former-cluster.crt"
)

// Cluster are the CAs between members of a cluster. Next and Former are trusted
// beside the one that signs; all may be nil.
type Cluster struct{ Current, Next, Former *x509.Certificate }

// Trusted are those that there are.
func (c Cluster) Trusted() (list []*x509.Certificate) {
	for _, ca := range []*x509.Certificate{c.Current, c.Next, c.Former} {
		if ca != nil {
			list = append(list, ca)
		}
	}
	return list
}

// cluster reads them.
func (f folder) cluster() (c Cluster, err error) {
	for name, to := range map[string]**x509.Certificate{clusterFile: &c.Current, nextClusterFile: &c.Next, formerClusterFile: &c.Former} {
		certs, err := f.readCertificates(name, 1)
		if err != nil {
			return c, err
		}
		if len(certs) == 0 {
			continue
		}
		if *to = certs[0]; checkAuthority(certs[0], certs[0]) != nil {
			return c, f.problem(name, errors.New("it is no CA of a cluster"))
		}
	}
	return c, nil
}

// newClusterCA makes one as part of a change.
func newClusterCA(c change, keyFile, file string, now time.Time, log *slog.Logger) (authority, error) {
	key, text, err := newPeerKey()
	if err != nil {
		return authority{}, err
	}
	t, err := caTemplate("Netkeep Cluster CA", key.Public())
	if err != nil {
		return authority{}, err
	}
	t.MaxPathLenZero = true
	t.NotBefore, t.NotAfter = now.Add(-backdate), now.Add(rootLifetime)
	cert, err := certify(t, t, key.Public(), key)
	if err != nil {
		return authority{}, err
	}
	logMade(log, cert)
	c[keyFile], c[file] = text, EncodeCertificates(cert)
	return authority{cert: cert, key: key}, nil
}

func newPeerKey() (crypto.Signer, []byte, error) { return Rotation{Algorithm: P256}.newKey() }

// writeTrust leaves a member the list of those whom it trusts, as it has to have it:
// in one file.
func (f folder) writeTrust(c Cluster) error {
	text := EncodeCertificates(c.Trusted()...)
	if is, _, err := f.read(peerTrustFile); err == nil && bytes.Equal(is, text) {
		return nil
	}
	return f.write(peerTrustFile, text)
}

// Cluster puts another CA between members of a cluster in place of the present one.
// Both are trusted until FinishCluster.
func (r Rotation) Cluster() (*Authorities, error) {
	return r.begin("rotating the CA between controllers", ClusterCA, func(f folder, _ *Authorities) (change, error) {
		is, err := f.cluster()
		switch {
		case err != nil:
			return nil, err
		case is.Current == nil:
			return nil, errors.New("there is none: it is made when a controller is first started with --cluster-listen")
		case is.Former != nil:
			return nil, errors.New("this is under way, and there can be only one at a time: netkeep keys rotate cluster --finish ends it")
		}
		c := change{}
		_, err = newClusterCA(c, nextClusterKeyFile, nextClusterFile, r.Now(), r.Log)
		return c, err
	})
}

// FinishCluster ends the trust in the CA of before.
func (r Rotation) FinishCluster() (*Authorities, error) {
	return r.change("finishing the rotation of the CA between controllers", func(f folder, _ *Authorities, g generation) (change, error) {
		is, err := f.cluster()
		switch {
		case err != nil:
			return nil, err
		case g.Next != "":
			return nil, errWaits(g.Next)
		case is.Former == nil:
			return nil, errors.New("none is under way: netkeep keys rotate cluster begins one")
		}
		c := change{formerClusterFile: nil}
		return c, g.follow(c, "")
	})
}

// takeCluster has the next one take the place of the one that signs.
func (f folder) takeCluster(c change) error {
	for name, to := range map[string]string{clusterFile: formerClusterFile, nextClusterFile: clusterFile, nextClusterKeyFile: clusterKeyFile} {
		data, found, err := f.read(name)
		if err != nil {
			return err
		}
		if !found {
			return f.problem(name, errors.New("missing"))
		}
		c[to] = data
	}
	c[nextClusterFile], c[nextClusterKeyFile] = nil, nil
	return nil
}
