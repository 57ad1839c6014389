package pki

import (
	"bytes"
	"context"
	"crypto"
	"crypto/tls"
	"crypto/x509"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// pairFiles is an operator's certificate and key, which a test replaces.
type pairFiles struct {
	folder
	signer *Signer
}

func newPairFiles(t *testing.T) *pairFiles {
	t.Helper()
	s, _ := newSigner(t)
	return &pairFiles{folder: folder{path: t.TempDir(), rename: os.Rename}, signer: s}
}

// replace writes the files of a new pair, of the two those named, and returns
// its certificate.
func (p *pairFiles) replace(t *testing.T, names ...string) *x509.Certificate {
	t.Helper()
	var key crypto.Signer = ecKey(t)
	grant := must(ServerGrant("own", []string{"localhost"}, nil, time.Hour))(t)
	chain := must(p.signer.Sign(grant, key.Public()))(t)
	for _, name := range names {
		data := EncodeCertificates(chain...)
		if name == serverKeyFile {
			data = must(EncodeKey(key))(t)
		}
		if err := p.write(name, data); err != nil {
			t.Fatal(err)
		}
	}
	return chain[0]
}

func (p *pairFiles) serve(t *testing.T, c *clock, log *bytes.Buffer) *Served {
	t.Helper()
	return must(Serve(p.file(serverFile), p.file(serverKeyFile), c.Now, slog.New(slog.NewTextHandler(log, nil))))(t)
}

func wantServed(t *testing.T, s *Served, want *x509.Certificate) {
	t.Helper()
	if got := must(s.GetCertificate(nil))(t); !got.Leaf.Equal(want) {
		t.Errorf("serves number %v, want %v", got.Leaf.SerialNumber, want.SerialNumber)
	}
}

func TestServedFollowsFiles(t *testing.T) {
	c := newClock()
	var log bytes.Buffer
	p := newPairFiles(t)
	first := p.replace(t, serverFile, serverKeyFile)
	s := p.serve(t, c, &log)
	wantServed(t, s, first)

	second := p.replace(t, serverFile, serverKeyFile)
	c.Add(999 * time.Millisecond)
	wantServed(t, s, first) // not looked at yet
	c.Add(time.Millisecond)
	wantServed(t, s, second)
	if n := strings.Count(log.String(), "reloaded"); n != 1 {
		t.Errorf("%d reloads in the log: %s", n, &log)
	}

	third := p.replace(t, serverFile, serverKeyFile)
	c.Add(-time.Hour) // a clock set back is no reason to stop looking
	wantServed(t, s, third)

	fourth := p.replace(t, serverFile, serverKeyFile)
	if err := s.Reload(); err != nil {
		t.Fatal(err)
	}
	wantServed(t, s, fourth)
	c.Add(time.Minute)
	wantServed(t, s, fourth)
	if n := strings.Count(log.String(), "reloaded"); n != 3 {
		t.Errorf("%d reloads in the log: %s", n, &log)
	}
}

func TestServedKeepsOldPair(t *testing.T) {
	for name, spoil := range map[string]func(*testing.T, *pairFiles) error{
		"other certificate": func(t *testing.T, p *pairFiles) error { p.replace(t, serverFile); return nil },
		"other key":         func(t *testing.T, p *pairFiles) error { p.replace(t, serverKeyFile); return nil },
		"emptied":           func(_ *testing.T, p *pairFiles) error { return os.Truncate(p.file(serverFile), 0) },
		"garbage key":       func(_ *testing.T, p *pairFiles) error { return p.write(serverKeyFile, []byte("x")) },
		"certificate gone":  func(_ *testing.T, p *pairFiles) error { return p.remove(serverFile) },
		"key gone":          func(_ *testing.T, p *pairFiles) error { return p.remove(serverKeyFile) },
	} {
		t.Run(name, func(t *testing.T) {
			c := newClock()
			var log bytes.Buffer
			p := newPairFiles(t)
			first := p.replace(t, serverFile, serverKeyFile)
			s := p.serve(t, c, &log)
			if err := spoil(t, p); err != nil {
				t.Fatal(err)
			}
			for range 3 {
				c.Add(time.Second)
				wantServed(t, s, first)
			}
			if n := strings.Count(log.String(), "keeping the old TLS certificate"); n != 1 {
				t.Errorf("%d reports: %s", n, &log)
			}
			wantError(t, s.Reload(), p.file(serverFile), p.file(serverKeyFile))
			wantServed(t, s, first)

			mended := p.replace(t, serverFile, serverKeyFile)
			c.Add(time.Second)
			wantServed(t, s, mended)
		})
	}
}

func TestServeRefuses(t *testing.T) {
	p := newPairFiles(t)
	_, err := Serve(p.file(serverFile), p.file(serverKeyFile), newClock().Now, slog.New(slog.DiscardHandler))
	wantError(t, err, p.file(serverFile))
}

// TestServedUnderLoad replaces the pair while handshakes ask for it.
func TestServedUnderLoad(t *testing.T) {
	c := newClock()
	p := newPairFiles(t)
	p.replace(t, serverFile, serverKeyFile)
	s := must(Serve(p.file(serverFile), p.file(serverKeyFile), c.Now, slog.New(slog.DiscardHandler)))(t)
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for ctx.Err() == nil {
				c.Add(time.Second)
				pair, err := s.GetCertificate(nil)
				if err != nil || !SamePublic(pair.PrivateKey.(crypto.Signer).Public(), pair.Leaf.PublicKey) {
					t.Errorf("a pair that does not match: %v", err)
					return
				}
			}
		})
	}
	var last *x509.Certificate
	for range 20 {
		last = p.replace(t, serverFile, serverKeyFile)
	}
	cancel()
	wg.Wait()
	c.Add(time.Second)
	wantServed(t, s, last)
}

// handshake connects a client to a server and returns what both saw.
func handshake(t *testing.T, server, client *tls.Config) (srv, cli tls.ConnectionState, err error) {
	t.Helper()
	a, b := net.Pipe()
	defer a.Close()
	defer b.Close()
	accepted := tls.Server(a, server)
	var wg sync.WaitGroup
	defer wg.Wait()
	wg.Go(func() {
		if accepted.HandshakeContext(t.Context()) != nil {
			a.Close()
			return
		}
		accepted.Write([]byte("x"))
	})
	conn := tls.Client(b, client)
	if err := conn.HandshakeContext(t.Context()); err != nil {
		b.Close()
		return srv, cli, err
	}
	if _, err := conn.Read(make([]byte, 1)); err != nil {
		b.Close()
		return srv, cli, err
	}
	return accepted.ConnectionState(), conn.ConnectionState(), nil
}

func TestTLS(t *testing.T) {
	c := newClock()
	for _, alg := range []Algorithm{P256, RSA2048, Ed25519} {
		ks := must(Open(filepath.Join(t.TempDir(), "ks"), Options{Now: c.Now, Algorithm: alg, DNSNames: []string{"ctrl.example"}}))(t)
		served := must(ks.Served(slog.New(slog.DiscardHandler)))(t)
		server := served.TLSConfig()
		server.Time = c.Now
		pool := x509.NewCertPool()
		pool.AddCert(ks.Root())
		client := func(version uint16) *tls.Config {
			return &tls.Config{
				RootCAs: pool, Time: c.Now, ServerName: "ctrl.example",
				MinVersion: version, MaxVersion: version, NextProtos: []string{"h2", "http/1.1"},
			}
		}
		for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
			_, cli, err := handshake(t, server, client(version))
			if err != nil {
				t.Fatalf("%s, version %x: %v", alg, version, err)
			}
			if cli.NegotiatedProtocol != "h2" || len(cli.PeerCertificates) != 2 {
				t.Errorf("protocol %q, %d certificates", cli.NegotiatedProtocol, len(cli.PeerCertificates))
			}
		}
		if _, _, err := handshake(t, server, client(tls.VersionTLS11)); err == nil || server.MinVersion != tls.VersionTLS12 {
			t.Error("TLS 1.1 accepted")
		}
		cbc := client(tls.VersionTLS12)
		cbc.CipherSuites = []uint16{tls.TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA, tls.TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA}
		if _, _, err := handshake(t, server, cbc); err == nil {
			t.Error("CBC cipher suite accepted")
		}

		// A client certificate from nowhere reaches us and proves nothing.
		key := ecKey(t)
		own := issue(t, authority{key: key}, x509.Certificate{Subject: name("stranger")}, key.Public())
		withCert := client(tls.VersionTLS13)
		withCert.Certificates = []tls.Certificate{{Certificate: [][]byte{own.Raw}, PrivateKey: key}}
		srv, _, err := handshake(t, server, withCert)
		if err != nil || len(srv.PeerCertificates) != 1 || len(srv.VerifiedChains) != 0 {
			t.Fatalf("%d client certificates, %d verified chains: %v", len(srv.PeerCertificates), len(srv.VerifiedChains), err)
		}
		wantRefused(t, NewRoots(ks.TrustBundle()), srv.PeerCertificates...)

		old := served.Current().Leaf
		c.Add(late)
		if err := ks.RenewIfDue(); err != nil {
			t.Fatal(err)
		}
		_, cli, err := handshake(t, server, client(tls.VersionTLS13))
		if err != nil || cli.PeerCertificates[0].Equal(old) {
			t.Errorf("old certificate after renewal: %v", err)
		}
		if !SamePublic(served.Current().Leaf.PublicKey, old.PublicKey) {
			t.Error("renewal changed the key")
		}
	}
}
