package api_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"netkeep.internal/test/servertest"
)

// told is the next change that a stream tells of a record of this test.
func told(t *testing.T, s *servertest.Stream, verb, kind, id string) servertest.Event {
	t.Helper()
	e := s.Next()
	if e.Name != "change" || e.Data["verb"] != verb || e.Data["kind"] != kind || e.Data["id"] != id {
		t.Fatalf("told %s %v %v %v, want %s %s %s", e.Name, e.Data["verb"], e.Data["kind"], e.Data["id"], verb, kind, id)
	}
	return e
}

// TestEvents follows what an admin does, from within and without, and goes on where it
// was.
func TestEvents(t *testing.T) {
	s := servertest.Start(t) // where nobody else changes anything
	admin := s.Admin(t)
	stream := admin.Stream("events")
	ready := stream.Next()
	if ready.Name != "ready" || ready.ID == "" || ready.Data["revision"] == nil {
		t.Fatalf("the stream begins with %+v", ready)
	}
	id := admin.Post("services", M{"name": "wiki", "encryptionRequired": true, "roleAttributes": []string{"all"}}).Want(201).ID()
	e := told(t, stream, "created", "service", id)
	author, _ := e.Data["author"].(M)
	if e.Data["name"] != "wiki" || author["operation"] != "createService" || author["kind"] != "identity" || author["source"] != "127.0.0.1" || e.Data["before"] != nil {
		t.Errorf("told %v", e.Data)
	}
	admin.Patch("services/"+id, M{"name": "wiki2"}).Want(200)
	updated := told(t, stream, "updated", "service", id)
	before, after := updated.Data["before"].(M), updated.Data["after"].(M)
	shown := admin.Get("services/" + id).Want(200).Data()
	if before["name"] != "wiki" || after["name"] != "wiki2" {
		t.Errorf("from %v to %v", before["name"], after["name"])
	}
	for name, value := range after {
		if diff := cmp.Diff(shown[name], value); diff != "" {
			t.Errorf("%s is told in another way than it is shown (-shown +told):\n%s", name, diff)
		}
	}
	admin.Delete("services/" + id).Want(200)
	gone := told(t, stream, "deleted", "service", id)
	if gone.Data["after"] != nil {
		t.Errorf("a deleted service is %v", gone.Data["after"])
	}

	// Who comes back is told what it has not got, each once.
	for from, want := range map[string][]string{ready.ID: {"created", "updated", "deleted"}, e.ID: {"updated", "deleted"}, updated.ID: {"deleted"}} {
		again := admin.With("Last-Event-ID", from).Stream("events?kinds=services")
		for _, verb := range want {
			told(t, again, verb, "service", id)
		}
		again.Close()
	}
}

// TestEventsOfOneWrite goes on in the middle of changes that were made as one.
func TestEventsOfOneWrite(t *testing.T) {
	s := servertest.Start(t)
	admin := s.Admin(t)
	ready := admin.Stream("events").Next().ID
	admin.Post("identities", M{"name": "ann", "type": "User", "isAdmin": false, "enrollment": M{"ott": true}}).Want(201)
	stream := admin.With("Last-Event-ID", ready).Stream("events")
	first, second := stream.Next(), stream.Next()
	kinds := []any{first.Data["kind"], second.Data["kind"]}
	if first.Data["revision"] != second.Data["revision"] || first.ID == second.ID || kinds[0] == kinds[1] {
		t.Fatalf("one write is told as %s %v and %s %v", first.ID, first.Data, second.ID, second.Data)
	}
	// What lets somebody in is not told.
	for _, e := range []servertest.Event{first, second} {
		record, _ := e.Data["after"].(M)
		if e.Data["kind"] == "enrollment" && (record["token"] != nil || record["jwt"] != nil) {
			t.Errorf("the token of an enrollment is told: %v", record)
		}
	}
	again := admin.With("Last-Event-ID", first.ID).Stream("events")
	if e := again.Next(); e.ID != second.ID {
		t.Errorf("after %s comes %s, want %s", first.ID, e.ID, second.ID)
	}
}

// TestEventsAreChosen narrows a stream, and refuses what can match nothing.
func TestEventsAreChosen(t *testing.T) {
	s := servertest.Start(t)
	admin := s.Admin(t)
	services := admin.Stream("events?kinds=services,service-policy")
	named := admin.Stream("events?filter=name+contains+%22wanted%22+and+verb+%3D+%22created%22")
	ready := services.Next()
	named.Next()
	admin.Post("config-types", M{"name": "unwanted", "schema": M{"type": "object"}}).Want(201)
	other := admin.Post("services", M{"name": "another", "encryptionRequired": true}).Want(201).ID()
	told(t, services, "created", "service", other)
	id := admin.Post("services", M{"name": "wanted", "encryptionRequired": true}).Want(201).ID()
	told(t, services, "created", "service", id)
	if e := named.Next(); e.Data["name"] != "unwanted" {
		t.Errorf("told %v", e.Data)
	}
	told(t, named, "created", "service", id)

	admin.Get("events?kinds=servces").Fails(400, "COULD_NOT_VALIDATE", "kinds")
	admin.Get("events?filter=colour+%3D+%22red%22").Fails(400, "INVALID_FILTER", "")
	admin.Get("events?filter=true+limit+3").Fails(400, "COULD_NOT_VALIDATE", "filter")
	admin.With("Last-Event-ID", "yesterday").Get("events").Fails(400, "COULD_NOT_VALIDATE", "Last-Event-ID")
	for id, says := range map[string]string{
		"0123456789abcdef-7": "another network", strings.SplitAfter(ready.ID, "-")[0] + "1": "not known here any more",
	} {
		e := admin.With("Last-Event-ID", id).Stream("events").Next()
		if said, _ := e.Data["message"].(string); e.Name != "reset" || !strings.Contains(said, says) || e.ID == id {
			t.Errorf("%s: %+v", id, e)
		}
	}
	user := s.AddUser(t, false)
	s.Login(t, user.Username, user.Password).Get("events").Fails(401, "UNAUTHORIZED", "")
}

// TestAuditEvents follows the audit log: changes are in it, and attempts that are none,
// in the order of their numbers, and who comes back is told each once.
func TestAuditEvents(t *testing.T) {
	s := servertest.Start(t)
	admin := s.Admin(t)
	servertest.Eventually(t, 0, "the entry of the login", func() bool {
		return admin.Get("audit-entries?filter=event+%3D+%22logged-in%22").Want(200).Total() == 1
	})
	stream := admin.Stream("events?kinds=audit-entries,services")
	refused := admin.Stream("events?kinds=audit-entries&filter=verb+%3D+%22login-refused%22")
	ready := stream.Next()
	refused.Next()
	id := admin.Post("services", M{"name": "wiki", "encryptionRequired": true}).Want(201).ID()
	change := told(t, stream, "created", "service", id)
	s.Nobody(t).Post("authenticate?method=password", M{"username": servertest.Username, "password": "wrong one"}).Want(401)
	entry := stream.Next()
	if entry.Name != "audit" || entry.Data["event"] != "created" || entry.Data["targetId"] != id || entry.Data["after"].(M)["name"] != "wiki" {
		t.Errorf("told %+v", entry)
	}
	for _, stream := range []*servertest.Stream{stream, refused} {
		if e := stream.Next(); e.Name != "audit" || e.Data["event"] != "login-refused" || e.Data["number"].(float64) != entry.Data["number"].(float64)+1 || e.Data["address"] != "127.0.0.1" {
			t.Errorf("told %+v", e)
		}
	}
	for from, want := range map[string][]string{ready.ID: {"change", "audit", "audit"}, change.ID: {"audit", "audit"}, entry.ID: {"audit"}} {
		again := admin.With("Last-Event-ID", from).Stream("events?kinds=audit-entries,services")
		for _, name := range want {
			if e := again.Next(); e.Name != name {
				t.Errorf("after %s comes %+v, want %s", from, e, name)
			}
		}
		again.Close()
	}
}

// TestEventsEndWithTheRight takes an admin's right while it looks.
func TestEventsEndWithTheRight(t *testing.T) {
	user := shared.AddUser(t, true)
	stream := shared.Login(t, user.Username, user.Password).Stream("events?kinds=identities")
	stream.Next()
	shared.Admin(t).Patch("identities/"+user.ID, M{"isAdmin": false}).Want(200)
	stream.Ends("UNAUTHORIZED")
}
