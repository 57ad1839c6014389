package upgrade_test

import (
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"netkeep.internal/internal/data/format"
	"netkeep.internal/internal/data/store"
	"netkeep.internal/internal/data/store/etcdstore"
	"netkeep.internal/internal/ops/audit"
	"netkeep.internal/internal/ops/config"
	"netkeep.internal/test/machine"
	"netkeep.internal/test/servertest"
	"netkeep.internal/test/upgrade/fixture"
)

// TestHeldFormat starts this version where another controller knows no newer format
// than the one before. The store keeps that, with a record that says where the audit
// log ends, until the other was upgraded too: it moves while this one serves, commits
// say it from then on, and the log is one.
func TestHeldFormat(t *testing.T) {
	dir := t.TempDir()
	data := filepath.Join(dir, "data")
	fixture.Restore(t, fixture.Fifth, data)
	other := func(st store.Store, knows int) {
		t.Helper()
		const id = "netkeep-0123456789ab"
		value := fmt.Appendf(nil, `{"id":%q,"name":"other","version":"v0.1.0","format":%d}`, id, knows)
		head := store.Head{Writes: []store.Write{{Author: store.Author{Kind: store.Program, Name: "test"}, Ops: 1}}}
		if _, err := st.Put(t.Context(), head, []store.Op{{Key: "controller/" + id, Value: value, Prev: store.Any}}); err != nil {
			t.Fatal(err)
		}
	}
	before, err := etcdstore.Open(t.Context(), etcdstore.Options{Dir: filepath.Join(data, "store")})
	if err != nil {
		t.Fatal(err)
	}
	other(before, format.Ends-1)
	if err := before.Close(); err != nil {
		t.Fatal(err)
	}
	s, err := servertest.Open(dir, func(c *config.Config) { c.Cluster.Listen = "127.0.0.1:" + machine.Port(t) })
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	admin := s.Login(t, "admin", fixture.Read(t, fixture.Fifth).Password)
	create := func(name string) (end, record string) {
		t.Helper()
		admin.Post("services", M{"name": name, "encryptionRequired": true}).Want(http.StatusCreated)
		mark, err := s.Store().Load(t.Context(), func(rec store.Record) error {
			if rec.Key == "audit-chain/audit" {
				record = string(rec.Value)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		return mark.End, record
	}
	if end, record := create("before"); end != "" || !strings.Contains(record, `"last":`) || strings.Contains(record, `"told"`) {
		t.Errorf("commits say %q, and the record %s", end, record)
	}
	refuseTimes(t, admin)
	other(s.Store(), format.Current)
	n := 0
	servertest.Eventually(t, time.Minute, "commits that say where the log ends", func() bool {
		n++
		end, record := create(fmt.Sprint("after ", n))
		return end != "" && strings.Contains(record, `"told":true`)
	})
	servertest.Eventually(t, time.Minute, "a policy with an end", func() bool {
		n++
		return admin.Post("service-policies", ending(fmt.Sprint("policy ", n))).Status == http.StatusCreated
	})
	verdict, err := (&audit.Log{State: s.State()}).Verify(t.Context())
	if err != nil || len(verdict.Flaws) > 0 || verdict.First != 1 || verdict.Found != verdict.Last {
		t.Errorf("%+v, %v", verdict, err)
	}
}

// ending is a policy that ends by itself.
func ending(name string) M {
	return M{"name": name, "type": "Dial", "semantic": "AnyOf", "identityRoles": []any{"#all"}, "serviceRoles": []any{"#all"}, "validUntil": "2999-12-31T23:59:59Z"}
}

// refuseTimes has nobody give anything an end while there are controllers that would not
// know of it, nor have one that was there get one.
func refuseTimes(t *testing.T, admin *servertest.Client) {
	t.Helper()
	admin.Post("service-policies", ending("for a time")).Fails(http.StatusConflict, "CLUSTER_REFUSED", "")
	ever := ending("for ever")
	delete(ever, "validUntil")
	id := admin.Post("service-policies", ever).Want(http.StatusCreated).ID()
	admin.Patch("service-policies/"+id, M{"validFrom": "2999-12-31T23:59:59Z"}).Fails(http.StatusConflict, "CLUSTER_REFUSED", "")
	who := admin.Get("current-identity").Want(http.StatusOK).ID()
	admin.Post("grants", M{"identityId": who, "attribute": "finance", "reason": "quarter end", "validUntil": "2999-12-31T23:59:59Z"}).Fails(http.StatusConflict, "CLUSTER_REFUSED", "")
	admin.Delete("service-policies/" + id).Want(http.StatusOK)
}
