package program_test

import (
	"bytes"
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"netkeep.internal/test/certtest"
	"netkeep.internal/test/scripted"
	"netkeep.internal/test/zititest"
)

// invited is a network that was taken over, with the invitations that it had.
type invited struct {
	version, from, url string
	trust              *tls.Config
	admin              *client
	roots              *x509.CertPool
}

// TestTakeoverInvitations uses invitations of every kind after a takeover, as those who have
// them do: they are signed by the key that the server shows, and what they lead to works. The
// CA that signs is right below its root, two below it as networks were set up for years, and
// four.
func TestTakeoverInvitations(t *testing.T) {
	for name, c := range map[string]struct {
		version string
		prepare func(*testing.T, string) (root []byte)
	}{
		"1.6.0":  {"1.6.0", nil},
		"1.6.20": {"1.6.20", nil},
		"2.0.3":  {"2.0.3", nil},
		"deep":   {"1.6.0", deepen},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := &invited{version: c.version, from: zititest.Unpack(t, c.version), roots: x509.NewCertPool()}
			var root []byte
			if c.prepare != nil {
				root = c.prepare(t, n.from)
			}
			n.start(t)
			if root == nil {
				root = n.root(t)
			}
			n.roots.AppendCertsFromPEM(root)
			used := map[string]bool{}
			for _, e := range zititest.Lists(t, c.version)["enrollments"] {
				ends, err := time.Parse(time.RFC3339, e["expiresAt"].(string))
				if err != nil {
					t.Fatal(err)
				}
				if ends.After(time.Now()) {
					n.use(t, e)
					used[e["method"].(string)] = true
				}
			}
			if len(used) != 5 {
				t.Errorf("these kinds were used: %v", used)
			}
		})
	}
}

// deepen has the CA that signs be the fifth of its chain.
func deepen(t *testing.T, dir string) (root []byte) {
	t.Helper()
	var above *certtest.Pair
	var chain, key []byte
	for i := range 5 {
		ca := certtest.New(t, above, func(c *x509.Certificate) {
			c.Subject, c.IsCA, c.KeyUsage, c.NotAfter = pkix.Name{CommonName: fmt.Sprintf("deep %d", i)}, true, x509.KeyUsageCertSign|x509.KeyUsageDigitalSignature, time.Now().AddDate(5, 0, 0)
		})
		if i == 0 {
			root = ca.PEM()
		} else {
			chain = append(ca.PEM(), chain...)
		}
		ca.Write(t, filepath.Join(dir, "deep.pem"), filepath.Join(dir, "deep.key"))
		above = &ca
	}
	var err error
	if key, err = os.ReadFile(filepath.Join(dir, "deep.key")); err != nil {
		t.Fatal(err)
	}
	cas, err := os.ReadFile(filepath.Join(dir, "pki/cas.pem"))
	if err != nil {
		t.Fatal(err)
	}
	for file, text := range map[string][]byte{
		"pki/signing.pem": chain, "pki/signing-intermediate/keys/signing-intermediate.key": key, "pki/cas.pem": append(cas, root...),
	} {
		if err := os.WriteFile(filepath.Join(dir, file), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

func (n *invited) data() string { return filepath.Join(n.from, "new") }

// root is the one that the network has.
func (n *invited) root(t *testing.T) []byte {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(n.data(), "pki", "root.crt"))
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// start takes the network over and starts a controller on it.
func (n *invited) start(t *testing.T) {
	t.Helper()
	taken(t, []string{"takeover", "--config", filepath.Join(n.from, "ctrl.yml"), "--data", n.data()})
	p := launch(t, settings{args: []string{"run", "--data", n.data(), "--listen", "127.0.0.1:0"}})
	n.url = p.ready()
	n.admin = connect(t, n.url, filepath.Join(n.data(), "pki", "root.crt"))
	if err := n.admin.login("admin", zititest.FactsOf(t, n.version).Facts.Passwords["admin"]); err != nil {
		t.Fatal(err)
	}
	n.trust = trust(t, filepath.Join(n.data(), "pki", "root.crt"))
}

// use looks who has signed an invitation, uses it, and has whoever it was for come in.
func (n *invited) use(t *testing.T, e M) {
	t.Helper()
	method, token := e["method"].(string), e["token"].(string)
	conn, err := tls.Dial("tcp", strings.TrimPrefix(n.url, "https://"), n.trust)
	if err != nil {
		t.Fatal(err)
	}
	shown := conn.ConnectionState().PeerCertificates[0].PublicKey
	conn.Close()
	if _, err := jwt.Parse(e["jwt"].(string), func(*jwt.Token) (any, error) { return shown, nil }); err != nil {
		t.Errorf("an invitation by %s is not signed by the key that the server shows: %v", method, err)
	}
	at := "enroll/" + method + "?token=" + token
	if method == "trott" { // which has no path of its own
		at = "enroll?method=trott&token=" + token
	}
	id, _ := e["identityId"].(string)
	if id != "" { // somebody who is disabled does not come in, invited or not
		n.admin.must(t, http.StatusOK, http.MethodPost, "identities/"+id+"/enable", M{})
	}
	switch method {
	case "ott":
		key, csr := request(t, id)
		cert := n.chain(t, key, string(n.post(t, nil, at, M{"clientCsr": csr})))
		n.comesIn(t, id, "cert", &cert, M{})
	case "ottca":
		cert := n.ofCA(t, e["caId"].(string), id)
		n.post(t, &cert, at, M{})
		n.comesIn(t, id, "cert", &cert, M{})
	case "updb":
		n.post(t, nil, at, M{"username": "whoever", "password": "long enough 1"})
		of := n.admin.must(t, http.StatusOK, http.MethodGet, "identities/"+id+"/authenticators", nil).body["data"].([]any)
		n.comesIn(t, id, "password", nil, M{"username": of[0].(M)["username"], "password": "long enough 1"})
	case "erott", "trott":
		n.router(t, at, e)
	}
	if code, _ := n.ask(t, nil, at, M{}); code == http.StatusOK {
		t.Errorf("an invitation by %s is good twice", method)
	}
}

// request makes a key and asks for a certificate.
func request(t *testing.T, name string) (crypto.Signer, string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{Subject: pkix.Name{CommonName: name}, DNSNames: []string{"router.example.org"}}, key)
	if err != nil {
		t.Fatal(err)
	}
	return key, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}))
}

// chain is a certificate that was issued, from which CAs that clients and routers trust lead
// to the root.
func (n *invited) chain(t *testing.T, key crypto.Signer, text string) tls.Certificate {
	t.Helper()
	pair := tls.Certificate{PrivateKey: key}
	between := n.between(t)
	for block, rest := pem.Decode([]byte(text)); block != nil; block, rest = pem.Decode(rest) {
		pair.Certificate = append(pair.Certificate, block.Bytes)
	}
	if len(pair.Certificate) == 0 {
		t.Fatalf("no certificate was issued: %s", text)
	}
	leaf, err := x509.ParseCertificate(pair.Certificate[0])
	if err != nil {
		t.Fatal(err)
	}
	if _, err := leaf.Verify(x509.VerifyOptions{Roots: n.roots, Intermediates: between, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}); err != nil {
		t.Errorf("of %d certificates the first is not below the root: %v", len(pair.Certificate), err)
	}
	return pair
}

// between are the CAs that clients are given beside the root.
func (n *invited) between(t *testing.T) *x509.CertPool {
	t.Helper()
	pool := x509.NewCertPool()
	files, err := filepath.Glob(filepath.Join(n.data(), "pki", "*.crt"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		pool.AppendCertsFromPEM(text)
	}
	return pool
}

// ofCA is a certificate of a CA of somebody else that the network knows.
func (n *invited) ofCA(t *testing.T, id, name string) tls.Certificate {
	t.Helper()
	cas := zititest.Lists(t, n.version)["cas"]
	i := slices.IndexFunc(cas, func(ca M) bool { return ca["id"] == id })
	files, err := filepath.Glob(filepath.Join(n.from, "ca3", "ca-*.pem"))
	if err != nil || i < 0 {
		t.Fatal("there is no such CA", err)
	}
	for _, file := range files {
		pair, err := tls.LoadX509KeyPair(file, strings.TrimSuffix(file, "pem")+"key")
		if err != nil {
			t.Fatal(err)
		}
		if block, _ := pem.Decode([]byte(cas[i]["certPem"].(string))); bytes.Equal(block.Bytes, pair.Certificate[0]) {
			ca := certtest.Pair{Certificate: pair.Leaf, Key: pair.PrivateKey.(crypto.Signer)}
			leaf := certtest.New(t, &ca, func(c *x509.Certificate) {
				c.Subject, c.ExtKeyUsage = pkix.Name{CommonName: name}, []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
			})
			return tls.Certificate{Certificate: [][]byte{leaf.Raw}, PrivateKey: leaf.Key}
		}
	}
	t.Fatal("nobody has the key of the CA")
	return tls.Certificate{}
}

// router enrolls a router and has it connect.
func (n *invited) router(t *testing.T, at string, e M) {
	t.Helper()
	id, edge := e["edgeRouterId"].(string)
	if edge {
		n.admin.must(t, http.StatusOK, http.MethodPatch, "edge-routers/"+id, M{"disabled": false})
	} else {
		id = e["transitRouterId"].(string)
	}
	key, csr := request(t, id)
	var got struct{ Data struct{ Cert string } }
	if err := json.Unmarshal(n.post(t, nil, at, M{"certCsr": csr, "serverCertCsr": csr}), &got); err != nil {
		t.Fatal(err)
	}
	cfg := n.trust.Clone()
	cfg.Certificates = []tls.Certificate{n.chain(t, key, got.Data.Cert)}
	opt := scripted.Options{Address: strings.TrimPrefix(n.url, "https://"), TLS: cfg, ID: id, Now: time.Now}
	if edge {
		opt.Edge = "127.0.0.1:3022"
	}
	ctx, cancel := context.WithTimeout(t.Context(), waitTime)
	defer cancel()
	r, err := scripted.Connect(ctx, opt)
	if err != nil {
		t.Errorf("a router that was invited by %v cannot connect: %v", e["method"], err)
		return
	}
	r.Close()
}

// comesIn logs somebody in.
func (n *invited) comesIn(t *testing.T, id, by string, cert *tls.Certificate, body M) {
	t.Helper()
	var got struct{ Data struct{ IdentityID string } }
	if err := json.Unmarshal(n.post(t, cert, "authenticate?method="+by, body), &got); err != nil || got.Data.IdentityID != id {
		t.Errorf("whoever comes in is %q and not %s: %v", got.Data.IdentityID, id, err)
	}
}

// post asks the Client API, and fails the test if that refuses.
func (n *invited) post(t *testing.T, cert *tls.Certificate, path string, body M) []byte {
	t.Helper()
	code, text := n.ask(t, cert, path, body)
	if code != http.StatusOK {
		t.Errorf("%s answers %d: %s", path, code, text)
	}
	return text
}

func (n *invited) ask(t *testing.T, cert *tls.Certificate, path string, body M) (int, []byte) {
	t.Helper()
	cfg := n.trust.Clone()
	if cert != nil {
		cfg.Certificates = []tls.Certificate{*cert}
	}
	text, err := json.Marshal(body)
	if err != nil {
		t.Fatal(err)
	}
	c := &http.Client{Transport: &http.Transport{TLSClientConfig: cfg, DisableKeepAlives: true}, Timeout: waitTime}
	resp, err := c.Post(n.url+"/edge/client/v1/"+path, "application/json", bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, answer
}
