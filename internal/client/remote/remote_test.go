package remote

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

// TestNoRedirect has a server lead elsewhere: the token does not follow.
func TestNoRedirect(t *testing.T) {
	elsewhere := httptest.NewTLSServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		t.Errorf("a request came with the token %q", r.Header.Get("net-session"))
	}))
	defer elsewhere.Close()
	server := httptest.NewTLSServer(http.RedirectHandler(elsewhere.URL, http.StatusTemporaryRedirect))
	defer server.Close()
	c, err := New(Account{Address: server.URL, CA: PEM(server.Certificate()), Token: "secret"})
	if err != nil {
		t.Fatal(err)
	}
	err = c.Get(t.Context(), "/identities", nil, nil)
	if refused, ok := errors.AsType[*Error](err); !ok || refused.Status != http.StatusTemporaryRedirect {
		t.Errorf("the error is %v", err)
	}
}

// TestTrust talks to nobody whom the profile's CA does not vouch for.
func TestTrust(t *testing.T) {
	server := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		t.Error("a request came")
	}))
	defer server.Close()
	c, err := New(Account{Address: server.URL, Token: "secret"})
	if err != nil {
		t.Fatal(err)
	}
	err = c.Get(t.Context(), "/identities", nil, nil)
	if !errors.Is(err, ErrUnreachable) || !strings.Contains(err.Error(), "netkeep login") {
		t.Errorf("the error is %v", err)
	}
}

// TestNoController says of a server that is none that the address may be
// wrong.
func TestNoController(t *testing.T) {
	server := httptest.NewTLSServer(http.NotFoundHandler())
	defer server.Close()
	c, err := New(Account{Address: server.URL, CA: PEM(server.Certificate())})
	if err != nil {
		t.Fatal(err)
	}
	err = c.Get(t.Context(), "/identities", nil, nil)
	if err == nil || !strings.Contains(err.Error(), "is the address right?") {
		t.Errorf("the error is %v", err)
	}
}

func TestAddress(t *testing.T) {
	for text, want := range map[string]string{
		"https://host:1280":               "https://host:1280",
		"host":                            "https://host:1280",
		" host:8441 ":                     "https://host:8441",
		"http://host:1280/zac/":           "https://host:1280",
		"tls:host:6262":                   "",
		"tls://host:6262":                 "https://host:6262",
		"https://host/edge/management/v1": "https://host:1280",
		"[::1]:1280":                      "https://[::1]:1280",
		"127.0.0.1":                       "https://127.0.0.1:1280",
		"ftp://host":                      "",
		"https://user:secret@host":        "",
		"":                                "",
		"a b":                             "",
	} {
		got, err := Address(text)
		if got != want || (err == nil) != (want != "") {
			t.Errorf("%q is %q (%v), want %q", text, got, err, want)
		}
	}
}

func TestSameFingerprint(t *testing.T) {
	for _, same := range []string{"0aff", "0AFF", "0a:ff", "sha256:0a:FF", "SHA256 0aff"} {
		if !SameFingerprint("0aff", same) {
			t.Errorf("%s is another", same)
		}
	}
	for _, other := range []string{"", "0a", "0afe"} {
		if SameFingerprint("0aff", other) {
			t.Errorf("%q is the same", other)
		}
	}
}

// TestIdentityFile reads back what is written, and says of files of other kinds
// what to do.
func TestIdentityFile(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	who := Identity{API: "https://host:1280/edge/client/v1"}
	who.ID.Cert, who.ID.Key, who.ID.CA = "pem:cert", "file://"+write("key", "key"), "pem:ca"
	data, err := who.Encode()
	if err != nil {
		t.Fatal(err)
	}
	got, err := ReadIdentity(write("who.json", string(data)))
	who.ID.Cert, who.ID.Key, who.ID.CA = "cert", "key", "ca"
	if err != nil || !reflect.DeepEqual(got, who) {
		t.Errorf("it is read as %+v (%v)", got, err)
	}
	for text, want := range map[string]string{
		`{"ztAPI":"https://host:1280","id":{"ca":"pem:x"}}`: "netkeep login https://host:1280 --username",
		`{}`:     "netkeep enroll",
		`[1]`:    "netkeep enroll",
		`no way`: "netkeep enroll",
		`{"id":{"key":"engine://tpm","cert":"pem:x"}}`: "cannot use",
	} {
		if _, err := ReadIdentity(write("other", text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: the error is %v", text, err)
		}
	}
}
