package cluster_test

import (
	"crypto/x509"
	"net"
	"path/filepath"
	"strings"
	"testing"

	"netkeep.internal/internal/ops/config"
	"netkeep.internal/overlay"
	"netkeep.internal/test/certtest"
	"netkeep.internal/test/etcdtest"
	"netkeep.internal/test/servertest"
)

// TestOtherAuthority invites at one of two controllers that serve certificates of
// another authority, which is gone before anybody comes: who trusts that authority
// enrolls at the other, and goes on from there; who does not is told so before the token
// is spent.
func TestOtherAuthority(t *testing.T) {
	beside(t)
	dir, etcd := t.TempDir(), etcdtest.Start(t)
	ca := certtest.New(t, nil, func(c *x509.Certificate) { c.IsCA = true })
	pair := certtest.New(t, &ca, func(c *x509.Certificate) { c.IPAddresses = []net.IP{net.IPv4(127, 0, 0, 1)} })
	trusted, cert, key := filepath.Join(dir, "ca.crt"), filepath.Join(dir, "served.crt"), filepath.Join(dir, "served.key")
	ca.Write(t, trusted, filepath.Join(dir, "ca.key"))
	pair.Write(t, cert, key)
	use := func(c *config.Config) {
		etcd.Settings(c)
		c.TLS.Cert, c.TLS.Key = cert, key
	}
	netkeep := func(args ...string) string {
		t.Helper()
		code, text := command(t, dir, args...)
		if code != 0 {
			t.Fatalf("netkeep %s: %s", strings.Join(args, " "), text)
		}
		first, _, _ := strings.Cut(text, "\n")
		return first
	}
	a, err := servertest.Open(t.TempDir(), use)
	if err != nil {
		t.Fatal(err)
	}
	netkeep("login", a.URL, "--ca", trusted)
	token := netkeep("cluster", "invite")
	b, err := servertest.Open(t.TempDir(), use, func(c *config.Config) { c.Join = token })
	if err != nil {
		t.Fatal(err)
	}
	closing(t, b)
	servertest.Eventually(t, patience, "two controllers", func() bool {
		_, text := command(t, dir, "list", "controllers", "-o", "name")
		return len(strings.Fields(text)) == 2
	})
	netkeep("invite", "phone")
	jwt := netkeep("token", "identity", "phone")
	if named := texts(said(t, jwt)["ctrls"]); len(named) != 2 {
		t.Fatalf("the token names %q", named)
	}
	stop(t, a)

	file := filepath.Join(dir, "phone.json")
	if code, text := command(t, dir, "enroll", jwt, "-o", file); code == 0 || !strings.Contains(text, "give that authority's certificate") {
		t.Errorf("who does not trust the authority is told %s", text)
	}
	netkeep("enroll", jwt, "-o", file, "--ca", trusted)
	network, err := overlay.Open(t.Context(), file)
	if err != nil {
		t.Fatal(err)
	}
	if err := network.Close(); err != nil {
		t.Error(err)
	}
}
