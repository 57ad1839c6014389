package auth_test

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"testing"
	"time"

	"netkeep.internal/internal/data/state"
	"netkeep.internal/internal/lang/terse"
	"netkeep.internal/internal/model"
	"netkeep.internal/internal/pki"
	"netkeep.internal/test/servertest"
)

// keys of every kind that a client may have.
func keyKinds(t *testing.T) map[string]crypto.Signer {
	t.Helper()
	p384, err := ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	_, ed, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	rsaKey, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	return map[string]crypto.Signer{"P-256": newKey(t), "P-384": p384, "Ed25519": ed, "RSA": rsaKey}
}

func TestCertificateLogin(t *testing.T) {
	for name, key := range keyKinds(t) {
		t.Run(name, func(t *testing.T) {
			id := add(t, nil)
			leaf, ca := ours(t, key, time.Hour)
			authenticator := addCertificate(t, id, leaf)
			both(t, func(t *testing.T, root string) {
				for _, chain := range [][]certificate{nil, {ca}, {ca, ca}} {
					a := shared.Nobody(t).Presenting(leaf.with(chain...)).Post(root+byCert, M{}).Want(200)
					if got := a.Data(); got["identityId"] != id || got["authenticatorId"] != authenticator {
						t.Errorf("the session is %v", got)
					}
				}
				// The session itself needs no certificate, and the body may be missing.
				a := shared.Nobody(t).Presenting(leaf.with()).Do("POST", root+byCert, nil).Want(200)
				c := shared.Nobody(t)
				c.Token = a.Header.Get("zt-session")
				works(t, c)
			})
		})
	}
}

// TestForeignCertificates registers certificates of somebody else's CA with
// identities.
func TestForeignCertificates(t *testing.T) {
	root := newRoot(t)
	ca := register(t, root, nil)
	id := add(t, nil)
	leaf := root.issue(t)
	authenticator := addCertificate(t, id, leaf)
	both(t, func(t *testing.T, api string) {
		a := shared.Nobody(t).Presenting(leaf.with()).Post(api+byCert, M{}).Want(200)
		if got := a.Data(); got["identityId"] != id || got["authenticatorId"] != authenticator {
			t.Errorf("the session is %v", got)
		}
	})
	session := shared.Nobody(t)
	session.Token = present(t, leaf.with()).Want(200).Header.Get("net-session")
	works(t, session)

	// Links may come in any order, with others between them.
	deep := servertest.Unique("external")
	edge := newRoot(t)
	register(t, edge, M{"externalIdClaim": byName()})
	second := edge.issue(t, authority)
	third := second.issue(t, authority)
	far := third.issue(t, named(deep))
	add(t, M{"externalId": deep})
	for _, links := range [][]certificate{
		{third, second}, {second, third}, {edge, third, second}, {second, edge, third, leaf}, {leaf, root, second, third},
	} {
		present(t, far.with(links...)).Want(200)
	}

	shared.Admin(t).Delete("cas/" + ca).Want(200)
	dead(t, session)
	shared.Admin(t).Get("authenticators/"+authenticator).Fails(404, "NOT_FOUND", "")
	present(t, leaf.with()).Fails(401, "INVALID_AUTH", "")
	register(t, root, nil)
	present(t, leaf.with()).Fails(401, "INVALID_AUTH", "")
	dead(t, session)
}

// good gives a certificate purposes.
func good(purposes ...x509.ExtKeyUsage) template {
	return func(c *x509.Certificate) { c.ExtKeyUsage = purposes }
}

// TestCertificatePurposes logs in with certificates that are made for clients,
// for anything, and for other things alone. Enrollment asks for the same.
func TestCertificatePurposes(t *testing.T) {
	root := newRoot(t)
	register(t, root, M{"externalIdClaim": byName()})
	plain := newRoot(t)
	register(t, plain, nil)
	const client, server = x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth
	for name, test := range map[string]struct {
		leaf, between template
		status        int
	}{
		"no word of purposes": {good(), nil, 200},
		"clients":             {good(client), nil, 200},
		"clients and servers": {good(server, client), nil, 200},
		"anything":            {good(x509.ExtKeyUsageAny), nil, 200},
		"CA for clients":      {good(client), good(client), 200},
		"servers":             {good(server), nil, 401},
		"email":               {good(x509.ExtKeyUsageEmailProtection), nil, 401},
		"programs":            {good(x509.ExtKeyUsageCodeSigning, x509.ExtKeyUsageTimeStamping), nil, 401},
		"CA for servers":      {good(client), good(server), 401},
		"CA for servers only": {good(), good(server), 401},
	} {
		t.Run(name, func(t *testing.T) {
			issue := func(ca certificate, changes ...template) *tls.Certificate {
				if test.between == nil {
					return ca.issue(t, append(changes, test.leaf)...).with()
				}
				between := ca.issue(t, authority, test.between)
				return between.issue(t, append(changes, test.leaf)...).with(between)
			}
			external := servertest.Unique("external")
			add(t, M{"externalId": external})
			present(t, issue(root, named(external))).Want(test.status)

			chain := issue(plain)
			leaf, err := x509.ParseCertificate(chain.Certificate[0])
			if err != nil {
				t.Fatal(err)
			}
			id := add(t, nil)
			edit := func(tx *state.Tx) error {
				return model.Authenticators.Create(tx, &model.Authenticator{
					IdentityID: id, Method: "cert", CertPEM: terse.Of(pki.EncodeCertificates(leaf)), Fingerprint: pki.Fingerprint(leaf),
				})
			}
			if err := shared.State().Update(t.Context(), state.Program("test"), edit); err != nil {
				t.Fatal(err)
			}
			present(t, chain).Want(test.status)
			if test.between == nil {
				want := map[int]int{200: 201, 401: 400}[test.status]
				own := certificate{plain.issue(t, test.leaf).Certificate, nil}
				shared.Admin(t).Post("authenticators", M{"identityId": add(t, nil), "method": "cert", "certPem": own.text()}).Want(want)
			}
		})
	}
}

// TestSessionsOfCA checks that sessions end with the CA that vouched, though
// no authenticator does.
func TestSessionsOfCA(t *testing.T) {
	root, external := newRoot(t), servertest.Unique("external")
	ca := register(t, root, M{"externalIdClaim": byName()})
	id := add(t, M{"externalId": external})
	a := present(t, root.issue(t, named(external)).with()).Want(200)
	if got := a.Data(); got["identityId"] != id || got["authenticatorId"] != "internal" {
		t.Errorf("the session is %v", got)
	}
	c := shared.Nobody(t)
	c.Token = a.Header.Get("net-session")
	works(t, c)
	shared.Admin(t).Delete("cas/" + ca).Want(200)
	dead(t, c)
	servertest.Eventually(t, waitTime, "the session's removal", func() bool { return sessionsOf(id) == 0 })
}

func TestExpiredCertificates(t *testing.T) {
	root := newRoot(t, expired)
	register(t, root, M{"externalIdClaim": byName()})
	lenient := addPolicy(t, func(primary, _ M) { primary["cert"].(M)["allowExpiredCerts"] = true })
	strict := addPolicy(t, func(M, M) {})
	for _, test := range []struct {
		name    string
		changes []template
	}{
		{"leaf", []template{expired}}, {"CA only", nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			external := servertest.Unique("external")
			id := add(t, M{"externalId": external, "authPolicyId": lenient})
			leaf := root.issue(t, append(test.changes, named(external))...)
			present(t, leaf.with()).Want(200)
			shared.Admin(t).Patch("identities/"+id, M{"authPolicyId": strict}).Want(200)
			present(t, leaf.with()).Fails(401, "INVALID_AUTH", "")
		})
	}
	// What is not valid yet is of no use to anybody.
	external := servertest.Unique("external")
	add(t, M{"externalId": external, "authPolicyId": lenient})
	present(t, root.issue(t, named(external), lasting(time.Hour, 2*time.Hour)).with()).Fails(401, "INVALID_AUTH", "")
}

func withEmails(emails ...string) template {
	return func(c *x509.Certificate) { c.EmailAddresses = emails }
}

// TestExternalIDClaims finds external ids wherever a claim says they are.
func TestExternalIDClaims(t *testing.T) {
	claim := func(location, matcher, criteria, parser, separator string, index int) M {
		return M{"location": location, "matcher": matcher, "matcherCriteria": criteria, "parser": parser, "parserCriteria": separator, "index": index}
	}
	uri := func(texts ...string) template {
		return func(c *x509.Certificate) {
			for _, text := range texts {
				withURI(text)(c)
			}
		}
	}
	for name, test := range map[string]struct {
		claim  M
		before string // what is unique in the external id
		after  string
		change func(id string) template
	}{
		"common name":       {claim("COMMON_NAME", "ALL", "", "NONE", "", 0), "", "", named},
		"name with prefix":  {claim("COMMON_NAME", "PREFIX", "pre-", "NONE", "", 0), "", "", func(id string) template { return named("pre-" + id) }},
		"name with suffix":  {claim("COMMON_NAME", "SUFFIX", ".org", "NONE", "", 0), "", "", func(id string) template { return named(id + ".org") }},
		"part of a name":    {claim("COMMON_NAME", "ALL", "", "SPLIT", "/", 1), "", "", func(id string) template { return named("a/" + id + "/c") }},
		"part after prefix": {claim("COMMON_NAME", "PREFIX", "x:", "SPLIT", ":", 0), "", "", func(id string) template { return named("x:" + id + ":y") }},
		"email":             {claim("SAN_EMAIL", "ALL", "", "NONE", "", 0), "", "@example.org", func(id string) template { return withEmails(id) }},
		"second email":      {claim("SAN_EMAIL", "ALL", "", "NONE", "", 1), "", "@example.org", func(id string) template { return withEmails("a@b.c", id) }},
		"email of a domain": {claim("SAN_EMAIL", "SUFFIX", "@example.org", "NONE", "", 0), "", "", func(id string) template { return withEmails("a@b.c", id+"@example.org") }},
		"user of an email":  {claim("SAN_EMAIL", "ALL", "", "SPLIT", "@", 0), "", "", func(id string) template { return withEmails(id + "@example.org") }},
		"URI":               {claim("SAN_URI", "ALL", "", "NONE", "", 0), "urn:", "", func(id string) template { return uri(id) }},
		"URI by scheme":     {claim("SAN_URI", "SCHEME", "spiffe", "NONE", "", 0), "spiffe://", "", func(id string) template { return uri("https://x.org/a", id) }},
		"part of a URI":     {claim("SAN_URI", "SCHEME", "spiffe", "SPLIT", "/", 4), "", "", func(id string) template { return uri("https://x.org/a/b", "spiffe://td.org/users/"+id) }},
		"other part of it":  {claim("SAN_URI", "SCHEME", "spiffe", "SPLIT", "/user/", 1), "", "", func(id string) template { return uri("spiffe://td.org/user/" + id) }},
	} {
		t.Run(name, func(t *testing.T) {
			root := newRoot(t)
			register(t, root, M{"externalIdClaim": test.claim})
			external := test.before + servertest.Unique("external") + test.after
			id := add(t, M{"externalId": external})
			leaf := root.issue(t, test.change(external))
			if got := present(t, leaf.with()).Want(200).Data()["identityId"]; got != id {
				t.Errorf("the session is for %v", got)
			}
			present(t, root.issue(t, test.change(external+"x")).with()).Fails(401, "INVALID_AUTH", "")
		})
	}
}

// TestClaimNotFound falls back to the fingerprint if a certificate does not
// hold what the claim asks for.
func TestClaimNotFound(t *testing.T) {
	root := newRoot(t)
	claim := byName()
	claim["matcher"], claim["matcherCriteria"] = "PREFIX", "who-"
	register(t, root, M{"externalIdClaim": claim})
	leaf, id := root.issue(t), add(t, nil)
	present(t, leaf.with()).Fails(401, "INVALID_AUTH", "")
	addCertificate(t, id, leaf)
	if got := present(t, leaf.with()).Want(200).Data()["identityId"]; got != id {
		t.Errorf("the session is for %v", got)
	}
}

// TestCertificatesToRegister checks which certificates an identity may get.
func TestCertificatesToRegister(t *testing.T) {
	root := newRoot(t)
	ca := register(t, root, nil)
	give := func(c certificate) *servertest.Answer {
		return shared.Admin(t).Post("authenticators", M{"identityId": add(t, nil), "method": "cert", "certPem": c.text()})
	}
	give(root.issue(t)).Want(201)
	give(newRoot(t).issue(t)).Fails(400, "COULD_NOT_VALIDATE", "certPem")
	give(root).Fails(400, "COULD_NOT_VALIDATE", "certPem")
	give(root.issue(t, authority)).Fails(400, "COULD_NOT_VALIDATE", "certPem")
	leaf := root.issue(t)
	give(leaf).Want(201)
	give(leaf).Fails(400, "COULD_NOT_VALIDATE", "fingerprint")
	unverified := root.issue(t)
	shared.Admin(t).Delete("cas/" + ca).Want(200)
	give(unverified).Fails(400, "COULD_NOT_VALIDATE", "certPem")
}
