package api_test

import (
	"maps"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// leaf is one member deep in an auth policy, with a value that differs from
// policyBody's.
type leaf struct {
	path  string
	other any
}

var leaves = []leaf{
	{"primary.cert.allowed", false},
	{"primary.cert.allowExpiredCerts", true},
	{"primary.updb.allowed", false},
	{"primary.updb.minPasswordLength", 12.0},
	{"primary.updb.requireSpecialChar", false},
	{"primary.updb.requireNumberChar", true},
	{"primary.updb.requireMixedCase", false},
	{"primary.updb.maxAttempts", 5.0},
	{"primary.updb.lockoutDurationMinutes", 0.0},
	{"primary.extJwt.allowed", true},
	{"secondary.requireTotp", true},
}

// nest puts a value at a dotted path of otherwise empty objects.
func nest(path string, value any) M {
	first, rest, more := strings.Cut(path, ".")
	if more {
		value = nest(rest, value)
	}
	return M{first: value}
}

// changed returns a copy of a body with the value at a dotted path replaced,
// or removed if it is gone.
func changed(body M, path string, value any) M {
	body = maps.Clone(body)
	first, rest, more := strings.Cut(path, ".")
	switch {
	case more:
		body[first] = changed(body[first].(M), rest, value)
	case value == gone:
		delete(body, first)
	default:
		body[first] = value
	}
	return body
}

// gone marks a member that is left out.
const gone = "\x00"

// TestAuthPolicyPatchMerges changes one leaf at a time: all others stay.
func TestAuthPolicyPatchMerges(t *testing.T) {
	c := shared.Admin(t)
	want := policyBody()
	id := c.Post("auth-policies", want).Want(201).ID()
	for _, l := range leaves {
		c.Patch("auth-policies/"+id, nest(l.path, l.other)).Want(200)
		want = changed(want, l.path, l.other)
		resourceAt("auth-policies").compare(t, c.Get("auth-policies/"+id).Data(), want)
		c.Patch("auth-policies/"+id, nest(l.path, nil)).Want(200) // null leaves it
	}
	for _, path := range []string{"primary", "secondary", "primary.cert", "primary.updb", "primary.extJwt"} {
		c.Patch("auth-policies/"+id, nest(path, M{})).Want(200)
	}
	resourceAt("auth-policies").compare(t, c.Get("auth-policies/"+id).Data(), want)
}

// TestAuthPolicyRequiresEveryLeaf leaves out one at a time.
func TestAuthPolicyRequiresEveryLeaf(t *testing.T) {
	c := shared.Admin(t)
	id := create(t, c, "auth-policies", nil)
	paths := []string{"primary.cert", "primary.updb", "primary.extJwt", "primary.extJwt.allowedSigners"}
	for _, l := range leaves {
		paths = append(paths, l.path)
	}
	for _, path := range paths {
		for _, value := range []any{gone, nil} {
			body := changed(policyBody(), path, value)
			c.Post("auth-policies", body).Fails(400, "COULD_NOT_VALIDATE", path)
			c.Put("auth-policies/"+id, body).Fails(400, "COULD_NOT_VALIDATE", path)
		}
		c.Post("auth-policies", changed(policyBody(), path, "text")).Fails(400, "COULD_NOT_PARSE_BODY", path)
	}
}

func TestAuthPolicyRaisesShortPasswords(t *testing.T) {
	c := shared.Admin(t)
	id := c.Post("auth-policies", changed(policyBody(), "primary.updb.minPasswordLength", 1.0)).Want(201).ID()
	if got := c.Get("auth-policies/" + id).At("data.primary.updb.minPasswordLength"); got != 5.0 {
		t.Errorf("minPasswordLength is %v, want 5", got)
	}
}

// TestAuthPolicyReplaceKeepsNothing replaces all leaves at once.
func TestAuthPolicyReplaceKeepsNothing(t *testing.T) {
	c := shared.Admin(t)
	id := create(t, c, "auth-policies", nil)
	next := policyBody()
	for _, l := range leaves {
		next = changed(next, l.path, l.other)
	}
	c.Put("auth-policies/"+id, next).Want(200)
	got := c.Get("auth-policies/" + id).Data()
	if diff := cmp.Diff(next, M{"name": got["name"], "primary": got["primary"], "secondary": got["secondary"]}); diff != "" {
		t.Errorf("policy differs (-want +got):\n%s", diff)
	}
}

// TestAuthPolicyForbidsPasswords checks that a policy has an effect at once.
func TestAuthPolicyForbidsPasswords(t *testing.T) {
	c := shared.Admin(t)
	user := shared.AddUser(t, false)
	policy := create(t, c, "auth-policies", nil)
	c.Patch("identities/"+user.ID, M{"authPolicyId": policy}).Want(200)
	shared.Login(t, user.Username, user.Password)
	c.Patch("auth-policies/"+policy, M{"primary": M{"updb": M{"allowed": false}}}).Want(200)
	shared.Nobody(t).Post("authenticate?method=password", M{"username": user.Username, "password": user.Password}).
		Fails(401, "INVALID_AUTH", "")
}
