package browser

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"math/big"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
)

// authority is the certificate of a CA that nobody knows, as PEM.
func authority(t *testing.T) string {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "Example CA"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
}

// example is what somebody types into the form of a kind.
type example struct {
	path   string
	inputs map[string]string
}

// examples are in an order in which each finds what it refers to.
func examples(t *testing.T) []example {
	ca := authority(t)
	return []example{
		{"identities", map[string]string{"name": "made-here", "roleAttributes": "seen\nstaff", "tags": "floor: 3"}},
		{"services", map[string]string{"name": "made-service", "roleAttributes": "seen"}},
		{"edge-routers", map[string]string{"name": "made-edge-router", "roleAttributes": "public"}},
		{"routers", map[string]string{"name": "made-router"}},
		{"service-policies", map[string]string{"name": "made-policy", "type": "Dial", "semantic": "AnyOf", "identityRoles": "@made-here\n#staff", "serviceRoles": "@made-service"}},
		{"edge-router-policies", map[string]string{"name": "made-router-policy", "semantic": "AnyOf", "edgeRouterRoles": "#all", "identityRoles": "@made-here"}},
		{"service-edge-router-policies", map[string]string{"name": "made-service-policy", "semantic": "AnyOf", "edgeRouterRoles": "#public", "serviceRoles": "@made-service"}},
		{"assertions", map[string]string{"name": "made-assertion", "expect": "always", "identityRoles": "@made-here", "serviceRoles": "@made-service"}},
		{"grants", map[string]string{"name": "made-grant", "identityId": "made-here", "attribute": "seen", "reason": "quarter end", "validUntil": time.Now().Add(time.Hour).UTC().Format(time.RFC3339)}},
		{"admin-roles", map[string]string{"name": "made-role", "allows": "service:read"}},
		{"role-bindings", map[string]string{"name": "made-binding", "roleId": "made-role", "semantic": "AnyOf", "identityRoles": "#seen"}},
		{"config-types", map[string]string{"name": "made.v1"}},
		{"configs", map[string]string{"name": "made-config", "configTypeId": "made.v1", "data": `{"port": 5432}`}},
		{"posture-checks", map[string]string{"name": "made-check", "typeId": "DOMAIN", "domains": "corp.example"}},
		{"terminators", map[string]string{"service": "made-service", "router": "made-router", "binding": "transport", "address": "tcp:10.0.0.7:5432"}},
		{"auth-policies", map[string]string{"name": "made-auth-policy"}},
		{"authenticators", map[string]string{"identityId": "made-here", "method": "updb", "username": "made-here", "password": "a long enough password"}},
		{"enrollments", map[string]string{"identityId": "carol", "method": "ott"}},
		{"cas", map[string]string{"name": "made-ca", "certPem": ca}},
		{"external-jwt-signers", map[string]string{"name": "made-signer", "issuer": "https://issuer.example", "audience": "netkeep", "certPem": ca}},
	}
}

// set types into the inputs of a form, which may be folded away.
func (b *browser) set(inputs map[string]string) {
	b.t.Helper()
	text, err := json.Marshal(inputs)
	if err != nil {
		b.t.Fatal(err)
	}
	lacks := value(b, chromedp.Evaluate[string](`(() => {
		const form = document.querySelector('form.record'), lacks = [];
		for (const [name, value] of Object.entries(`+string(text)+`)) {
			const input = form.elements['f.' + name];
			if (!input) { lacks.push(name); continue; }
			input.value = value;
			if (input.value !== value && input.type !== 'textarea') lacks.push(name + ' = ' + value);
			input.dispatchEvent(new Event('input', {bubbles: true}));
			input.dispatchEvent(new Event('change', {bubbles: true}));
		}
		return lacks.join(', ');
	})()`))
	if lacks != "" {
		b.t.Errorf("the form has no input for %s", lacks)
	}
}

// useForms makes a record of every kind that has a form, and changes it. It returns where
// they are.
func (b *browser) useForms() (made []string) {
	b.t.Helper()
	b.visit("/console/")
	tables := value(b, chromedp.Evaluate[[]string](`Array.from(document.querySelectorAll('nav a[href^="/console/"]'), a => a.getAttribute('href'))`))
	known := map[string]bool{}
	for _, e := range examples(b.t) {
		known["/console/"+e.path] = true
		b.visit("/console/" + e.path + "/new")
		b.set(e.inputs)
		made = append(made, b.saved("a new one of "+e.path))
		if !value(b, chromedp.Evaluate[bool](`!!document.querySelector('.head a[href$="/edit"]')`)) {
			continue
		}
		b.do(click(`.head a[href$="/edit"]`), shown("form.record"))
		if value(b, chromedp.Evaluate[bool](`!!document.querySelector('form.record [name="f.tags"]')`)) {
			b.set(map[string]string{"tags": "seen: by a browser"})
		}
		if path := b.saved("a change of " + e.path); path != made[len(made)-1] {
			b.t.Errorf("a change leads to %s", path)
		}
	}
	for _, path := range tables {
		b.visit(path)
		if at := value(b, chromedp.Evaluate[string](`(document.querySelector('main a.button[href$="/new"]') || {pathname: ''}).pathname`)); at != "" && !known[strings.TrimSuffix(at, "/new")] {
			b.t.Errorf("nothing is typed into the form at %s: give it an example", at)
		}
	}
	b.fine("forms")
	return made
}

// saved sends the form of the page and returns the path of the record that comes of it.
func (b *browser) saved(what string) string {
	b.t.Helper()
	b.do(click("form.record .actions button[type=submit]"))
	b.eventually(what+" is answered", `document.readyState === 'complete' && document.querySelector('.fields, .problem, .error')`)
	if wrong := value(b, chromedp.Evaluate[string](`Array.from(document.querySelectorAll('.problem, .wrong'), e => e.innerText).join(' ')`)); wrong != "" {
		b.t.Fatalf("%s is not saved: %s", what, wrong)
	}
	return value(b, chromedp.Evaluate[string](`location.pathname`))
}

// undo deletes what was made, the last first.
func (b *browser) undo(made []string) {
	b.t.Helper()
	for i := range made {
		path := made[len(made)-1-i]
		b.visit(path)
		b.do(click(`.head a[href$="/delete"]`), shown("button.danger"), click("button.danger"))
		b.eventually(path+" is deleted", `!location.pathname.endsWith('/delete') && document.readyState === 'complete'`)
	}
	b.fine("deletes")
}
