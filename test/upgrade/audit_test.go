package upgrade_test

import (
	"net/http"
	"strings"
	"testing"

	"netkeep.internal/internal/data/store"
	"netkeep.internal/internal/model"
	"netkeep.internal/internal/ops/audit"
	"netkeep.internal/test/upgrade/fixture"
)

// TestAuditGoesOn finds the audit log of an older version whole and goes on with it.
// Where it ends is what commits say from then on, and no longer a record that each of
// them writes.
func TestAuditGoesOn(t *testing.T) {
	s := serve(t, fixture.Fifth)
	log := &audit.Log{State: s.State()}
	old := 0
	for e, err := range log.Back(t.Context(), audit.Head(s.State().Snapshot()).Last, 1) {
		if err != nil {
			t.Fatal(err)
		}
		if e.Operation == "createService" && e.Event == model.AuditCreated {
			old++
		}
	}
	if old == 0 {
		t.Error("nothing is left of what the older version wrote")
	}
	admin := s.Login(t, "admin", fixture.Read(t, fixture.Fifth).Password)
	record := func() store.Record {
		t.Helper()
		rec, _, err := s.Store().Get(t.Context(), "audit-chain/audit")
		if err != nil {
			t.Fatal(err)
		}
		return rec
	}
	create := func(name string) (store.Mark, store.Record) {
		t.Helper()
		admin.Post("services", M{"name": name, "encryptionRequired": true}).Want(http.StatusCreated)
		mark, err := s.Store().Load(t.Context(), func(store.Record) error { return nil })
		if err != nil {
			t.Fatal(err)
		}
		return mark, record()
	}
	first, was := create("after the upgrade")
	second, is := create("and once more")
	if first.End == "" || first.End == second.End || was.Rev != is.Rev || !strings.Contains(string(is.Value), `"told":true`) {
		t.Errorf("commits say %q and %q, and the record %s at %d and %s at %d", first.End, second.End, was.Value, was.Rev, is.Value, is.Rev)
	}
	verdict, err := log.Verify(t.Context())
	if err != nil || len(verdict.Flaws) > 0 || verdict.First != 1 || verdict.Found != verdict.Last {
		t.Errorf("%+v, %v", verdict, err)
	}
}
