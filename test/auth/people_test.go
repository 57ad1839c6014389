package auth_test

import (
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"netkeep.internal/internal/model"
	"netkeep.internal/internal/web/api"
	"netkeep.internal/test/servertest"
)

// welcoming is a signer that lets the staff of a company in.
func welcoming(t testing.TB, change M) *issuer {
	t.Helper()
	all := M{
		"useExternalId": true, "enrollToCertEnabled": true, "enrollToTokenEnabled": true,
		"enrollNameClaimsSelector": "name", "enrollAttributeClaimsSelector": "/realm/roles", "enrollAttributePrefix": "idp:",
		"enrollEmailDomains": []any{"corp.example"},
	}
	for name, value := range change {
		all[name] = value
	}
	return newIssuer(t, "ES256", newKey(t), all)
}

// person is the claims of somebody of the staff.
func person(sub, name string, roles ...any) M {
	return M{"sub": sub, "name": name, "email": name + "@Corp.Example", "email_verified": true, "realm": M{"roles": roles}}
}

// with returns claims with one changed; a nil is left out.
func (m claimSet) with(name string, value any) M {
	all := M{}
	for n, v := range m {
		all[n] = v
	}
	all[name] = value
	return all
}

type claimSet M

// join sends a token to become an identity.
func join(t testing.TB, token string, body M) *servertest.Answer {
	t.Helper()
	return shared.Nobody(t).With("Authorization", "Bearer "+token).Post(api.ClientRoot+"/enroll/token", body)
}

// request is a CSR, and what is presented once it is signed.
func request(t testing.TB) (csr string, presenting func(cert string) *tls.Certificate) {
	t.Helper()
	key := newKey(t)
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{}, key)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der})), func(cert string) *tls.Certificate {
		c := &tls.Certificate{PrivateKey: key}
		for block, rest := pem.Decode([]byte(cert)); block != nil; block, rest = pem.Decode(rest) {
			c.Certificate = append(c.Certificate, block.Bytes)
		}
		return c
	}
}

func identityOf(t testing.TB, id any) M {
	t.Helper()
	return shared.Admin(t).Get("identities/" + id.(string)).Want(200).Data()
}

// TestPersonAppears lets somebody in who was not known, and has their groups be
// attributes from then on.
func TestPersonAppears(t *testing.T) {
	i, sub, name := welcoming(t, nil), servertest.Unique("sub"), servertest.Unique("ann")
	a := show(t, i.token(t, person(sub, name, "eng", "ops"))).Want(200)
	who := identityOf(t, a.Data()["identityId"])
	want := M{
		"name": name, "externalId": sub, "typeId": "User", "isAdmin": false, "enrolledBy": i.id, "externalIdIssuers": []any{i.id}, "authPolicyId": "default",
		"roleAttributes": []any{"idp:eng", "idp:ops"},
	}
	provided := who["providerAttributes"].([]any)[0].(M)
	if provided["signerId"] != i.id || !cmp.Equal(provided["attributes"], want["roleAttributes"]) {
		t.Errorf("the signer provides %v", provided)
	}
	for member := range want {
		if diff := cmp.Diff(want[member], who[member]); diff != "" {
			t.Errorf("%s differs (-want +got):\n%s", member, diff)
		}
	}
	again := show(t, i.token(t, person(sub, name, "ops"))).Want(200)
	if again.Data()["identityId"] != who["id"] {
		t.Errorf("another login is %v, want %v", again.Data()["identityId"], who["id"])
	}
	if got := identityOf(t, who["id"])["roleAttributes"]; !cmp.Equal(got, []any{"idp:ops"}) {
		t.Errorf("the attributes are %v", got)
	}
}

// TestPersonEnrolls gets a certificate for a token, once.
func TestPersonEnrolls(t *testing.T) {
	i, sub, name := welcoming(t, nil), servertest.Unique("sub"), servertest.Unique("bob")
	token := i.token(t, person(sub, name, "eng"))
	csr, presenting := request(t)
	a := join(t, token, M{"clientCsr": csr}).Want(200)
	session := shared.Nobody(t).Presenting(presenting(a.Data()["cert"].(string))).Post(byCert, M{}).Want(200)
	if session.Data()["identityId"] != a.Data()["id"] || a.Data()["name"] != name || !strings.Contains(a.Data()["ca"].(string), "BEGIN CERTIFICATE") {
		t.Errorf("the answer is %v", a.Data())
	}
	join(t, token, M{"clientCsr": csr}).Fails(409, "ENROLLMENT_IDENTITY_ALREADY_ENROLLED", "")
	join(t, token, M{}).Fails(409, "ENROLLMENT_IDENTITY_ALREADY_ENROLLED", "")
	// Who appeared by a login may have one later.
	other := person(servertest.Unique("sub"), servertest.Unique("cat"))
	id := show(t, i.token(t, other)).Want(200).Data()["identityId"]
	csr, _ = request(t)
	if got := join(t, i.token(t, other), M{"clientCsr": csr}).Want(200).Data()["id"]; got != id {
		t.Errorf("the certificate is for %v, want %v", got, id)
	}
	join(t, i.token(t, other), M{"clientCsr": csr}).Fails(409, "ENROLLMENT_IDENTITY_ALREADY_ENROLLED", "")
	if got := shared.Nobody(t).With("Authorization", "Bearer "+i.token(t, person(servertest.Unique("sub"), servertest.Unique("dan")))).
		With("ziti-token-issuer-id", "another").Post(api.ClientRoot+"/enroll/token", M{}); got.Status != 400 {
		t.Errorf("a token of another signer than was asked for: %d", got.Status)
	}
}

// TestWhoMayAppear has a rule for everybody who is not let in.
func TestWhoMayAppear(t *testing.T) {
	for name, test := range map[string]struct {
		signer M
		claims M
		want   bool
	}{
		"staff":                   {nil, M{}, true},
		"another domain":          {nil, M{"email": "x@else.example"}, false},
		"a domain below":          {nil, M{"email": "x@a.corp.example"}, false},
		"a domain above":          {nil, M{"email": "x@corp.example.org"}, false},
		"two at signs":            {nil, M{"email": "x@corp.example@else.example"}, false},
		"quoted at sign":          {nil, M{"email": `"x@else.example"@corp.example`}, false},
		"kelvin for k":            {M{"enrollEmailDomains": []any{"kelvin.example"}}, M{"email": "x@\u212aelvin.example"}, false},
		"no address":              {nil, M{"email": nil}, false},
		"a list of addresses":     {nil, M{"email": []any{"x@corp.example"}}, false},
		"not verified":            {nil, M{"email_verified": false}, false},
		"verified said nowhere":   {nil, M{"email_verified": nil}, false},
		"verified as a number":    {nil, M{"email_verified": 1}, false},
		"verified as a text":      {nil, M{"email_verified": "true"}, true},
		"no name":                 {nil, M{"name": nil}, false},
		"a name as a list":        {nil, M{"name": []any{"a"}}, false},
		"an invisible name":       {nil, M{"name": "ad\u200bmin"}, false},
		"a name that turns round": {nil, M{"name": "\u202enimda"}, false},
		"a name of blanks":        {nil, M{"name": "  "}, false},
		"a long name":             {nil, M{"name": strings.Repeat("x", 241)}, false},
		"an invisible subject":    {nil, M{"sub": "a\u2060b"}, false},
		"a long subject":          {nil, M{"sub": strings.Repeat("x", 513)}, false},
		"in a group":              {M{"enrollGroups": []any{"eng*"}}, M{"realm": M{"roles": []any{"engine"}}}, true},
		"in no group":             {M{"enrollGroups": []any{"eng*"}}, M{"realm": M{"roles": []any{"an eng"}}}, false},
		"groups elsewhere":        {M{"enrollGroups": []any{"eng"}}, M{"roles": []any{"eng"}, "realm": M{}}, false},
		"a claim":                 {M{"enrollClaims": M{"/org/id": "7"}}, M{"org": M{"id": "7"}}, true},
		"a claim in a list":       {M{"enrollClaims": M{"/org/ids": "7"}}, M{"org": M{"ids": []any{"6", "7"}}}, true},
		"a claim of another sort": {M{"enrollClaims": M{"/org/id": "7"}}, M{"org": M{"id": 7}}, false},
		"no claim":                {M{"enrollClaims": M{"/org/id": "7"}}, M{}, false},
		"a claim by its name":     {M{"enrollClaims": M{"/org/id": "7"}}, M{"/org/id": "7"}, false},
		"no certificates":         {M{"enrollToCertEnabled": false}, M{}, true},
		"certificates alone":      {M{"enrollToTokenEnabled": false}, M{}, false},
		"nobody more":             {M{"enrollLimit": 0}, M{}, false},
		"too many groups":         {nil, M{"realm": M{"roles": many(101)}}, false},
		"as many as may be":       {nil, M{"realm": M{"roles": many(100)}}, true},
		"far too many groups":     {M{"enrollAttributeAllow": []any{"no"}}, M{"realm": M{"roles": many(1001)}}, false},
		"a policy by its name":    {M{"enrollAuthPolicyId": "Default"}, M{}, true},
		"made for another":        {nil, M{"aud": "another"}, false},
		"without an end":          {nil, M{"exp": nil}, false},
	} {
		t.Run(name, func(t *testing.T) {
			i := welcoming(t, test.signer)
			claims := person(servertest.Unique("sub"), servertest.Unique("eve"))
			for member, value := range test.claims {
				claims[member] = value
			}
			sub := claims["sub"].(string)
			status := show(t, i.token(t, claims)).Status
			_, there := model.Identities.Find(shared.State().Snapshot(), "externalId", sub)
			if status == 200 != test.want || there != test.want {
				t.Errorf("the status is %d, and there is an identity: %v", status, there)
			}
			if test.want {
				return
			}
			if a := join(t, i.token(t, claims), M{}); a.Status < 400 || a.Status >= 500 {
				t.Errorf("enrolled with status %d", a.Status)
			}
		})
	}
}

func many(n int) (groups []any) {
	for i := range n {
		groups = append(groups, fmt.Sprintf("g%d", i))
	}
	return groups
}

// TestRulesAreNeeded switches signers on that would let anybody in.
func TestRulesAreNeeded(t *testing.T) {
	good := M{
		"useExternalId": true, "enrollToTokenEnabled": true, "enrollEmailDomains": []any{"corp.example"},
		"enrollAttributeClaimsSelector": "groups", "enrollAttributePrefix": "idp:",
	}
	for name, test := range map[string]struct {
		change M
		field  string
	}{
		"no rule":               {M{"enrollEmailDomains": []any{}}, "enrollToTokenEnabled"},
		"no rule, certificates": {M{"enrollEmailDomains": []any{}, "enrollToCertEnabled": true}, "enrollToCertEnabled"},
		"ids":                   {M{"useExternalId": false}, "useExternalId"},
		"no audience":           {M{"audience": nil}, "audience"},
		"any group":             {M{"enrollGroups": []any{"*"}}, "enrollGroups"},
		"groups from nowhere":   {M{"enrollGroups": []any{"a"}, "enrollAttributeClaimsSelector": ""}, "enrollGroups"},
		"a role as prefix":      {M{"enrollAttributePrefix": "#"}, "enrollAttributePrefix"},
		"a wrong pointer":       {M{"enrollNameClaimsSelector": "/a~2"}, "enrollNameClaimsSelector"},
		"an empty pattern":      {M{"enrollAttributeAllow": []any{""}}, "enrollAttributeAllow"},
		"a top domain":          {M{"enrollEmailDomains": []any{"example"}}, "enrollEmailDomains"},
		"a domain with at sign": {M{"enrollEmailDomains": []any{"@corp.example"}}, "enrollEmailDomains"},
		"a claim to be nothing": {M{"enrollClaims": M{"a": ""}}, "enrollClaims"},
	} {
		t.Run(name, func(t *testing.T) {
			i := &issuer{cert: certify(t, newKey(t), nil, nil)}
			body := M{"name": servertest.Unique("signer"), "enabled": true, "issuer": servertest.Unique("iss"), "audience": "a", "certPem": i.cert.text()}
			for _, members := range []M{good, test.change} {
				for member, value := range members {
					body[member] = value
				}
			}
			a := shared.Admin(t).Post("external-jwt-signers", body)
			a.Fails(400, "COULD_NOT_VALIDATE", test.field)
		})
	}
	id := newIssuer(t, "ES256", newKey(t), nil).id
	shared.Admin(t).Patch("external-jwt-signers/"+id, M{"enrollToCertEnabled": true}).Want(400)
}

// TestTakenNames has people come who are called like others.
func TestTakenNames(t *testing.T) {
	i, name := welcoming(t, nil), servertest.Unique("boss")
	admin := add(t, M{"name": name, "isAdmin": true, "externalId": servertest.Unique("external")})
	who := identityOf(t, show(t, i.token(t, person(servertest.Unique("sub"), name))).Want(200).Data()["identityId"])
	if who["id"] == admin || who["name"] != name+"000001" || who["isAdmin"] != false {
		t.Errorf("came as %v, %v", who["id"], who["name"])
	}
}

// TestExternalIDsOfOthers has a signer name somebody who did not come by it.
func TestExternalIDsOfOthers(t *testing.T) {
	one, other := welcoming(t, nil), welcoming(t, nil)
	claims := person(servertest.Unique("sub"), servertest.Unique("fay"), "eng")
	id := show(t, one.token(t, claims)).Want(200).Data()["identityId"]
	show(t, other.token(t, claims)).Fails(401, "INVALID_AUTH", "")
	csr, _ := request(t)
	join(t, other.token(t, claims), M{"clientCsr": csr}).Fails(409, "INVALID_ENROLLMENT_NOT_ALLOWED", "")
	// An identity that an admin made gets no certificate by a token either.
	external := servertest.Unique("external")
	add(t, M{"externalId": external})
	join(t, one.token(t, claimSet(claims).with("sub", external)), M{"clientCsr": csr}).Fails(409, "INVALID_ENROLLMENT_NOT_ALLOWED", "")
	if got := identityOf(t, id)["roleAttributes"]; !cmp.Equal(got, []any{"idp:eng"}) {
		t.Errorf("the attributes are %v", got)
	}
}

// TestDisabledPerson keeps somebody out, who then may not come back as another.
func TestDisabledPerson(t *testing.T) {
	i := welcoming(t, nil)
	claims := person(servertest.Unique("sub"), servertest.Unique("gus"), "eng")
	id := show(t, i.token(t, claims)).Want(200).Data()["identityId"].(string)
	shared.Admin(t).Post("identities/"+id+"/disable", M{"durationMinutes": 0}).Want(200)
	show(t, i.token(t, claimSet(claims).with("realm", M{"roles": []any{"ops"}}))).Fails(401, "INVALID_AUTH", "")
	csr, _ := request(t)
	join(t, i.token(t, claims), M{"clientCsr": csr}).Fails(409, "INVALID_ENROLLMENT_NOT_ALLOWED", "")
	if got := identityOf(t, id)["roleAttributes"]; !cmp.Equal(got, []any{"idp:eng"}) {
		t.Errorf("the attributes are %v", got)
	}
	// Who is deleted comes back as somebody new.
	shared.Admin(t).Delete("identities/" + id).Want(200)
	if again := show(t, i.token(t, claims)).Want(200).Data()["identityId"]; again == id {
		t.Error("came back as the one who was deleted")
	}
}

// TestFirstLoginsAtOnce has the same person come in many times at once.
func TestFirstLoginsAtOnce(t *testing.T) {
	i := welcoming(t, nil)
	token := i.token(t, person(servertest.Unique("sub"), servertest.Unique("hal"), "eng"))
	csr, _ := request(t)
	var all sync.WaitGroup
	ids := make([]any, 12)
	for n := range ids {
		all.Go(func() {
			if n%4 == 3 {
				join(t, token, M{"clientCsr": csr})
				return
			}
			ids[n] = show(t, token).Want(200).Data()["identityId"]
		})
	}
	all.Wait()
	ids = slices.DeleteFunc(ids, func(id any) bool { return id == nil })
	if slices.ContainsFunc(ids, func(id any) bool { return id != ids[0] }) {
		t.Errorf("one person is %v", ids)
	}
	count := 0
	for range model.Authenticators.Select(shared.State().Snapshot(), "identityId", ids[0].(string)) {
		count++
	}
	if count != 1 {
		t.Errorf("there are %d certificates", count)
	}
}

// TestEnrollPolicy has a signer name the authentication policy of those who come by it:
// one that is there, or comes in the same write.
func TestEnrollPolicy(t *testing.T) {
	admin, i := shared.Admin(t), welcoming(t, nil)
	where := "external-jwt-signers/" + i.id
	wrong := admin.Patch(where, M{"enrollAuthPolicyId": "nope"}).Fails(404, "NOT_FOUND", "enrollAuthPolicyId")
	if text := string(wrong.Raw); !strings.Contains(text, "no auth-policy with this id or name") {
		t.Errorf("it is refused with %s", text)
	}
	name := servertest.Unique("policy")
	primary, secondary := allowAll()
	primary["extJwt"] = M{"allowed": true, "allowedSigners": []any{i.id}}
	policy := M{"name": name, "primary": primary, "secondary": secondary}
	admin.Post("changes", M{"changes": []any{
		M{"op": "patch", "kind": "ext-jwt-signer", "target": i.id, "body": M{"enrollAuthPolicyId": name}},
		M{"op": "create", "kind": "auth-policy", "body": policy},
	}}).Want(200)
	id := admin.Get("auth-policies?filter=" + url.QueryEscape(`name = "`+name+`"`)).Want(200).List()[0]["id"].(string)
	who := show(t, i.token(t, person(servertest.Unique("sub"), servertest.Unique("pia")))).Want(200).Data()["identityId"]
	if got := identityOf(t, who)["authPolicyId"]; got != id {
		t.Errorf("who comes has the policy %v, want %s", got, id)
	}
	// What was right may stay when it is wrong: nobody comes by it.
	admin.Delete("identities/" + who.(string)).Want(200)
	admin.Delete("auth-policies/" + id).Want(200)
	admin.Patch(where, M{"enrollLimit": 5}).Want(200)
	show(t, i.token(t, person(servertest.Unique("sub"), servertest.Unique("pit")))).Want(401)
}
