package cluster_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/go-json-experiment/json"

	"netkeep.internal/internal/ops/config"
	"netkeep.internal/test/etcdtest"
	"netkeep.internal/test/machine"
	"netkeep.internal/test/servertest"
)

// balancer forwards connections to controllers in turn, as long as they say that they
// can serve.
type balancer struct {
	net.Listener
	next atomic.Int64

	mu          sync.Mutex
	check       *http.Client // of whether they can serve
	controllers []string
	taken       map[string]int // connections, by controller
}

func (b *balancer) add(controller string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.controllers = append(b.controllers, controller)
}

func (b *balancer) all() ([]string, *http.Client) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.controllers), b.check
}

// checks says how to ask controllers whether they can serve.
func (b *balancer) checks(with *tls.Config) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.check = &http.Client{Timeout: patience, Transport: &http.Transport{TLSClientConfig: with, DisableKeepAlives: true}}
}

// balancerName is what all controllers are known by.
const balancerName = "net.example.com"

func newBalancer(t *testing.T) *balancer {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	b := &balancer{Listener: l, taken: map[string]int{}}
	var done sync.WaitGroup
	done.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			done.Go(func() { b.forward(conn) })
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		done.Wait()
	})
	return b
}

// forward leads a connection to the next controller that can serve.
func (b *balancer) forward(near net.Conn) {
	defer near.Close()
	all, check := b.all()
	for range all {
		at := all[int(b.next.Add(1))%len(all)]
		resp, err := check.Get("https://" + at + "/health/ready")
		if err != nil {
			continue
		}
		_ = resp.Body.Close()
		far, err := net.Dial("tcp", at)
		if err != nil || resp.StatusCode != http.StatusOK {
			continue
		}
		b.mu.Lock()
		b.taken[at]++
		b.mu.Unlock()
		var both sync.WaitGroup
		for _, way := range [][2]net.Conn{{near, far}, {far, near}} {
			both.Go(func() {
				_, _ = io.Copy(way[0], way[1])
				_ = way[0].Close()
			})
		}
		both.Wait()
		return
	}
}

// caller asks through the balancer, over a new connection each time.
type caller struct {
	t        *testing.T
	http     *http.Client
	token    string
	revision string // that the last answer had
}

// caller is somebody who trusts the controllers, and may show a certificate.
func (b *balancer) caller(t *testing.T, cfg *tls.Config, cert *tls.Certificate) *caller {
	cfg.ServerName = balancerName
	if cert != nil {
		cfg.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return cert, nil }
	}
	return &caller{t: t, http: &http.Client{Timeout: patience, Transport: &http.Transport{
		TLSClientConfig: cfg, DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "tcp", b.Addr().String())
		},
	}}}
}

// must asks for something that has to be answered with a status, and returns the data.
func (c *caller) must(want int, method, path string, body M) M {
	c.t.Helper()
	var sent []byte
	if body != nil {
		var err error
		if sent, err = json.Marshal(body); err != nil {
			c.t.Fatal(err)
		}
	}
	req, err := http.NewRequestWithContext(c.t.Context(), method, "https://"+balancerName+"/edge/management/v1/"+path, bytes.NewReader(sent))
	if err != nil {
		c.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	for name, value := range map[string]string{"net-session": c.token, "netkeep-revision": c.revision} {
		if value != "" {
			req.Header.Set(name, value)
		}
	}
	resp, err := c.http.Do(req)
	if err != nil {
		c.t.Fatal(err)
	}
	defer resp.Body.Close()
	var answer struct {
		Data M `json:"data"`
	}
	if err := json.UnmarshalRead(resp.Body, &answer); err != nil {
		c.t.Fatal(err)
	}
	if rev := resp.Header.Get("netkeep-revision"); rev != "" {
		c.revision = rev
	}
	if resp.StatusCode != want {
		c.t.Fatalf("%s %s is answered %d", method, path, resp.StatusCode)
	}
	return answer.Data
}

// TestBalancer puts a load balancer in front of two controllers, as
// docs/high-availability.md says: whoever comes through it is served by either,
// with a password or a certificate, finds what it wrote a moment ago at the other, and
// does not notice when one is gone.
func TestBalancer(t *testing.T) {
	beside(t)
	etcd := etcdtest.Start(t)
	b := newBalancer(t)
	_, port, _ := net.SplitHostPort(b.Addr().String())
	use := func(c *config.Config) {
		etcd.Settings(c)
		c.Management.Listen, c.Management.Advertise = "127.0.0.1:"+machine.Port(t), balancerName+":"+port
		b.add(c.Management.Listen)
	}
	first := servertest.Start(t, use)
	check := first.TLS()
	check.ServerName = balancerName
	b.checks(check)

	admin := b.caller(t, first.TLS(), nil)
	admin.token = admin.must(http.StatusOK, http.MethodPost, "authenticate?method=password", M{"username": servertest.Username, "password": servertest.Password})["token"].(string)
	invited := admin.must(http.StatusOK, http.MethodPost, "cluster/invitations", nil)["token"].(string)
	other, err := servertest.Open(t.TempDir(), use, func(c *config.Config) { c.Join = invited })
	if err != nil {
		t.Fatal(err)
	}
	works := func() {
		t.Helper()
		for range 10 {
			made := admin.must(http.StatusCreated, http.MethodPost, "services", M{"name": servertest.Unique("service"), "encryptionRequired": true})
			admin.must(http.StatusOK, http.MethodGet, "services/"+made["id"].(string), nil)
		}
	}
	works()
	made := admin.must(http.StatusCreated, http.MethodPost, "identities", M{"name": "tool", "type": "Device", "isAdmin": true, "enrollment": M{"ott": true}})
	whole := admin.must(http.StatusOK, http.MethodGet, "identities/"+made["id"].(string), nil)
	tool := b.caller(t, first.TLS(), enroll(t, first, whole["enrollment"].(M)["ott"].(M)["token"].(string)))
	tool.revision = admin.revision
	tool.must(http.StatusOK, http.MethodPost, "authenticate?method=cert", M{})
	b.mu.Lock()
	for _, at := range b.controllers {
		if b.taken[at] == 0 {
			t.Errorf("nothing came to %s: %v", at, b.taken)
		}
	}
	b.mu.Unlock()
	if err := other.Close(); err != nil {
		t.Fatal(err)
	}
	works()
}
