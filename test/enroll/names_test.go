package enroll_test

import (
	"crypto/ecdsa"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"net"
	"net/url"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"netkeep.internal/internal/ops/config"
	"netkeep.internal/test/servertest"
)

// What the controllers of these tests tell clients and admins.
const (
	controllerName = "controller.example.org"
	adminAddress   = "192.0.2.7"
)

func advertising(c *config.Config) {
	c.Advertise = controllerName + ":1280"
	c.Management.Listen, c.Management.Advertise = "", ""
}

// names are the subject alternative names of a CSR.
type names struct {
	dns    []string
	ips    []string
	emails []string
	uris   []string
}

// router is a router that a test plays.
type router struct {
	holder
	kind string // edge-routers or routers
	id   string
	key  *ecdsa.PrivateKey
}

func newRouter(t *testing.T, at *servertest.Server, kind string, more M) *router {
	t.Helper()
	body := M{"name": servertest.Unique("router")}
	for k, v := range more {
		body[k] = v
	}
	return &router{holder: holder{t: t, at: at}, kind: kind, id: at.Admin(t).Post(kind, body).Want(201).ID(), key: newKey(t)}
}

func (r *router) csr(n names) string {
	r.t.Helper()
	template := x509.CertificateRequest{Subject: pkix.Name{CommonName: r.id}, DNSNames: n.dns, EmailAddresses: n.emails}
	for _, ip := range n.ips {
		template.IPAddresses = append(template.IPAddresses, net.ParseIP(ip))
	}
	for _, text := range n.uris {
		u, err := url.Parse(text)
		if err != nil {
			r.t.Fatal(err)
		}
		template.URIs = append(template.URIs, u)
	}
	return string(newCSR(r.t, r.key, template))
}

// enroll asks for certificates with these names.
func (r *router) enroll(client, server names) reply {
	r.t.Helper()
	token := r.at.Admin(r.t).Get(r.kind + "/" + r.id).Want(200).At("data.enrollmentToken").(string)
	return r.keep(r.post("enroll/erott"+query("token", token), M{"certCsr": r.csr(client), "serverCertCsr": r.csr(server)}))
}

// extend asks for new ones.
func (r *router) extend(client, server names) reply {
	r.t.Helper()
	return r.keep(r.post("enroll/extend/router", M{"certCsr": r.csr(client), "serverCertCsr": r.csr(server)}))
}

// keep remembers the certificate that came, if one did.
func (r *router) keep(got reply) reply {
	if got.status == 200 {
		cert := parse(r.t, []byte(got.data()["cert"].(string)))
		r.cert = &tls.Certificate{Certificate: [][]byte{cert.Raw}, PrivateKey: r.key}
	}
	return got
}

// both are the certificates of an answer.
func (r reply) both() []*x509.Certificate {
	r.t.Helper()
	data := r.want(200).data()
	return []*x509.Certificate{parse(r.t, []byte(data["cert"].(string))), parse(r.t, []byte(data["serverCert"].(string)))}
}

// refuses checks that a name was refused, and that the answer says which, of
// which CSR, and what to do.
func (r reply) refuses(field, name string) {
	r.t.Helper()
	r.fails(400, "COULD_NOT_PROCESS_CSR")
	var e struct {
		Error struct {
			Message string
			Cause   struct{ Field, Reason, Value string }
		}
	}
	if err := json.Unmarshal(r.raw, &e); err != nil {
		r.t.Fatal(err)
	}
	if got := e.Error; got.Cause.Field != field || got.Cause.Value != name || !strings.Contains(got.Message, "take it out of the router's config") {
		r.t.Errorf("the answer is %+v; want field %s, value %s, and what to do", got, field, name)
	}
}

// TestRouterNames has routers ask for names that are theirs and for names that
// are not.
func TestRouterNames(t *testing.T) {
	s := servertest.Start(t, advertising)
	plain := names{dns: []string{"edge.example.org"}}
	for what, test := range map[string]struct {
		names names
		wrong string // the name that is refused
	}{
		"listeners":            {names: names{dns: []string{"edge.example.org", "Edge-2.Example.ORG"}, ips: []string{"192.0.2.1", "2001:db8::1"}}},
		"loopback":             {names: names{dns: []string{"localhost"}, ips: []string{"127.0.0.1", "127.1.2.3", "::1"}}},
		"below a controller":   {names: names{dns: []string{"edge." + controllerName}}},
		"email and URI":        {names: names{dns: []string{"edge.example.org"}, emails: []string{"ops@example.org"}, uris: []string{"https://edge.example.org:3022/x"}}},
		"nothing":              {},
		"controller":           {names{dns: []string{"edge.example.org", controllerName}}, controllerName},
		"controller shouting":  {names{dns: []string{"CONTROLLER.Example.Org"}}, "CONTROLLER.Example.Org"},
		"wildcard":             {names{dns: []string{"*.com"}}, "*.com"},
		"its domain":           {names{dns: []string{"*.example.org"}}, "*.example.org"},
		"everything":           {names{dns: []string{"*"}}, "*"},
		"part of a label":      {names{dns: []string{"c*.example.org"}}, "c*.example.org"},
		"trailing dot":         {names{dns: []string{controllerName + "."}}, controllerName + "."},
		"URI of it":            {names{uris: []string{"https://" + controllerName + "/"}}, "https://" + controllerName + "/"},
		"URI of all":           {names{uris: []string{"https://*.example.org/"}}, "https://*.example.org/"},
		"somebody's SPIFFE id": {names{uris: []string{"spiffe://net.example.org/router/somebody"}}, "spiffe://net.example.org/router/somebody"},
		"controller's SPIFFE":  {names{uris: []string{"spiffe://net.example.org/controller/one"}}, "spiffe://net.example.org/controller/one"},
		"SPIFFE shouting":      {names{uris: []string{"SPIFFE://net.example.org/controller/one"}}, "spiffe://net.example.org/controller/one"},
	} {
		for _, kind := range []string{"edge-routers", "routers"} {
			t.Run(what+" of "+kind, func(t *testing.T) {
				r := newRouter(t, s, kind, nil)
				if test.wrong == "" {
					r.enroll(test.names, test.names).want(200)
					r.extend(test.names, test.names).want(200)
					return
				}
				r.enroll(test.names, plain).refuses("certCsr", test.wrong)
				r.enroll(plain, test.names).refuses("serverCertCsr", test.wrong)
				r.enroll(plain, plain).want(200) // the invitation is still good
				r.extend(test.names, plain).refuses("certCsr", test.wrong)
				r.extend(plain, test.names).refuses("serverCertCsr", test.wrong)
				r.extend(plain, plain).want(200)
			})
		}
	}
}

// TestRefusedNameIsLogged looks for the name and the router in the log.
func TestRefusedNameIsLogged(t *testing.T) {
	s := servertest.Start(t, advertising)
	r := newRouter(t, s, "edge-routers", nil)
	r.enroll(names{}, names{dns: []string{controllerName}}).want(400)
	if !slices.ContainsFunc(s.Log(), func(line string) bool {
		return strings.Contains(line, `"WARN"`) && strings.Contains(line, r.id) && strings.Contains(line, controllerName)
	}) {
		t.Error("the log does not tell which router asked for which name")
	}
}

// TestOwnSPIFFEID lets a router carry the URI that is its own.
func TestOwnSPIFFEID(t *testing.T) {
	r := newRouter(t, shared, "edge-routers", nil)
	own := names{dns: []string{"edge.example.org"}, uris: []string{"spiffe://net.example.org/router/" + r.id}}
	for _, cert := range r.enroll(own, own).both() {
		if len(cert.URIs) != 1 || cert.URIs[0].String() != own.uris[0] {
			t.Errorf("the URIs are %v", cert.URIs)
		}
	}
}

// TestRouterCertificates looks at what a router's certificates say: its names,
// and that either may be shown to whoever calls and to whoever is called.
func TestRouterCertificates(t *testing.T) {
	r := newRouter(t, shared, "edge-routers", nil)
	want := names{
		dns: []string{"edge.example.org", "localhost"}, ips: []string{"127.0.0.1", "2001:db8::1"},
		emails: []string{"ops@example.org"}, uris: []string{"https://edge.example.org/x"},
	}
	roots, between := x509.NewCertPool(), x509.NewCertPool()
	roots.AddCert(shared.Keys().Root())
	between.AddCert(shared.Keys().Intermediate())
	for _, a := range []reply{r.enroll(want, want), r.extend(want, want)} {
		for _, cert := range a.both() {
			if cert.Subject.CommonName != r.id || !slices.Equal(cert.DNSNames, want.dns) || len(cert.IPAddresses) != 2 ||
				!slices.Equal(cert.EmailAddresses, want.emails) || len(cert.URIs) != 1 {
				t.Errorf("the certificate of %v is for %v, %v, %v, %v", cert.Subject, cert.DNSNames, cert.IPAddresses, cert.EmailAddresses, cert.URIs)
			}
			for _, usage := range []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth} {
				_, err := cert.Verify(x509.VerifyOptions{
					Roots: roots, Intermediates: between, KeyUsages: []x509.ExtKeyUsage{usage}, DNSName: "edge.example.org",
				})
				if err != nil {
					t.Errorf("usage %v: %v", usage, err)
				}
			}
		}
	}
}

// TestAllowedNames has an admin allow names, at first and later.
func TestAllowedNames(t *testing.T) {
	s := servertest.Start(t, advertising)
	c := s.Admin(t)
	own := names{dns: []string{controllerName, "*.edge.example.org", "localhost"}}
	for _, kind := range []string{"edge-routers", "routers"} {
		// On create.
		r := newRouter(t, s, kind, M{"allowedNames": []any{"Controller.Example.Org", "*.EDGE.example.org"}})
		for _, cert := range r.enroll(own, own).both() {
			if err := cert.VerifyHostname(controllerName); err != nil {
				t.Errorf("%s: %v", kind, err)
			}
		}
		path := kind + "/" + r.id
		if got := c.Get(path).Data()["allowedNames"].([]any); !slices.Equal(got, []any{"*.edge.example.org", controllerName}) {
			t.Errorf("%s: allowedNames are %v", kind, got)
		}
		// A client that does not know the field leaves it as it is.
		c.Put(path, M{"name": servertest.Unique("router")}).Want(200)
		r.extend(own, own).want(200)
		c.Patch(path, M{"allowedNames": []any{controllerName}}).Want(200)
		r.extend(own, own).refuses("certCsr", "*.edge.example.org")
		c.Patch(path, M{"allowedNames": []any{}}).Want(200)
		r.extend(names{dns: []string{controllerName}}, names{}).refuses("certCsr", controllerName)

		// Later.
		late := newRouter(t, s, kind, nil)
		late.enroll(own, own).want(400)
		c.Patch(kind+"/"+late.id, M{"allowedNames": []any{controllerName, "*.edge.example.org"}}).Want(200)
		late.enroll(own, own).want(200)

		for _, wrong := range []string{"", " ", "*", "a.*.b", "x y", "host:1", "-a.org", "https://a.org", "1.2.3.4/24", "ä.org", "a..b", "a.org."} {
			c.Post(kind, M{"name": servertest.Unique("router"), "allowedNames": []any{wrong}}).Fails(400, "COULD_NOT_VALIDATE", "allowedNames")
		}
	}
}

// TestAdvertisedAddresses takes the addresses of both APIs, written in every
// way, and those of controllers that were here before on the same store.
func TestAdvertisedAddresses(t *testing.T) {
	dir := t.TempDir()
	for i, change := range []func(*config.Config){
		func(c *config.Config) { c.Advertise = "[2001:db8::7]:1280" },
		advertising,
		func(c *config.Config) { c.Advertise = adminAddress + ":1290" },
	} {
		s, err := servertest.Open(dir, change)
		if err != nil {
			t.Fatal(err)
		}
		r := newRouter(t, s, "edge-routers", nil)
		for _, n := range []struct {
			names names
			since int // which controller's it is
		}{
			{names{ips: []string{"2001:db8::7"}}, 0}, {names{dns: []string{"2001.db8..7"}}, 0},
			{names{dns: []string{controllerName}}, 1},
			{names{ips: []string{adminAddress}}, 2}, {names{ips: []string{"::ffff:" + adminAddress}}, 2}, {names{dns: []string{adminAddress}}, 2},
			{names{uris: []string{"https://" + adminAddress + "/"}}, 2},
		} {
			if a := r.enroll(n.names, names{}); a.status == 200 && n.since <= i {
				t.Errorf("controller %d: a router got a certificate for %v", i, n.names)
			} else if a.status == 200 {
				r = newRouter(t, s, "edge-routers", nil)
			}
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestNewControllerNames starts a controller under a name that a router has
// had before.
func TestNewControllerNames(t *testing.T) {
	dir := t.TempDir()
	s, err := servertest.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	r := newRouter(t, s, "edge-routers", nil)
	own := names{dns: []string{controllerName}}
	r.enroll(own, own).want(200)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if s, err = servertest.Open(dir, advertising); err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if !slices.ContainsFunc(s.Log(), func(line string) bool {
		return strings.Contains(line, `"WARN"`) && strings.Contains(line, r.id) && strings.Contains(line, controllerName)
	}) {
		t.Error("the log does not tell that a router can pass as the controller")
	}
	r.at = s
	r.extend(own, own).refuses("certCsr", controllerName)
}

// TestDisabledRouterCannotExtend shuts a router out that has a certificate.
func TestDisabledRouterCannotExtend(t *testing.T) {
	c := shared.Admin(t)
	for _, kind := range []string{"edge-routers", "routers"} {
		r := newRouter(t, shared, kind, nil)
		r.enroll(names{}, names{}).want(200)
		c.Patch(kind+"/"+r.id, M{"disabled": true}).Want(200)
		r.extend(names{}, names{}).fails(401, "UNAUTHORIZED")
		c.Patch(kind+"/"+r.id, M{"disabled": false}).Want(200)
		r.extend(names{}, names{}).want(200)
	}
}

// TestNoRouterPassesAsTheController asks for all sorts of names that look like
// the controller's. Whatever is given out, nobody who looks for the controller
// believes it.
func TestNoRouterPassesAsTheController(t *testing.T) {
	s := servertest.Start(t, advertising)
	label := rapid.SampledFrom([]string{
		"controller", "example", "org", "CONTROLLER", "*", "c*", "xn--controller", "", "localhost", "com", "con\x00troller", "controller.example", "192", "0", "2", "7",
	})
	name := rapid.Custom(func(t *rapid.T) string {
		if rapid.Bool().Draw(t, "near") {
			near := []string{controllerName, "*." + strings.SplitN(controllerName, ".", 2)[1], strings.ToUpper(controllerName), controllerName + ".", " " + controllerName}
			return rapid.SampledFrom(near).Draw(t, "name")
		}
		return strings.Join(rapid.SliceOfN(label, 1, 4).Draw(t, "labels"), ".")
	})
	rapid.Check(t, func(rt *rapid.T) {
		asked := names{dns: rapid.SliceOfN(name, 0, 3).Draw(rt, "client")}
		served := names{dns: rapid.SliceOfN(name, 0, 3).Draw(rt, "server")}
		r := newRouter(t, s, "edge-routers", nil)
		a := r.enroll(asked, served)
		if a.status != 200 {
			return
		}
		for _, cert := range a.both() {
			if cert.VerifyHostname(controllerName) == nil || cert.VerifyHostname("["+controllerName+"]") == nil {
				rt.Errorf("a certificate for %q passes as the controller's", cert.DNSNames)
			}
			if slices.ContainsFunc(cert.DNSNames, func(n string) bool { return strings.Contains(n, "*") }) {
				rt.Errorf("a certificate for %q was given out", cert.DNSNames)
			}
		}
	})
}

// TestIdentityCertificatesNameNoServer asks for names and purposes of a server
// in every way in which an identity gets a certificate.
func TestIdentityCertificatesNameNoServer(t *testing.T) {
	c := shared.Admin(t)
	u, err := url.Parse("spiffe://net.example.org/controller/one")
	if err != nil {
		t.Fatal(err)
	}
	key := newKey(t)
	csr := newCSR(t, key, x509.CertificateRequest{
		Subject: pkix.Name{CommonName: controllerName}, DNSNames: []string{controllerName, "localhost"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		EmailAddresses: []string{"boss@example.org"}, URIs: []*url.URL{u},
		ExtraExtensions: []pkix.Extension{{Id: []int{2, 5, 29, 37}, Value: []byte{0x30, 0x0a, 0x06, 0x08, 0x2b, 6, 1, 5, 5, 7, 3, 1}}}, // serverAuth
	})
	id, token := invite(t, c, M{"ott": true})
	first := parse(t, holder{t: t}.send("POST", "enroll/ott"+query("token", token), "text/plain", "", csr).want(200).raw)
	h := holder{t: t, cert: &tls.Certificate{Certificate: [][]byte{first.Raw}, PrivateKey: key}}
	h.token = h.post("authenticate?method=cert", M{}).want(200).data()["token"].(string)
	auth := c.Get("identities/" + id + "/authenticators").List()[0]["id"].(string)
	extended := h.post("current-identity/authenticators/"+auth+"/extend", M{"clientCertCsr": string(csr)}).want(200).data()
	passing := h.post("current-api-session/certificates", M{"csr": string(csr)}).want(201).data()
	of := parse(t, []byte(passing["certificate"].(string)))
	// That of a session names the session, and nothing that was asked for.
	if len(of.URIs) != 1 || !strings.HasPrefix(of.URIs[0].String(), "spiffe://netkeep/identity/"+id+"/apiSession/") {
		t.Errorf("the certificate of a session is for %v", of.URIs)
	}
	of.URIs = nil
	for _, cert := range []*x509.Certificate{first, parse(t, []byte(extended["clientCert"].(string))), of} {
		if cert.Subject.CommonName != id || len(cert.DNSNames)+len(cert.IPAddresses)+len(cert.EmailAddresses)+len(cert.URIs) != 0 ||
			!slices.Equal(cert.ExtKeyUsage, []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}) {
			t.Errorf("the certificate of %v is for %v, %v, %v and %v, and good for %v",
				cert.Subject, cert.DNSNames, cert.IPAddresses, cert.EmailAddresses, cert.URIs, cert.ExtKeyUsage)
		}
	}
}
