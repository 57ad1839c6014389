package api_test

import (
	"net/url"
	"testing"

	"netkeep.internal/test/servertest"
)

// TestAudit changes things and reads who did, what, and from where.
func TestAudit(t *testing.T) {
	s := servertest.Start(t)
	admin := s.Admin(t)
	self := admin.Get("current-identity").Want(200).Data()
	session := admin.Get("current-api-session").Want(200).Data()
	id := admin.Post("services", M{"name": "payroll", "encryptionRequired": true}).Want(201).ID()
	admin.Patch("services/"+id, M{"roleAttributes": []string{"staff"}}).Want(200)
	admin.Patch("services/"+id, M{"name": ""}).Want(400)
	admin.Delete("services/" + id).Want(200)
	list := func(filter string) []M {
		t.Helper()
		return admin.Get("audit-entries?filter=" + url.QueryEscape(filter)).Want(200).List()
	}
	entries := list(`targetId = "` + id + `"`)
	var events []any
	for _, e := range entries {
		events = append(events, e["event"])
		for member, want := range (M{
			"actorKind": "identity", "actorId": self["id"], "actorName": self["name"], "apiSessionId": session["id"], "factors": "password",
			"address": "127.0.0.1", "targetKind": "service", "targetName": "payroll",
		}) {
			if e[member] != want {
				t.Errorf("%s of %v is %v, want %v", member, e["event"], e[member], want)
			}
		}
	}
	if len(events) != 3 || events[0] != "created" || events[1] != "updated" || events[2] != "deleted" {
		t.Fatalf("there are %v", events)
	}
	edit := entries[1]
	if _, was := edit["before"].(M)["roleAttributes"]; was || edit["operation"] != "patchService" {
		t.Errorf("the edit is %v", edit)
	}
	if is, _ := edit["after"].(M)["roleAttributes"].([]any); len(is) != 1 || is[0] != "staff" {
		t.Errorf("the edit is %v", edit)
	}
	if got := admin.Get("audit-entries/" + edit["id"].(string)).Want(200).Data(); got["requestId"] != edit["requestId"] {
		t.Errorf("the entry alone is %v", got)
	}
	admin.Get("audit-entries/000000099999").Want(404)
	admin.Delete("audit-entries/" + edit["id"].(string)).Want(405)
	servertest.Eventually(t, 0, "the entry of the login", func() bool { return len(list(`event = "logged-in"`)) == 1 })
	last := list("sort by number desc limit 1")[0]
	verdict := admin.Get("audit-verification").Want(200).Data()
	if verdict["intact"] != true || verdict["last"] != last["number"] {
		t.Errorf("the log is %v, the last entry %v", verdict, last["number"])
	}
	part := admin.Get("audit-verification?from=2&follows=" + url.QueryEscape(list("number = 2")[0]["previous"].(string))).Want(200).Data()
	if part["intact"] != true || part["next"] != 0.0 || part["entries"] != part["last"].(float64)-1 {
		t.Errorf("of all but the first entry it says %v", part)
	}
	part = admin.Get("audit-verification?from=2&follows=another").Want(200).Data()
	if flaws := part["flaws"].([]any); part["intact"] != false || len(flaws) != 1 || flaws[0].(M)["last"] != 1.0 {
		t.Errorf("of an entry that follows another than it should it says %v", part)
	}
	admin.Get("audit-verification?from=begin").Want(400)
	if own := list(`actorKind = "program"`); len(own) == 0 {
		t.Error("of what the controller does itself there is no entry")
	}
}

// TestAttempts has people log in, try to, and enroll, and reads what the log tells of
// it: who tried what, and nothing of what they typed that may be a secret.
func TestAttempts(t *testing.T) {
	s := servertest.Start(t)
	admin, nobody := s.Admin(t), s.Nobody(t)
	user := s.AddUser(t, false)
	login := func(username, password string, status int) *servertest.Answer {
		return nobody.Post("authenticate?method=password", M{"username": username, "password": password}).Want(status)
	}
	login(user.Username, "wrong one", 401)
	login(user.Username, "wrong again", 401)
	login("my-pass-word-1", user.Password, 401)
	login(user.Username, user.Password, 200)
	stranger := s.Nobody(t)
	stranger.Token = "00000000-0000-4000-8000-000000000000"
	for range 3 {
		stranger.Get("services").Want(401)
	}
	nobody.Get("services").Want(401) // without a token
	nobody.Post("/edge/client/v1/enroll/ott?token="+stranger.Token, M{"clientCsr": "x"}).Fails(400, "INVALID_ENROLLMENT_TOKEN", "")
	router := s.AddRouter(t)
	want := map[string]M{
		`event = "login-refused" and targetId = "` + user.ID + `"`:        {"outcome": "refused", "targetName": user.Username, "reason": "password: what was shown is wrong, or may not be used"},
		`event = "login-refused" and targetId = ""`:                       {"outcome": "refused", "targetName": "", "reason": "password: nobody is known by what was shown"},
		`event = "logged-in" and targetId = "` + user.ID + `"`:            {"outcome": "done", "actorId": user.ID, "factors": "password", "operation": "authenticate"},
		`event = "token-refused"`:                                         {"outcome": "refused", "actorKind": "anonymous", "operation": "listServices"},
		`event = "enrollment-refused"`:                                    {"outcome": "refused", "operation": "enrollOtt"},
		`event = "enrolled" and targetId = "` + router.ID + `"`:           {"outcome": "done", "actorKind": "router", "actorId": router.ID},
		`event = "certificate-issued" and targetId = "` + router.ID + `"`: {"outcome": "done", "targetName": router.Name},
	}
	for filter, members := range want {
		var entries []M
		servertest.Eventually(t, 0, filter, func() bool {
			entries = admin.Get("audit-entries?filter=" + url.QueryEscape(filter)).Want(200).List()
			return len(entries) > 0
		})
		for member, value := range members {
			if got := entries[0][member]; got != value {
				t.Errorf("%s: %s is %v, want %v", filter, member, got, value)
			}
		}
		if at := entries[0]["address"]; at != "127.0.0.1" || entries[0]["firstAt"] == nil {
			t.Errorf("%s: it is %v", filter, entries[0])
		}
	}
}
