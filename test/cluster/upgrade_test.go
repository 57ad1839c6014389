package cluster_test

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"testing"

	"netkeep.internal/internal/data/format"
	"netkeep.internal/internal/data/store"
	"netkeep.internal/internal/data/store/etcdstore"
	"netkeep.internal/internal/ops/config"
	"netkeep.internal/test/etcdtest"
	"netkeep.internal/test/servertest"
)

// put writes a record as another version would.
func put(t *testing.T, st store.Store, key, value string) {
	t.Helper()
	by := store.Author{Kind: store.Program, Name: "test"}
	head := store.Head{Writes: []store.Write{{Author: by, Ops: 1}}}
	if _, err := st.Put(t.Context(), head, []store.Op{{Key: key, Value: []byte(value), Prev: store.Any}}); err != nil {
		t.Fatal(err)
	}
}

// openStore is the store that controllers have at an etcd server, as they have it.
func openStore(t *testing.T, etcd *etcdtest.Server) *etcdstore.Store {
	t.Helper()
	var c config.Config
	etcd.Settings(&c)
	pair, err := tls.LoadX509KeyPair(etcd.Cert, etcd.Key)
	if err != nil {
		t.Fatal(err)
	}
	ca, err := os.ReadFile(etcd.CA)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(ca)
	st, err := etcdstore.Dial(t.Context(), etcdstore.Options{
		Endpoints: c.Store.Endpoints, Username: c.Store.Username, Password: c.Store.Password, Prefix: c.Store.Prefix,
		TLS: &tls.Config{RootCAs: roots, Certificates: []tls.Certificate{pair}}, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = st.Close() })
	return st
}

// TestUpgradeBesideOld starts this version on a store of a format that it has to
// rewrite, while a controller of an older version is there: it is refused and
// nothing is changed. When the other is gone the store is brought to its format.
func TestUpgradeBesideOld(t *testing.T) {
	beside(t)
	etcd := etcdtest.Start(t)
	use := func(c *config.Config) { etcd.Settings(c) }
	dir := t.TempDir()
	a, err := servertest.Open(dir, use)
	if err != nil {
		t.Fatal(err)
	}
	older := fmt.Sprintf(`{"format":%d,"release":"v0.1.0"}`, format.Oldest-1)
	const id = "netkeep-0123456789ab"
	put(t, a.Store(), "controller/"+id, `{"id":"`+id+`","name":"older","version":"v0.0.9"}`)
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	shared := openStore(t, etcd)
	lease, err := shared.Claims().Lease(t.Context(), patience)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := lease.Claim(t.Context(), "id/"+id, []byte(`{"by":"`+id+`","address":"127.0.0.1:1"}`), 0); err != nil {
		t.Fatal(err)
	}
	put(t, shared, format.Key, older)
	refusedStart(t, dir, use, id+" (v0.0.9)", "would stop", "a version between theirs and this one")
	if rec, _, err := shared.Get(t.Context(), format.Key); err != nil || string(rec.Value) != older {
		t.Errorf("the store says %s: %v", rec.Value, err)
	}
	if err := lease.Close(); err != nil {
		t.Fatal(err)
	}
	s, err := servertest.Open(dir, use)
	if err != nil {
		t.Fatal(err)
	}
	closing(t, s)
	if rec, _, err := shared.Get(t.Context(), format.Key); err != nil || !strings.Contains(string(rec.Value), fmt.Sprintf(`"format":%d`, format.Current)) {
		t.Errorf("the store says %s: %v", rec.Value, err)
	}
}
