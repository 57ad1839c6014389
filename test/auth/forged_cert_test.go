package auth_test

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"net/http"
	"slices"
	"testing"
	"time"

	"netkeep.internal/internal/model"
	"netkeep.internal/internal/pki"
	"netkeep.internal/test/servertest"
)

// chain tries to log in with certificates.
func chain(name string, presented *tls.Certificate) attempt {
	return attempt{name, func(t *testing.T) *servertest.Answer { return present(t, presented) }}
}

// forgedCertificates are certificates under the controller's own CA, or which
// pretend to be.
func forgedCertificates(t *testing.T) []attempt {
	_, leaf := certified(t, nil)
	_, signing := ours(t, newKey(t), time.Hour)
	twin := named(leaf.Subject.CommonName)
	unknown, _ := ours(t, newKey(t), time.Hour)
	renewed, _ := ours(t, leaf.key, time.Hour)
	stolen := certificate{leaf.Certificate, newKey(t)}
	pretender := newRoot(t, named(signing.Subject.CommonName))
	selfSigned := certify(t, newKey(t), nil, []template{twin, sameSerial(leaf)})
	admin := shared.Admin(t)
	lost := func(name string, change func(id, authenticator string)) attempt {
		id := add(t, nil)
		cert, _ := ours(t, newKey(t), time.Hour)
		change(id, addCertificate(t, id, cert))
		return chain(name, cert.with())
	}
	noCerts := addPolicy(t, func(primary, _ M) { primary["cert"].(M)["allowed"] = false })
	return []attempt{
		{"none", func(t *testing.T) *servertest.Answer { return shared.Nobody(t).Post(byCert, M{}) }},
		{"PEM in the body", func(t *testing.T) *servertest.Answer { return shared.Nobody(t).Post(byCert, M{"certPem": leaf.text()}) }},
		{"PEM in a header", func(t *testing.T) *servertest.Answer {
			return shared.Nobody(t).With("X-Client-Cert", leaf.text()[28:80]).With("X-SSL-Client-Verify", "SUCCESS").Post(byCert, M{})
		}},
		{"fingerprint in the body", func(t *testing.T) *servertest.Answer {
			return shared.Nobody(t).Presenting(unknown.with()).Post(byCert, M{"fingerprint": pki.Fingerprint(leaf.Certificate)})
		}},
		chain("self-signed with all names", selfSigned.with()),
		chain("self-signed with the CA behind", selfSigned.with(signing)),
		chain("stranger's CA of the same name", pretender.issue(t, twin, sameSerial(leaf)).with(pretender)),
		chain("stranger's CA before ours", pretender.issue(t, twin).with(pretender, signing)),
		chain("somebody's without the key", stolen.with()),
		chain("unknown to us", unknown.with()),
		chain("same key, other certificate", renewed.with(leaf)),
		chain("the server's own", serverCertificate(t)),
		chain("the signing CA without the key", certificate{signing.Certificate, newKey(t)}.with()),
		lost("authenticator deleted", func(_, a string) { admin.Delete("authenticators/" + a).Want(http.StatusOK) }),
		lost("identity deleted", func(id, _ string) { admin.Delete("identities/" + id).Want(http.StatusOK) }),
		lost("identity disabled", func(id, _ string) {
			admin.Post("identities/"+id+"/disable", M{"durationMinutes": 5}).Want(http.StatusOK)
		}),
		lost("policy without certificates", func(id, _ string) {
			admin.Patch("identities/"+id, M{"authPolicyId": noCerts}).Want(http.StatusOK)
		}),
	}
}

func sameSerial(as certificate) template {
	return func(c *x509.Certificate) {
		c.SerialNumber, c.NotBefore, c.NotAfter = as.SerialNumber, as.NotBefore, as.NotAfter
		c.SubjectKeyId, c.AuthorityKeyId = as.SubjectKeyId, as.AuthorityKeyId
	}
}

// serverCertificate is what the controller itself serves.
func serverCertificate(t *testing.T) *tls.Certificate {
	t.Helper()
	served, err := tls.LoadX509KeyPair(shared.Config.Data+"/pki/server.crt", shared.Config.Data+"/pki/server.key")
	if err != nil {
		t.Fatal(err)
	}
	return &served
}

// forgedChains are chains under somebody else's CA that prove nothing.
func forgedChains(t *testing.T) []attempt {
	root := newRoot(t)
	register(t, root, M{"externalIdClaim": byName()})
	id := servertest.Unique("external")
	add(t, M{"externalId": id})
	victim := named(id)
	leaf := root.issue(t, victim)
	if a := present(t, leaf.with()); a.Status != http.StatusOK {
		t.Fatalf("the certificate that is copied does not work: %s", a.Raw)
	}
	between := root.issue(t, authority)
	narrow := root.issue(t, authority, func(c *x509.Certificate) { c.MaxPathLenZero = true })
	elsewhere := root.issue(t, authority, func(c *x509.Certificate) {
		c.PermittedURIDomains, c.PermittedDNSDomainsCritical = []string{"example.org"}, true
	})
	stranger := newRoot(t, named(root.Subject.CommonName))
	mine := newRoot(t).issue(t, victim)
	weak, err := rsa.GenerateKey(rand.Reader, 1024)
	if err != nil {
		t.Fatal(err)
	}
	filler := slices.Repeat([]certificate{between}, 10)
	return []attempt{
		chain("leaf not first", certificate{between.Certificate, leaf.key}.with(leaf)),
		chain("a good leaf behind a self-made one", mine.with(leaf, root)),
		chain("a good chain behind a self-made leaf", mine.with(between.issue(t, victim), between, root)),
		chain("self-signed before a good one", certify(t, newKey(t), nil, []template{victim}).with(leaf, root)),
		chain("root itself", root.with()),
		chain("a CA as leaf", root.issue(t, victim, authority).with(root)),
		chain("a self-signed CA as leaf", newRoot(t, victim).with(root)),
		chain("missing link", between.issue(t, victim).with()),
		chain("other link", between.issue(t, victim).with(narrow, root)),
		chain("signed by a leaf", leaf.issue(t, victim).with(leaf)),
		chain("path too long", narrow.issue(t, authority).issue(t, victim).with(narrow, root)),
		chain("path too long, all shown", longPath(t, narrow, victim)),
		chain("outside of the CA's names", elsewhere.issue(t, victim, withURI("spiffe://example.com/x")).with(elsewhere)),
		chain("stranger of the same name", stranger.issue(t, victim).with(root)),
		chain("stranger of the same name and key id", stranger.issue(t, victim, sameSerial(leaf)).with(stranger, root)),
		chain("broken signature", broken(leaf).with(root)),
		chain("weak key", certify(t, weak, &root, []template{victim}).with()),
		chain("too many", between.issue(t, victim).with(append(filler, root)...)),
		chain("not yet valid", root.issue(t, victim, lasting(time.Hour, 2*time.Hour)).with()),
		chain("link not yet valid", notYet(t, root, victim)),
		chain("unknown name", root.issue(t, named(servertest.Unique("external"))).with()),
		chain("name with a NUL", root.issue(t, named(id+"\x00")).with()),
		chain("name in other case", root.issue(t, named(swapCase(id))).with()),
		chain("no name", root.issue(t, named("")).with()),
	}
}

// longPath presents one CA more than the first allows below it.
func longPath(t *testing.T, narrow certificate, victim template) *tls.Certificate {
	t.Helper()
	second := narrow.issue(t, authority)
	return second.issue(t, victim).with(second, narrow)
}

func notYet(t *testing.T, root certificate, victim template) *tls.Certificate {
	t.Helper()
	link := root.issue(t, authority, lasting(time.Hour, 2*time.Hour))
	return link.issue(t, victim).with(link)
}

// broken changes a bit of the signature.
func broken(c certificate) certificate {
	other := *c.Certificate
	other.Raw = slices.Clone(c.Raw)
	other.Raw[len(other.Raw)-1] ^= 1
	return certificate{&other, c.key}
}

// forgedCAs are certificates of CAs that do not count, or do not any more.
func forgedCAs(t *testing.T) []attempt {
	admin := shared.Admin(t)
	under := func(name string, change func(ca string, root certificate)) attempt {
		root := newRoot(t)
		ca := register(t, root, M{"externalIdClaim": byName()})
		id := servertest.Unique("external")
		add(t, M{"externalId": id})
		leaf := root.issue(t, named(id))
		if a := present(t, leaf.with()); a.Status != http.StatusOK {
			t.Fatalf("the certificate does not work yet: %s", a.Raw)
		}
		change(ca, root)
		return chain(name, leaf.with(root))
	}
	strict := addPolicy(t, func(M, M) {})
	dated := func(name string, changes ...template) attempt {
		root := newRoot(t)
		register(t, root, M{"externalIdClaim": byName()})
		id := servertest.Unique("external")
		add(t, M{"externalId": id, "authPolicyId": strict})
		return chain(name, root.issue(t, append(changes, named(id))...).with())
	}
	expiredRoot := func() attempt {
		root := newRoot(t, expired)
		register(t, root, M{"externalIdClaim": byName()})
		id := servertest.Unique("external")
		add(t, M{"externalId": id, "authPolicyId": strict})
		return chain("expired CA", root.issue(t, named(id)).with())
	}
	return []attempt{
		under("not verified", func(ca string, _ certificate) { edit(t, model.CAs, ca, func(c *model.CA) { c.IsVerified = false }) }),
		under("authentication off", func(ca string, _ certificate) { admin.Patch("cas/"+ca, M{"isAuthEnabled": false}).Want(http.StatusOK) }),
		under("deleted", func(ca string, _ certificate) { admin.Delete("cas/" + ca).Want(http.StatusOK) }),
		under("registered again, not verified", func(ca string, root certificate) {
			admin.Delete("cas/" + ca).Want(http.StatusOK)
			again := register(t, root, M{"externalIdClaim": byName()})
			edit(t, model.CAs, again, func(c *model.CA) { c.IsVerified = false })
		}),
		under("claim taken away", func(ca string, _ certificate) { edit(t, model.CAs, ca, func(c *model.CA) { c.ExternalIDClaim = nil }) }),
		under("claim elsewhere", func(ca string, _ certificate) {
			admin.Patch("cas/"+ca, M{"externalIdClaim": M{"location": "SAN_EMAIL"}}).Want(http.StatusOK)
		}),
		dated("expired", expired),
		dated("expired just now", lasting(-time.Hour, -time.Second)),
		expiredRoot(),
	}
}
