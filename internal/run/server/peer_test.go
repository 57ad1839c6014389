package server

import (
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"netkeep.internal/internal/data/keyring"
	"netkeep.internal/internal/pki"
)

// TestCatchUpPeer has the certificate for the other members fail when keys are handed
// over: it is tried until it works, and then no more.
func TestCatchUpPeer(t *testing.T) {
	s := &Server{dir: &dir{path: t.TempDir()}, log: slog.New(slog.DiscardHandler)}
	s.cfg.Cluster.Listen = "127.0.0.1:1"
	if _, err := pki.Open(s.dir.sub(keysDir), pki.Options{Now: time.Now}); err != nil {
		t.Fatal(err)
	}
	files, err := s.openPeer(true)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(files.Cert); err != nil {
		t.Fatal(err)
	}
	// What cannot be read is in the way.
	if err := os.MkdirAll(filepath.Join(files.Cert, "in the way"), 0o700); err != nil {
		t.Fatal(err)
	}
	ring := handedOver(t, s)
	own, err := pki.ReadBundle(s.dir.sub(keysDir))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.takeShared(t.Context(), "me", ring, own); err == nil {
		t.Fatal("a certificate is made where there is no place for it")
	}
	if own, err = pki.ReadBundle(s.dir.sub(keysDir)); err != nil || own.Generation() != ring.Generation {
		t.Fatalf("the keys are of generation %d, %v", own.Generation(), err)
	}
	for range 2 {
		if err := s.catchUpPeer(); err == nil || !s.peerLate.Load() {
			t.Fatalf("it is tried no more after %v", err)
		}
	}
	if err := os.RemoveAll(files.Cert); err != nil {
		t.Fatal(err)
	}
	if err := s.catchUpPeer(); err != nil || s.peerLate.Load() {
		t.Fatalf("it is tried again after %v", err)
	}
	if _, err := os.Stat(files.Cert); err != nil {
		t.Error(err)
	}
}

// handedOver is keys of the next generation, sealed for the controller.
func handedOver(t *testing.T, s *Server) keyring.Ring {
	t.Helper()
	dir := s.dir.sub(keysDir)
	own, err := pki.ReadBundle(dir)
	if err != nil {
		t.Fatal(err)
	}
	next, err := own.After(own.Generation())
	if err != nil {
		t.Fatal(err)
	}
	if s.handover, err = pki.OpenHandover(dir); err != nil {
		t.Fatal(err)
	}
	sealed, err := s.handover.SealFor(next, s.handover.Public(), handoverPurpose(rootName(own.Authorities().Origin), "me", next.Generation()))
	if err != nil {
		t.Fatal(err)
	}
	return keyring.Ring{Generation: next.Generation(), Digest: next.Digest(), Sealed: map[string][]byte{"me": sealed}}
}
