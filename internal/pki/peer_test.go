package pki

import (
	"bytes"
	"crypto/x509"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

var quiet = slog.New(slog.DiscardHandler)

func openPeer(t *testing.T, dir string, p Peer) *x509.Certificate {
	t.Helper()
	p.Log = quiet
	files := must(p.Open(dir))(t)
	pair := must(readPair(files.Cert, files.Key))(t)
	for _, name := range []string{files.Key, filepath.Join(dir, clusterKeyFile)} {
		if info := must(os.Stat(name))(t); Exposed(info) {
			t.Errorf("%s is open to others", name)
		}
	}
	pool := x509.NewCertPool()
	pool.AddCert(must(folder{path: dir}.readCertificates(clusterFile, 1))(t)[0])
	for _, usage := range []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth} {
		opt := x509.VerifyOptions{Roots: pool, CurrentTime: p.Now(), KeyUsages: []x509.ExtKeyUsage{usage}}
		if _, err := pair.Leaf.Verify(opt); err != nil {
			t.Error(err)
		}
	}
	return pair.Leaf
}

// TestPeer follows the certificate of a member through its life.
func TestPeer(t *testing.T) {
	dir, clock := filepath.Join(t.TempDir(), "pki"), newClock()
	if _, err := (Peer{Now: clock.Now, Log: quiet}).Open(dir); err == nil || !strings.Contains(err.Error(), "another member") {
		t.Errorf("an authority that is lost: %v", err)
	}
	first := openPeer(t, dir, Peer{Make: true, Now: clock.Now})
	if again := openPeer(t, dir, Peer{Now: clock.Now}); !again.Equal(first) {
		t.Error("a certificate that is good was replaced")
	}
	named := openPeer(t, dir, Peer{Now: clock.Now, DNSNames: []string{"c1.example.org"}})
	if named.Equal(first) || named.VerifyHostname("c1.example.org") != nil {
		t.Error("a certificate that lacks a name was kept")
	}
	if !SamePublic(named.PublicKey, first.PublicKey) {
		t.Error("a renewal has another key")
	}
	clock.Add(peerLifetime * 3 / 4)
	if later := openPeer(t, dir, Peer{Now: clock.Now}); !later.NotAfter.After(named.NotAfter) {
		t.Error("a certificate that ends was kept")
	}
	// It is none of the network's authorities, before there are any and after.
	if a := must(Read(dir))(t); a != nil {
		t.Error("the authority of a cluster is taken for a network's")
	}
	ks := must(Open(dir, Options{Now: clock.Now}))(t)
	if _, err := NewRoots(ks.TrustBundle()).VerifyLeaf([]*x509.Certificate{first}, VerifyOptions{Now: base}); err == nil {
		t.Error("the network believes a certificate of its cluster")
	}
}

// TestBundle hands the keys of one controller over to another.
func TestBundle(t *testing.T) {
	from, to := filepath.Join(t.TempDir(), "from"), filepath.Join(t.TempDir(), "to")
	now := func() time.Time { return base }
	old := must(Open(from, Options{Now: now}))(t)
	openPeer(t, from, Peer{Make: true, Now: now})
	r := must(NewRecipient())(t)
	sealed := must(Export(from, r.Public(), "token 1 of network A"))(t)
	for _, secret := range []string{macKeyFile, rootKeyFile, intermediateKeyFile, clusterKeyFile} {
		if text := must(os.ReadFile(filepath.Join(from, secret)))(t); bytes.Contains(sealed, text) {
			t.Errorf("%s can be read", secret)
		}
	}
	fine := func(*Authorities) error { return nil }
	if err := r.Import(to, sealed, "token 2 of network A", fine); !errors.Is(err, errBundle) {
		t.Errorf("opened for another purpose: %v", err)
	}
	if err := must(NewRecipient())(t).Import(to, sealed, "token 1 of network A", fine); !errors.Is(err, errBundle) {
		t.Errorf("opened by another: %v", err)
	}
	if err := r.Import(to, sealed[:len(sealed)-1], "token 1 of network A", fine); !errors.Is(err, errBundle) {
		t.Errorf("opened although it is cut: %v", err)
	}
	wrong := errors.New("another network")
	if err := r.Import(to, sealed, "token 1 of network A", func(*Authorities) error { return wrong }); !errors.Is(err, wrong) {
		t.Errorf("keys of another network: %v", err)
	}
	if left := must((folder{path: to}).present())(t); len(left) > 0 {
		t.Errorf("what was refused left %v", left)
	}
	if err := r.Import(to, sealed, "token 1 of network A", fine); err != nil {
		t.Fatal(err)
	}
	for _, own := range []string{serverKeyFile, serverFile, peerKeyFile, peerFile} {
		if _, err := os.Stat(filepath.Join(to, own)); err == nil {
			t.Errorf("%s was handed over", own)
		}
	}
	ks := must(Open(to, Options{Now: now}))(t)
	if !ks.Authorities().equal(old.Authorities()) || !bytes.Equal(ks.secrets.Load().first, old.secrets.Load().first) {
		t.Error("the keys are not the same")
	}
	openPeer(t, to, Peer{Now: now})
	if err := r.Import(to, sealed, "token 1 of network A", fine); err == nil {
		t.Error("keys were replaced")
	}
}

// TestBundleNamesFiles refuses one that would write elsewhere.
func TestBundleNamesFiles(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"../evil", "server.key", "change.key", ""} {
		r := must(NewRecipient())(t)
		text := []byte(`{"` + name + `":"eA=="}`)
		sealed := must(sealTo(r.Public(), text, "p"))(t)
		if err := r.Import(filepath.Join(dir, "pki"), sealed, "p", func(*Authorities) error { return nil }); err == nil {
			t.Errorf("a file %q was taken", name)
		}
	}
	if entries := must(os.ReadDir(dir))(t); len(entries) > 0 {
		t.Errorf("there is %v", entries)
	}
}
