package auth_test

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"netkeep.internal/internal/model"
	"netkeep.internal/internal/web/api"
	"netkeep.internal/test/servertest"
)

// TestLostGroup has somebody lose a group, and with it what it let them use.
func TestLostGroup(t *testing.T) {
	i, group := welcoming(t, nil), servertest.Unique("group")
	admin := shared.Admin(t)
	service := admin.Post("services", M{"name": servertest.Unique("service"), "encryptionRequired": false}).Want(201).ID()
	admin.Post("service-policies", M{
		"name": servertest.Unique("policy"), "type": "Dial", "semantic": "AnyOf", "identityRoles": []any{"#idp:" + group}, "serviceRoles": []any{"@" + service},
	}).Want(201)
	router := admin.Post("edge-routers", M{"name": servertest.Unique("router")}).Want(201).ID()
	admin.Post("edge-router-policies", M{
		"name": servertest.Unique("policy"), "semantic": "AnyOf", "identityRoles": []any{"#idp:" + group, "#own"}, "edgeRouterRoles": []any{"@" + router},
	}).Want(201)
	admin.Post("service-edge-router-policies", M{
		"name": servertest.Unique("policy"), "semantic": "AnyOf", "serviceRoles": []any{"@" + service}, "edgeRouterRoles": []any{"@" + router},
	}).Want(201)
	claims := person(servertest.Unique("sub"), servertest.Unique("ida"), group)
	enter := func(claims M) *servertest.Client {
		c := shared.Nobody(t)
		c.Token = c.With("Authorization", "Bearer "+i.token(t, claims)).Post(api.ClientRoot+"/"+byJWT, M{}).Want(200).Header.Get("net-session")
		return c
	}
	sees := func(c *servertest.Client) bool { return c.Get(api.ClientRoot+"/services/"+service).Status == 200 }
	before := enter(claims)
	if !sees(before) {
		t.Fatal("the group does not let them see the service")
	}
	id := before.Get("current-identity").Want(200).ID()
	if why := fmt.Sprint(admin.Get("identities/" + id + "/explain/" + service).Want(200).Data()["links"]); !strings.Contains(why, "from:"+admin.Get("external-jwt-signers/" + i.id).Want(200).Data()["name"].(string)) {
		t.Errorf("it is not explained by the provider's group: %s", why)
	}
	dial := M{"serviceId": service, "type": "Dial"}
	session := before.Post(api.ClientRoot+"/sessions", dial).Want(201).ID()
	admin.Patch("identities/"+id, M{"roleAttributes": []any{"own"}}).Want(200)
	if !sees(before) {
		t.Error("an edit of an admin took the group away")
	}
	enter(claimSet(claims).with("realm", M{"roles": []any{}}))
	before.Get(api.ClientRoot + "/services/" + service).Want(404) // in a session that goes on
	before.Post(api.ClientRoot+"/sessions", dial).Want(404)
	servertest.Eventually(t, waitTime, "the end of the session to dial", func() bool {
		_, there := model.Sessions.Get(shared.State().Snapshot(), session)
		return !there
	})
	if got := identityOf(t, id)["roleAttributes"]; !cmp.Equal(got, []any{"own"}) {
		t.Errorf("the attributes are %v", got)
	}
}

// TestAdminsEdits has an admin send back what was read, and leave it out.
func TestAdminsEdits(t *testing.T) {
	i := welcoming(t, nil)
	claims := person(servertest.Unique("sub"), servertest.Unique("jon"), "eng")
	id := show(t, i.token(t, claims)).Want(200).Data()["identityId"].(string)
	admin := shared.Admin(t)
	read := identityOf(t, id)
	for _, list := range [][]any{{"idp:eng", "mine"}, {"mine"}} {
		admin.Put("identities/"+id, M{
			"name": read["name"], "type": "User", "isAdmin": false, "externalId": read["externalId"], "roleAttributes": list,
			"providerAttributes": []any{}, "enrolledBy": nil,
		}).Want(200)
		now := identityOf(t, id)
		if !cmp.Equal(now["roleAttributes"], []any{"idp:eng", "mine"}) || !cmp.Equal(now["providerAttributes"], read["providerAttributes"]) || now["enrolledBy"] != i.id {
			t.Errorf("after %v: %v, %v", list, now["roleAttributes"], now["providerAttributes"])
		}
	}
	show(t, i.token(t, claimSet(claims).with("realm", nil))).Want(200)
	if got := identityOf(t, id)["roleAttributes"]; !cmp.Equal(got, []any{"mine"}) {
		t.Errorf("without groups: %v", got)
	}
	// What a signer provides goes with it.
	show(t, i.token(t, claims)).Want(200)
	admin.Delete("external-jwt-signers/" + i.id).Want(200)
	if now := identityOf(t, id); !cmp.Equal(now["roleAttributes"], []any{"mine"}) || now["enrolledBy"] != nil {
		t.Errorf("without the signer: %v, %v", now["roleAttributes"], now["enrolledBy"])
	}
}

// TestOldToken shows a token again that was made before somebody left a group.
func TestOldToken(t *testing.T) {
	i := welcoming(t, nil)
	claims := person(servertest.Unique("sub"), servertest.Unique("oda"), "eng")
	claims["iat"] = time.Now().Add(-time.Minute).Unix()
	old := i.token(t, claims)
	id := show(t, old).Want(200).Data()["identityId"]
	claims["realm"], claims["iat"] = M{"roles": []any{"ops"}}, time.Now().Add(-40*time.Second).Unix()
	show(t, i.token(t, claims)).Want(200)
	// What the newest says was so before, and counts all the same.
	between := i.token(t, claimSet(claimSet(claims).with("iat", time.Now().Add(-20*time.Second).Unix())).with("realm", M{"roles": []any{"eng", "ops"}}))
	claims["iat"] = time.Now().Unix()
	show(t, i.token(t, claims)).Want(200)
	show(t, between).Want(200)
	show(t, old).Want(200)
	if got := identityOf(t, id)["roleAttributes"]; !cmp.Equal(got, []any{"idp:ops"}) {
		t.Errorf("the attributes are %v", got)
	}
}

// TestPreview foretells logins, and then has them happen.
func TestPreview(t *testing.T) {
	i := welcoming(t, M{"enrollAttributeAllow": []any{"eng", "ops"}})
	claims := person(servertest.Unique("sub"), servertest.Unique("kim"), "eng", "secret group")
	preview := func(token string) M {
		return shared.Admin(t).Post("external-jwt-signers/"+i.id+"/preview", M{"token": token}).Want(200).Data()
	}
	token := i.token(t, claims)
	got := preview(token)
	want := M{
		"accepted": true, "reason": "", "isNew": true, "identityId": nil, "name": claims["name"], "externalId": claims["sub"],
		"attributes": []any{"idp:eng"}, "gained": []any{"idp:eng"}, "lost": []any{}, "left": []any{M{"group": "secret group", "why": "enrollAttributeAllow does not have it"}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the preview differs (-want +got):\n%s", diff)
	}
	if _, there := model.Identities.Find(shared.State().Snapshot(), "externalId", claims["sub"].(string)); there {
		t.Error("a preview made an identity")
	}
	id := show(t, token).Want(200).Data()["identityId"]
	got = preview(i.token(t, claimSet(claims).with("realm", M{"roles": []any{"ops"}})))
	if !cmp.Equal(got["gained"], []any{"idp:ops"}) || !cmp.Equal(got["lost"], []any{"idp:eng"}) || got["identityId"] != id || got["isNew"] != false {
		t.Errorf("the second preview is %v", got)
	}
	other := claimSet(person(servertest.Unique("sub"), "lea"))
	for word, token := range map[string]string{
		"enrollEmailDomains": i.token(t, other.with("email", "lea@else.example")),
		"come to its end":    i.token(t, other.with("exp", 1)),
		"clock of the cont":  i.token(t, other.with("nbf", time.Now().Add(5*time.Minute).Unix())),
		"claim exp":          i.token(t, other.with("exp", nil)),
		"claim aud":          i.token(t, other.with("aud", "else")),
		"claim iss":          i.token(t, other.with("iss", "else")),
		"no JWT":             "nonsense",
		"signature":          token[:len(token)-8] + "AAAAAAAA",
		"claimsProperty":     i.token(t, other.with("sub", 7)),
	} {
		if got := preview(token); got["accepted"] != false || !strings.Contains(got["reason"].(string), word) {
			t.Errorf("%s: %v", word, got)
		}
	}
	shared.Admin(t).Post("external-jwt-signers/nope/preview", M{"token": token}).Fails(404, "NOT_FOUND", "")
	if shared.Logged(token) {
		t.Error("the log has the token")
	}
}

// TestAuditOfPeople has the signer be the author of what it changed.
func TestAuditOfPeople(t *testing.T) {
	i := welcoming(t, nil)
	claims := person(servertest.Unique("sub"), servertest.Unique("mia"), "eng")
	id := show(t, i.token(t, claims)).Want(200).Data()["identityId"].(string)
	show(t, i.token(t, claimSet(claims).with("realm", nil))).Want(200)
	var events []string
	filter := url.QueryEscape(`targetId = "` + id + `" and actorId = "` + i.id + `"`)
	for _, e := range shared.Admin(t).Get("audit-entries?filter=" + filter).Want(200).List() {
		events = append(events, fmt.Sprint(e["actorKind"], " ", e["event"]))
	}
	slices.Sort(events)
	if !slices.Equal(events, []string{"ext-jwt-signer created", "ext-jwt-signer updated"}) {
		t.Errorf("the signer is the author of %v", events)
	}
}
