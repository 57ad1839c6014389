package overlay_test

import (
	"bufio"
	"context"
	"crypto/x509"
	"errors"
	"io"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"netkeep.internal/overlay"
	"netkeep.internal/test/certtest"
	"netkeep.internal/test/networktest"
	"netkeep.internal/test/servertest"
)

// TestOpenWithToken is in a network without a file: by tokens, of which one follows the
// other while a connection goes on.
func TestOpenWithToken(t *testing.T) {
	s := servertest.Start(t)
	n := networktest.New(t, s)
	n.AddRouter("router")
	service := n.AddService("echo", true)
	n.Echo(n.Client(n.AddIdentity("host")), service)
	issuer := certtest.New(t, nil, func(c *x509.Certificate) { c.KeyUsage = x509.KeyUsageDigitalSignature })
	n.Admin.Post(networktest.Management+"external-jwt-signers", M{
		"name": "robots", "enabled": true, "issuer": "https://robots.example", "audience": "netkeep", "certPem": string(issuer.PEM()), "kid": "one",
	}).Want(201)
	me := n.Admin.Post(networktest.Management+"identities", M{"name": "robot", "type": "Device", "isAdmin": false, "roleAttributes": []string{n.Word}}).Want(201).ID()
	ca, err := os.ReadFile(filepath.Join(s.Config.Data, "pki", "root.crt"))
	must(t, err)
	var given atomic.Int64
	life := 20 * time.Second // so that each is the last for a moment only
	tokensOf := func(who string) func(context.Context) (string, time.Time, error) {
		return func(context.Context) (string, time.Time, error) {
			given.Add(1)
			ends := time.Now().Add(life).Truncate(time.Second)
			token := jwt.NewWithClaims(jwt.SigningMethodES256, jwt.MapClaims{"iss": "https://robots.example", "aud": "netkeep", "sub": who, "exp": ends.Unix()})
			token.Header["kid"] = "one"
			text, err := token.SignedString(issuer.Key)
			return text, ends, err
		}
	}
	network, err := overlay.OpenWithToken(t.Context(), s.URL, tokensOf(me), overlay.WithAuthority(string(ca)))
	must(t, err)
	t.Cleanup(func() { must(t, network.Close()) })
	if network.Name() != "robot" {
		t.Errorf("it is %q", network.Name())
	}
	conn, err := network.Dial(t.Context(), service)
	must(t, err)
	defer conn.Close()
	lines := bufio.NewReader(conn)
	talk := func() {
		t.Helper()
		_, err := io.WriteString(conn, "hello\n")
		must(t, err)
		if got, err := lines.ReadString('\n'); err != nil || got != "hello\n" {
			t.Fatalf("it says %q, %v", got, err)
		}
	}
	talk()
	servertest.Eventually(t, time.Minute, "newer tokens are shown", func() bool { return given.Load() > 1 })
	talk()

	no := errors.New("there is no token")
	if _, err := overlay.OpenWithToken(t.Context(), s.URL, func(context.Context) (string, time.Time, error) { return "", time.Time{}, no }, overlay.WithAuthority(string(ca))); !errors.Is(err, no) {
		t.Errorf("without a token: %v", err)
	}
	if _, err := overlay.OpenWithToken(t.Context(), s.URL, tokensOf("nobody"), overlay.WithAuthority(string(ca))); !errors.Is(err, overlay.ErrDenied) {
		t.Errorf("with one of nobody: %v", err)
	}
}
