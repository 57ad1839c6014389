package pki

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

// lookInterval is how often at most the files are looked at.
const lookInterval = time.Second

// Served is the certificate that a TLS server hands out at present. It follows
// its two files: when they change, the next handshake a second later uses the
// new pair. A pair that cannot be used is reported once and the old one stays,
// and so it is with one that clients would not believe.
// It is safe for use by several goroutines.
type Served struct {
	certFile, keyFile string
	now               func() time.Time
	log               *slog.Logger
	// Loaded, if set, is told of every certificate that comes into force.
	Loaded func(leaf *x509.Certificate)
	// Flaw, if set, says why clients would not believe a certificate. One with a
	// flaw does not take the place of one without.
	Flaw func(leaf *x509.Certificate) error

	current atomic.Pointer[tls.Certificate]
	looked  atomic.Int64 // Unix nanoseconds

	mu   sync.Mutex // held while the files are read
	seen stamp
}

// Serve reads a certificate chain and its key from PEM files, which may be the
// keystore's or the operator's own. A key that others can read is refused.
// Reloads are logged.
func Serve(certFile, keyFile string, now func() time.Time, log *slog.Logger) (*Served, error) {
	s := &Served{certFile: certFile, keyFile: keyFile, now: now, log: log}
	s.looked.Store(now().UnixNano())
	s.seen = s.stat()
	if err := s.load(); err != nil {
		return nil, err
	}
	return s, nil
}

// TLSConfig returns a configuration for a server of HTTP/2 and HTTP/1.1 with
// this certificate. A client certificate is asked for but neither required nor
// verified: believing it is up to [Roots.VerifyLeaf].
func (s *Served) TLSConfig() *tls.Config {
	return &tls.Config{
		MinVersion:     tls.VersionTLS12,
		NextProtos:     []string{"h2", "http/1.1"},
		ClientAuth:     tls.RequestClientCert,
		GetCertificate: s.GetCertificate,
		// For TLS 1.2 only: forward secrecy and authenticated encryption.
		CipherSuites: []uint16{
			tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256,
			tls.TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256,
			tls.TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384,
			tls.TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384,
			tls.TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256,
			tls.TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256,
		},
	}
}

// GetCertificate is for [tls.Config]. It never fails: there is always a pair
// that was usable once.
func (s *Served) GetCertificate(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	if s.lookDue() {
		s.follow()
	}
	return s.Current(), nil
}

// Current returns the pair in force: chain, private key and parsed leaf. It is
// shared and must not be changed.
func (s *Served) Current() *tls.Certificate { return s.current.Load() }

// Reload reads the files at once, whether they seem changed or not. If they
// cannot be used it says why, and the old pair stays.
func (s *Served) Reload() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.seen = s.stat()
	if err := s.load(); err != nil {
		return err
	}
	s.told()
	return nil
}

// lookDue reports to one caller in each interval that it is its turn. A clock
// that was set back does not stop the turns.
func (s *Served) lookDue() bool {
	now, last := s.now().UnixNano(), s.looked.Load()
	if now >= last && now-last < int64(lookInterval) {
		return false
	}
	return s.looked.CompareAndSwap(last, now)
}

// follow reads the files if they changed since they were last read, well or
// not, so that a broken pair is reported once.
func (s *Served) follow() {
	if !s.mu.TryLock() {
		return // someone is reading them now
	}
	defer s.mu.Unlock()
	stamp := s.stat()
	if stamp.same(s.seen) {
		return
	}
	s.seen = stamp
	if err := s.load(); err != nil {
		s.log.Error("keeping the old TLS certificate", "error", err)
		return
	}
	s.told()
}

// told says that another pair is in force.
func (s *Served) told() {
	s.log.Info("TLS certificate reloaded", "file", s.certFile, "notAfter", s.Current().Leaf.NotAfter)
}

func (s *Served) load() error {
	pair, err := readPair(s.certFile, s.keyFile)
	if err != nil {
		return fmt.Errorf("loading TLS certificate %s with key %s: %w", s.certFile, s.keyFile, err)
	}
	if old := s.Current(); old != nil && s.Flaw != nil && s.Flaw(old.Leaf) == nil {
		if err := s.Flaw(pair.Leaf); err != nil {
			return fmt.Errorf("loading TLS certificate %s with key %s: %w", s.certFile, s.keyFile, err)
		}
	}
	s.current.Store(&pair)
	if s.Loaded != nil {
		s.Loaded(pair.Leaf)
	}
	return nil
}

func readPair(certFile, keyFile string) (tls.Certificate, error) {
	cert, err := readPEM(certFile, func(fs.FileInfo) error { return nil })
	if err != nil {
		return tls.Certificate{}, err
	}
	key, err := readPEM(keyFile, checkKey)
	if err != nil {
		return tls.Certificate{}, err
	}
	return tls.X509KeyPair(cert, key)
}

// readPEM reads a file that may be read, as it was when that was looked at.
func readPEM(name string, check func(fs.FileInfo) error) ([]byte, error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	info, err := file.Stat()
	if err == nil {
		err = check(info)
	}
	if err != nil {
		return nil, err
	}
	data, err := io.ReadAll(io.LimitReader(file, maxPEM+1))
	if err == nil && len(data) > maxPEM {
		err = fmt.Errorf("%s has more than %d bytes", name, maxPEM)
	}
	return data, err
}

// stamp tells whether the files are still those that were read. It is taken
// before reading, so a change in between is noticed at the next look.
type stamp [2]fs.FileInfo

func (s *Served) stat() stamp {
	var st stamp
	for i, name := range []string{s.certFile, s.keyFile} {
		if info, err := os.Stat(name); err == nil {
			st[i] = info
		}
	}
	return st
}

func (st stamp) same(other stamp) bool {
	for i, a := range st {
		if !sameFile(a, other[i]) {
			return false
		}
	}
	return true
}

// sameFile reports whether a file is as it was, as far as one sees without
// reading it.
func sameFile(a, b fs.FileInfo) bool {
	if a == nil || b == nil {
		return a == b
	}
	return os.SameFile(a, b) && a.ModTime().Equal(b.ModTime()) && a.Size() == b.Size() && a.Mode() == b.Mode()
}
