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
	last := list("sort by number desc limit 1")[0]
	verdict := admin.Get("audit-verification").Want(200).Data()
	if verdict["intact"] != true || verdict["last"] != last["number"] {
		t.Errorf("the log is %v, the last entry %v", verdict, last["number"])
	}
	if own := list(`actorKind = "program"`); len(own) == 0 {
		t.Error("of what the controller does itself there is no entry")
	}
}
