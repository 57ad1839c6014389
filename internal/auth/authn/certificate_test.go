package authn

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"log/slog"
	"math/big"
	"testing"
	"testing/synctest"
	"time"

	"netkeep.internal/internal/data/state"
	"netkeep.internal/internal/lang/fault"
	"netkeep.internal/internal/lang/terse"
	"netkeep.internal/internal/model"
	"netkeep.internal/internal/pki"
)

// issued is a certificate with its key.
type issued struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

// issue makes a certificate, signed by itself if by is nil.
func issue(t testing.TB, by *issued, template x509.Certificate) *issued {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template.SerialNumber = big.NewInt(1)
	template.BasicConstraintsValid = true
	if template.NotAfter.IsZero() {
		template.NotBefore, template.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
	}
	parent, signer := &template, key
	if by != nil {
		parent, signer = by.cert, by.key
	}
	der, err := x509.CreateCertificate(rand.Reader, &template, parent, key.Public(), signer)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return &issued{cert, key}
}

func authority(t testing.TB, name string) *issued {
	t.Helper()
	return issue(t, nil, x509.Certificate{Subject: pkix.Name{CommonName: name}, IsCA: true, KeyUsage: x509.KeyUsageCertSign})
}

// certified gives the admin a certificate of our own authority.
func (w *world) certified(t testing.TB) (*Certificates, *x509.Certificate) {
	t.Helper()
	ca := authority(t, "ours")
	leaf := issue(t, ca, x509.Certificate{Subject: pkix.Name{CommonName: "admin"}}).cert
	update(t, w.State, func(tx *state.Tx) error {
		return model.Authenticators.Create(tx, &model.Authenticator{
			IdentityID: w.proof.identity.ID, Method: model.MethodCert,
			CertPEM: terse.Of(pki.EncodeCertificates(leaf)), Fingerprint: pki.Fingerprint(leaf),
		})
	})
	return &Certificates{Bundle: func() []*x509.Certificate { return []*x509.Certificate{ca.cert} }, Now: time.Now, Log: slog.New(slog.DiscardHandler)}, leaf
}

// register adds the CA of somebody else, verified, with names as external ids.
func (w *world) register(t testing.TB, ca *issued) *model.CA {
	t.Helper()
	var rec *model.CA
	update(t, w.State, func(tx *state.Tx) error {
		rec = &model.CA{
			Name: ca.cert.Subject.CommonName, CertPEM: string(pki.EncodeCertificates(ca.cert)), IsVerified: true, IsAuthEnabled: true,
			ExternalIDClaim: &model.ExternalIDClaim{Location: "COMMON_NAME", Matcher: "ALL", Parser: "NONE"},
		}
		return model.CAs.Create(tx, rec)
	})
	return rec
}

// TestCertificateOfCA checks that whoever holds the key of a CA between is
// nobody by that.
func TestCertificateOfCA(t *testing.T) {
	w := newWorld(t)
	visitor := w.add(t, "visitor")
	root := authority(t, "theirs")
	w.register(t, root)
	certs := &Certificates{Bundle: func() []*x509.Certificate { return nil }, Now: time.Now, Log: slog.New(slog.DiscardHandler)}
	name := pkix.Name{CommonName: visitor.ExternalID}
	leaf := issue(t, root, x509.Certificate{Subject: name})
	if _, err := certs.Check(w.State.Snapshot(), []*x509.Certificate{leaf.cert}); err != nil {
		t.Fatal(err)
	}
	between := issue(t, root, x509.Certificate{Subject: name, IsCA: true, KeyUsage: x509.KeyUsageCertSign})
	if _, err := certs.Check(w.State.Snapshot(), []*x509.Certificate{between.cert}); !fault.Is(err, fault.CodeAuth) {
		t.Errorf("a CA passes for an identity: %v", err)
	}
}

// TestSessionsEndWithWhatOpenedThem removes what vouched for an identity.
func TestSessionsEndWithWhatOpenedThem(t *testing.T) {
	for name, vouch := range map[string]func(t *testing.T, w *world, i *model.Identity) (Proof, func()){
		"authenticator": func(t *testing.T, w *world, i *model.Identity) (Proof, func()) {
			proof := w.vouched(t, i)
			return proof, func() { remove(t, w.State, model.Authenticators.Def, proof.session.AuthenticatorID) }
		},
		"CA": func(t *testing.T, w *world, i *model.Identity) (Proof, func()) {
			root := authority(t, "theirs")
			ca := w.register(t, root)
			leaf := issue(t, root, x509.Certificate{Subject: pkix.Name{CommonName: i.ExternalID}})
			certs := &Certificates{Bundle: func() []*x509.Certificate { return nil }, Now: time.Now, Log: slog.New(slog.DiscardHandler)}
			proof, err := certs.Check(w.State.Snapshot(), []*x509.Certificate{leaf.cert})
			if err != nil {
				t.Fatal(err)
			}
			return proof, func() { remove(t, w.State, model.CAs.Def, ca.ID) }
		},
		"signer": func(t *testing.T, w *world, i *model.Identity) (Proof, func()) {
			issuer := newIssuer(t)
			signer := w.trust(t)
			proof, err := issuer.tokens(t).Check(t.Context(), w.State.Snapshot(), issuer.token(t, claims{"sub": i.ID}))
			if err != nil {
				t.Fatal(err)
			}
			return proof, func() { remove(t, w.State, model.ExtJWTSigners.Def, signer.ID) }
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				proof, withdraw := vouch(t, w, w.add(t, "visitor"))
				who, err := w.Open(t.Context(), state.Nobody, proof, Request{})
				if err != nil {
					t.Fatal(err)
				}
				if !w.works(t, who.Token()) {
					t.Fatal("the session does not work")
				}
				go w.Enforce(t.Context())
				synctest.Wait()
				withdraw()
				if w.works(t, who.Token()) {
					t.Error("the session works without what opened it")
				}
				synctest.Wait()
				if w.stored(who) {
					t.Error("the session is still stored")
				}
			})
		})
	}
}
