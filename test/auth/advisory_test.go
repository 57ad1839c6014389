package auth_test

import (
	"crypto/rand"
	"crypto/tls"
	"encoding/base64"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"netkeep.internal/internal/web/api"
	"netkeep.internal/test/machine"
	"netkeep.internal/test/servertest"
)

// The tests in this file are named after weaknesses that were published of
// systems like this one.

// A peer was accepted if any certificate that it presented chained to the CA,
// while its identity came from the first.
func TestGHSA_mrpr_756c_xm47(t *testing.T) {
	id, leaf := certified(t, M{"isAdmin": true})
	_, signing := ours(t, newKey(t), time.Hour)
	twin := certify(t, newKey(t), nil, []template{named(leaf.Subject.CommonName), sameSerial(leaf)})
	for _, behind := range [][]certificate{{leaf}, {leaf, signing}, {signing, leaf}, {signing}} {
		present(t, twin.with(behind...)).Fails(401, "INVALID_AUTH", "")
	}
	if got := present(t, leaf.with(twin, signing)).Want(200).Data()["identityId"]; got != id {
		t.Errorf("the session is for %v", got)
	}
}

// Whole bodies were read before anybody asked who had sent them.
func TestGHSA_q8g9_jc4c_jp6q(t *testing.T) {
	large := servertest.Raw(`{"username":"` + strings.Repeat("x", 70<<10) + `"}`)
	both(t, func(t *testing.T, root string) {
		shared.Nobody(t).Post(root+byPassword, large).Fails(413, "BODY_TOO_LARGE", "")
		shared.Nobody(t).Post(root+mfaComplete, large).Fails(413, "BODY_TOO_LARGE", "")
	})
	shared.Nobody(t).Post("identities", large).Fails(401, "UNAUTHORIZED", "")
}

// A header that the caller set decided whose session it was.
func TestGHSA_7868_235p_7497(t *testing.T) {
	admin := add(t, M{"isAdmin": true})
	c := enter(t, add(t, nil))
	session := enter(t, admin).Get(session).ID()
	for _, name := range []string{
		"identity", "identity-id", "x-identity", "x-identity-id", "net-identity", "zt-identity", "session-id", "net-session-id", "api-session-id",
		"x-api-session", "x-forwarded-user", "x-remote-user", "x-auth-request-user", "x-user", "x-admin", "from", "via", "forwarded",
		"x-original-url", "x-rewrite-url", "x-http-method-override",
	} {
		for _, value := range []string{admin, session, "Default Admin", "true", "/edge/client/v1/version"} {
			a := c.With(name, value)
			a.Get("identities").Fails(401, "UNAUTHORIZED", "")
		}
	}
	if got := c.With("identity", admin).With("session-id", session).Get("current-identity").Data()["id"]; got == admin {
		t.Error("a header chose the identity")
	}
}

// Audience and issuer went unchecked when a header named the signer.
func TestGHSA_4h58_w989_xgg4(t *testing.T) {
	i, id := newIssuer(t, "ES256", newKey(t), nil), add(t, nil)
	policy := addPolicy(t, func(_, secondary M) { secondary["requireExtJwtSigner"] = i.id })
	second := add(t, M{"authPolicyId": policy})
	for _, change := range []M{{"aud": "x"}, {"aud": nil}, {"iss": "x"}, {"iss": nil}, {"exp": 1}, {"exp": nil}} {
		for _, header := range []M{nil, {"iss": i.name, "aud": i.audience}, {"signer": i.id, "x5t": i.kid}} {
			bad := func(sub string) string {
				claims := i.claims(change)
				claims["sub"] = sub
				return sign(t, "ES256", i.key, encode(t, i.header(header)), encode(t, claims))
			}
			show(t, bad(id)).Fails(401, "INVALID_AUTH", "")
			enter(t, second).With("Authorization", "Bearer "+bad(second)).Get("current-identity").Fails(401, "UNAUTHORIZED", "")
		}
	}
}

// Certificates of everybody's sessions were listed to anybody.
func TestGHSA_6v5r_p2wr_q492(t *testing.T) {
	mine, leaf := certified(t, nil)
	_, other := certified(t, nil)
	c := enter(t, mine)
	both(t, func(t *testing.T, root string) {
		for _, query := range []string{"", "?limit=500", "?filter=true", "?filter=true%20or%20identityId%20!%3D%20null", "?filter=identity%20!%3D%20%22" + mine + "%22"} {
			for _, entry := range c.Get(root + "current-identity/authenticators" + query).Want(200).List() {
				if entry["identityId"] != mine || entry["certPem"] != leaf.text() || entry["certPem"] == other.text() {
					t.Errorf("%q lists %v", query, entry)
				}
			}
		}
	})
}

// A further header made verification unnecessary.
func TestGHSA_cc5m_7mhm_xh9f(t *testing.T) {
	_, leaf := certified(t, nil)
	stranger := certify(t, newKey(t), nil, []template{named(leaf.Subject.CommonName)})
	pem := base64.StdEncoding.EncodeToString(leaf.Raw)
	for _, name := range []string{
		"X-Client-Cert", "X-Client-Certificate", "X-SSL-Cert", "X-SSL-Client-Cert", "SSL_CLIENT_CERT", "X-Forwarded-Client-Cert",
		"X-Forwarded-Tls-Client-Cert", "X-ARR-ClientCert", "Client-Cert", "Client-Cert-Chain", "X-SSL-Client-Verify", "X-Tls-Verified",
	} {
		for _, value := range []string{pem, ":" + pem + ":", "SUCCESS", "Hash=" + digest(string(leaf.Raw))} {
			shared.Nobody(t).With(name, value).Post(byCert, M{}).Fails(401, "INVALID_AUTH", "")
		}
	}
	c := shared.Nobody(t).Presenting(stranger.with())
	c.With("X-SSL-Client-Verify", "SUCCESS").With("X-Client-Cert", pem).Post(byCert, M{}).Fails(401, "INVALID_AUTH", "")
}

// The chain was verified, and then another certificate of it believed.
func TestGHSA_hhm9_wf63_g7qj(t *testing.T) {
	root, external := newRoot(t), servertest.Unique("external")
	register(t, root, M{"externalIdClaim": byName()})
	victim, own := add(t, M{"externalId": external}), servertest.Unique("external")
	me := add(t, M{"externalId": own})
	mine, theirs := root.issue(t, named(own)), root.issue(t, named(external))
	for _, behind := range [][]certificate{{theirs}, {theirs, root}, {root, theirs}, {root.issue(t, named(external), authority)}} {
		if got := present(t, mine.with(behind...)).Want(200).Data()["identityId"]; got != me {
			t.Errorf("the session is for %v, want %s, not %s", got, me, victim)
		}
	}
	// The victim's certificate first, with a key that is not its own.
	if a := present(t, certificate{theirs.Certificate, mine.key}.with(mine)); a != nil {
		t.Errorf("TLS accepts a certificate without its key: %s", a.Raw)
	}
	// Renegotiation and resumption do not change who it is.
	config := shared.TLS()
	config.ClientSessionCache = tls.NewLRUClientSessionCache(1)
	config.Certificates = []tls.Certificate{*mine.with()}
	for range 2 {
		client := &http.Client{Transport: &http.Transport{TLSClientConfig: config, DisableKeepAlives: true}}
		resp, err := client.Post(shared.URL+api.ManagementRoot+"/"+byCert, "application/json", strings.NewReader("{}"))
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		if resp.StatusCode != http.StatusOK {
			t.Errorf("status %d", resp.StatusCode)
		}
		config.Certificates = nil // the second time the ticket alone has to do
	}
}

// Those with some rights could raise themselves to admins.
func TestZiti4010(t *testing.T) {
	id, password := add(t, nil), rand.Text()
	_, a := addPassword(t, id, password)
	c := enter(t, id)
	own := "current-identity/authenticators/" + a
	for _, extra := range []M{{"isAdmin": true}, {"identityId": "other"}, {"tags": M{"isAdmin": true}}, {"identity": M{"isAdmin": true}}} {
		body := M{"currentPassword": password}
		for name, value := range extra {
			body[name] = value
		}
		c.Patch(own, body).Want(200)
	}
	c.Patch("identities/"+id, M{"isAdmin": true}).Fails(401, "UNAUTHORIZED", "")
	show(t, house(t).token(t, M{"sub": id, "isAdmin": true, "admin": true, "roles": []any{"admin"}})).Want(200)
	got := c.Get("current-identity").Want(200).Data()
	if got["isAdmin"] != false || got["isDefaultAdmin"] != false {
		t.Errorf("the identity is %v", got)
	}
	c.Get("identities").Fails(401, "UNAUTHORIZED", "")
}

// Passwords were hashed without limit, on four threads each, and everybody
// waited.
func TestZiti4420(t *testing.T) {
	_, leaf := certified(t, nil)
	c := shared.Admin(t)
	quiet := median(t, func() { present(t, leaf.with()).Want(200) })
	var flood sync.WaitGroup
	done := make(chan struct{})
	for range 8 {
		flood.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
					shared.Nobody(t).Post(byPassword, M{"username": servertest.Unique("nobody"), "password": "wrong one"})
				}
			}
		})
	}
	watch := machine.Begin(t)
	loud := median(t, func() {
		present(t, leaf.with()).Want(200)
		works(t, c)
	})
	_, limit := watch.Took(20*quiet + time.Second)
	close(done)
	flood.Wait()
	// It shares the processors with the flood, but does not wait in its line:
	// eight hashes would take many times as long.
	if loud > limit {
		t.Errorf("a login by certificate takes %s in a flood of passwords and %s without", loud, quiet)
	}
}

func median(t *testing.T, work func()) time.Duration {
	t.Helper()
	const runs = 5
	var took [runs]time.Duration
	for i := range took {
		start := time.Now()
		work()
		took[i] = time.Since(start)
	}
	for i := range took { // few enough
		for j := i; j > 0 && took[j] < took[j-1]; j-- {
			took[j], took[j-1] = took[j-1], took[j]
		}
	}
	return took[runs/2]
}

// An admin who had yet to show a factor passed for an admin.
func TestPartialAdmin(t *testing.T) {
	f := enroll(t, add(t, M{"isAdmin": true}))
	c := enter(t, f.id)
	target := add(t, nil)
	c.Get("identities").Fails(401, "UNAUTHORIZED", "")
	c.Patch("identities/"+target, M{"isAdmin": true}).Fails(401, "UNAUTHORIZED", "")
	c.Delete("identities/"+f.id+"/mfa").Fails(401, "UNAUTHORIZED", "")
	c.Post(mfaComplete, M{"code": f.code(t)}).Want(200)
	c.Get("identities").Want(200)
}

// Deleting a CA kept its authenticators, and registering it again revived the
// logins.
func TestCADeletedAndRegisteredAgain(t *testing.T) {
	root := newRoot(t)
	ca := register(t, root, nil)
	leaf, id := root.issue(t), add(t, nil)
	authenticator := addCertificate(t, id, leaf)
	present(t, leaf.with()).Want(200)
	shared.Admin(t).Delete("cas/" + ca).Want(200)
	shared.Admin(t).Get("authenticators/"+authenticator).Fails(404, "NOT_FOUND", "")
	register(t, root, nil)
	present(t, leaf.with()).Fails(401, "INVALID_AUTH", "")
	addCertificate(t, id, leaf) // on purpose it is possible
	present(t, leaf.with()).Want(200)
}
