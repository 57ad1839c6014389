package etcdstore

import (
	"context"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"netkeep.internal/internal/data/store"
	"netkeep.internal/internal/data/store/storetest"
)

func TestClaims(t *testing.T) {
	m := startTest(t, testLogger(t), listening)
	t.Run("alone", func(t *testing.T) { storetest.Claims(t, m.handle("alone", func() error { return nil }).Claims()) })
	s, err := Dial(t.Context(), Options{Endpoints: []string{m.address()}, Prefix: "net", Logger: testLogger(t)})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	t.Run("shared", func(t *testing.T) { storetest.Claims(t, s.Claims()) })
	if all, err := s.client.Get(t.Context(), s.keys.records, clientv3.WithPrefix()); err != nil || len(all.Kvs) != 0 {
		t.Errorf("claims left %d records: %v", len(all.Kvs), err)
	}
}

// counted counts renewals that the store has answered.
type counted struct {
	clientv3.Lease
	renewed chan clientv3.LeaseID
}

func (c counted) KeepAliveOnce(ctx context.Context, id clientv3.LeaseID) (*clientv3.LeaseKeepAliveResponse, error) {
	resp, err := c.Lease.KeepAliveOnce(ctx, id)
	if err == nil {
		c.renewed <- id
	}
	return resp, err
}

// TestLeaseRuns has one who renews and one whose lease the store has forgotten,
// as it does with those of whom it hears nothing.
func TestLeaseRuns(t *testing.T) {
	m := startTest(t, testLogger(t), listening)
	s, err := Dial(t.Context(), Options{Endpoints: []string{m.address()}, Logger: testLogger(t)})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	count := counted{s.client.Lease, make(chan clientv3.LeaseID, 100)}
	s.client.Lease = count
	const life = 4 * time.Second
	var leases [2]store.Lease
	for i := range leases {
		if leases[i], err = s.Claims().Lease(t.Context(), life); err != nil {
			t.Fatal(err)
		}
	}
	kept, dropped := leases[0].(*lease), leases[1].(*lease)
	if _, err := s.client.Revoke(t.Context(), dropped.id); err != nil {
		t.Fatal(err)
	}
	late := time.After(30 * time.Second)
	select {
	case <-dropped.Lost():
	case <-late:
		t.Fatal("nobody noticed that a lease was gone")
	}
	if err := dropped.Close(); err != nil {
		t.Errorf("a lease that is gone cannot be given back: %v", err)
	}
	for renewed := 0; renewed < 2; {
		select {
		case id := <-count.renewed:
			if id == kept.id {
				renewed++
			}
		case <-late:
			t.Fatal("a lease was not renewed")
		}
	}
	if err := kept.Close(); err != nil {
		t.Error(err)
	}
}

// unheard is a store that no renewal reaches.
type unheard struct{ clientv3.Lease }

func (unheard) KeepAliveOnce(ctx context.Context, _ clientv3.LeaseID) (*clientv3.LeaseKeepAliveResponse, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

// TestLeaseCutOff loses the store: the lease is over here before it is there.
func TestLeaseCutOff(t *testing.T) {
	m := startTest(t, testLogger(t), listening)
	s, err := Dial(t.Context(), Options{Endpoints: []string{m.address()}, Logger: testLogger(t)})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	s.client.Lease = unheard{s.client.Lease}
	l, err := s.Claims().Lease(t.Context(), 5*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	select {
	case <-l.Lost():
	case <-time.After(30 * time.Second):
		t.Fatal("a lease went on without its store")
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
}

// vanishing is a store in which a claim goes after every look at it, a few times.
type vanishing struct {
	clientv3.KV
	key   string
	times int
}

func (v *vanishing) Txn(ctx context.Context) clientv3.Txn {
	if v.times--; v.times == 0 {
		_, _ = v.KV.Delete(ctx, v.key)
	}
	return v.KV.Txn(ctx)
}

// TestClaimGoes has a claim go between a look at it and the attempt to replace it.
func TestClaimGoes(t *testing.T) {
	m := startTest(t, testLogger(t), listening)
	s, err := Dial(t.Context(), Options{Endpoints: []string{m.address()}, Logger: testLogger(t)})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	var leases [2]store.Lease
	for i := range leases {
		if leases[i], err = s.Claims().Lease(t.Context(), 30*time.Second); err != nil {
			t.Fatal(err)
		}
		defer leases[i].Close()
	}
	first, err := leases[0].Claim(t.Context(), "id/a", []byte("first"), 0)
	if err != nil {
		t.Fatal(err)
	}
	s.client.KV = &vanishing{s.client.KV, s.keys.claims + "id/a", 2}
	if _, err := leases[1].Claim(t.Context(), "id/a", []byte("second"), first.Rev); err != nil {
		t.Error(err)
	}
}
