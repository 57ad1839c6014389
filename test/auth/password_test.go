package auth_test

import (
	"crypto/rand"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"netkeep.internal/test/servertest"
)

func TestPasswordLogin(t *testing.T) {
	id, password := add(t, nil), rand.Text()
	username, authenticator := addPassword(t, id, password)
	both(t, func(t *testing.T, root string) {
		a := shared.Nobody(t).Post(root+byPassword, M{"username": username, "password": password}).Want(200)
		data := a.Data()
		want := M{"identityId": id, "authenticatorId": authenticator, "authQueries": []any{}, "ipAddress": "127.0.0.1"}
		for name, value := range want {
			if diff := cmp.Diff(value, data[name]); diff != "" {
				t.Errorf("%s differs (-want +got):\n%s", name, diff)
			}
		}
		// The token is good on both APIs, whichever gave it.
		both(t, func(t *testing.T, other string) {
			c := shared.Nobody(t)
			c.Token = data["token"].(string)
			c.Get(other + session).Want(200)
		})
	})
}

// TestLoginTellsWhatIsMissing checks that the first answer lists the factors
// that are still needed.
func TestLoginTellsWhatIsMissing(t *testing.T) {
	policy := addPolicy(t, func(_, secondary M) {
		secondary["requireTotp"], secondary["requireExtJwtSigner"] = true, house(t).id
	})
	id, password := add(t, M{"authPolicyId": policy}), rand.Text()
	username, _ := addPassword(t, id, password)
	login := M{"username": username, "password": password}
	types := func(a *servertest.Answer) (got []any) {
		for _, q := range a.Want(200).Data()["authQueries"].([]any) {
			got = append(got, q.(M)["typeId"])
		}
		return got
	}
	if diff := cmp.Diff([]any{"MFA", "EXT-JWT"}, types(shared.Nobody(t).Post(byPassword, login))); diff != "" {
		t.Errorf("queries differ (-want +got):\n%s", diff)
	}
	with := shared.Nobody(t).With("Authorization", "Bearer "+house(t).token(t, M{"sub": id}))
	if diff := cmp.Diff([]any{"MFA"}, types(with.Post(byPassword, login))); diff != "" {
		t.Errorf("queries beside a JWT differ (-want +got):\n%s", diff)
	}
}

func TestLockout(t *testing.T) {
	policy := addPolicy(t, func(primary, _ M) {
		primary["updb"].(M)["maxAttempts"], primary["updb"].(M)["lockoutDurationMinutes"] = 2, 5
	})
	id, password := add(t, M{"authPolicyId": policy}), rand.Text()
	username, _ := addPassword(t, id, password)
	other := shared.Admin(t)
	fail := func() {
		t.Helper()
		shared.Nobody(t).Post(byPassword, M{"username": username, "password": "wrong one"}).Fails(401, "INVALID_AUTH", "")
	}
	fail()
	first := shared.Login(t, username, password) // clears the failure before
	fail()
	second := shared.Login(t, username, password)
	third := enter(t, id)
	fail()
	fail()
	// It is the password that does not work any more, and nothing else.
	shared.Nobody(t).Post(byPassword, M{"username": username, "password": password}).Fails(401, "INVALID_AUTH", "")
	for _, c := range []*servertest.Client{first, second, third, other} {
		works(t, c)
	}
	show(t, house(t).token(t, M{"sub": id})).Want(200)
	if got := shared.Admin(t).Get("identities/" + id).Data(); got["disabled"] != false {
		t.Errorf("the identity is %v", got)
	}
	shared.Admin(t).Post("identities/"+id+"/enable", nil).Want(200)
	works(t, shared.Login(t, username, password))
}

// passwordRules are policies with passwords that each refuses and accepts.
var passwordRules = []struct {
	rule  string
	value any
	bad   []string
	good  string
}{
	{"minPasswordLength", 12, []string{"eleven-char", "éééééé"}, "twelve-chars"},
	{"requireSpecialChar", true, []string{"onlyLetters9"}, "special!one"},
	{"requireNumberChar", true, []string{"no-number-here"}, "number-9-here"},
	{"requireMixedCase", true, []string{"lower-case-only", "UPPER-CASE-ONLY"}, "Mixed-Case-One"},
}

// TestPasswordRules sets passwords wherever one can be set.
func TestPasswordRules(t *testing.T) {
	admin := shared.Admin(t)
	for _, test := range passwordRules {
		t.Run(test.rule, func(t *testing.T) {
			first := rand.Text()
			policy := addPolicy(t, func(M, M) {})
			id := add(t, M{"authPolicyId": policy})
			username, a := addPassword(t, id, first)
			c := shared.Login(t, username, first)
			admin.Patch("auth-policies/"+policy, M{"primary": M{"updb": M{test.rule: test.value}}}).Want(200)
			fresh := add(t, M{"authPolicyId": policy})
			set := func(password string) []*servertest.Answer {
				own := "current-identity/authenticators/" + a
				return []*servertest.Answer{
					admin.Post("authenticators", M{"identityId": fresh, "method": "updb", "username": servertest.Unique("user"), "password": password}),
					admin.Put("authenticators/"+a, M{"username": username, "password": password}),
					admin.Patch("authenticators/"+a, M{"password": password}),
					c.Put(own, M{"username": username, "password": password, "currentPassword": first}),
					c.Patch(own, M{"password": password, "currentPassword": first}),
				}
			}
			for _, bad := range test.bad {
				for _, answer := range set(bad) {
					answer.Fails(400, "COULD_NOT_VALIDATE", "password")
					if strings.Contains(string(answer.Raw), bad) {
						t.Errorf("the password is repeated: %s", answer.Raw)
					}
				}
			}
			admin.Patch("authenticators/"+a, M{"password": test.good}).Want(200)
			works(t, shared.Login(t, username, test.good))
		})
	}
}

func TestOwnAuthenticators(t *testing.T) {
	both(t, func(t *testing.T, root string) {
		id, password := add(t, nil), rand.Text()
		username, a := addPassword(t, id, password)
		leaf, _ := ours(t, newKey(t), 1<<40)
		cert := addCertificate(t, id, leaf)
		_, foreign := addPassword(t, add(t, nil), rand.Text())
		c, own := enter(t, id), root+"current-identity/authenticators"

		var ids []any
		for _, entry := range c.Get(own + "?limit=500&filter=true").Want(200).List() {
			ids = append(ids, entry["id"])
			if entry["password"] != nil || entry["passwordHash"] != nil {
				t.Errorf("an authenticator shows %v", entry)
			}
		}
		if len(ids) != 2 || ids[0] == ids[1] {
			t.Errorf("the list has %v, want %s and %s", ids, a, cert)
		}
		if got := c.Get(own + "/" + a).Want(200).Data(); got["username"] != username || got["identityId"] != id {
			t.Errorf("the password's is %v", got)
		}
		if got := c.Get(own + "/" + cert).Want(200).Data(); got["certPem"] != leaf.text() {
			t.Errorf("the certificate's is %v", got)
		}
		fresh := rand.Text()
		change := M{"username": username, "password": fresh, "currentPassword": password}
		for _, other := range []string{foreign, "nothing"} {
			c.Get(own+"/"+other).Fails(404, "NOT_FOUND", "")
			c.Put(own+"/"+other, change).Fails(404, "NOT_FOUND", "")
			c.Patch(own+"/"+other, change).Fails(404, "NOT_FOUND", "")
		}
		c.Put(own+"/"+cert, change).Fails(409, "CAN_NOT_UPDATE_AUTHENTICATOR", "")
		c.Patch(own+"/"+cert, change).Fails(409, "CAN_NOT_UPDATE_AUTHENTICATOR", "")
		c.Delete(own+"/"+a).Fails(405, "METHOD_NOT_ALLOWED", "")
		shared.Login(t, username, password)
	})
}

func TestOwnPassword(t *testing.T) {
	id, password := add(t, nil), rand.Text()
	username, a := addPassword(t, id, password)
	c, own := enter(t, id), "/edge/client/v1/current-identity/authenticators/"+a
	wrong, fresh := rand.Text(), rand.Text()
	answer := c.Patch(own, M{"password": fresh, "currentPassword": wrong}).Fails(401, "UNAUTHORIZED", "currentPassword")
	if raw := string(answer.Raw); strings.Contains(raw, wrong) || strings.Contains(raw, fresh) {
		t.Errorf("a password is repeated: %s", raw)
	}
	c.Patch(own, M{"password": fresh}).Fails(400, "COULD_NOT_VALIDATE", "currentPassword")
	c.Put(own, M{"username": username, "currentPassword": password}).Fails(400, "COULD_NOT_VALIDATE", "password")
	c.Put(own, M{"password": fresh, "currentPassword": password}).Fails(400, "COULD_NOT_VALIDATE", "username")
	c.Patch(own, M{"password": fresh, "currentPassword": password}).Want(200)
	c.Patch(own, M{"password": nil, "username": nil, "tags": M{"a": "b"}, "currentPassword": fresh}).Want(200)
	shared.Nobody(t).Post(byPassword, M{"username": username, "password": password}).Fails(401, "INVALID_AUTH", "")
	works(t, shared.Login(t, username, fresh))
	renamed := servertest.Unique("user")
	c.Put(own, M{"username": renamed, "password": password, "currentPassword": fresh}).Want(200)
	works(t, shared.Login(t, renamed, password))
	if got := c.Get(own).Data(); got["username"] != renamed || len(got["tags"].(M)) != 0 {
		t.Errorf("the authenticator is %v", got)
	}
	taken, _ := addPassword(t, add(t, nil), rand.Text())
	c.Patch(own, M{"username": taken, "currentPassword": password}).Fails(400, "COULD_NOT_VALIDATE", "username")
}

// TestGuessingTheOwnPassword has somebody who took over a session try to learn
// the password by it.
func TestGuessingTheOwnPassword(t *testing.T) {
	policy := addPolicy(t, func(primary, _ M) { primary["updb"].(M)["maxAttempts"] = 3 })
	id, password := add(t, M{"authPolicyId": policy}), rand.Text()
	_, a := addPassword(t, id, password)
	c := enter(t, id)
	for _, tried := range []string{"wrong one", "wrong one", "wrong one", password} {
		c.Patch("current-identity/authenticators/"+a, M{"currentPassword": tried}).Fails(401, "UNAUTHORIZED", "currentPassword")
	}
	works(t, c)
}

// TestNoEnumeration compares the answers to names that exist and that do not.
func TestNoEnumeration(t *testing.T) {
	id, password := add(t, nil), rand.Text()
	username, _ := addPassword(t, id, password)
	shape := func(name string) M {
		a := shared.Nobody(t).Post(byPassword, M{"username": name, "password": "wrong one"}).Fails(401, "INVALID_AUTH", "")
		delete(a.JSON.(M)["error"].(M), "requestId")
		for _, header := range []string{"Date", "Content-Length"} {
			a.Header.Del(header)
		}
		headers := M{}
		for name, values := range a.Header {
			headers[name] = strings.Join(values, ",")
		}
		return M{"body": a.JSON, "headers": headers}
	}
	want := shape(servertest.Unique("nobody"))
	if diff := cmp.Diff(want, shape(username)); diff != "" {
		t.Errorf("a name that exists is refused differently (-unknown +known):\n%s", diff)
	}
	shared.Admin(t).Post("identities/"+id+"/disable", M{"durationMinutes": 5}).Want(http.StatusOK)
	if diff := cmp.Diff(want, shape(username)); diff != "" {
		t.Errorf("a disabled identity is refused differently (-unknown +disabled):\n%s", diff)
	}
}
