package api_test

import (
	"fmt"
	"net/url"
	"strings"
	"testing"

	"netkeep.internal/test/servertest"
)

// undoOf is what takes back the last change of a record.
func undoOf(t *testing.T, c *servertest.Client, event, id string) M {
	t.Helper()
	entries := c.Get("audit-entries?filter=" + url.QueryEscape(`event = "`+event+`" and targetId = "`+id+`" sort by number desc limit 1`)).Want(200).List()
	if len(entries) == 0 {
		t.Fatalf("there is no entry that says %s of %s", event, id)
	}
	return c.Get("audit-entries/" + entries[0]["id"].(string) + "/undo").Want(200).Data()
}

// conflicts are those of an answer, in one text.
func conflicts(undo M) string {
	var all []string
	for _, c := range undo["conflicts"].([]any) {
		all = append(all, strings.TrimSpace(fmt.Sprint(c.(M)["field"], " ", c.(M)["what"])))
	}
	return strings.Join(all, "; ")
}

// TestUndo takes changes back, as far as nothing is in the way.
func TestUndo(t *testing.T) {
	s := servertest.Start(t)
	c := s.Admin(t)
	apply := func(undo M) {
		t.Helper()
		if n := conflicts(undo); n != "" {
			t.Fatalf("in the way: %s", n)
		}
		c.Post("changes", M{"changes": undo["changes"]}).Want(200)
	}
	id := c.Post("services", M{"name": "payroll", "encryptionRequired": true, "roleAttributes": []string{"a"}}).Want(201).ID()
	c.Patch("services/"+id, M{"name": "wages", "roleAttributes": []string{"a", "b"}, "maxIdleTimeMillis": 5}).Want(200)
	edit := undoOf(t, c, "updated", id)
	c.Patch("services/"+id, M{"tags": M{"x": "y"}}).Want(200)
	if got := conflicts(undoOf(t, c, "created", id)); !strings.Contains(got, "name was changed since") || !strings.Contains(got, "tags was changed since") {
		t.Errorf("in the way of its creation: %s", got)
	}
	apply(edit)
	service := c.Get("services/" + id).Want(200).Data()
	if service["name"] != "payroll" || fmt.Sprint(service["roleAttributes"]) != "[a]" || service["maxIdleTimeMillis"] != 0.0 || fmt.Sprint(service["tags"]) != "map[x:y]" {
		t.Errorf("the service is %v", service)
	}
	c.Patch("services/"+id, M{"name": "salaries"}).Want(200)
	c.Patch("services/"+id, M{"name": "money"}).Want(200)
	entries := c.Get("audit-entries?filter=" + url.QueryEscape(`event = "updated" and targetId = "`+id+`" sort by number desc limit 2`)).Want(200).List()
	if got := conflicts(c.Get("audit-entries/" + entries[1]["id"].(string) + "/undo").Want(200).Data()); got != "name was changed since" {
		t.Errorf("in the way of an edit: %s", got)
	}
	c.Delete("services/" + id).Want(200)
	if got := conflicts(undoOf(t, c, "updated", id)); got != "is gone" {
		t.Errorf("in the way when it is gone: %s", got)
	}
	other := c.Post("services", M{"name": "money", "encryptionRequired": true}).Want(201).ID()
	if got := conflicts(undoOf(t, c, "deleted", id)); got != "name is taken by another" {
		t.Errorf("in the way of a name: %s", got)
	}
	apply(undoOf(t, c, "created", other))
	c.Get("services/" + other).Want(404)
	apply(undoOf(t, c, "deleted", id))
	again := c.Get("services?filter=" + url.QueryEscape(`name = "money"`)).Want(200).List()
	if len(again) != 1 || again[0]["encryptionRequired"] != true || fmt.Sprint(again[0]["roleAttributes"]) != "[a]" {
		t.Errorf("it came back as %v", again)
	}
}

// TestUndoWithheld takes back what entries do not tell all of.
func TestUndoWithheld(t *testing.T) {
	s := servertest.Start(t)
	c := s.Admin(t)
	id := c.Post("identities", M{"name": "ann", "type": "User", "isAdmin": false, "enrollment": M{"ott": true}}).Want(201).ID()
	entries := c.Get("audit-entries?filter=" + url.QueryEscape(`targetKind = "enrollment" sort by number desc limit 1`)).Want(200).List()
	if got := conflicts(c.Get("audit-entries/" + entries[0]["id"].(string) + "/undo").Want(200).Data()); !strings.Contains(got, "kind") {
		t.Errorf("in the way of an enrollment: %s", got)
	}
	c.Delete("identities/" + id).Want(200)
	undo := undoOf(t, c, "deleted", id)
	c.Post("changes?plan=true", M{"changes": undo["changes"]}).Want(200)
	if len(undo["notes"].([]any)) == 0 {
		t.Error("there is nothing to note")
	}
	c.Get("audit-entries/000000099999/undo").Want(404)
	c.Get("audit-entries/x/undo").Want(404)
}
