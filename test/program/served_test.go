package program_test

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// operator is an authority that only the operator knows.
type operator struct {
	t    *testing.T
	cert *x509.Certificate
	key  crypto.Signer
}

func newOperator(t *testing.T) *operator {
	o := &operator{t: t}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "the operator's"}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour)}
	o.cert, o.key = o.sign(template, template)
	return o
}

func (o *operator) sign(template, parent *x509.Certificate) (*x509.Certificate, crypto.Signer) {
	o.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		o.t.Fatal(err)
	}
	by := o.key
	if by == nil {
		by = key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), by)
	if err != nil {
		o.t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		o.t.Fatal(err)
	}
	return cert, key
}

// write gives a controller at 127.0.0.1 a new pair. The file has no more than
// what is made out to it.
func (o *operator) write(certFile, keyFile string, serial int64) {
	o.t.Helper()
	cert, key := o.sign(&x509.Certificate{SerialNumber: big.NewInt(serial), Subject: pkix.Name{CommonName: "net.example.com"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}}, o.cert)
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		o.t.Fatal(err)
	}
	for file, block := range map[string]*pem.Block{certFile: {Type: "CERTIFICATE", Bytes: cert.Raw}, keyFile: {Type: "PRIVATE KEY", Bytes: secret}} {
		if err := os.WriteFile(file, pem.EncodeToMemory(block), 0o600); err != nil {
			o.t.Fatal(err)
		}
	}
}

// TestLoginToOwnCertificate logs in as the start's own words say, to a controller
// with a certificate of the operator's, and again when that was renewed. Without
// the directory, it is said what is missing.
func TestLoginToOwnCertificate(t *testing.T) {
	dir := t.TempDir()
	data, cert, key := filepath.Join(dir, "data"), filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key")
	o := newOperator(t)
	o.write(cert, key, 2)
	p := controller(t, data, "--tls-cert", cert, "--tls-key", key)
	login := func(args ...string) *process {
		t.Helper()
		return launch(t, settings{args: append([]string{"login"}, args...), env: []string{"HOME=" + dir, "NETKEEP_PASSWORD=" + password}})
	}
	in := func() {
		t.Helper()
		if l := login("--data", data, "--username", "admin"); l.wait() != 0 {
			t.Errorf("the login failed: %s", l.stderr.String())
		}
		if l := launch(t, settings{args: []string{"status"}, env: []string{"HOME=" + dir}}); l.wait() != 0 {
			t.Errorf("what is remembered of it does not do: %s", l.stderr.String())
		}
	}
	in()
	login(p.ready(), "--profile", "afar").refuses(6, "is of an authority that neither this machine nor the controller names", "give its certificate with --ca FILE")
	noted := func() string {
		text, err := os.ReadFile(filepath.Join(data, "served.crt"))
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	before := noted()
	o.write(cert, key, 3)
	p.signal(syscall.SIGHUP)
	for deadline := time.Now().Add(waitTime); noted() == before; <-time.After(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the new certificate is not noted")
		}
	}
	in()
	p.stop()

	// Without it, nothing of it stays.
	p = controller(t, data)
	if _, err := os.Stat(filepath.Join(data, "served.crt")); err == nil {
		t.Error("a certificate is noted that is not served any more")
	}
	in()
	p.stop()
}

// TestUncoveredCheck has a check of settings refuse a certificate that is not made
// out to where clients are sent, and take one that is.
func TestUncoveredCheck(t *testing.T) {
	dir := t.TempDir()
	cert, key := filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key")
	newOperator(t).write(cert, key, 2)
	check := func(advertise string) *process {
		return launch(t, settings{args: []string{"config", "check", "--listen", "127.0.0.1:1", "--advertise", advertise, "--tls-cert", cert, "--tls-key", key}})
	}
	check("net.example.com:1280").refuses(1, "tls.cert", "not made out to the advertised host net.example.com", "clients would refuse it")
	if p := check("127.0.0.1:1280"); p.wait() != 0 {
		t.Errorf("one that is good is refused: %s", p.stderr.String())
	}
}
