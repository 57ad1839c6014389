package enroll_test

import (
	"crypto"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"netkeep.internal/internal/client/enroll"
	"netkeep.internal/internal/client/remote"
	"netkeep.internal/internal/pki"
	"netkeep.internal/internal/tool/layout"
	"netkeep.internal/test/servertest"
)

// invitation adds an identity with an enrollment and returns its id and JWT.
func invitation(t *testing.T, c *servertest.Client, how M) (id, text string) {
	t.Helper()
	id, _ = invite(t, c, how)
	for _, e := range c.Get("identities/" + id).At("data.enrollment").(M) {
		text = e.(M)["jwt"].(string)
	}
	return id, text
}

// meet goes to the controller of an invitation.
func meet(t *testing.T, text string, opt enroll.Options) (*enroll.Controller, *enroll.Invitation, error) {
	t.Helper()
	inv, err := enroll.Read(text)
	if err != nil {
		return nil, nil, err
	}
	if opt.Now == nil {
		opt.Now = time.Now
	}
	c, err := enroll.Meet(t.Context(), inv, opt)
	if err == nil {
		t.Cleanup(c.Close)
	}
	return c, inv, err
}

func mustMeet(t *testing.T, text string, opt enroll.Options) *enroll.Controller {
	t.Helper()
	c, _, err := meet(t, text, opt)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func newPKIKey(t *testing.T, alg pki.Algorithm) crypto.Signer {
	t.Helper()
	key, err := alg.Generate()
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// identityFile is an identity's file as others read it.
type identityFile struct {
	API string `json:"ztAPI"`
	ID  struct{ Key, Cert, CA string }
}

// part returns a part of an identity that is a text or in a file.
func part(t *testing.T, value string) []byte {
	t.Helper()
	if text, ok := strings.CutPrefix(value, "pem:"); ok {
		return []byte(text)
	}
	path, ok := strings.CutPrefix(value, "file://")
	if !ok {
		t.Fatalf("a part of the identity is %.20q", value)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// signIn logs in with nothing but what an identity's file says, and returns
// who that is.
func signIn(t *testing.T, i *remote.Identity) (identityID string) {
	t.Helper()
	data, err := i.Encode()
	if err != nil {
		t.Fatal(err)
	}
	var file identityFile
	if err := json.Unmarshal(data, &file); err != nil {
		t.Fatal(err)
	}
	cert, err := tls.X509KeyPair(part(t, file.ID.Cert), part(t, file.ID.Key))
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(part(t, file.ID.CA)) {
		t.Fatal("the file holds no authority")
	}
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, Certificates: []tls.Certificate{cert}}}
	defer transport.CloseIdleConnections()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, file.API+"/authenticate?method=cert", strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := (&http.Client{Transport: transport, Timeout: time.Minute}).Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var e struct{ Data struct{ IdentityID string } }
	if err := json.NewDecoder(resp.Body).Decode(&e); err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("status %d, %v", resp.StatusCode, err)
	}
	return e.Data.IdentityID
}

func TestJoinDevice(t *testing.T) {
	c := shared.Admin(t)
	for _, alg := range []pki.Algorithm{pki.P256, pki.RSA2048} {
		id, text := invitation(t, c, M{"ott": true})
		key := newPKIKey(t, alg)
		who, err := mustMeet(t, text, enroll.Options{}).Device(t.Context(), key, "")
		if err != nil {
			t.Fatal(err)
		}
		if got := signIn(t, who); got != id {
			t.Errorf("%s: the file is of %s, want %s", alg, got, id)
		}
		if who.API != shared.URL+"/edge/client/v1" {
			t.Errorf("the API is at %s", who.API)
		}
		_, err = mustMeet(t, text, enroll.Options{}).Device(t.Context(), key, "")
		wantSentence(t, err, "was used already", "refreshing")
	}
}

// TestJoinWithKeptKey leaves a key of somebody's own where it is.
func TestJoinWithKeptKey(t *testing.T) {
	id, text := invitation(t, shared.Admin(t), M{"ott": true})
	key := newPKIKey(t, pki.P256)
	data, err := pki.EncodeKey(key)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "own.key")
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	who, err := mustMeet(t, text, enroll.Options{}).Device(t.Context(), key, "file://"+path)
	if err != nil {
		t.Fatal(err)
	}
	if got := signIn(t, who); got != id || who.ID.Key != "file://"+path {
		t.Errorf("the file is of %s with the key %s", got, who.ID.Key)
	}
}

// keep writes a certificate and its key to files, and names them as identities
// do.
func keep(t *testing.T, cert *tls.Certificate) (certFile, keyFile string) {
	t.Helper()
	dir := t.TempDir()
	key, err := pki.EncodeKey(cert.PrivateKey.(crypto.Signer))
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := x509.ParseCertificate(cert.Certificate[0])
	if err != nil {
		t.Fatal(err)
	}
	for name, data := range map[string][]byte{"c.crt": []byte(encode(leaf)), "c.key": key} {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return "file://" + filepath.Join(dir, "c.crt"), "file://" + filepath.Join(dir, "c.key")
}

func TestJoinCertificate(t *testing.T) {
	c := shared.Admin(t)
	ca := newAuthority(t)
	caID := ca.register(c, true, M{"identityNameFormat": "[requestedName]"})
	id, text := invitation(t, c, M{"ottca": caID})
	cert := ca.client(x509.Certificate{Subject: pkix.Name{CommonName: "device"}})
	certFile, keyFile := keep(t, cert)

	_, err := mustMeet(t, text, enroll.Options{Words: enroll.Flags}).Certificate(t.Context(), "", "", "")
	wantSentence(t, err, "--cert FILE", "--key FILE")
	stranger := newAuthority(t).client(x509.Certificate{})
	_, err = mustMeet(t, text, enroll.Options{Show: stranger}).Certificate(t.Context(), "", certFile, keyFile)
	wantSentence(t, err, "does not take the certificate")
	who, err := mustMeet(t, text, enroll.Options{Show: cert}).Certificate(t.Context(), "", certFile, keyFile)
	if err != nil {
		t.Fatal(err)
	}
	if got := signIn(t, who); got != id {
		t.Errorf("the file is of %s, want %s", got, id)
	}

	// The same CA lets in whoever holds a certificate of it.
	anybody := string(c.Get("cas/" + caID + "/jwt").Want(200).Raw)
	_, err = mustMeet(t, anybody, enroll.Options{Show: cert}).Certificate(t.Context(), "", certFile, keyFile)
	wantSentence(t, err, "enrolled already")
	fresh := ca.client(x509.Certificate{Subject: pkix.Name{CommonName: "fresh"}})
	certFile, keyFile = keep(t, fresh)
	wish := servertest.Unique("wish")
	who, err = mustMeet(t, anybody, enroll.Options{Show: fresh}).Certificate(t.Context(), wish, certFile, keyFile)
	if err != nil {
		t.Fatal(err)
	}
	if got := c.Get("identities/" + signIn(t, who)).At("data.name"); got != wish {
		t.Errorf("the new identity is called %v", got)
	}
	unverified := newAuthority(t).register(c, false, nil)
	_, text = invitation(t, c, M{"ottca": unverified})
	_, err = mustMeet(t, text, enroll.Options{Show: fresh}).Certificate(t.Context(), "", certFile, keyFile)
	wantSentence(t, err, "not verified", "admin")
}

func TestJoinPassword(t *testing.T) {
	c := shared.Admin(t)
	name := servertest.Unique("user")
	_, text := invitation(t, c, M{"updb": name})
	_, _, err := mustMeet(t, text, enroll.Options{}).Password(t.Context(), "", "abc")
	wantSentence(t, err, "password")
	who, account, err := mustMeet(t, text, enroll.Options{}).Password(t.Context(), "", "long enough")
	if err != nil {
		t.Fatal(err)
	}
	if account != name {
		t.Errorf("the user name is said to be %q, want %q", account, name)
	}
	if who.ID.Key != "" || who.ID.Cert != "" || !strings.HasPrefix(who.ID.CA, "pem:") {
		t.Errorf("the file holds %+v", who.ID)
	}
	shared.Login(t, name, "long enough")
	_, text = invitation(t, c, M{"updb": name})
	_, _, err = mustMeet(t, text, enroll.Options{}).Password(t.Context(), "", "long enough")
	wantSentence(t, err, "is taken")
}

func TestJoinRouter(t *testing.T) {
	c := shared.Admin(t)
	for _, kind := range []string{"edge-routers", "routers"} {
		t.Run(kind, func(t *testing.T) {
			c := c.For(t)
			id := c.Post(kind, M{"name": servertest.Unique("router")}).Want(201).ID()
			text := c.Get(kind + "/" + id).At("data.enrollmentJwt").(string)
			files := layout.In(t.TempDir())
			files.Endpoints = filepath.Join(t.TempDir(), "endpoints.yml")
			files.Names.Add("edge.example.org")
			files.Names.Add("192.0.2.9")
			place, err := files.Prepare(false)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(place.Close)
			at, inv, err := meet(t, text, enroll.Options{})
			if err != nil {
				t.Fatal(err)
			}
			_, err = at.Device(t.Context(), newKey(t), "")
			wantSentence(t, err, "netkeep router enroll")
			router, err := at.Router(t.Context(), newKey(t), files.Names, false)
			if err != nil {
				t.Fatal(err)
			}
			if err := place.Write(router, inv.Control); err != nil {
				t.Fatal(err)
			}
			if c.Get(kind+"/"+id).At("data.isVerified") != true {
				t.Error("the router is not enrolled")
			}
			checkRouterFiles(t, files, id)
			_, err = files.Prepare(false)
			wantSentence(t, err, "--force")
			_, err = mustMeet(t, text, enroll.Options{}).Router(t.Context(), newKey(t), files.Names, false)
			wantSentence(t, err, "was used already", "re-enrolling the router")
		})
	}
}

// checkRouterFiles reads what a router would.
func checkRouterFiles(t *testing.T, files layout.Layout, id string) {
	t.Helper()
	for _, certFile := range []string{files.Cert, files.ServerCert} {
		pair, err := tls.LoadX509KeyPair(certFile, files.Key)
		if err != nil {
			t.Fatal(err)
		}
		roots, between := x509.NewCertPool(), x509.NewCertPool()
		for _, der := range pair.Certificate[1:] {
			cert, err := x509.ParseCertificate(der)
			if err != nil {
				t.Fatal(err)
			}
			between.AddCert(cert)
		}
		if cas, err := os.ReadFile(files.CA); err != nil || !roots.AppendCertsFromPEM(cas) {
			t.Fatalf("the authority's file: %v", err)
		}
		for _, name := range []string{"edge.example.org", "192.0.2.9"} {
			if _, err := pair.Leaf.Verify(x509.VerifyOptions{Roots: roots, Intermediates: between, DNSName: name}); err != nil {
				t.Error(err)
			}
		}
		if pair.Leaf.Subject.CommonName != id {
			t.Errorf("the certificate is for %s", pair.Leaf.Subject.CommonName)
		}
	}
	if info, err := os.Stat(files.Key); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the key's file: %v, %v", info.Mode(), err)
	}
	endpoints, err := os.ReadFile(files.Endpoints)
	if err != nil || !strings.Contains(string(endpoints), "tls:"+shared.Address()) {
		t.Errorf("the endpoints are %q, %v", endpoints, err)
	}
}

// wantSentence expects an error of one line with some words in it.
func wantSentence(t *testing.T, err error, words ...string) {
	t.Helper()
	if err == nil {
		t.Fatalf("no error; want one with %q", words)
	}
	for _, w := range words {
		if text := err.Error(); !strings.Contains(text, w) || strings.Contains(text, "\n") {
			t.Errorf("the error is %q; want one line with %q", text, w)
		}
	}
}
