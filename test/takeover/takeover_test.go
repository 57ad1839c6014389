// Package takeover_test takes networks over that OpenZiti controllers kept, and has those
// who were in them go on: what our APIs answer is compared with what theirs did.
package takeover_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"netkeep.internal/internal/model"
	"netkeep.internal/internal/ops/config"
	"netkeep.internal/internal/run/server"
	"netkeep.internal/test/scripted"
	"netkeep.internal/test/servertest"
	"netkeep.internal/test/zititest"
)

type M = map[string]any

// network is one that was taken over, and what it was.
type network struct {
	*servertest.Server
	dir     string // with the files of the old controller
	version string
	lists   map[string][]M
	facts   zititest.Facts
	report  *server.TakeoverReport
}

// takeOver takes a network over and starts a controller on it.
func takeOver(t *testing.T, version string, change ...func(*config.Config)) *network {
	t.Helper()
	return takeOverFrom(t, zititest.Unpack(t, version), version, change...)
}

// takeOverFrom is takeOver of a network that is in a directory already.
func takeOverFrom(t *testing.T, dir, version string, change ...func(*config.Config)) *network {
	t.Helper()
	n := &network{dir: dir, version: version, lists: zititest.Lists(t, version), facts: zititest.FactsOf(t, version)}
	data := filepath.Join(t.TempDir(), "data")
	var err error
	if n.report, err = server.TakeOver(t.Context(), server.Takeover{Config: filepath.Join(n.dir, "ctrl.yml"), Data: data, Log: slog.New(slog.DiscardHandler)}); err != nil {
		t.Fatal(err)
	}
	left, err := os.ReadDir(filepath.Dir(data))
	if err != nil || len(left) != 1 {
		t.Errorf("beside the new directory there is more: %v %v", left, err)
	}
	n.Server = servertest.Start(t, append(change, func(c *config.Config) { c.Data = data; c.Names = []string{"localhost"} })...)
	return n
}

// admin is a client of the old admin.
func (n *network) admin(t *testing.T) *servertest.Client {
	t.Helper()
	return n.Login(t, "admin", n.facts.Facts.Passwords["admin"])
}

// TestTakeover takes over a network of each release.
func TestTakeover(t *testing.T) {
	for _, version := range zititest.Versions {
		t.Run(version, func(t *testing.T) {
			n := takeOver(t, version)
			admin := n.admin(t)
			t.Run("lists", func(t *testing.T) { n.compareLists(t, admin.For(t)) })
			t.Run("access", func(t *testing.T) { n.compareAccess(t, admin.For(t)) })
			t.Run("report", func(t *testing.T) { n.checkReport(t) })
			t.Run("certificates", func(t *testing.T) { n.certificates(t) })
			t.Run("second factor", func(t *testing.T) { n.secondFactor(t) })
			t.Run("invitation", func(t *testing.T) { n.invitation(t) })
			t.Run("routers", func(t *testing.T) { n.routers(t, admin.For(t)) })
		})
	}
}

// compared are the members of answers that stay what they were, by list.
var compared = map[string][]string{
	"identities":                   {"name", "roleAttributes", "isAdmin", "isDefaultAdmin", "externalId", "authPolicyId", "defaultHostingCost", "defaultHostingPrecedence", "serviceHostingCosts", "serviceHostingPrecedences", "disabled", "typeId", "isMfaEnabled", "permissions", "envInfo", "sdkInfo", "createdAt", "updatedAt", "tags"},
	"authenticators":               {"method", "identityId", "username", "fingerprint"},
	"cas":                          {"name", "fingerprint", "isVerified", "isAuthEnabled", "isAutoCaEnrollmentEnabled", "isOttCaEnrollmentEnabled", "identityRoles", "identityNameFormat", "externalIdClaim", "createdAt", "tags"},
	"auth-policies":                {"name", "primary", "secondary", "createdAt", "tags"},
	"external-jwt-signers":         {"name", "enabled", "issuer", "audience", "certPem", "jwksEndpoint", "useExternalId", "externalAuthUrl", "clientId", "scopes", "targetToken", "createdAt", "tags"},
	"config-types":                 {"name", "schema"},
	"configs":                      {"name", "configTypeId", "data", "createdAt", "updatedAt", "tags"},
	"services":                     {"name", "encryptionRequired", "terminatorStrategy", "roleAttributes", "configs", "createdAt", "updatedAt", "tags"},
	"service-configs":              {"identityId", "serviceId", "configId"},
	"service-policies":             {"name", "semantic", "type", "identityRoles", "serviceRoles", "postureCheckRoles", "createdAt", "updatedAt", "tags"},
	"edge-router-policies":         {"name", "semantic", "identityRoles", "edgeRouterRoles", "createdAt", "updatedAt", "tags"},
	"service-edge-router-policies": {"name", "semantic", "serviceRoles", "edgeRouterRoles", "createdAt", "updatedAt", "tags"},
	"posture-checks":               {"name", "typeId", "roleAttributes", "domains", "macAddresses", "operatingSystems", "process", "processes", "semantic", "timeoutSeconds", "promptOnWake", "promptOnUnlock", "ignoreLegacyEndpoints", "createdAt", "tags"},
	"edge-routers":                 {"name", "cost", "disabled", "noTraversal", "isTunnelerEnabled", "roleAttributes", "isVerified", "fingerprint", "createdAt", "updatedAt", "tags"},
	"enrollments":                  {"method", "token", "jwt", "expiresAt", "identityId", "edgeRouterId", "transitRouterId", "caId"},
	"terminators":                  {"serviceId", "routerId", "binding", "address", "identity", "cost", "precedence", "createdAt", "updatedAt", "tags"},
	"transit-routers":              {"name", "cost", "disabled", "noTraversal", "fingerprint", "createdAt", "tags"},
}

// nulls are the members that stay null where they were.
var nulls = map[string]bool{
	"identities roleAttributes": true, "services roleAttributes": true, "services configs": true, "edge-routers roleAttributes": true,
	"service-policies postureCheckRoles": true, "external-jwt-signers scopes": true,
}

// compareLists asks for every list that the old controller was asked for.
func (n *network) compareLists(t *testing.T, admin *servertest.Client) {
	for path, members := range compared {
		was := map[string]M{}
		for _, rec := range n.lists[path] {
			if n.taken(path, rec) {
				was[idOf(path, rec)] = rec
			}
		}
		if len(was) == 0 {
			t.Errorf("there were no %s", path)
		}
		is := map[string]M{}
		for _, rec := range admin.Get(path + "?limit=500").Want(http.StatusOK).List() {
			is[idOf(path, rec)] = rec
		}
		for id, rec := range is {
			if was[id] == nil && !ours(path, rec) {
				t.Errorf("%s/%s %v was not there", path, id, rec["name"])
			}
		}
		for id, before := range was {
			after := is[id]
			if after == nil {
				t.Errorf("%s/%s %v is gone", path, id, before["name"])
				continue
			}
			for _, member := range members {
				if a, b := plain(member, before[member]), plain(member, after[member]); !reflect.DeepEqual(a, b) {
					t.Errorf("%s/%s %v: %s was %v and is %v", path, id, before["name"], member, a, b)
				}
				// Tools that said null see a change in a list.
				if before[member] == nil && nulls[path+" "+member] && after[member] != nil {
					t.Errorf("%s/%s %v: %s was null and is %v", path, id, before["name"], member, after[member])
				}
			}
		}
	}
}

// idOf is by what a record is found.
func idOf(path string, rec M) string {
	if path == "service-configs" {
		return fmt.Sprint(rec["identityId"], rec["serviceId"], rec["configId"])
	}
	return fmt.Sprint(rec["id"])
}

// taken reports whether a record comes along: hosts make their terminators anew, and an
// invitation that has ended is none.
func (n *network) taken(path string, rec M) bool {
	switch path {
	case "terminators":
		at := rec["serviceId"]
		return rec["binding"] != "edge" && rec["binding"] != "tunnel" && slices.ContainsFunc(n.lists["services"], func(s M) bool { return s["id"] == at })
	case "enrollments":
		ends, err := time.Parse(time.RFC3339, fmt.Sprint(rec["expiresAt"]))
		return err == nil && ends.After(time.Now())
	}
	return true
}

// ours reports whether a record is one that every network of ours has.
func ours(path string, rec M) bool {
	return path == "config-types" && rec["id"] == rec["name"] || path == "config-types" && rec["isSystem"] == true
}

// plain is a member in a form in which the two can be compared: what is not there, is null
// or is empty says the same, and lists that are sets have one order.
func plain(member string, v any) any {
	switch v := v.(type) {
	case nil:
		return nil
	case string:
		if v == "" {
			return nil
		}
	case []any:
		if len(v) == 0 {
			return nil
		}
		list := slices.Clone(v)
		for i := range list {
			list[i] = plain("", list[i])
		}
		slices.SortFunc(list, func(a, b any) int { return strings.Compare(text(a), text(b)) })
		return list
	case M:
		object := M{}
		for key, inner := range v {
			if member == "tags" {
				if number, is := inner.(float64); is {
					inner = text(number)
				}
			}
			if inner = plain("", inner); inner != nil {
				object[key] = inner
			}
		}
		if len(object) == 0 {
			return nil
		}
		return object
	case bool:
		if !v {
			return nil
		}
	}
	return v
}

func text(v any) string {
	out, _ := json.Marshal(v)
	return string(out)
}

// compareAccess looks at what each identity may use.
func (n *network) compareAccess(t *testing.T, admin *servertest.Client) {
	for id, was := range zititest.Access(t, n.version) {
		for path, want := range was {
			var got []string
			for _, rec := range admin.Get("identities/" + id + "/" + path + "?limit=500").Want(http.StatusOK).List() {
				got = append(got, rec["id"].(string))
			}
			slices.Sort(got)
			slices.Sort(want)
			if !slices.Equal(got, want) {
				t.Errorf("identity %s had the %s %v and has %v", id, path, want, got)
			}
		}
	}
}

// checkReport looks at what the report tells.
func (n *network) checkReport(t *testing.T) {
	if len(n.report.Refused) > 0 {
		t.Errorf("these were refused: %v", n.report.Refused)
	}
	if !slices.ContainsFunc(n.report.Left, func(l server.TakeoverLeft) bool { return l.Kind == "services" && strings.Contains(l.Why, "fabric") }) {
		t.Error("nothing is said of a service of the fabric")
	}
	for _, code := range []string{"plain-secrets", "several-certificates", "numeric-tags", "sessions"} {
		if !slices.ContainsFunc(n.report.Notes, func(note server.TakeoverNote) bool { return note.Code == code }) {
			t.Errorf("nothing is said of %s", code)
		}
	}
}

// pair reads a certificate and its key.
func (n *network) pair(t *testing.T, cert, key string) *tls.Certificate {
	t.Helper()
	pair, err := tls.LoadX509KeyPair(filepath.Join(n.dir, cert), filepath.Join(n.dir, key))
	if err != nil {
		t.Fatal(err)
	}
	return &pair
}

const client = "/edge/client/v1/"

// certificates has identities log in with certificates that they had, one of them with
// either of two.
func (n *network) certificates(t *testing.T) {
	for _, name := range []string{"alice", "bob", "dave", "dave2"} {
		c := n.Nobody(t).Presenting(n.pair(t, "ids/"+name+".cert.pem", "ids/"+name+".key.pem"))
		got := c.Post(client+"authenticate?method=cert", M{}).Want(http.StatusOK).Data()
		if who := n.facts.IDs[strings.TrimSuffix(name, "2")]; got["identityId"] != who {
			t.Errorf("%s is %v, and was %s", name, got["identityId"], who)
		}
	}
	oscar := n.Nobody(t).Presenting(n.pair(t, "ca3/oscar.pem", "ca3/oscar.key"))
	if got := oscar.Post(client+"authenticate?method=cert", M{}).Want(http.StatusOK).Data(); got["identityId"] != n.facts.IDs["oscar"] {
		t.Errorf("oscar is %v", got["identityId"])
	}
}

// secondFactor has somebody log in with a password and a recovery code that is not spent.
func (n *network) secondFactor(t *testing.T) {
	hash := func() string {
		a, _ := model.Authenticators.Find(n.State().Snapshot(), "username", "carol")
		return a.PasswordHash
	}
	if !strings.Contains(hash(), "$m=3072,") {
		t.Error("the password is not hashed as it was")
	}
	n.Nobody(t).Post(client+"authenticate?method=password", M{"username": "carol", "password": "not hers"}).Want(http.StatusUnauthorized)
	for range 2 { // the second time with the hash that the first left
		c := n.Nobody(t)
		c.Token = c.Post(client+"authenticate?method=password", M{"username": "carol", "password": n.facts.Facts.Passwords["carol"]}).Want(http.StatusOK).Header.Get("net-session")
		servertest.Eventually(t, time.Minute, "the password is hashed anew", func() bool { return !strings.Contains(hash(), "$m=3072,") })
		c.Post(client+"authenticate/mfa", M{"code": n.facts.Facts.Spent}).Want(http.StatusBadRequest)
		code := n.facts.Facts.Codes[len(n.facts.Facts.Codes)-1]
		n.facts.Facts.Codes = n.facts.Facts.Codes[:len(n.facts.Facts.Codes)-1]
		c.Post(client+"authenticate/mfa", M{"code": code}).Want(http.StatusOK)
		c.Post(client+"authenticate/mfa", M{"code": code}).Want(http.StatusBadRequest)
	}
}

// invitation enrolls somebody who was invited before, by a token that the server's key has
// signed, as clients look.
func (n *network) invitation(t *testing.T) {
	id := n.facts.IDs["pending ott"]
	i := slices.IndexFunc(n.lists["enrollments"], func(e M) bool { return e["identityId"] == id })
	if i < 0 {
		t.Fatal("nobody was invited")
	}
	invited := n.lists["enrollments"][i]
	conn, err := tls.Dial("tcp", strings.TrimPrefix(n.URL, "https://"), n.TLS())
	if err != nil {
		t.Fatal(err)
	}
	shown := conn.ConnectionState().PeerCertificates[0]
	conn.Close()
	if _, err := jwt.Parse(invited["jwt"].(string), func(*jwt.Token) (any, error) { return shown.PublicKey, nil }); err != nil {
		t.Errorf("the invitation is not signed by the key that the server shows: %v", err)
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{Subject: pkix.Name{CommonName: id}}, key)
	if err != nil {
		t.Fatal(err)
	}
	csr := string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}))
	got := n.Nobody(t).Post(client+"enroll/ott?token="+invited["token"].(string), M{"clientCsr": csr}).Want(http.StatusOK)
	fresh := servertest.Pair(key, string(got.Raw))
	c := n.Nobody(t).Presenting(&fresh)
	if got := c.Post(client+"authenticate?method=cert", M{}).Want(http.StatusOK).Data(); got["identityId"] != id {
		t.Errorf("%v enrolled", got["identityId"])
	}
}

// routers has an edge router and another connect with the certificates that they have.
func (n *network) routers(t *testing.T, admin *servertest.Client) {
	for _, name := range []string{"er1", "er2", "tr1"} {
		path := "edge-routers"
		if name == "tr1" {
			path = "transit-routers"
		}
		id := admin.Get(path + "?filter=" + "name%3D%22" + name + "%22").Want(http.StatusOK).List()[0]["id"].(string)
		r := &servertest.Router{Server: n.Server, ID: id, Cert: *n.pair(t, "rt/"+name+".cert", "rt/"+name+".key")}
		opt := r.Options()
		if name == "tr1" {
			opt.Edge = ""
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		router, err := scripted.Connect(ctx, opt)
		if err != nil {
			t.Errorf("%s cannot connect: %v", name, err)
		} else {
			router.Close()
		}
		cancel()
	}
}
