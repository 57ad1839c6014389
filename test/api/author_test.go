package api_test

import (
	"errors"
	"testing"

	"netkeep.internal/internal/data/store"
	"netkeep.internal/test/servertest"
)

// writesOf returns what a request writes to the log, as every controller that
// follows it sees it. What the controller writes by itself meanwhile is left out.
func writesOf(t *testing.T, s *servertest.Server, request func()) (writes []store.Write) {
	t.Helper()
	from := s.State().Snapshot().Rev
	request()
	until := s.State().Snapshot().Rev
	enough := errors.New("enough")
	err := s.Store().Follow(t.Context(), from, func(b store.Batch) error {
		for _, w := range b.Head.Writes {
			if w.Author.Kind != store.Program {
				writes = append(writes, w)
			}
		}
		if b.Rev >= until {
			return enough
		}
		return nil
	})
	if !errors.Is(err, enough) {
		t.Fatal(err)
	}
	return writes
}

// TestAuthors reads from the log who wrote what: somebody by name, by which
// operation, and from where. A change has its entry in the same write.
func TestAuthors(t *testing.T) {
	s := servertest.Start(t)
	admin, user := s.Admin(t), s.AddUser(t, false)
	self := admin.Get("current-identity").Want(200).Data()
	by := store.Author{Kind: "identity", ID: self["id"].(string), Name: self["name"].(string), Source: "127.0.0.1", Factors: "password"}
	by.Session = admin.Get("current-api-session").Want(200).Data()["id"].(string)
	own := store.Author{Kind: "identity", ID: user.ID, Name: user.Username, Source: "127.0.0.1"}
	var id string
	requests := map[string]bool{}
	for _, test := range []struct {
		operation string
		by        store.Author
		ops       int
		do        func()
	}{
		{"createService", by, 2, func() { id = admin.Post("services", M{"name": "x", "encryptionRequired": true}).Want(201).ID() }},
		{"patchService", by, 2, func() { admin.Patch("services/"+id, M{"name": "y"}).Want(200) }},
		{"deleteService", by, 2, func() { admin.Delete("services/" + id).Want(200) }},
		{"authenticate", own, 2, func() { // the session, and that somebody was here
			s.Nobody(t).Post(login, M{"username": user.Username, "password": user.Password}).Want(200)
		}},
		{"disableIdentity", by, 2, func() { admin.Post("identities/"+user.ID+"/disable", M{"durationMinutes": 1}).Want(200) }},
	} {
		writes := writesOf(t, s, test.do)
		if len(writes) == 0 {
			t.Fatalf("%s wrote nothing", test.operation)
		}
		request := writes[0].Author.Request
		if request == "" || requests[request] {
			t.Errorf("%s is by request %q, want one of its own", test.operation, request)
		}
		requests[request] = true
		want := test.by
		want.Operation, want.Request = test.operation, request
		if writes[0].Author != want || writes[0].Ops != test.ops {
			t.Errorf("%s is written as %+v, want %d ops by %+v", test.operation, writes[0], test.ops, want)
		}
	}
}
