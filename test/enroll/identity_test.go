package enroll_test

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/smallstep/pkcs7"

	"netkeep.internal/internal/data/state"
	"netkeep.internal/internal/model"
	"netkeep.internal/internal/ops/config"
	"netkeep.internal/test/servertest"
)

func TestOTT(t *testing.T) {
	c := shared.Admin(t)
	for name, key := range keys(t) {
		t.Run(name, func(t *testing.T) {
			c, nobody := c.For(t), holder{t: t}
			id, token := invite(t, c, M{"ott": true})
			csr := newCSR(t, key, x509.CertificateRequest{Subject: pkix.Name{CommonName: "root", Organization: []string{"evil"}}, DNSNames: []string{"bank.example"}})
			got := nobody.send("POST", "enroll"+query("method", "ott", "token", token), "application/x-pem-file", "", csr).want(200)
			if typ := got.header.Get("Content-Type"); typ != "application/x-pem-file" {
				t.Errorf("type is %s", typ)
			}
			cert := parse(t, got.raw)
			if cert.Subject.CommonName != id || len(cert.Subject.Organization) != 0 || len(cert.DNSNames) != 0 || cert.IsCA {
				t.Errorf("the CSR decided what the certificate says: %v %v", cert.Subject, cert.DNSNames)
			}
			nobody.send("POST", "enroll"+query("method", "ott", "token", token), "text/plain", "", csr).fails(400, "INVALID_ENROLLMENT_TOKEN")
			if n := len(c.Get("identities/" + id + "/enrollments").List()); n != 0 {
				t.Errorf("%d enrollments are left", n)
			}
			session := holder{t: t, cert: &tls.Certificate{Certificate: [][]byte{cert.Raw}, PrivateKey: key}}.post("authenticate?method=cert", M{}).want(200).data()
			if session["identityId"] != id {
				t.Errorf("the certificate is of %v", session["identityId"])
			}
		})
	}
}

// TestOTTForms answers each form of request in its own type.
func TestOTTForms(t *testing.T) {
	c, nobody := shared.Admin(t), holder{t: t}
	for _, test := range []struct{ path, contentType, accept, answer string }{
		{"enroll", "text/plain", "application/json", "application/json"},
		{"enroll", "application/pkcs10", "", "application/x-pem-file"},
		{"enroll/ott", "application/pkcs10", "", "application/x-x509-user-cert"},
		{"enroll/ott", "application/x-pem-file", "", "application/x-x509-user-cert"},
	} {
		_, token := invite(t, c, M{"ott": true})
		got := nobody.send("POST", test.path+query("method", "ott", "token", token), test.contentType, test.accept, newCSR(t, newKey(t), x509.CertificateRequest{})).want(200)
		if typ := got.header.Get("Content-Type"); typ != test.answer {
			t.Errorf("%v answered %s", test, typ)
		}
		text := got.raw
		if test.answer == "application/json" {
			text = []byte(got.data()["cert"].(string))
		}
		parse(t, text)
	}
	_, token := invite(t, c, M{"ott": true})
	nobody.post("enroll/ott"+query("token", token), M{"clientCsr": string(newCSR(t, newKey(t), x509.CertificateRequest{}))}).want(200)
}

func TestOTTRefused(t *testing.T) {
	c, nobody := shared.Admin(t), holder{t: t}
	_, token := invite(t, c, M{"ott": true})
	good := newCSR(t, newKey(t), x509.CertificateRequest{})
	weak, err := rsa.GenerateKey(rand.Reader, 1024)
	if err != nil {
		t.Fatal(err)
	}
	broken := append([]byte(nil), good...)
	broken[len(broken)/2] ^= 1
	path := "enroll" + query("method", "ott", "token", token)
	for _, test := range []struct {
		name, path, contentType, code string
		status                        int
		body                          []byte
	}{
		{"weak key", path, "text/plain", "COULD_NOT_PROCESS_CSR", 400, newCSR(t, weak, x509.CertificateRequest{})},
		{"broken", path, "text/plain", "COULD_NOT_PROCESS_CSR", 400, broken},
		{"two blocks", path, "text/plain", "COULD_NOT_PROCESS_CSR", 400, append(append([]byte(nil), good...), good...)},
		{"not PEM", path, "text/plain", "COULD_NOT_PROCESS_CSR", 400, []byte("hello")},
		{"empty", path, "text/plain", "COULD_NOT_PROCESS_CSR", 400, nil},
		{"content type", path, "image/png", "INVALID_CONTENT_TYPE", 400, good},
		{"oversized", path, "text/plain", "BODY_TOO_LARGE", 413, make([]byte, 100<<10)},
		{"no token", "enroll?method=ott", "text/plain", "COULD_NOT_VALIDATE", 400, good},
		{"odd token", "enroll" + query("token", "nope"), "text/plain", "COULD_NOT_VALIDATE", 400, good},
		{"unknown token", "enroll" + query("token", "00000000-0000-4000-8000-000000000000"), "text/plain", "INVALID_ENROLLMENT_TOKEN", 400, good},
		{"another way", "enroll/updb" + query("token", token), "application/json", "INVALID_ENROLLMENT_TOKEN", 400, []byte(`{"password":"long enough"}`)},
		{"as a router", "enroll/erott" + query("token", token), "application/json", "INVALID_ENROLLMENT_TOKEN", 400, []byte(`{}`)},
	} {
		t.Run(test.name, func(t *testing.T) {
			holder{t: t}.send("POST", test.path, test.contentType, "", test.body).fails(test.status, test.code)
		})
	}
	nobody.send("POST", path, "text/plain", "", good).want(200)
}

// TestZiti2559 refuses expired tokens of every kind.
func TestZiti2559(t *testing.T) {
	c, nobody := shared.Admin(t), holder{t: t}
	ca := newAuthority(t).register(c, true, nil)
	csr := newCSR(t, newKey(t), x509.CertificateRequest{})
	router := c.Post("edge-routers", M{"name": servertest.Unique("r")}).Want(201).ID()
	tokens := map[string]string{"erott": c.Get("edge-routers/" + router).At("data.enrollmentToken").(string)}
	transit := c.Post("transit-routers", M{"name": servertest.Unique("t")}).Want(201).ID()
	tokens["trott"] = c.Get("transit-routers/" + transit).At("data.enrollmentToken").(string)
	_, tokens["ott"] = invite(t, c, M{"ott": true})
	_, tokens["ottca"] = invite(t, c, M{"ottca": ca})
	_, tokens["updb"] = invite(t, c, M{"updb": servertest.Unique("user")})
	for method, token := range tokens {
		err := shared.State().Update(t.Context(), state.Program("test"), func(tx *state.Tx) error {
			e, _ := model.Enrollments.Find(tx, "token", token)
			return model.Enrollments.Edit(tx, e.ID, func(e *model.Enrollment) error {
				e.ExpiresAt = time.Now().Add(-time.Second)
				return nil
			})
		})
		if err != nil {
			t.Fatal(err)
		}
		if method == "ott" {
			nobody.send("POST", "enroll"+query("method", method, "token", token), "text/plain", "", csr).fails(400, "ENROLLMENT_EXPIRED")
			continue
		}
		nobody.post("enroll"+query("method", method, "token", token), M{"password": "long enough", "certCsr": string(csr), "serverCertCsr": string(csr)}).
			fails(400, "ENROLLMENT_EXPIRED")
	}
}

// TestOneWinner lets many use one token at once.
func TestOneWinner(t *testing.T) {
	c := shared.Admin(t)
	id, token := invite(t, c, M{"ott": true})
	csr := newCSR(t, newKey(t), x509.CertificateRequest{})
	var won atomic.Int32
	var wg sync.WaitGroup
	for range 16 {
		wg.Go(func() {
			got := holder{t: t}.send("POST", "enroll"+query("method", "ott", "token", token), "text/plain", "", csr)
			if got.status == http.StatusOK {
				won.Add(1)
			} else {
				got.fails(400, "INVALID_ENROLLMENT_TOKEN")
			}
		})
	}
	wg.Wait()
	if won.Load() != 1 || len(c.Get("identities/"+id+"/authenticators").List()) != 1 {
		t.Errorf("%d won", won.Load())
	}
}

// TestRefresh makes the old token worthless.
func TestRefresh(t *testing.T) {
	c, nobody := shared.Admin(t), holder{t: t}
	id, old := invite(t, c, M{"ott": true})
	enrollment := c.Get("identities/" + id).At("data.enrollment.ott.id").(string)
	c.Post("enrollments/"+enrollment+"/refresh", M{"expiresAt": time.Now().Add(time.Hour).UTC().Format(time.RFC3339)}).Want(200)
	csr := newCSR(t, newKey(t), x509.CertificateRequest{})
	nobody.send("POST", "enroll/ott"+query("token", old), "text/plain", "", csr).fails(400, "INVALID_ENROLLMENT_TOKEN")
	fresh := c.Get("enrollments/" + enrollment).At("data.token").(string)
	nobody.send("POST", "enroll/ott"+query("token", fresh), "text/plain", "", csr).want(200)
}

// TestToken verifies an invitation the way a client does: with the key of the
// certificate that is served where it leads.
func TestToken(t *testing.T) {
	c := shared.Admin(t)
	id, token := invite(t, c, M{"ott": true})
	text := c.Get("identities/" + id).At("data.enrollment.ott.jwt").(string)
	claims := jwt.MapClaims{}
	_, err := jwt.ParseWithClaims(text, claims, func(parsed *jwt.Token) (any, error) {
		iss, _ := claims.GetIssuer()
		conn, err := tls.Dial("tcp", strings.TrimPrefix(iss, "https://"), &tls.Config{InsecureSkipVerify: true})
		if err != nil {
			return nil, err
		}
		defer conn.Close()
		if parsed.Header["kid"] != nil {
			t.Error("the token has a kid")
		}
		return conn.ConnectionState().PeerCertificates[0].PublicKey, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if claims["em"] != "ott" || claims["jti"] != token || claims["sub"] != id || claims["iss"] != shared.URL || claims["aud"] != nil {
		t.Errorf("claims are %v", claims)
	}
}

func TestUPDB(t *testing.T) {
	c, nobody := shared.Admin(t), holder{t: t}
	name := servertest.Unique("user")
	_, token := invite(t, c, M{"updb": name})
	path := "enroll" + query("method", "updb", "token", token)
	nobody.post(path, M{}).fails(400, "COULD_NOT_VALIDATE")
	nobody.post(path, M{"password": "abc"}).fails(400, "COULD_NOT_VALIDATE")
	nobody.post(path, M{"password": "long enough", "username": "somebody else"}).want(200)
	shared.Login(t, name, "long enough")
	nobody.post(path, M{"password": "long enough"}).fails(400, "INVALID_ENROLLMENT_TOKEN")
	_, token = invite(t, c, M{"updb": name})
	nobody.post("enroll/updb"+query("token", token), M{"password": "long enough"}).fails(409, "USERNAME_TAKEN")
}

func TestOTTCA(t *testing.T) {
	c := shared.Admin(t)
	ca, other := newAuthority(t), newAuthority(t)
	caID := ca.register(c, true, nil)
	other.register(c, true, nil)
	id, token := invite(t, c, M{"ottca": caID})
	path := "enroll" + query("method", "ottca", "token", token)
	cert := ca.client(x509.Certificate{Subject: pkix.Name{CommonName: "device"}})
	holder{t: t}.post(path, M{}).fails(400, "CERT_FAILED_VALIDATION")
	holder{t: t, cert: other.client(x509.Certificate{})}.post(path, M{}).fails(400, "CERT_FAILED_VALIDATION")
	old := ca.client(x509.Certificate{NotBefore: time.Now().Add(-2 * time.Hour), NotAfter: time.Now().Add(-time.Hour)})
	holder{t: t, cert: old}.post(path, M{}).fails(400, "CERT_FAILED_VALIDATION")
	holder{t: t, cert: cert}.post(path, M{}).want(200)
	if got := (holder{t: t, cert: cert}).post("authenticate?method=cert", M{}).want(200).data()["identityId"]; got != id {
		t.Errorf("the certificate is of %v", got)
	}
	_, token = invite(t, c, M{"ottca": caID})
	holder{t: t, cert: cert}.post("enroll/ottca"+query("token", token), M{}).fails(409, "CERT_IN_USE")

	unverified := newAuthority(t)
	_, token = invite(t, c, M{"ottca": unverified.register(c, false, nil)})
	holder{t: t, cert: unverified.client(x509.Certificate{})}.post("enroll/ottca"+query("token", token), M{}).fails(400, "ENROLLMENT_CA_NOT_VALID")
	closed := newAuthority(t)
	_, token = invite(t, c, M{"ottca": closed.register(c, true, M{"isOttCaEnrollmentEnabled": false})})
	holder{t: t, cert: closed.client(x509.Certificate{})}.post("enroll/ottca"+query("token", token), M{}).fails(400, "ENROLLMENT_CA_NOT_VALID")

	// With the CA go its authenticators, and a registration does not bring
	// them back.
	c.Delete("cas/" + caID).Want(200)
	holder{t: t, cert: cert}.post("authenticate?method=cert", M{}).fails(401, "INVALID_AUTH")
	ca.register(c, true, nil)
	holder{t: t, cert: cert}.post("authenticate?method=cert", M{}).fails(401, "INVALID_AUTH")
}

func TestCAEnrollment(t *testing.T) {
	c := shared.Admin(t)
	ca := newAuthority(t)
	name := servertest.Unique("factory")
	caID := ca.register(c, true, M{"name": name, "identityNameFormat": "[caName]/[commonName]/[requestedName]", "identityRoles": []any{"auto", "line"}})
	cert := ca.client(x509.Certificate{Subject: pkix.Name{CommonName: "cn"}})
	holder{t: t, cert: cert}.post("enroll?method=ca", M{"name": "wish"}).want(200)
	session := holder{t: t, cert: cert}.post("authenticate?method=cert", M{}).want(200).data()
	who := c.Get("identities/" + session["identityId"].(string)).Data()
	if who["name"] != name+"/cn/wish" || who["typeId"] != "Device" || who["isAdmin"] != false || len(who["roleAttributes"].([]any)) != 2 {
		t.Errorf("identity is %v", who)
	}
	holder{t: t, cert: cert}.post("enroll/ca", M{}).fails(409, "CERT_IN_USE")
	again := ca.client(x509.Certificate{Subject: pkix.Name{CommonName: "cn"}})
	holder{t: t, cert: again}.post("enroll/ca", M{"name": "wish"}).want(200)
	second := holder{t: t, cert: again}.post("authenticate?method=cert", M{}).want(200).data()["identity"].(M)
	if second["name"] != name+"/cn/wish000001" {
		t.Errorf("the second is called %v", second["name"])
	}
	holder{t: t, cert: newAuthority(t).client(x509.Certificate{})}.post("enroll/ca", M{}).fails(400, "CERT_FAILED_VALIDATION")
	holder{t: t}.post("enroll/ca", M{}).fails(400, "CERT_FAILED_VALIDATION")

	text := c.Get("cas/" + caID + "/jwt").Want(200)
	if text.Header.Get("Content-Type") != "application/jwt" || strings.Count(string(text.Raw), ".") != 2 {
		t.Errorf("the CA's token is %s", text.Raw)
	}
	c.Get("cas/nope/jwt").Fails(404, "NOT_FOUND", "")

	claim := M{"location": "COMMON_NAME", "matcher": "PREFIX", "matcherCriteria": "dev-", "parser": "NONE", "parserCriteria": nil, "index": 0}
	claiming := newAuthority(t)
	claiming.register(c, true, M{"externalIdClaim": claim})
	external := servertest.Unique("x")
	good := claiming.client(x509.Certificate{Subject: pkix.Name{CommonName: "dev-" + external}})
	holder{t: t, cert: good}.post("enroll/ca", M{}).want(200)
	id := holder{t: t, cert: good}.post("authenticate?method=cert", M{}).want(200).data()["identityId"].(string)
	if got := c.Get("identities/" + id).Data(); got["externalId"] != external || len(got["authenticators"].(M)) != 0 {
		t.Errorf("identity is %v", got)
	}
	holder{t: t, cert: claiming.client(x509.Certificate{Subject: pkix.Name{CommonName: "other"}})}.post("enroll/ca", M{}).fails(400, "MISSING_CERT_CLAIM")
}

func TestVerifyCA(t *testing.T) {
	c := shared.Admin(t)
	ca := newAuthority(t)
	id := ca.register(c, false, nil)
	token := c.Get("cas/" + id).At("data.verificationToken").(string)
	try := func(text string) *servertest.Answer {
		return c.With("Content-Type", "text/plain").Do("POST", "cas/"+id+"/verify", servertest.Raw(text))
	}
	subject := pkix.Name{CommonName: token}
	try("nonsense").Fails(400, "COULD_NOT_PARSE_BODY", "")
	try(string(newCSR(t, newKey(t), x509.CertificateRequest{}))).Fails(400, "EXPECTED_PEM_CERTIFICATE", "")
	try("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n").Fails(400, "COULD_NOT_PARSE_DER_BLOCK", "")
	try(encode(ca.sign(&x509.Certificate{Subject: pkix.Name{CommonName: "x"}}, newKey(t).Public()))).Fails(400, "INVALID_COMMON_NAME", "")
	try(encode(newAuthority(t).sign(&x509.Certificate{Subject: subject}, newKey(t).Public()))).Fails(400, "CERTIFICATE_FAILED_VALIDATION", "")
	past := &x509.Certificate{Subject: subject, NotBefore: time.Now().Add(-2 * time.Hour), NotAfter: time.Now().Add(-time.Hour)}
	try(encode(ca.sign(past, newKey(t).Public()))).Fails(400, "CERTIFICATE_FAILED_VALIDATION", "")
	proof := encode(ca.sign(&x509.Certificate{Subject: subject}, newKey(t).Public()))
	try(proof).Want(200)
	try(proof).Fails(409, "CA_ALREADY_VERIFIED", "")
}

// TestExpiryMetric shows every certificate to monitoring.
func TestExpiryMetric(t *testing.T) {
	s := servertest.Start(t, func(c *config.Config) { c.Metrics.Listen = "127.0.0.1:0" })
	newAuthority(t).register(s.Admin(t), false, M{"name": "theirs"})
	req, err := http.NewRequest(http.MethodGet, "http://"+s.Metrics().String()+"/metrics", nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := (&http.Client{Timeout: time.Minute}).Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	for _, series := range []string{
		`{kind="controller",name="root"}`, `{kind="controller",name="intermediate"}`, `{kind="controller",name="server"}`, `{kind="ca",name="theirs"}`,
	} {
		if !strings.Contains(string(text), "netkeep_certificate_remaining_seconds"+series) {
			t.Errorf("%s is missing", series)
		}
	}
}

func TestCACerts(t *testing.T) {
	got := holder{t: t}.send("GET", ".well-known/est/cacerts", "", "", nil).want(200)
	if got.header.Get("Content-Transfer-Encoding") != "base64" || got.header.Get("Content-Type") != "application/pkcs7-mime" {
		t.Errorf("header is %v", got.header)
	}
	der, err := base64.StdEncoding.DecodeString(strings.ReplaceAll(string(got.raw), "\n", ""))
	if err != nil {
		t.Fatal(err)
	}
	bundle, err := pkcs7.Parse(der)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	for _, cert := range bundle.Certificates {
		roots.AddCert(cert)
	}
	conn, err := tls.Dial("tcp", shared.Address(), &tls.Config{RootCAs: roots})
	if err != nil {
		t.Fatalf("the bundle does not lead to the server: %v", err)
	}
	_ = conn.Close()
}
