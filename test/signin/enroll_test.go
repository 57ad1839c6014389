package signin

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestEnroll makes identities of who signs in: with a certificate, and without.
func TestEnroll(t *testing.T) {
	w := start(t, time.Hour)
	w.good("admin", "delete", "identity", "ann", "--yes")
	ca, file := filepath.Join(w.data(), "pki", "root.crt"), filepath.Join(w.dir, "me.json")
	enroll := func(who string, more ...string) (string, int) {
		t.Helper()
		return w.command(who, true, append([]string{"enroll", "--sso", w.address, "--ca", ca}, more...)...).end()
	}
	if text, code := enroll("ann", "-o", file); code == 0 {
		t.Errorf("a signer that does not enroll: %s", text)
	}
	if left, err := os.ReadDir(filepath.Join(w.dir, "ann")); err == nil {
		t.Errorf("it leaves %v", left)
	}
	w.good("admin", "update", "ext-jwt-signer", "Corp", "--enroll-to-cert-enabled=true", "--enroll-claims", "sub="+person)
	if text, code := enroll("ann", "laptop.jwt"); code != 2 || !strings.Contains(text, "leave one of them out") {
		t.Errorf("with a token besides: %d: %s", code, text)
	}
	if text, code := w.command("ann", true, "enroll", "--sso").end(); code != 2 || !strings.Contains(text, "say where the controller is") {
		t.Errorf("without an address or a profile: %d: %s", code, text)
	}
	text, code := enroll("ann", "-o", file)
	if code != 0 || !strings.Contains(text, "Enrolled as ") {
		t.Fatalf("%d: %s", code, text)
	}
	if text := w.good("ann", "services", "--identity", file); strings.Contains(text, "netkeep:") {
		t.Error(text)
	}
}
