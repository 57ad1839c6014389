package etcdstore

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"go.etcd.io/etcd/server/v3/embed"
	"go.uber.org/goleak"

	"netkeep.internal/internal/data/store"
	"netkeep.internal/internal/data/store/storetest"
	"netkeep.internal/test/certtest"
	"netkeep.internal/test/machine"
)

// team is the authority of a cluster.
type team struct {
	dir string
	ca  certtest.Pair
}

func newTeam(t testing.TB) *team {
	t.Helper()
	a := &team{dir: t.TempDir()}
	a.ca = a.issue(t, "ca", nil)
	return a
}

func (a *team) file(name string) string { return filepath.Join(a.dir, name) }

// issue makes a certificate with its key, signed by the authority or by itself.
func (a *team) issue(t testing.TB, name string, ca *team) certtest.Pair {
	t.Helper()
	var by *certtest.Pair
	if ca != nil {
		by = &ca.ca
	}
	pair := certtest.New(t, by, func(c *x509.Certificate) {
		c.Subject, c.IsCA, c.IPAddresses = pkix.Name{CommonName: name}, ca == nil, []net.IP{net.IPv4(127, 0, 0, 1)}
		c.KeyUsage = x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign
		c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth}
	})
	pair.Write(t, a.file(name+".crt"), a.file(name+".key"))
	return pair
}

// peers are those of a member at an address that is free at present.
func (a *team) peers(t testing.TB, name string) *Peers {
	t.Helper()
	a.issue(t, name, a)
	at := net.JoinHostPort("127.0.0.1", machine.Port(t))
	return &Peers{Name: name, Listen: at, Advertise: at, CA: a.file("ca.crt"), Cert: a.file(name + ".crt"), Key: a.file(name + ".key")}
}

func quick(c *embed.Config) { c.UnsafeNoFsync = true }

func startPeer(t testing.TB, dir string, p *Peers) *member {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	m, err := startMember(ctx, Options{Dir: dir, Peers: p, Logger: silent}, quick)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if !m.log.closing.Load() {
			_ = m.close()
		}
	})
	return m
}

// own is a handle on a member that leaves it running.
func own(m *member) *Store { return m.handle("", func() error { return nil }) }

// until tries again what fails only for now.
func until(t testing.TB, doing string, try func() error) {
	t.Helper()
	end := time.Now().Add(time.Minute)
	for {
		err := try()
		if err == nil {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("%s: %v", doing, err)
		}
		<-time.After(50 * time.Millisecond)
	}
}

// joinAs adds a member by another, and gives it a vote.
func joinAs(t testing.TB, a *team, name string, by *member) (*member, *Peers) {
	t.Helper()
	p, s := a.peers(t, name), own(by)
	defer s.Close()
	until(t, "add "+name, func() error { _, err := s.AddLearner(t.Context(), p.Advertise); return err })
	p.Join = []string{PeerURL(by.etcd.Config().AdvertisePeerUrls[0].Host)}
	m := startPeer(t, filepath.Join(t.TempDir(), name), p)
	promoted := own(m)
	defer promoted.Close()
	until(t, "promote "+name, func() error { return promoted.Promote(t.Context(), uint64(m.etcd.Server.MemberID())) })
	return m, p
}

// three starts a cluster: the first member was alone before, the others join.
func three(t testing.TB, a *team) []*member {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "one")
	alone, err := startMember(t.Context(), Options{Dir: dir, Logger: silent}, quick)
	if err != nil {
		t.Fatal(err)
	}
	if err := alone.close(); err != nil {
		t.Fatal(err)
	}
	one := startPeer(t, dir, a.peers(t, "one"))
	two, _ := joinAs(t, a, "two", one)
	last, _ := joinAs(t, a, "three", two)
	return []*member{one, two, last}
}

// TestThreeMembers makes one cluster of them, which takes a while, and does with
// it one thing after the other.
func TestThreeMembers(t *testing.T) {
	a := newTeam(t)
	all := three(t, a)
	t.Run("contract", func(t *testing.T) { contractOf(t, all) })
	var back func(t testing.TB) // which the others need too
	t.Run("leader gone", func(t *testing.T) { back = leaderGone(t, a, all) })
	back(t)
	t.Run("fence", func(t *testing.T) { fenceMoved(t, all) })
	t.Run("remove one", func(t *testing.T) { removeOne(t, a, all) })
	t.Run("one alone", func(t *testing.T) { oneAlone(t, all[:2]) })
}

// contractOf has every handle of the suite be on another of the members.
func contractOf(t *testing.T, all []*member) {
	var n atomic.Int64
	storetest.Run(t, func(*testing.T) storetest.Opener {
		prefix := fmt.Sprint(n.Add(1))
		return storetest.Opener{
			Open: func(testing.TB) store.Store {
				return all[int(n.Add(1))%len(all)].handle(prefix, func() error { return nil })
			},
			Restore: restorer(prefix),
			Around:  between,
		}
	})
}

// between are the goroutines of members that talk to each other: they connect anew
// whenever one was not heard of in time.
var between = []goleak.Option{
	goleak.IgnoreAnyFunction("net/http.(*conn).serve"),
	goleak.IgnoreAnyFunction("net/http.(*connReader).backgroundRead"),
	goleak.IgnoreAnyFunction("net/http.(*persistConn).readLoop"),
	goleak.IgnoreAnyFunction("net/http.(*persistConn).writeLoop"),
	goleak.IgnoreAnyFunction("net/http.(*Transport).dialConn"),
	goleak.IgnoreAnyFunction("github.com/soheilhy/cmux.(*cMux).serve"),
	goleak.IgnoreAnyFunction("go.etcd.io/etcd/server/v3/etcdserver.(*EtcdServer).GoAttach.func1"),
	goleak.IgnoreAnyFunction("go.etcd.io/etcd/server/v3/etcdserver/api/rafthttp.(*pipeline).post.func1"),
}

// removeOne lists them, has one go and come back, and removes it.
func removeOne(t *testing.T, a *team, all []*member) {
	s := own(all[0])
	defer s.Close()
	members, err := s.Members(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	names, leaders := map[string]bool{}, 0
	for _, m := range members {
		names[m.Name] = true
		if m.Leader {
			leaders++
		}
		if m.Learner || m.Self != (m.Name == "one") {
			t.Errorf("member %+v", m)
		}
	}
	if len(names) != 3 || leaders != 1 {
		t.Errorf("members are %+v", members)
	}
	until(t, "refuse a member at another's address", func() error {
		_, err := s.AddLearner(t.Context(), all[1].etcd.Config().AdvertisePeerUrls[0].Host)
		if SameAddress(err) {
			return nil
		}
		return fmt.Errorf("got %v", err)
	})
	gone, cfg := uint64(all[2].etcd.Server.MemberID()), all[2].etcd.Config()
	p := &Peers{Name: "three", Listen: cfg.AdvertisePeerUrls[0].Host, Advertise: cfg.AdvertisePeerUrls[0].Host, CA: a.file("ca.crt"), Cert: a.file("three.crt"), Key: a.file("three.key")}
	if err := all[2].close(); err != nil {
		t.Fatal(err)
	}
	until(t, "write without one of three", func() error {
		_, err := s.Put(t.Context(), store.Head{}, set("k/1", 10))
		return err
	})
	dir, p := twice(t, a, cfg.Dir, p)
	restarted := startPeer(t, dir, p)
	all[2] = restarted
	back := own(restarted)
	if _, ok, err := back.Get(t.Context(), "k/1"); err != nil || !ok {
		t.Errorf("what was written meanwhile: %v, %v", ok, err)
	}
	until(t, "remove", func() error { return s.Remove(t.Context(), gone) })
	select {
	case <-back.member.alive.Done():
	case <-time.After(time.Minute):
		t.Fatal("a member that was removed goes on")
	}
	if _, _, err := back.Get(t.Context(), "k/1"); !errors.Is(err, ErrRemoved) {
		t.Errorf("a member that was removed says %v", err)
	}
	_ = back.member.close()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if _, err := startMember(ctx, Options{Dir: dir, Peers: p, Logger: silent}, quick); !errors.Is(err, ErrRemoved) {
		t.Errorf("a member that was removed starts: %v", err)
	}
}

// twice starts a member with a copy of its directory: not while it runs, nor the
// first one again once the copy has taken its place elsewhere. It returns the copy.
func twice(t *testing.T, a *team, dir string, p *Peers) (string, *Peers) {
	t.Helper()
	refused := func(dir string, p *Peers) {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if _, err := startMember(ctx, Options{Dir: dir, Peers: p, Logger: silent}, quick); !errors.Is(err, ErrCopied) {
			t.Fatalf("a second one with the same data: %v", err)
		}
	}
	copyOf := func(dir string) string {
		t.Helper()
		copied := filepath.Join(t.TempDir(), "copy")
		if err := os.CopyFS(copied, os.DirFS(dir)); err != nil {
			t.Fatal(err)
		}
		return copied
	}
	old, elsewhere := copyOf(dir), a.peers(t, p.Name)
	first := startPeer(t, dir, p)
	refused(old, elsewhere)
	if err := first.close(); err != nil {
		t.Fatal(err)
	}
	recent := copyOf(dir)
	second := startPeer(t, recent, elsewhere)
	refused(dir, p)
	if err := second.close(); err != nil {
		t.Fatal(err)
	}
	return recent, elsewhere
}

// TestOutdated ends a member that lacks what it had confirmed to others. Whether one
// notices depends on whether they remember, so this is only about what is said.
func TestOutdated(t *testing.T) {
	alive, fail := context.WithCancelCause(t.Context())
	b := &bridge{log: silent, fail: fail}
	go b.logger().Sugar().Panicf("tocommit(%d) is out of range [lastIndex(%d)]. Was the raft log corrupted, truncated, or lost?", 86, 37)
	<-alive.Done()
	if err := context.Cause(alive); !errors.Is(err, ErrOutdated) || !errors.Is(err, store.ErrFailed) {
		t.Errorf("it ends with %v", err)
	}
}

// oneAlone opens the directory of a member without its peers, and then makes it
// the only one.
func oneAlone(t *testing.T, all []*member) {
	s := own(all[0])
	if _, err := s.Put(t.Context(), store.Head{}, set("k/1", 10)); err != nil {
		t.Fatal(err)
	}
	until(t, "read at another", func() error {
		other := own(all[1])
		defer other.Close()
		_, ok, err := other.Get(t.Context(), "k/1")
		if err == nil && !ok {
			err = errors.New("it is not there")
		}
		return err
	})
	dir := all[1].etcd.Config().Dir
	for _, m := range all {
		if err := m.close(); err != nil {
			t.Fatal(err)
		}
	}
	o := Options{Dir: dir, Logger: silent}
	if _, err := Open(t.Context(), o); !errors.Is(err, ErrHasPeers) {
		t.Fatalf("a member without its peers: %v", err)
	}
	o.Alone = true
	left, err := Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	if _, ok, err := left.Get(t.Context(), "k/1"); !ok || err != nil {
		t.Errorf("what was written before: %v, %v", ok, err)
	}
	if err := left.Close(); err != nil {
		t.Fatal(err)
	}
	o.Alone = false
	left, err = Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := left.Put(t.Context(), store.Head{}, set("k/2", 10)); err != nil {
		t.Error(err)
	}
	if members, err := left.Members(t.Context()); len(members) != 1 || err != nil {
		t.Errorf("members are %+v, %v", members, err)
	}
	if err := left.Close(); err != nil {
		t.Error(err)
	}
}

// TestPeersOnly has strangers come to the address of a member: without a
// certificate, and with one of another authority.
func TestPeersOnly(t *testing.T) {
	a, other := newTeam(t), newTeam(t)
	m := startPeer(t, filepath.Join(t.TempDir(), "one"), a.peers(t, "one"))
	at := m.etcd.Config().AdvertisePeerUrls[0].Host
	try := func(certs ...tls.Certificate) error {
		pool := x509.NewCertPool()
		pool.AddCert(a.ca.Certificate)
		c, err := tls.Dial("tcp", at, &tls.Config{RootCAs: pool, ServerName: "127.0.0.1", Certificates: certs})
		if err != nil {
			return err
		}
		defer c.Close()
		if _, err := fmt.Fprintf(c, "GET /members HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"); err != nil {
			return err
		}
		_, err = c.Read(make([]byte, 1))
		return err
	}
	pair := func(by *team) tls.Certificate {
		by.issue(t, "guest", by)
		pair, err := tls.LoadX509KeyPair(by.file("guest.crt"), by.file("guest.key"))
		if err != nil {
			t.Fatal(err)
		}
		return pair
	}
	if err := try(); err == nil {
		t.Error("a peer without a certificate is let in")
	}
	if err := try(pair(other)); err == nil {
		t.Error("a peer with a certificate of another authority is let in")
	}
	if err := try(pair(a)); err != nil {
		t.Errorf("a peer is not let in: %v", err)
	}
}
