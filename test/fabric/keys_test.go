package fabric

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"testing"
	"time"

	"netkeep.internal/internal/wire/message"
	"netkeep.internal/test/scripted"
	"netkeep.internal/test/servertest"
)

// authority is somebody's own CA.
type authority struct {
	key  *ecdsa.PrivateKey
	cert *x509.Certificate
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	a := &authority{key: key}
	template := &x509.Certificate{Subject: pkix.Name{CommonName: "theirs"}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}
	a.cert = a.sign(t, template, template)
	return a
}

func (a *authority) sign(t *testing.T, template, parent *x509.Certificate) *x509.Certificate {
	t.Helper()
	template.SerialNumber, template.NotBefore, template.NotAfter = big.NewInt(1), time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
	der, err := x509.CreateCertificate(rand.Reader, template, parent, a.key.Public(), a.key)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return cert
}

func encode(cert *x509.Certificate) string {
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert.Raw}))
}

// register makes the CA one of the network.
func (a *authority) register(t *testing.T, admin *servertest.Client) (id string) {
	t.Helper()
	id = admin.Post(management+"cas", M{
		"name": servertest.Unique("ca"), "certPem": encode(a.cert), "isAuthEnabled": true, "isAutoCaEnrollmentEnabled": false,
		"isOttCaEnrollmentEnabled": false, "identityRoles": []any{},
	}).Want(201).ID()
	token := admin.Get(management + "cas/" + id).At("data.verificationToken").(string)
	proof := a.sign(t, &x509.Certificate{Subject: pkix.Name{CommonName: token}}, a.cert)
	admin.With("Content-Type", "text/plain").Do("POST", management+"cas/"+id+"/verify", servertest.Raw(encode(proof))).Want(200)
	return id
}

// TestKeys tells a router of the second generation what it checks tokens and
// certificates with, and tells it again when that changes.
func TestKeys(t *testing.T) {
	s := servertest.Start(t)
	admin := s.Admin(t)
	r := addRouter(t, s).Connect(t, grouped)
	subscribe(t, r, message.SubscribeToDataModel{Seconds: 60, Subscription: "mine"})
	certificates := func(what string, wanted int) {
		t.Helper()
		await(t, r, what, func(k scripted.Known) bool {
			n := 0
			for _, key := range k.Model.Keys {
				if key.Format == message.KeyCertificate {
					n++
				}
			}
			return n == wanted
		})
	}
	certificates("at first", 1)
	id := newAuthority(t).register(t, admin)
	certificates("with a CA", 2)
	admin.Delete(management + "cas/" + id).Want(200)
	certificates("without it", 1)
}
