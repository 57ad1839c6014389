package api_test

import (
	"crypto/tls"
	"testing"

	"github.com/golang-jwt/jwt/v5"
	"github.com/google/go-cmp/cmp"

	"netkeep.internal/internal/web/api"
	"netkeep.internal/test/servertest"
)

// TestPolicyType asks who may dial a service and who may host it, and the other
// way round.
func TestPolicyType(t *testing.T) {
	c := shared.Admin(t)
	mark := servertest.Unique("typed")
	person := func(name string) string {
		return create(t, c, "identities", M{"name": mark + name, "roleAttributes": []any{mark + name}})
	}
	dialer, host := person("dialer"), person("host")
	service := create(t, c, "services", M{"name": mark, "roleAttributes": []any{mark}})
	for typ, who := range map[string]string{"Dial": "dialer", "Bind": "host"} {
		create(t, c, "service-policies", M{"type": typ, "semantic": "AnyOf", "identityRoles": []any{"#" + mark + who}, "serviceRoles": []any{"#" + mark}})
	}
	for _, test := range []struct {
		path string
		want []string
	}{
		{"services/" + service + "/identities?sort=name", []string{mark + "dialer", mark + "host"}},
		{"services/" + service + "/identities?policyType=dial", []string{mark + "dialer"}},
		{"services/" + service + "/identities?policyType=Bind", []string{mark + "host"}},
		{"identities/" + dialer + "/services?policyType=dial", []string{mark}},
		{"identities/" + dialer + "/services?policyType=bind", []string{}},
		{"identities/" + host + "/services?policyType=Dial", []string{}},
		{"identities/" + host + "/services?policyType=BIND", []string{mark}},
	} {
		if diff := cmp.Diff(test.want, names(c.Get(test.path).Want(200))); diff != "" {
			t.Errorf("%s differs (-want +got):\n%s", test.path, diff)
		}
	}
	c.Get("services/"+service+"/identities?policyType=both").Fails(400, "COULD_NOT_VALIDATE", "policyType")
}

// TestPolicyMembers filters policies by whom and what they are about, however
// their role lists say so.
func TestPolicyMembers(t *testing.T) {
	c := shared.Admin(t)
	mark := servertest.Unique("about")
	identity := create(t, c, "identities", M{"name": mark, "roleAttributes": []any{mark}})
	service := create(t, c, "services", M{"name": mark, "roleAttributes": []any{mark}})
	policy := func(name string, identities, services []any) {
		create(t, c, "service-policies", M{"name": mark + name, "type": "Dial", "semantic": "AnyOf", "identityRoles": identities, "serviceRoles": services})
	}
	policy("1", []any{"#" + mark}, []any{"@" + service})
	policy("2", []any{"@" + identity}, []any{})
	policy("3", []any{}, []any{"#" + mark})
	for filter, want := range map[string][]string{
		`anyOf(identities) = "` + identity + `"`:                                 {mark + "1", mark + "2"},
		`anyOf(services) = "` + service + `"`:                                    {mark + "1", mark + "3"},
		`isEmpty(identities)`:                                                    {mark + "3"},
		`count(services) = 1`:                                                    {mark + "1", mark + "3"},
		`not isEmpty(from identities where name = "` + mark + `")`:               {mark + "1", mark + "2"},
		`anyOf(identities) = "` + identity + `" and not isEmpty(services)`:       {mark + "1"},
		`anyOf(identities) in ["` + identity + `"] and anyOf(services) = "none"`: {},
	} {
		got := names(c.Get("service-policies?filter=" + query(`name contains "%s" and (%s) sort by name`, mark, filter)).Want(200))
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s differs (-want +got):\n%s", filter, diff)
		}
	}
}

// TestConfigServices asks which services use a config.
func TestConfigServices(t *testing.T) {
	c := shared.Admin(t)
	config := create(t, c, "configs", nil)
	name := servertest.Unique("uses")
	create(t, c, "services", M{"name": name, "configs": []any{config}})
	if diff := cmp.Diff([]string{name}, names(c.Get("configs/"+config+"/services").Want(200))); diff != "" {
		t.Errorf("services differ (-want +got):\n%s", diff)
	}
	if n := c.Get("configs/" + create(t, c, "configs", nil) + "/services").Want(200).Total(); n != 0 {
		t.Errorf("a config that nobody uses has %d services", n)
	}
}

// TestTokensOfOthers filters by tokens: one finds one's own, and nobody finds
// out another's, not even an admin who knows it.
func TestTokensOfOthers(t *testing.T) {
	second := shared.AddUser(t, true)
	c, other := shared.Admin(t), shared.Login(t, second.Username, second.Password)
	mine := c.Get("current-api-session").Want(200).Data()
	theirs := other.Get("current-api-session").Want(200).Data()
	find := func(format string, args ...any) int {
		return c.Get("api-sessions?filter=" + query(format, args...)).Want(200).Total()
	}
	if n := find(`token = "%s" and id = "%s"`, mine["token"], mine["id"]); n != 1 {
		t.Errorf("one's own token finds %d sessions", n)
	}
	for _, operation := range []string{"=", "contains", "icontains", ">=", "<="} {
		if n := find(`token %s "%s"`, operation, theirs["token"]); n > 1 || n == 1 && find(`token %s "%s" and id = "%s"`, operation, theirs["token"], theirs["id"]) != 0 {
			t.Errorf("with %s, somebody else's token finds %d sessions", operation, n)
		}
	}
	if n := find(`id = "%s" and token = null`, theirs["id"]); n != 1 {
		t.Errorf("somebody else's session has a token for filters: %d have none", n)
	}

	c.Get("sessions?filter=" + query(`token = "%s"`, theirs["token"])).Want(200)
}

// TestIssuedByNetwork tells certificates of ours from other credentials.
func TestIssuedByNetwork(t *testing.T) {
	c := shared.Admin(t)
	a := c.Get("authenticators?filter=" + query(`username = "%s"`, servertest.Username)).Want(200)
	if got := a.At("data.0.isIssuedByNetwork"); got != false {
		t.Errorf("a password is shown as issued by the network: %v", got)
	}
	c.Get("authenticators?filter=" + query(`isIssuedByNetwork = true`)).Want(200)
	own := c.Get("current-identity/authenticators").Want(200)
	if got := own.At("data.0.isIssuedByNetwork"); got != false {
		t.Errorf("of one's own password it says %v", got)
	}
}

// TestTrust asks both APIs whom to trust.
func TestTrust(t *testing.T) {
	nobody := shared.Nobody(t)
	bundle := nobody.Get("/.well-known/est/cacerts").Want(200)
	for _, root := range []string{api.ClientRoot, api.ManagementRoot} {
		a := nobody.Get(root + "/.well-known/est/cacerts").Want(200)
		if string(a.Raw) != string(bundle.Raw) || a.Header.Get("Content-Type") != "application/pkcs7-mime" {
			t.Errorf("below %s there is %s of %d bytes", root, a.Header.Get("Content-Type"), len(a.Raw))
		}
		networks := nobody.Get(root + "/network-jwts").Want(200)
		if got := networks.At("data.0.name"); got != "default" || len(networks.List()) != 1 {
			t.Errorf("the networks are %v", networks.List())
		}
		checkNetwork(t, networks.At("data.0.token").(string))
	}
}

// checkNetwork checks that a token leads to the controller, is signed by the key
// that it serves, and names nobody.
func checkNetwork(t *testing.T, token string) {
	t.Helper()
	conn, err := tls.Dial("tcp", shared.Address(), shared.TLS())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	claims := jwt.MapClaims{}
	if _, err := jwt.ParseWithClaims(token, claims, func(*jwt.Token) (any, error) {
		return conn.ConnectionState().PeerCertificates[0].PublicKey, nil
	}); err != nil {
		t.Fatalf("the token of the network: %v", err)
	}
	home := "https://" + shared.Address() + "/"
	if claims["em"] != "network" || claims["iss"] != home || claims["sub"] != home || claims["jti"] == "" || claims["exp"] != nil {
		t.Errorf("the token of the network says %v", claims)
	}
}
