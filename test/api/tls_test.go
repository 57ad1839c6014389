package api_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"netkeep.internal/internal/ops/config"
	"netkeep.internal/test/certtest"
	"netkeep.internal/test/servertest"
)

func TestTLSVersions(t *testing.T) {
	for _, test := range []struct {
		version uint16
		allowed bool
	}{
		{tls.VersionTLS10, false}, {tls.VersionTLS11, false}, {tls.VersionTLS12, true}, {tls.VersionTLS13, true},
	} {
		cfg := shared.TLS()
		cfg.MinVersion, cfg.MaxVersion = test.version, test.version
		conn, err := tls.Dial("tcp", shared.Address(), cfg)
		if (err == nil) != test.allowed {
			t.Errorf("%s: %v", tls.VersionName(test.version), err)
		}
		if err == nil {
			_ = conn.Close()
		}
	}
}

// TestTLSWeakCiphers offers only what has no forward secrecy.
func TestTLSWeakCiphers(t *testing.T) {
	cfg := shared.TLS()
	cfg.MaxVersion = tls.VersionTLS12
	cfg.CipherSuites = []uint16{tls.TLS_RSA_WITH_AES_128_CBC_SHA, tls.TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA}
	if conn, err := tls.Dial("tcp", shared.Address(), cfg); err == nil {
		t.Errorf("the server took %s", tls.CipherSuiteName(conn.ConnectionState().CipherSuite))
		_ = conn.Close()
	}
}

func TestTLSNames(t *testing.T) {
	_, port, err := net.SplitHostPort(shared.Address())
	if err != nil {
		t.Fatal(err)
	}
	for host, good := range map[string]bool{"127.0.0.1": true, "localhost": true, "::1": true, "example.org": false, "127.0.0.2": false} {
		cfg := shared.TLS()
		cfg.ServerName = host
		conn, err := tls.Dial("tcp", net.JoinHostPort("127.0.0.1", port), cfg)
		if (err == nil) != good {
			t.Errorf("%s: %v", host, err)
		}
		if err == nil {
			_ = conn.Close()
		}
	}
	if conn, err := tls.Dial("tcp", shared.Address(), &tls.Config{RootCAs: x509.NewCertPool()}); err == nil {
		t.Error("a client that trusts nobody trusts the server")
		_ = conn.Close()
	}
}

func TestHTTPVersions(t *testing.T) {
	for _, proto := range []string{"h2", "http/1.1"} {
		cfg := shared.TLS()
		cfg.NextProtos = []string{proto}
		conn, err := tls.Dial("tcp", shared.Address(), cfg)
		if err != nil {
			t.Fatal(err)
		}
		if got := conn.ConnectionState().NegotiatedProtocol; got != proto {
			t.Errorf("offered %s, got %q", proto, got)
		}
		_ = conn.Close()
	}
	for _, h2 := range []bool{true, false} {
		client := &http.Client{Transport: &http.Transport{TLSClientConfig: shared.TLS(), ForceAttemptHTTP2: h2}}
		resp, err := client.Get(shared.URL + "/version")
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		client.CloseIdleConnections()
		if want := map[bool]int{true: 2, false: 1}[h2]; resp.ProtoMajor != want || resp.StatusCode != 200 {
			t.Errorf("HTTP/%d answered %d, want HTTP/%d", resp.ProtoMajor, resp.StatusCode, want)
		}
	}
}

// writePair writes a self-signed certificate and returns what it is.
func writePair(t *testing.T, certFile, keyFile string, change ...certtest.Change) *x509.Certificate {
	t.Helper()
	operators := func(c *x509.Certificate) { c.IsCA, c.IPAddresses = true, []net.IP{net.IPv4(127, 0, 0, 1)} }
	pair := certtest.New(t, nil, append([]certtest.Change{operators}, change...)...)
	pair.Write(t, certFile, keyFile)
	return pair.Certificate
}

// presented returns the certificate that the server shows to a new client.
func presented(t *testing.T, s *servertest.Server, trusted *x509.Certificate) *x509.Certificate {
	t.Helper()
	pool := x509.NewCertPool()
	pool.AddCert(trusted)
	conn, err := tls.Dial("tcp", s.Address(), &tls.Config{RootCAs: pool})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	return conn.ConnectionState().PeerCertificates[0]
}

// TestCertificateReload changes the operator's certificate under a running
// server.
func TestCertificateReload(t *testing.T) {
	dir := t.TempDir()
	certFile, keyFile := filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key")
	first := writePair(t, certFile, keyFile)
	s := servertest.Start(t, func(c *config.Config) { c.TLS.Cert, c.TLS.Key = certFile, keyFile })
	if got := presented(t, s, first); !got.Equal(first) {
		t.Errorf("the server shows %s", got.SerialNumber)
	}
	second := writePair(t, certFile, keyFile)
	if err := s.Reload(); err != nil {
		t.Fatal(err)
	}
	if got := presented(t, s, second); !got.Equal(second) {
		t.Errorf("after the reload the server shows %s", got.SerialNumber)
	}
	if err := os.WriteFile(keyFile, []byte("broken"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := s.Reload(); err == nil {
		t.Error("a broken key was taken")
	}
	if got := presented(t, s, second); !got.Equal(second) {
		t.Errorf("after a broken reload the server shows %s", got.SerialNumber)
	}
}

// TestCertificateWarnings serves what no client believes: that is said at a
// start and at a reload, and the metrics measure what is served.
func TestCertificateWarnings(t *testing.T) {
	dir := t.TempDir()
	certFile, keyFile := filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key")
	writePair(t, certFile, keyFile, func(c *x509.Certificate) { c.NotAfter = time.Now().Add(-time.Minute) })
	s, err := servertest.Open(dir, func(c *config.Config) { c.TLS.Cert, c.TLS.Key = certFile, keyFile })
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { // not with Close: that it complains is right
		if err := s.Stop(context.Background()); err != nil {
			t.Error(err)
		}
	})
	if !s.Logged("the server certificate expired at") || s.Logged("not made out to") {
		t.Errorf("of an expired certificate it says %v", s.Log())
	}
	if left := remaining(t, s); left > -50 || left < -70 {
		t.Errorf("the served certificate has %v seconds left", left)
	}
	writePair(t, certFile, keyFile, func(c *x509.Certificate) { c.IPAddresses, c.DNSNames = nil, []string{"elsewhere.example.org"} })
	if err := s.Reload(); err != nil {
		t.Fatal(err)
	}
	if !s.Logged("not made out to the advertised host") || !s.Logged("TLS certificate reloaded") {
		t.Errorf("of another's certificate it says %v", s.Log())
	}
	if left := remaining(t, s); left < 3500 || left > 3600 {
		t.Errorf("the served certificate has %v seconds left", left)
	}
	good := writePair(t, certFile, keyFile)
	if err := s.Reload(); err != nil {
		t.Fatal(err)
	}
	for want, spoil := range map[string]func(*x509.Certificate){
		"the server certificate expired at":              func(c *x509.Certificate) { c.NotAfter = time.Now().Add(-time.Minute) },
		"is not valid before":                            func(c *x509.Certificate) { c.NotBefore = time.Now().Add(time.Minute) },
		"not made out to the advertised host 127.0.0.1:": func(c *x509.Certificate) { c.IPAddresses, c.DNSNames = nil, []string{"elsewhere.example.org"} },
	} {
		writePair(t, certFile, keyFile, spoil)
		if err := s.Reload(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("in place of a good pair: %v, want %q", err, want)
		}
		if got := presented(t, s, good); !got.Equal(good) {
			t.Errorf("it serves %s in place of a good one", got.SerialNumber)
		}
	}
}

// remaining is what the metrics say of the server certificate.
func remaining(t *testing.T, s *servertest.Server) float64 {
	t.Helper()
	resp, err := http.Get("http://" + s.Metrics().String() + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	_, after, ok := strings.Cut(string(text), `netkeep_certificate_remaining_seconds{kind="controller",name="server"} `)
	if !ok {
		t.Fatalf("it is not measured:\n%s", text)
	}
	line, _, _ := strings.Cut(after, "\n")
	seconds, err := strconv.ParseFloat(line, 64)
	if err != nil {
		t.Fatal(err)
	}
	return seconds
}
