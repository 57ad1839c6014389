package api_test

import (
	"fmt"
	"strings"
	"testing"

	"netkeep.internal/test/servertest"
)

// ignored is the header that names what an operation did not know.
const ignored = "net-ignored"

// TestIgnored sends members that no operation knows. They change nothing, and
// the answer names them with what they may stand for.
func TestIgnored(t *testing.T) {
	c := shared.Admin(t)
	body := func(more M) M {
		return joined(M{"name": servertest.Unique("slip"), "type": "Device", "isAdmin": false}, more)
	}
	for _, tt := range []struct {
		more M
		want string
	}{
		{M{}, ""},
		{M{"roleAtributes": []any{"office"}}, `"roleAtributes";near="roleAttributes"`},
		{M{"zebra": 1, "isAdmn": true}, `"isAdmn";near="isAdmin", "zebra"`},
		{M{"enrollment": M{"ott": true, "updbb": "x"}, "enrolment": 1}, `"enrolment";near="enrollment", "enrollment.updbb";near="enrollment.updb"`},
		{M{"tags": M{"Color": "x"}, "appData": M{"any": M{"Thing": 1}}, "externalID": nil}, ""},
	} {
		a := c.Post("identities", body(tt.more)).Want(201)
		if got := a.Header.Get(ignored); got != tt.want {
			t.Errorf("%v: the header is %s, want %s", tt.more, got, tt.want)
		}
	}
	if roles := c.Get("identities/" + c.Post("identities", body(M{"roleAtributes": []any{"x"}})).ID()).Data()["roleAttributes"]; len(roles.([]any)) > 0 {
		t.Errorf("a member that was ignored made the attributes %v", roles)
	}
	a := c.Post("identities", M{"nmae": "x", "type": "Device", "isAdmin": false}).Fails(400, "COULD_NOT_VALIDATE", "name")
	if got, want := a.Header.Get(ignored), `"nmae";near="name"`; got != want {
		t.Errorf("with a refusal the header is %s, want %s", got, want)
	}
}

func TestIgnoredElsewhere(t *testing.T) {
	c := shared.Admin(t)
	id := create(t, c, "auth-policies", nil)
	a := c.Patch("auth-policies/"+id, M{"primary": M{"updb": M{"alowed": true}}}).Want(200)
	if got, want := a.Header.Get(ignored), `"primary.updb.alowed";near="primary.updb.allowed"`; got != want {
		t.Errorf("of a nested member the header says %s, want %s", got, want)
	}
	a = c.Post("posture-checks", M{"name": servertest.Unique("os"), "typeId": "OS", "operatingSystems": []any{
		M{"type": "Linux", "versions": []any{}, "version": "5"}}}).Want(201)
	if got, want := a.Header.Get(ignored), `"operatingSystems.0.version";near="operatingSystems.0.versions"`; got != want {
		t.Errorf("of a member in a list the header says %s, want %s", got, want)
	}
	a = c.Post("authenticate?method=password", M{"username": servertest.Username, "password": servertest.Password, "configTypees": []any{}}).Want(200)
	if got, want := a.Header.Get(ignored), `"configTypees";near="configTypes"`; got != want {
		t.Errorf("of an operation that is no resource's the header says %s, want %s", got, want)
	}
	identity := create(t, c, "identities", nil)
	a = c.Post("identities/"+identity+"/service-configs", []any{M{"serviceId": "x", "configId": "y", "z": 1}})
	if got, want := a.Header.Get(ignored), `"0.z"`; got != want {
		t.Errorf("of a list of objects the header says %s, want %s", got, want)
	}
	a = c.With("Origin", "https://console.example").Patch("auth-policies/"+id, M{"nme": "x"}).Want(200)
	if exposed := a.Header.Get("Access-Control-Expose-Headers"); !strings.Contains(exposed, ignored) || a.Header.Get(ignored) == "" {
		t.Errorf("a page of another origin may see %s", exposed)
	}
}

// TestIgnoredRepeatsLittle shows that a header says no more than it must,
// whatever members are called.
func TestIgnoredRepeatsLittle(t *testing.T) {
	c := shared.Admin(t)
	body := M{"name": servertest.Unique("odd"), "type": "Device", "isAdmin": false, "a\r\nx-evil: \"1\",\u2028é": 1, strings.Repeat("n", 1000): 2}
	a := c.Post("identities", body).Want(201)
	want := `"a??x-evil???1????", "` + strings.Repeat("n", 100) + `"`
	if got := a.Header.Get(ignored); got != want {
		t.Errorf("got %s\nwant %s", got, want)
	}
	for i := range 1000 {
		body[fmt.Sprint(strings.Repeat("m", 200), i)] = i
	}
	body["name"] = servertest.Unique("odd")
	a = c.Post("identities", body).Want(201)
	if got := a.Header.Get(ignored); len(got) > 2000 || !strings.HasSuffix(got, ", *") {
		t.Errorf("of a thousand the header says %d bytes: %s", len(got), got)
	}
}

// TestAnswersSentBack shows that a client may send a record as it got it: what
// answers show and no body sets is nothing to speak of.
func TestAnswersSentBack(t *testing.T) {
	forEach(t, func(t *testing.T, c *servertest.Client, r resource) {
		id := c.Post(r.path, joined(r.least(t, c), r.more(t, c))).Want(201).ID()
		shown := c.Get(r.path + "/" + id).Want(200).Data()
		for _, a := range []*servertest.Answer{
			c.Put(r.path+"/"+id, joined(shown, r.replacement(t, c))).Want(200),
			c.Patch(r.path+"/"+id, joined(shown, r.replacement(t, c))).Want(200),
		} {
			if got := a.Header.Get(ignored); got != "" {
				t.Errorf("the answer names %s", got)
			}
		}
	})
}

// TestOtherWords sends what tools of others send: a type that makes no
// difference, which is kept, and names in spellings of their own.
func TestOtherWords(t *testing.T) {
	c := shared.Admin(t)
	odd := func(format string, args ...any) servertest.Odd { return servertest.Odd(fmt.Sprintf(format, args...)) }
	id := c.Post("identities", odd(`{"name":%q,"type":"Default","isAdmin":false}`, servertest.Unique("default"))).Want(201).ID()
	if got := c.Get("identities/" + id).Data(); got["typeId"] != "Default" {
		t.Errorf("an identity of type Default is shown as %v", got["typeId"])
	}
	if n := c.Get("identities?filter=" + query(`type = "Default" and id = "%s"`, id)).Want(200).Total(); n != 1 {
		t.Errorf("a filter by the type finds %d", n)
	}
	c.Patch("identities/"+id, odd(`{"type":"Default"}`)).Want(200)
	c.Patch("identities/"+id, M{"type": "default"}).Fails(400, "COULD_NOT_VALIDATE", "type")

	a := c.Post("posture-checks", odd(`{"name":%q,"typeId":"OS","operatingSystems":[{"Type":"Linux","Versions":[">=5.0.0"]}]}`, servertest.Unique("os"))).Want(201)
	os := c.Get("posture-checks/" + a.ID()).Data()["operatingSystems"].([]any)[0].(M)
	if os["type"] != "Linux" || fmt.Sprint(os["versions"]) != "[>=5.0.0]" || a.Header.Get(ignored) != "" {
		t.Errorf("the check asks for %v, ignored was %s", os, a.Header.Get(ignored))
	}
	c.Post("identities", odd(`{"name":"two","Name":"two","type":"User","isAdmin":false}`)).Fails(400, "COULD_NOT_PARSE_BODY", "name")
}

// TestIgnoredOnOtherAPI sends a member that only the Management API takes to the Client
// API: it changes nothing, and the answer names it.
func TestIgnoredOnOtherAPI(t *testing.T) {
	c := shared.Admin(t)
	id := c.Post("services", M{"name": servertest.Unique("pay"), "encryptionRequired": true}).Want(201).ID()
	path := "/edge/client/v1/services/" + id
	for _, word := range []string{"requests", "Requests"} {
		a := c.Patch(path, M{"tags": M{"a": "b"}, word: M{"attribute": "now", "approvers": "leads"}}).Want(200)
		if got, want := a.Header.Get(ignored), `"`+word+`"`; got != want {
			t.Errorf("the header is %s, want %s", got, want)
		}
	}
	if got := c.Get("services/" + id).Data()["requests"]; got != nil {
		t.Errorf("it made %v", got)
	}
	if got := c.Patch(path, M{"tags": M{"a": "c"}}).Want(200).Header.Get(ignored); got != "" {
		t.Errorf("without it the header is %s", got)
	}
}
