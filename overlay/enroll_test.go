package overlay_test

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/golang-jwt/jwt/v5"

	"netkeep.internal/overlay"
	"netkeep.internal/test/networktest"
)

// TestEnroll has a token give one file, for its owner alone, and never take
// another's place.
func TestEnroll(t *testing.T) {
	n := networktest.New(t, shared)
	name := n.Word + "-me"
	_, token := invite(n, name)
	dir := t.TempDir()
	file, taken := filepath.Join(dir, "me.json"), filepath.Join(dir, "taken.json")
	must(t, os.WriteFile(taken, []byte("precious"), 0o644))
	must(t, os.Symlink("nowhere", filepath.Join(dir, "link.json")))
	for _, there := range []string{taken, filepath.Join(dir, "link.json")} {
		if err := overlay.Enroll(t.Context(), token, there); !errors.Is(err, fs.ErrExist) || !strings.Contains(err.Error(), there) {
			t.Errorf("enrolling into %s: %v", there, err)
		}
	}
	if got, err := os.ReadFile(taken); string(got) != "precious" || err != nil {
		t.Errorf("the file that was there is %q, %v", got, err)
	}
	// The token is still good: nothing was asked of anybody.
	must(t, overlay.Enroll(t.Context(), "\n "+token+"\n", file))
	info, err := os.Stat(file)
	must(t, err)
	if info.Mode() != 0o600 {
		t.Errorf("the file has the mode %v", info.Mode())
	}
	if got := open(t, file).Name(); got != name {
		t.Errorf("the file is %s's", got)
	}
	before, err := os.ReadFile(file)
	must(t, err)
	if err := overlay.Enroll(t.Context(), token, file); !errors.Is(err, fs.ErrExist) {
		t.Errorf("enrolling again: %v", err)
	}
	if err := overlay.Enroll(t.Context(), token, filepath.Join(dir, "twice.json")); err == nil || !strings.Contains(err.Error(), "used already") {
		t.Errorf("enrolling elsewhere: %v", err)
	}
	if after, err := os.ReadFile(file); !bytes.Equal(before, after) || err != nil {
		t.Error("the file has changed")
	}
	only(t, dir, "link.json", "me.json", "taken.json")
}

// only fails if there is anything else in a directory.
func only(t *testing.T, dir string, names ...string) {
	t.Helper()
	all, err := os.ReadDir(dir)
	must(t, err)
	var there []string
	for _, f := range all {
		there = append(there, f.Name())
	}
	if got, want := strings.Join(there, " "), strings.Join(names, " "); got != want {
		t.Errorf("there are %s, want %s", got, want)
	}
}

// TestEnrollDoubts leaves no file and spends no token where something is wrong
// with it.
func TestEnrollDoubts(t *testing.T) {
	n := networktest.New(t, shared)
	id, token := invite(n, n.Word+"-me")
	claims := jwt.MapClaims{}
	_, _, err := jwt.NewParser().ParseUnverified(token, claims)
	must(t, err)
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	forged, err := jwt.NewWithClaims(jwt.SigningMethodES256, claims).SignedString(key)
	must(t, err)
	claims["em"] = "ottca"
	certified, err := jwt.NewWithClaims(jwt.SigningMethodES256, claims).SignedString(key)
	must(t, err)
	parts := strings.Split(token, ".")
	router := n.Admin.Post(networktest.Management+"edge-routers", M{"name": n.Word + "-router"}).Want(201).ID()
	user := n.Admin.Post(networktest.Management+"identities", M{"name": n.Word + "-user", "type": "User", "isAdmin": false, "enrollment": M{"updb": n.Word}}).Want(201).ID()
	dir := t.TempDir()
	for name, test := range map[string]struct{ token, says string }{
		"nothing":      {"", "no enrollment token"},
		"no token":     {"my-program.jwt", "no enrollment token"},
		"too much":     {strings.Repeat("a", 1<<20), "no enrollment token"},
		"forged":       {forged, "did not sign this token"},
		"unsigned":     {parts[0] + "." + parts[1] + ".", "did not sign this token"},
		"a router's":   {n.Admin.Get(networktest.Management + "edge-routers/" + router).Want(200).Data()["enrollmentJwt"].(string), "is for a router"},
		"another CA's": {certified, "with a certificate of another CA: give it, and its key"},
		"a password's": {n.Admin.Get(networktest.Management + "identities/" + user).Want(200).At("data.enrollment.updb.jwt").(string), "somebody with a password"},
	} {
		if err := overlay.Enroll(t.Context(), test.token, filepath.Join(dir, "me.json")); err == nil || !strings.Contains(err.Error(), test.says) || strings.Contains(err.Error(), "--") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := overlay.EnrollFile(t.Context(), filepath.Join(dir, "nothing.jwt"), filepath.Join(dir, "me.json")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a token that is not there: %v", err)
	}
	if err := overlay.Enroll(t.Context(), token, filepath.Join(dir, "nowhere", "me.json")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a file that cannot be written: %v", err)
	}
	if err := overlay.Enroll(t.Context(), token, filepath.Join(dir, "me.json"), overlay.WithCertificate("a", "b")); err == nil || strings.Contains(err.Error(), "--") {
		t.Errorf("a certificate that nobody asked for: %v", err)
	}
	if err := overlay.Enroll(t.Context(), token, filepath.Join(dir, "me.json"), overlay.WithCA(filepath.Join(dir, "ca.crt"))); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a CA that is not there: %v", err)
	}
	only(t, dir)
	if left := n.Admin.Get(networktest.Management + "identities/" + id).Want(200).At("data.enrollment.ott.jwt"); left == nil {
		t.Error("the token was spent")
	}
	must(t, overlay.Enroll(t.Context(), token, filepath.Join(dir, "me.json")))
}
