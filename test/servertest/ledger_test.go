package servertest

import (
	"crypto/rand"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestFind(t *testing.T) {
	for _, test := range []struct {
		text, secret string
		want         int
	}{
		{"xx-123456-", "123456", 3}, {"x123456", "123456", -1}, {"1234567", "123456", -1}, {"123456", "123456", 0},
		{"0123456 123456", "123456", 8}, {"xa-long-secret-indeedx", "a-long-secret-indeed", 1}, {"", "secret", -1},
	} {
		if got := find(test.text, test.secret); got != test.want {
			t.Errorf("%q in %q: %d, want %d", test.secret, test.text, got, test.want)
		}
	}
}

// TestLeaks checks that whatever a client says or is told in confidence is
// found where a controller logs it.
func TestLeaks(t *testing.T) {
	s, err := Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	admin, password := s.Admin(t), rand.Text()
	s.Nobody(t).Post("authenticate?method=password", M{"username": Username, "password": password}).Want(http.StatusUnauthorized)
	id := admin.Post("identities", M{"name": "x", "type": "User", "isAdmin": false, "enrollment": M{"ott": true}}).Want(http.StatusCreated).ID()
	ott := admin.Get("identities/" + id).At("data.enrollment.ott").(M)
	secrets := []string{password, admin.Token, ott["token"].(string), ott["jwt"].(string), "$argon2id$"}
	secrets = append(secrets, firstLine(t, s))
	for _, leak := range s.ledger.leaks(s) {
		t.Error(leak)
	}
	for i, value := range secrets {
		if _, err := fmt.Fprintf(s.log, "{\"msg\":\"look: %s\"}\n", value); err != nil {
			t.Fatal(err)
		}
		if n := len(s.ledger.leaks(s)); n != i+1 {
			t.Errorf("%d leaks after %q, want %d", n, value, i+1)
		}
	}
	if err := s.Close(); err == nil || !strings.Contains(err.Error(), "a secret got out: member password of POST") {
		t.Errorf("the controller stopped with %v", err)
	}
}

// firstLine returns the first line of the server's key.
func firstLine(t *testing.T, s *Server) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(s.Config.Data, "pki", "server.key"))
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(string(text), "\n")[1]
}
