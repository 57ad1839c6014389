package auth_test

import (
	"testing"
	"time"

	"netkeep.internal/test/servertest"
)

// TestUsernamesThatDeceive refuses user names that look like others, or like
// nothing, wherever one is given.
func TestUsernamesThatDeceive(t *testing.T) {
	admin := shared.Admin(t)
	id := add(t, nil)
	username, a := addPassword(t, add(t, nil), "a long password")
	own := enter(t, add(t, nil))
	_, mine := addPassword(t, own.Get(session).At("data.identityId").(string), "a long password")
	soon := time.Now().Add(time.Hour).UTC().Format(time.RFC3339)
	for what, bad := range map[string]string{
		"NUL": username + "\x00", "line break": username + "\n", "zero-width space": username + "\u200b", "byte order mark": "\ufeff" + username,
		"right to left": "\u202e" + username, "soft hyphen": "us\u00ader-name", "Hangul filler": username + "\u3164",
		"Braille blank": username + "\u2800", "variation selector": username + "\ufe0f", "delete": username + "\x7f",
		"blank at the end": username + " ", "blank at the beginning": " " + username, "blanks alone": "     ",
		"blank that does not break": "user\u00a0name", "separator of lines": "user\u2028name",
	} {
		t.Run(what, func(t *testing.T) {
			fails := func(a *servertest.Answer, field string) {
				t.Helper()
				a.Fails(400, "COULD_NOT_VALIDATE", field)
			}
			fails(admin.For(t).Post("authenticators", M{"identityId": id, "method": "updb", "username": bad, "password": "a long password"}), "username")
			fails(admin.For(t).Patch("authenticators/"+a, M{"username": bad}), "username")
			fails(own.For(t).Patch("/edge/client/v1/current-identity/authenticators/"+mine, M{"username": bad, "currentPassword": "a long password"}), "username")
			fails(admin.For(t).Post("enrollments", M{"identityId": id, "method": "updb", "username": bad, "expiresAt": soon}), "username")
			fails(admin.For(t).Post("identities", M{
				"name": servertest.Unique("who"), "type": "User", "isAdmin": false, "enrollment": M{"updb": bad},
			}), "enrollment.updb")
			shared.Nobody(t).Post(byPassword, M{"username": bad, "password": "a long password"}).Fails(401, "INVALID_AUTH", "")
		})
	}
	for _, good := range []string{"anna maria", "o'neill-x", "zo\u00eb.m", "\u5f20\u4e09\u674e\u56db", "user@example.org", "\u0645\u062d\u0645\u062f"} {
		admin.Patch("authenticators/"+a, M{"username": good}).Want(200)
	}
	admin.Delete("authenticators/" + a).Want(200) // names are there once, and this has some that are not its own
}
