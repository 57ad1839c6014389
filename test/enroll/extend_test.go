package enroll_test

import (
	"crypto"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"net"
	"slices"
	"sync"
	"testing"
	"time"

	"netkeep.internal/test/servertest"
)

// enrolled returns an identity with a certificate of ours, logged in.
func enrolled(t *testing.T, c *servertest.Client) (id string, h holder) {
	t.Helper()
	id, token := invite(t, c, M{"ott": true})
	key := newKey(t)
	got := holder{t: t}.send("POST", "enroll/ott"+query("token", token), "text/plain", "", newCSR(t, key, x509.CertificateRequest{})).want(200)
	h = holder{t: t, cert: &tls.Certificate{Certificate: [][]byte{parse(t, got.raw).Raw}, PrivateKey: key}}
	h.token = h.post("authenticate?method=cert", M{}).want(200).data()["token"].(string)
	return id, h
}

func TestExtend(t *testing.T) {
	c := shared.Admin(t)
	id, h := enrolled(t, c)
	auth := c.Get("identities/" + id + "/authenticators").List()[0]["id"].(string)
	path := "current-identity/authenticators/" + auth
	key := newKey(t)
	body := M{"clientCertCsr": string(newCSR(t, key, x509.CertificateRequest{}))}
	h.post(path+"/extend-verify", M{"clientCert": "x"}).fails(409, "CAN_NOT_UPDATE_AUTHENTICATOR")
	holder{t: t, token: h.token}.post(path+"/extend", body).fails(401, "UNAUTHORIZED")
	_, stranger := enrolled(t, c)
	stranger.post(path+"/extend", body).fails(404, "NOT_FOUND")

	fresh := h.post(path+"/extend", body).want(200).data()
	renewed := holder{t: t, cert: &tls.Certificate{Certificate: [][]byte{parse(t, []byte(fresh["clientCert"].(string))).Raw}, PrivateKey: key}}
	h.post("authenticate?method=cert", M{}).want(200)
	renewed.post("authenticate?method=cert", M{}).fails(401, "INVALID_AUTH")
	h.post(path+"/extend-verify", M{"clientCert": encode(parse(t, []byte(fresh["ca"].(string))))}).fails(400, "INVALID_CLIENT_CERT")
	h.post(path+"/extend-verify", M{"clientCert": fresh["clientCert"]}).want(200)
	renewed.post("authenticate?method=cert", M{}).want(200)
	h.post("authenticate?method=cert", M{}).fails(401, "INVALID_AUTH")

	// A certificate of somebody else's CA is not ours to extend.
	ca := newAuthority(t)
	who, token := invite(t, c, M{"ottca": ca.register(c, true, nil)})
	foreign := holder{t: t, cert: ca.client(x509.Certificate{})}
	foreign.post("enroll/ottca"+query("token", token), M{}).want(200)
	foreign.token = foreign.post("authenticate?method=cert", M{}).want(200).data()["token"].(string)
	other := c.Get("identities/" + who + "/authenticators").List()[0]["id"].(string)
	foreign.post("current-identity/authenticators/"+other+"/extend", body).fails(409, "CAN_NOT_UPDATE_AUTHENTICATOR")
}

// TestRequestExtend asks the holder of a certificate to have it extended, which
// its session shows until it has. Only a certificate of ours can be.
func TestRequestExtend(t *testing.T) {
	c := shared.Admin(t)
	id, h := enrolled(t, c)
	auth := c.Get("identities/" + id + "/authenticators").List()[0]["id"].(string)
	shows := func(h holder, extendable, extend, roll bool) {
		t.Helper()
		mine := h.send("GET", "current-api-session", "", "", nil).want(200).data()
		for _, got := range []M{mine, c.Get("api-sessions/" + mine["id"].(string)).Want(200).Data()} {
			if got["isCertExtendable"] != extendable || got["isCertExtendRequested"] != extend || got["isCertKeyRollRequested"] != roll {
				t.Errorf("the session shows %v, %v, %v, want %v, %v, %v",
					got["isCertExtendable"], got["isCertExtendRequested"], got["isCertKeyRollRequested"], extendable, extend, roll)
			}
		}
	}
	shows(h, true, false, false)
	c.Post("authenticators/"+auth+"/request-extend", M{}).Want(200)
	shows(h, true, true, false)
	c.Post("authenticators/"+auth+"/request-extend", M{"rollKeys": true}).Want(200)
	shows(h, true, true, true)
	got := c.Get("authenticators/" + auth).Want(200).Data()
	if got["isExtendRequested"] != true || got["isKeyRollRequested"] != true || got["extendRequestedAt"] == nil || got["lastExtendRolledKeys"] != false {
		t.Errorf("the authenticator shows %v", got)
	}

	extend := func(key crypto.Signer) {
		t.Helper()
		path := "current-identity/authenticators/" + auth
		fresh := h.post(path+"/extend", M{"clientCertCsr": string(newCSR(t, key, x509.CertificateRequest{}))}).want(200).data()
		shows(h, true, true, true) // it has yet to arrive
		h.post(path+"/extend-verify", M{"clientCert": fresh["clientCert"]}).want(200)
		h.cert = &tls.Certificate{Certificate: [][]byte{parse(t, []byte(fresh["clientCert"].(string))).Raw}, PrivateKey: key}
		shows(h, true, false, false)
	}
	rolled := func(want bool) {
		t.Helper()
		got := c.Get("authenticators/" + auth).Want(200).Data()
		if got["isExtendRequested"] != false || got["isKeyRollRequested"] != false || got["lastExtendRolledKeys"] != want {
			t.Errorf("the authenticator shows %v", got)
		}
	}
	key := newKey(t)
	extend(key)
	rolled(true)

	// What was issued before it was asked for is not what was asked for.
	path := "current-identity/authenticators/" + auth
	early := h.post(path+"/extend", M{"clientCertCsr": string(newCSR(t, key, x509.CertificateRequest{}))}).want(200).data()
	c.Post("authenticators/"+auth+"/request-extend", M{"rollKeys": true}).Want(200)
	h.post(path+"/extend-verify", M{"clientCert": early["clientCert"]}).fails(409, "CAN_NOT_UPDATE_AUTHENTICATOR")
	shows(h, true, true, true)
	key = newKey(t)
	extend(key)
	rolled(true)
	c.Post("authenticators/"+auth+"/request-extend", M{"rollKeys": true}).Want(200)
	extend(key) // who cannot make another key still has another certificate
	rolled(false)

	c.Post("authenticators/nope/request-extend", M{}).Fails(404, "NOT_FOUND", "")
	ca := newAuthority(t)
	who, token := invite(t, c, M{"ottca": ca.register(c, true, nil)})
	foreign := holder{t: t, cert: ca.client(x509.Certificate{})}
	foreign.post("enroll/ottca"+query("token", token), M{}).want(200)
	foreign.token = foreign.post("authenticate?method=cert", M{}).want(200).data()["token"].(string)
	shows(foreign, false, false, false)
	other := c.Get("identities/" + who + "/authenticators").List()[0]["id"].(string)
	c.Post("authenticators/"+other+"/request-extend", M{}).Fails(409, "CAN_NOT_UPDATE_AUTHENTICATOR", "")
	user, token := invite(t, c, M{"updb": servertest.Unique("user")})
	holder{t: t}.post("enroll/updb"+query("token", token), M{"password": "long enough"}).want(200)
	password := c.Get("identities/" + user + "/authenticators").List()[0]["id"].(string)
	c.Post("authenticators/"+password+"/request-extend", M{}).Fails(409, "CAN_NOT_UPDATE_AUTHENTICATOR", "")
}

// TestExtendBeside has others who hold the key ask for certificates at the moment
// when that of its owner, with another key, begins to count: none of theirs can
// then.
func TestExtendBeside(t *testing.T) {
	c := shared.Admin(t)
	id, h := enrolled(t, c)
	auth := c.Get("identities/" + id + "/authenticators").List()[0]["id"].(string)
	path := "current-identity/authenticators/" + auth
	ask := func() reply {
		return h.post(path+"/extend", M{"clientCertCsr": string(newCSR(t, newKey(t), x509.CertificateRequest{}))})
	}
	for counts := false; !counts; { // theirs may come first
		mine := ask().want(200).data()["clientCert"]
		var stolen [4]reply
		var all sync.WaitGroup
		for i := range stolen {
			all.Go(func() { stolen[i] = ask() })
		}
		counts = h.post(path+"/extend-verify", M{"clientCert": mine}).status == 200
		all.Wait()
		for _, got := range stolen {
			if counts && got.status == 200 {
				h.post(path+"/extend-verify", M{"clientCert": got.data()["clientCert"]}).fails(409, "CAN_NOT_UPDATE_AUTHENTICATOR")
			}
		}
	}
}

// TestRevert turns each kind of authenticator back into its enrollment.
func TestRevert(t *testing.T) {
	c := shared.Admin(t)
	soon := M{"expiresAt": time.Now().Add(time.Hour).UTC().Format(time.RFC3339)}
	revert := func(id, method string) M {
		t.Helper()
		auth := c.Get("identities/" + id + "/authenticators").List()[0]["id"].(string)
		enrollment := c.Post("authenticators/"+auth+"/re-enroll", soon).Want(201).ID()
		c.Get("authenticators/"+auth).Fails(404, "NOT_FOUND", "")
		got := c.Get("enrollments/" + enrollment).Data()
		if got["method"] != method || got["identityId"] != id {
			t.Errorf("enrollment is %v, want %s", got, method)
		}
		return got
	}
	id, h := enrolled(t, c)
	revert(id, "ott")
	h.send("GET", "current-api-session", "", "", nil).fails(401, "UNAUTHORIZED")

	name := servertest.Unique("user")
	id, token := invite(t, c, M{"updb": name})
	holder{t: t}.post("enroll/updb"+query("token", token), M{"password": "long enough"}).want(200)
	if got := revert(id, "updb"); got["username"] != name {
		t.Errorf("the user name became %v", got["username"])
	}

	ca := newAuthority(t)
	caID := ca.register(c, true, nil)
	id, token = invite(t, c, M{"ottca": caID})
	holder{t: t, cert: ca.client(x509.Certificate{})}.post("enroll/ottca"+query("token", token), M{}).want(200)
	if got := revert(id, "ottca"); got["caId"] != caID {
		t.Errorf("the CA became %v", got["caId"])
	}
	c.Post("authenticators/nope/re-enroll", soon).Fails(404, "NOT_FOUND", "")
}

func TestRouters(t *testing.T) {
	c := shared.Admin(t)
	id := c.Post("edge-routers", M{"name": servertest.Unique("r")}).Want(201).ID()
	key := newKey(t)
	clientCSR := newCSR(t, key, x509.CertificateRequest{Subject: pkix.Name{CommonName: id}})
	serverCSR := newCSR(t, newKey(t), x509.CertificateRequest{DNSNames: []string{"edge.example.org"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}})
	body := M{"certCsr": string(clientCSR), "serverCertCsr": string(serverCSR)}
	path := func() string {
		return "enroll" + query("method", "erott", "token", c.Get("edge-routers/"+id).At("data.enrollmentToken").(string))
	}
	nobody := holder{t: t}
	nobody.post(path(), M{"certCsr": string(clientCSR)}).fails(400, "MISSING_OR_INVALID_CSR")
	wrong := newCSR(t, key, x509.CertificateRequest{Subject: pkix.Name{CommonName: "other"}})
	nobody.post(path(), M{"certCsr": string(wrong), "serverCertCsr": string(serverCSR)}).fails(400, "COULD_NOT_PROCESS_CSR")
	certs := nobody.post(path(), body).want(200).data()
	client, server := parse(t, []byte(certs["cert"].(string))), parse(t, []byte(certs["serverCert"].(string)))
	if client.Subject.CommonName != id || len(server.DNSNames) != 1 || len(server.IPAddresses) != 1 || certs["ca"] == nil {
		t.Errorf("certificates are %v and %v", client.Subject, server.DNSNames)
	}
	got := c.Get("edge-routers/" + id).Data()
	if got["isVerified"] != true || got["fingerprint"] == nil || got["enrollmentToken"] != nil {
		t.Errorf("router is %v", got)
	}

	// A new certificate ends the old one at once.
	router := holder{t: t, cert: &tls.Certificate{Certificate: [][]byte{client.Raw}, PrivateKey: key}}
	fresh := router.post("enroll/extend/router", body).want(200).data()
	router.post("enroll/extend/router", body).fails(401, "UNAUTHORIZED")
	nobody.post("enroll/extend/router", body).fails(401, "UNAUTHORIZED")
	router.cert = &tls.Certificate{Certificate: [][]byte{parse(t, []byte(fresh["cert"].(string))).Raw}, PrivateKey: key}
	router.post("enroll/extend/router", M{"certCsr": string(clientCSR)}).fails(400, "COULD_NOT_VALIDATE")

	// Back to the beginning, with everything else as it was.
	c.Patch("edge-routers/"+id, M{"cost": 7}).Want(200)
	c.Post("edge-routers/"+id+"/re-enroll", nil).Want(200)
	first := c.Get("edge-routers/" + id).Data()
	if first["isVerified"] != false || first["fingerprint"] != nil || first["certPem"] != nil || first["cost"] != float64(7) {
		t.Errorf("router is %v", first)
	}
	router.post("enroll/extend/router", body).fails(401, "UNAUTHORIZED")
	c.Post("edge-routers/"+id+"/re-enroll", nil).Want(200)
	nobody.post("enroll/erott"+query("token", first["enrollmentToken"].(string)), body).fails(400, "INVALID_ENROLLMENT_TOKEN")
	nobody.post(path(), body).want(200)
	c.Post("edge-routers/nope/re-enroll", nil).Fails(404, "NOT_FOUND", "")

	transit := c.Post("routers", M{"name": servertest.Unique("t")}).Want(201).ID()
	token := c.Get("routers/" + transit).At("data.enrollmentToken").(string)
	nobody.post("enroll"+query("method", "trott", "token", token), body).want(200)
	if c.Get("routers/"+transit).At("data.isVerified") != true {
		t.Error("the router is not verified")
	}
}

// TestGHSA_6v5r_p2wr_q492 keeps the certificates of a session to itself.
func TestGHSA_6v5r_p2wr_q492(t *testing.T) {
	c := shared.Admin(t)
	_, h := enrolled(t, c)
	_, other := enrolled(t, c)
	const path = "current-api-session/certificates"
	made := h.post(path, M{"csr": string(newCSR(t, newKey(t), x509.CertificateRequest{Subject: pkix.Name{CommonName: "anything"}}))}).want(201).data()
	id := made["id"].(string)
	parse(t, []byte(made["certificate"].(string)))
	parse(t, []byte(made["cas"].(string)))
	get := func(h holder, path string) reply { return h.send("GET", path, "", "", nil) }
	if got := get(h, path+"/"+id).want(200).data(); got["fingerprint"] == "" || got["validTo"] == "" {
		t.Errorf("certificate is %v", got)
	}
	listed := func(h holder) []string {
		t.Helper()
		var ids []string
		for _, one := range get(h, path+"?limit=500").want(200).list() {
			ids = append(ids, one["id"].(string))
		}
		return ids
	}
	theirs := other.post(path, M{"csr": string(newCSR(t, newKey(t), x509.CertificateRequest{}))}).want(201).data()["id"].(string)
	if mine, others := listed(h), listed(other); !slices.Equal(mine, []string{id}) || !slices.Equal(others, []string{theirs}) {
		t.Errorf("one is shown %q for %s, the other %q for %s", mine, id, others, theirs)
	}
	get(other, path+"/"+id).fails(404, "NOT_FOUND")
	other.send("DELETE", path+"/"+id, "", "", nil).fails(404, "NOT_FOUND")
	admin := holder{t: t, token: c.Token}
	get(admin, path+"/"+id).fails(404, "NOT_FOUND")
	h.post(path, M{"csr": "nonsense"}).fails(400, "COULD_NOT_PROCESS_CSR")
	h.send("DELETE", path+"/"+id, "", "", nil).want(200)
	get(h, path+"/"+id).fails(404, "NOT_FOUND")

	before := c.Get("summary").At("data.apiSessionCertificates")
	h.post(path, M{"csr": string(newCSR(t, newKey(t), x509.CertificateRequest{}))}).want(201)
	h.send("DELETE", "current-api-session", "", "", nil).want(200)
	if after := c.Get("summary").At("data.apiSessionCertificates"); after != before {
		t.Errorf("a session left its certificate behind: %v, then %v", before, after)
	}
}
