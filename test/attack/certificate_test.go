package attack_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"testing"
	"time"

	"netkeep.internal/internal/data/state"
	"netkeep.internal/internal/model"
)

// TestSessionCertificates asks for more certificates than a session may have.
func TestSessionCertificates(t *testing.T) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{}, key)
	if err != nil {
		t.Fatal(err)
	}
	csr := M{"csr": string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}))}
	user := shared.AddUser(t, false)
	me := shared.Login(t, user.Username, user.Password)
	const path = "/edge/client/v1/current-api-session/certificates"
	var last string
	for range shared.Config.Limits.SessionCertificates {
		last = me.Post(path, csr).Want(201).ID()
	}
	refused := func() {
		t.Helper()
		me.Post(path, csr).Fails(409, "MAX_SESSION_CERTIFICATES_REACHED", "")
	}
	refused()
	me.Delete(path + "/" + last).Want(200)
	last = me.Post(path, csr).Want(201).ID()
	refused()
	// One that has expired counts no more, and goes.
	err = shared.State().UpdateSessions(t.Context(), state.Program("test"), func(tx *state.Tx) error {
		return model.SessionCertificates.Edit(tx, last, func(c *model.SessionCertificate) error {
			c.ValidTo = time.Now().Add(-time.Second)
			return nil
		})
	})
	if err != nil {
		t.Fatal(err)
	}
	me.Post(path, csr).Want(201)
	me.Get(path+"/"+last).Fails(404, "NOT_FOUND", "")
	refused()
	// Another session of the same identity has its own.
	shared.Login(t, user.Username, user.Password).Post(path, csr).Want(201)
}
