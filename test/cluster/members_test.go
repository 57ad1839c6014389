package cluster_test

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"netkeep.internal/internal/ops/config"
	"netkeep.internal/internal/pki"
	"netkeep.internal/internal/run/server"
	"netkeep.internal/test/machine"
	"netkeep.internal/test/servertest"
)

// newMembers starts three controllers that keep the store together.
func newMembers(t *testing.T) *trio {
	t.Helper()
	c := &trio{use: func(*config.Config) {}}
	for range 3 {
		listen, peers := "127.0.0.1:"+machine.Port(t), "127.0.0.1:"+machine.Port(t)
		c.own = append(c.own, func(c *config.Config) { c.Listen, c.Cluster.Listen = listen, peers })
	}
	c.found(t)
	servertest.Eventually(t, patience, "three votes", func() bool {
		votes := 0
		for _, m := range c.all[0].Admin(t).Get("cluster/members").Want(http.StatusOK).List() {
			if m["vote"] == true {
				votes++
			}
		}
		return votes == 3
	})
	return c
}

// writers write at all controllers that are to be written to, all the time.
type writers struct {
	token string

	asking sync.RWMutex // held for reading while somebody is asked
	at     []*servertest.Server

	mu      sync.Mutex
	acked   int
	last    time.Time
	longest time.Duration // without a write

	over chan struct{}
	done sync.WaitGroup
}

// write begins, until the end of the test.
func (c *trio) write(t *testing.T) *writers {
	t.Helper()
	w := &writers{token: c.all[0].Admin(t).Token, last: time.Now(), over: make(chan struct{})}
	w.use(c)
	for i := range 3 {
		w.done.Go(func() {
			for n := i; ; n++ {
				select {
				case <-w.over:
					return
				case <-time.After(20 * time.Millisecond):
					w.one(t, n)
				}
			}
		})
	}
	t.Cleanup(w.end)
	return w
}

func (w *writers) one(t *testing.T, n int) {
	w.asking.RLock()
	defer w.asking.RUnlock()
	who := w.at[n%len(w.at)].Nobody(t)
	who.Token, who.Outage = w.token, true
	switch got := who.Post("services", M{"name": servertest.Unique("service"), "encryptionRequired": true}); got.Status {
	case http.StatusCreated:
		w.mu.Lock()
		defer w.mu.Unlock()
		w.acked++
		w.longest, w.last = max(w.longest, time.Since(w.last)), time.Now()
	case http.StatusServiceUnavailable: // while another leads, on a slow machine
	default:
		t.Errorf("a write is answered %d: %s", got.Status, got.Raw)
	}
}

// use has those be written to that run, but for some.
func (w *writers) use(c *trio, but ...*servertest.Server) {
	w.asking.Lock()
	defer w.asking.Unlock()
	w.at = nil
	for _, s := range c.all {
		if s != nil && (len(but) == 0 || s != but[0]) {
			w.at = append(w.at, s)
		}
	}
}

// more waits until some more writes were acknowledged.
func (w *writers) more(t *testing.T) {
	t.Helper()
	count := func() int {
		w.mu.Lock()
		defer w.mu.Unlock()
		return w.acked
	}
	had := count()
	servertest.Eventually(t, patience, "more writes", func() bool { return count() >= had+10 })
}

func (w *writers) end() {
	select {
	case <-w.over:
	default:
		close(w.over)
	}
	w.done.Wait()
}

// again starts each controller again, one after the other, while the others are
// written to.
func (c *trio) again(t *testing.T, w *writers) {
	t.Helper()
	for n, s := range c.all {
		w.use(c, s)
		c.stop(t, n)
		w.more(t)
		c.start(t, n)
		eventually(t, as(t, c.all[n], &servertest.Client{Token: w.token}), "current-identity", http.StatusOK)
		w.use(c)
		w.more(t)
	}
}

// taken reports whether a member takes a certificate, and which CA has signed its own.
func taken(t *testing.T, s *servertest.Server, pair tls.Certificate) (is bool, by []byte) {
	t.Helper()
	conn, err := tls.Dial("tcp", s.Config.Cluster.Listen, &tls.Config{
		Certificates: []tls.Certificate{pair}, InsecureSkipVerify: true, // it is looked at here
		VerifyConnection: func(c tls.ConnectionState) error {
			by = c.PeerCertificates[0].AuthorityKeyId
			return nil
		},
	})
	if err != nil {
		return false, by
	}
	defer conn.Close()
	// One that is refused hears of it with the first answer.
	if _, err := conn.Write([]byte("GET /version HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")); err != nil {
		return false, by
	}
	answer := make([]byte, 8)
	n, err := conn.Read(answer)
	return err == nil && strings.HasPrefix(string(answer[:n]), "HTTP/1.1"), by
}

// peerPair is the certificate of a member.
func peerPair(t *testing.T, s *servertest.Server) tls.Certificate {
	t.Helper()
	pair, err := tls.LoadX509KeyPair(filepath.Join(s.Config.Data, "pki", "peer.crt"), filepath.Join(s.Config.Data, "pki", "peer.key"))
	if err != nil {
		t.Fatal(err)
	}
	return pair
}

// TestRotateClusterCA puts another CA between three controllers that keep the store
// together, and ends the trust in the one before. They are started again one after the
// other, and there are writes all the time.
func TestRotateClusterCA(t *testing.T) {
	atOnce(t)
	c := newMembers(t)
	c.settle(t, always)
	first := peerPair(t, c.all[0])
	w := c.write(t)
	w.more(t)

	c.refused(t, 1, server.Rotation{What: pki.ClusterCA, Finish: true}, "none is under way")
	st := c.must(t, 1, server.Rotation{What: pki.ClusterCA})
	old, next := st.Keys.Cluster().Current, st.Keys.Cluster().Next
	if st.Shared.Next != pki.ClusterCA || next == nil || len(st.Shared.Restart) != 3 {
		t.Fatalf("it begins with %+v", st.Shared)
	}
	c.refused(t, 0, server.Rotation{What: pki.ClusterCA}, "is not used yet", "netkeep keys status")
	c.refused(t, 0, server.Rotation{What: pki.ClusterCA, Force: true}, "netkeep cluster remove", "nothing to force")
	if code, text := command(t, t.TempDir(), "keys", "status", "--data", c.all[2].Config.Data); code != 0 || !strings.Contains(text, "cluster CA ") || !strings.Contains(text, "Start these controllers again") {
		t.Errorf("the status says %s", text)
	}
	c.again(t, w)
	c.settle(t, func(now server.KeysStatus) bool {
		return now.Keys.Cluster().Current.Equal(next) && now.Keys.Cluster().Former.Equal(old) && len(now.Shared.Restart) == 0
	})
	c.shows(t, next)
	for n, s := range c.all {
		if is, _ := taken(t, s, first); !is {
			t.Errorf("the certificate of before is refused by %d", n)
		}
	}
	w.more(t)

	st = c.must(t, 2, server.Rotation{What: pki.ClusterCA, Finish: true})
	if len(st.Shared.Restart) != 3 {
		t.Errorf("it is finished with %+v", st.Shared)
	}
	c.again(t, w)
	c.settle(t, func(now server.KeysStatus) bool {
		return now.Keys.Cluster().Former == nil && len(now.Shared.Restart) == 0
	})
	c.shows(t, next)
	for n, s := range c.all {
		if is, _ := taken(t, s, first); is {
			t.Errorf("the certificate of before is taken by %d", n)
		}
	}
	w.end()
	t.Logf("%d writes; the longest time without one was %v", w.acked, w.longest.Round(time.Millisecond))
	joined, err := servertest.Open(t.TempDir(), joining(t, c.all[1]), func(c *config.Config) { c.Cluster.Listen = "127.0.0.1:" + machine.Port(t) })
	if err != nil {
		t.Fatal(err)
	}
	stopping(t, joined)
	eventually(t, as(t, joined, &servertest.Client{Token: w.token}), "current-identity", http.StatusOK)
}

// shows waits until all show each other certificates of a CA.
func (c *trio) shows(t *testing.T, ca *x509.Certificate) {
	t.Helper()
	for _, s := range c.all {
		servertest.Eventually(t, patience, "a certificate of the new CA", func() bool {
			is, by := taken(t, s, peerPair(t, s))
			return is && bytes.Equal(by, ca.SubjectKeyId)
		})
	}
}
