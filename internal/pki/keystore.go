package pki

import (
	"bytes"
	"crypto"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Options says how to open a keystore.
type Options struct {
	// Now is the clock. It is required.
	Now func() time.Time

	// Algorithm is the kind of every key that has to be made. Keys that exist
	// stay as they are.
	Algorithm Algorithm

	// DNSNames and IPs are what the server certificate answers for, besides
	// localhost, 127.0.0.1 and ::1.
	DNSNames []string
	IPs      []net.IP

	// Log is told of every certificate that is made; nobody is if it is nil.
	Log *slog.Logger
}

// Keystore is a directory with the keys and certificates of one network: a root
// CA, the intermediate CA that signs, the server's own certificate, and a
// secret from which keys for message authentication are derived. It is safe for
// use by several goroutines, and several processes may open one directory.
//
// CAs and secrets change by a [Rotation], or by a [Bundle] that another controller
// handed over, which takes effect with [Keystore.Follow]. The server certificate may be renewed; its
// key is kept, since enrollment tokens are signed with it and must outlive a
// renewal.
type Keystore struct {
	folder   folder
	opt      Options
	generate func() (crypto.Signer, error)
	secrets  atomic.Pointer[secrets]
	issuing  atomic.Pointer[issuing]

	mu     sync.Mutex
	server *x509.Certificate
	seen   seen
}

// issuing is the authorities with the key that signs.
type issuing struct {
	*Authorities
	key crypto.Signer
}

// Open opens the keystore in dir, making what is not there yet and finishing a
// creation that was cut short. Directory and files belong to the owner alone;
// secrets that others could read are refused. It never replaces a CA key or
// certificate: files that are lost, damaged or do not belong together are
// errors that name the file and the remedy. The server certificate is issued
// again when less than a third of its life is left, when it lacks a requested
// name, and when it is not from the present intermediate CA.
//
// The key of the root may be taken away to a safe place once Open has returned.
func Open(dir string, opt Options) (*Keystore, error) {
	return open(folder{path: dir, rename: os.Rename}, opt)
}

func open(f folder, opt Options) (*Keystore, error) {
	ks := &Keystore{folder: f, opt: opt}
	if err := ks.open(); err != nil {
		return nil, fmt.Errorf("opening keystore: %w", err)
	}
	return ks, nil
}

func (ks *Keystore) open() (err error) {
	if ks.opt.Now == nil {
		return errors.New("no clock given")
	}
	if ks.opt.Log == nil {
		ks.opt.Log = slog.New(slog.DiscardHandler)
	}
	ks.opt.DNSNames, ks.opt.IPs = serverNames(ks.opt.DNSNames, ks.opt.IPs)
	if ks.generate, err = ks.opt.Algorithm.generator(); err != nil {
		return err
	}
	if err := ks.folder.make(); err != nil {
		return err
	}
	unlock, err := ks.folder.lock()
	if err != nil {
		return err
	}
	defer unlock()
	for _, step := range []func() error{
		ks.folder.close, ks.folder.sweep, ks.folder.finish, ks.folder.checkLost,
		ks.openSecret, ks.openAuthorities, ks.openServer,
	} {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

func (ks *Keystore) openSecret() error {
	_, found, err := ks.folder.read(macKeyFile)
	if err != nil {
		return err
	}
	if !found {
		if err := ks.folder.write(macKeyFile, newSecret()); err != nil {
			return err
		}
	}
	all, err := ks.folder.secrets()
	if err != nil {
		return err
	}
	ks.secrets.Store(all)
	return nil
}

// openAuthorities opens the root and the intermediate CA. The root's key is
// forgotten as soon as it is not needed.
func (ks *Keystore) openAuthorities() error {
	ks.seen = ks.folder.look()
	root, err := ks.openAuthority(rootKeyFile, rootFile, func(key crypto.Signer) (*x509.Certificate, error) {
		return newRoot(key, ks.opt.Now())
	})
	if err != nil {
		return err
	}
	if err := checkAuthority(root.cert, root.cert); err != nil {
		return ks.folder.problem(rootFile, err)
	}
	intermediate, err := ks.openAuthority(intermediateKeyFile, intermediateFile, func(key crypto.Signer) (*x509.Certificate, error) {
		return newIntermediate(root, key, ks.opt.Now())
	})
	if err != nil {
		return err
	}
	all, err := ks.folder.authorities()
	if err != nil {
		return err
	}
	ks.use(all, intermediate.key)
	return nil
}

func (ks *Keystore) use(a *Authorities, key crypto.Signer) { ks.issuing.Store(&issuing{a, key}) }

// openAuthority reads a CA from its two files. What is missing is made: that it
// may be, checkLost has said.
func (ks *Keystore) openAuthority(keyFile, certFile string, issue func(crypto.Signer) (*x509.Certificate, error)) (authority, error) {
	key, err := ks.folder.readKey(keyFile)
	if err != nil {
		return authority{}, err
	}
	certs, err := ks.folder.readCertificates(certFile, 1)
	if err != nil {
		return authority{}, err
	}
	if key == nil && certs == nil {
		if key, err = ks.newKey(keyFile); err != nil {
			return authority{}, err
		}
	}
	if certs == nil {
		cert, err := issue(key)
		if err != nil {
			return authority{}, fmt.Errorf("making %s: %w", ks.folder.file(certFile), err)
		}
		certs = []*x509.Certificate{cert}
		if err := ks.folder.write(certFile, EncodeCertificates(cert)); err != nil {
			return authority{}, err
		}
		logMade(ks.opt.Log, cert)
	}
	if key != nil && !SamePublic(key.Public(), certs[0].PublicKey) {
		return authority{}, ks.folder.problem(keyFile, fmt.Errorf("does not belong to %s", certFile))
	}
	return authority{cert: certs[0], key: key}, nil
}

func (ks *Keystore) newKey(name string) (crypto.Signer, error) {
	key, err := ks.generate()
	if err != nil {
		return nil, fmt.Errorf("making %s: %w", ks.folder.file(name), err)
	}
	data, err := EncodeKey(key)
	if err != nil {
		return nil, err
	}
	return key, ks.folder.write(name, data)
}

// checkAuthority refuses a certificate that parent did not sign or that cannot
// act as a CA.
func checkAuthority(cert, parent *x509.Certificate) error {
	switch {
	case !cert.BasicConstraintsValid || !cert.IsCA:
		return errors.New("not a CA certificate")
	case cert.KeyUsage != 0 && cert.KeyUsage&x509.KeyUsageCertSign == 0:
		return errors.New("may not sign certificates")
	case !bytes.Equal(cert.RawIssuer, parent.RawSubject) || cert.CheckSignatureFrom(parent) != nil:
		return fmt.Errorf("not signed by %q of %s", parent.Subject.CommonName, rootFile)
	}
	return checkPublic(cert.PublicKey)
}

// Authorities returns who signs, and who is trusted, at present.
func (ks *Keystore) Authorities() *Authorities { return ks.issuing.Load().Authorities }

// Root returns the certificate of the root CA.
func (ks *Keystore) Root() *x509.Certificate { return ks.Authorities().Root }

// Intermediate returns the certificate of the CA that signs.
func (ks *Keystore) Intermediate() *x509.Certificate { return ks.Authorities().Intermediate }

// TrustBundle returns the certificates that peers need to believe what we sign:
// the intermediate CA, then the root, then those that are trusted besides.
func (ks *Keystore) TrustBundle() []*x509.Certificate { return ks.Authorities().Bundle() }

// Signer returns the signer of the intermediate CA, whichever that is at the
// time.
func (ks *Keystore) Signer() *Signer {
	return &Signer{ca: ks.signing, now: ks.opt.Now, log: ks.opt.Log}
}

// signing is who signs now, and what goes along with what it signs.
func (ks *Keystore) signing() (authority, []*x509.Certificate) {
	now := ks.issuing.Load()
	return authority{cert: now.Intermediate, key: now.key}, now.chain()
}

// Item is one certificate of the inventory.
type Item struct {
	Name     string // root, intermediate or server
	Subject  string
	NotAfter time.Time
}

// Inventory lists every certificate of the keystore.
func (ks *Keystore) Inventory() []Item {
	ks.mu.Lock()
	server := ks.server
	ks.mu.Unlock()
	item := func(name string, c *x509.Certificate) Item {
		return Item{Name: name, Subject: c.Subject.String(), NotAfter: c.NotAfter}
	}
	return []Item{item("root", ks.Root()), item("intermediate", ks.Intermediate()), item("server", server)}
}

// serverNames adds the names a server always has and drops repetitions.
func serverNames(dns []string, ips []net.IP) ([]string, []net.IP) {
	allDNS := []string{"localhost"}
	for _, name := range dns {
		if name = strings.ToLower(name); !slices.Contains(allDNS, name) {
			allDNS = append(allDNS, name)
		}
	}
	allIPs := []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback}
	for _, ip := range ips {
		if !slices.ContainsFunc(allIPs, ip.Equal) {
			allIPs = append(allIPs, ip)
		}
	}
	return allDNS, allIPs
}
