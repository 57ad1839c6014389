package pki

import (
	"crypto/x509"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"time"
)

const serverCommonName = "netkeep server"

// RenewIfDue issues the server certificate again if [Open] would, for the same
// key. What [Served] hands out follows within a second, or at once after Reload.
func (ks *Keystore) RenewIfDue() error {
	unlock, err := ks.folder.lock()
	if err != nil {
		return fmt.Errorf("renewing server certificate: %w", err)
	}
	defer unlock()
	if err := ks.openServer(); err != nil {
		return fmt.Errorf("renewing server certificate: %w", err)
	}
	return nil
}

// Served returns the server certificate as TLS needs it.
func (ks *Keystore) Served(log *slog.Logger) (*Served, error) {
	return Serve(ks.folder.file(serverFile), ks.folder.file(serverKeyFile), ks.opt.Now, log)
}

// openServer reads the server's key and certificate, and makes what is missing
// or due. The caller holds the folder's lock; the files are read each time, as
// another process may have changed them.
func (ks *Keystore) openServer() error {
	key, err := ks.folder.readKey(serverKeyFile)
	if err != nil {
		return err
	}
	if key == nil {
		// The certificate of a lost key is worthless, and beside a new
		// key it would be a mismatch if we were cut short here.
		if err := ks.folder.remove(serverFile); err != nil {
			return err
		}
		if key, err = ks.newKey(serverKeyFile); err != nil {
			return err
		}
	}
	chain, err := ks.folder.readCertificates(serverFile, maxPresented)
	if err != nil {
		return err
	}
	if chain != nil && !SamePublic(key.Public(), chain[0].PublicKey) {
		return ks.folder.problem(serverFile, fmt.Errorf("does not belong to %s", serverKeyFile))
	}
	if ks.due(chain) {
		if chain, err = ks.issueServer(key.Public()); err != nil {
			return err
		}
	}
	ks.mu.Lock()
	ks.server = chain[0]
	ks.mu.Unlock()
	return nil
}

// issueServer signs and writes a server certificate, once it is sure that
// peers who trust the root will believe it.
func (ks *Keystore) issueServer(pub any) ([]*x509.Certificate, error) {
	grant, err := ServerGrant(serverCommonName, ks.opt.DNSNames, ks.opt.IPs, serverLifetime)
	if err != nil {
		return nil, err
	}
	chain, err := ks.Signer().Sign(grant, pub)
	if err != nil {
		return nil, err
	}
	if _, err := NewRoots(ks.Authorities().Roots()).VerifyLeaf(chain, VerifyOptions{Now: ks.opt.Now()}); err != nil {
		return nil, ks.folder.problem(intermediateFile, fmt.Errorf("cannot sign for the server: %w", err))
	}
	return chain, ks.folder.write(serverFile, EncodeCertificates(chain...))
}

// due reports whether the server needs another certificate than the one it has.
func (ks *Keystore) due(chain []*x509.Certificate) bool {
	signing, along := ks.signing()
	ca := signing.cert
	if len(chain) == 0 || !slices.EqualFunc(chain[1:], along, (*x509.Certificate).Equal) || chain[0].CheckSignatureFrom(ca) != nil {
		return true
	}
	leaf, now := chain[0], ks.opt.Now()
	return early(leaf, ca, now) || ending(leaf, ca, now) || ks.lacksName(leaf)
}

// early reports whether a leaf has not begun, which happens after a clock was
// set right, and a new one would have.
func early(leaf, ca *x509.Certificate, now time.Time) bool {
	return now.Before(leaf.NotBefore) && !now.Before(ca.NotBefore)
}

// ending reports whether a leaf has less than a third of its life left and a
// new one would live longer.
func ending(leaf, ca *x509.Certificate, now time.Time) bool {
	left, life := leaf.NotAfter.Sub(now), leaf.NotAfter.Sub(leaf.NotBefore)
	return left < life/3 && ca.NotAfter.After(leaf.NotAfter)
}

func (ks *Keystore) lacksName(leaf *x509.Certificate) bool {
	for _, name := range ks.opt.DNSNames {
		if !slices.Contains(leaf.DNSNames, name) {
			return true
		}
	}
	return slices.ContainsFunc(ks.opt.IPs, func(ip net.IP) bool {
		return !slices.ContainsFunc(leaf.IPAddresses, ip.Equal)
	})
}
