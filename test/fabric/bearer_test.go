package fabric

import (
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"net/url"
	"slices"
	"strings"
	"testing"

	"netkeep.internal/internal/ops/config"
	"netkeep.internal/internal/wire/message"
	"netkeep.internal/test/scripted"
	"netkeep.internal/test/servertest"
)

// withOIDC lets clients log in by OpenID Connect.
func withOIDC(c *config.Config) { c.OIDC.Enabled = config.On }

// TestDataModelOfBearers has a router of the second generation learn of those who come
// with access tokens what it judges them by, as long as they may use it, and no more.
func TestDataModelOfBearers(t *testing.T) {
	s := servertest.Start(t, withOIDC)
	admin, record := s.Admin(t), addRouter(t, s)
	n := addNetwork(t, s)
	secret := servertest.Unique("secret")
	checked := admin.Post(management+"services", M{"name": secret + "-service", "encryptionRequired": false}).Want(201).ID()
	check := admin.Post(management+"posture-checks", M{"name": secret + "-check", "typeId": "DOMAIN", "domains": []string{secret + "-domain"}}).Want(201).ID()
	admin.Post(management+"service-policies", M{
		"name": secret + "-policy", "type": "Dial", "semantic": "AnyOf", "identityRoles": []string{"@" + n.dialUser.ID}, "serviceRoles": []string{"@" + checked}, "postureCheckRoles": []string{"@" + check},
	}).Want(201)

	var told heard
	c := record.Connect(t, grouped, told.listen)
	subscribe(t, c, message.SubscribeToDataModel{Seconds: 300})
	knows := func(what string, dials, hosts bool) {
		t.Helper()
		list := func(k scripted.Known, who string, typ message.PolicyType) bool {
			for _, p := range k.Model.Policies {
				if p.Type == typ && p.Identities[who] && p.Services[n.service] && len(p.Services) == 1 && len(p.Checks) == 0 {
					return true
				}
			}
			return false
		}
		await(t, c, what, func(k scripted.Known) bool {
			return list(k, n.dialUser.ID, message.PolicyDial) == dials && list(k, n.hostUser.ID, message.PolicyBind) == hosts && len(k.Model.Keys) > 0
		})
	}
	knows("those with sessions of the other kind are nothing to it", false, false)

	bear := func(u servertest.User) (who *servertest.Client, access, session string) {
		t.Helper()
		who = s.Bear(t, u)
		who.Post(client+"current-api-session/certificates", M{"csr": csrOf(t, newKey(t))}).Want(201)
		return who, strings.TrimPrefix(who.Header.Get("Authorization"), "Bearer "), who.Get(client + "current-api-session").Want(200).ID()
	}
	dialer, dialAccess, dialSession := bear(n.dialUser)
	knows("who dials comes with a token", true, false)
	host, hostAccess, _ := bear(n.hostUser)
	knows("who hosts comes with a token", true, true)

	// Whoever dials and hosts is judged here again.
	n.hosting, n.dialing = n.session(t, host, "Bind"), n.session(t, dialer, "Dial")
	n.dialer = s.Nobody(t)
	n.dialer.Token = dialAccess
	got, err := c.Host(t.Context(), message.CreateTerminator{Address: "terminator1", SessionToken: n.hosting, APISessionToken: hostAccess})
	if err != nil || got.Result != message.TerminatorOK {
		t.Fatalf("hosting with an access token: %+v, %v", got, err)
	}
	if _, _, err := n.dialOn(t, c); err != nil {
		t.Fatalf("dialling with an access token: %v", err)
	}
	admin.Delete(management + "api-sessions/" + dialSession).Want(200)
	if _, _, err := n.dialOn(t, c); !isRefused(err, message.CodeInvalidAPISession) && !isRefused(err, message.CodeInvalidSession) {
		t.Errorf("a dial with the token of a session that is over: %v", err)
	}
	await(t, c, "the session is over, and its token with it", func(k scripted.Known) bool {
		_, known := k.Model.Identities[n.dialUser.ID]
		over, ended := k.Model.Revoked[dialSession]
		return !known && ended && over.Type == message.RevokedAPISession && over.Expires.Seconds > 0
	})
	bear(n.dialUser)
	knows("who dials comes again", true, true)
	admin.Delete(management + "service-policies/" + n.dialPolicy).Want(200)
	knows("the policy is gone", false, true)
	policies := admin.Get(management + "edge-router-policies?limit=100").Want(200).List()
	for _, p := range policies {
		admin.Delete(management + "edge-router-policies/" + p["id"].(string))
	}
	knows("nobody may use the router", false, false)
	if found := told.names(secret+"-service", secret+"-check", secret+"-policy", n.hostUser.Username, n.dialUser.Username, dialAccess, hostAccess); len(found) > 0 {
		t.Errorf("the router was told of %s", slices.Compact(found))
	}
}

// TestSessionCertificateNames has certificates of sessions say which session they are of,
// which routers of OpenZiti 2.0 go by, whatever else their request asks for.
func TestSessionCertificateNames(t *testing.T) {
	s := servertest.Start(t, withOIDC)
	user := s.AddUser(t, false)
	who := s.Bear(t, user)
	asked := &x509.CertificateRequest{URIs: []*url.URL{{Scheme: "spiffe", Host: "netkeep", Path: "/identity/other/apiSession/other/apiSessionCertificate/other"}}}
	der, err := x509.CreateCertificateRequest(rand.Reader, asked, newKey(t))
	must(t, err)
	issued := who.Post(client+"current-api-session/certificates", M{"csr": string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}))}).Want(201)
	block, _ := pem.Decode([]byte(issued.Data()["certificate"].(string)))
	cert, err := x509.ParseCertificate(block.Bytes)
	must(t, err)
	session := who.Get(client + "current-api-session").Want(200).ID()
	want := "spiffe://netkeep/identity/" + user.ID + "/apiSession/" + session + "/apiSessionCertificate/" + issued.ID()
	if len(cert.URIs) != 1 || cert.URIs[0].String() != want {
		t.Errorf("the certificate is of %v, not of %s", cert.URIs, want)
	}
}
