// Package etcdtest runs an etcd server for tests, as an operator would set one
// up: with a certificate, with a CA for those of its clients, and with users. A
// Line is a connection to it that can be cut. Nothing outside of tests may
// import it.
package etcdtest

import (
	"crypto/x509"
	"crypto/x509/pkix"
	"net"
	"net/url"
	"path/filepath"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/embed"
	"go.etcd.io/etcd/server/v3/etcdserver/api/v3client"
	"go.uber.org/zap"

	"netkeep.internal/internal/ops/config"
	"netkeep.internal/test/certtest"
	"netkeep.internal/test/machine"
)

// The user of every server, and what it may touch.
const (
	Username = "netkeep"
	Password = "the password of etcd"
	Prefix   = "ours"
)

// startTime is how long a server may take to start.
const startTime = 30 * time.Second

// Server is an etcd server.
type Server struct {
	Address string // host and port
	// Files: the CA of its certificate, and a pair for clients.
	CA, Cert, Key string

	t    testing.TB
	dir  string
	etcd *embed.Etcd
}

// Start runs a server until the end of the test.
func Start(t testing.TB) *Server {
	t.Helper()
	s := &Server{t: t, dir: t.TempDir(), Address: "127.0.0.1:" + machine.Port(t)}
	s.issue()
	s.Run()
	s.addUsers()
	t.Cleanup(s.Stop)
	return s
}

// Settings has a controller use the server, over a line if one is given.
func (s *Server) Settings(c *config.Config, over ...*Line) {
	at := s.Address
	if len(over) > 0 {
		at = over[0].Address
	}
	c.Store.Endpoints, c.Store.Prefix = []string{"https://" + at}, Prefix
	c.Store.CA, c.Store.Cert, c.Store.Key = s.CA, s.Cert, s.Key
	c.Store.Username, c.Store.Password = Username, Password
}

// Run starts the server, again or for the first time.
func (s *Server) Run() {
	s.t.Helper()
	c := embed.NewConfig()
	c.Dir = filepath.Join(s.dir, "data")
	at := url.URL{Scheme: "https", Host: s.Address}
	c.ListenClientUrls, c.AdvertiseClientUrls = []url.URL{at}, []url.URL{at}
	peer := url.URL{Scheme: "http", Host: "localhost:1"} // there is none
	c.ListenPeerUrls, c.AdvertisePeerUrls = nil, []url.URL{peer}
	c.InitialCluster = c.Name + "=" + peer.String()
	c.ClientTLSInfo.CertFile, c.ClientTLSInfo.KeyFile = filepath.Join(s.dir, "server.crt"), filepath.Join(s.dir, "server.key")
	c.ClientTLSInfo.TrustedCAFile, c.ClientTLSInfo.ClientCertAuth = s.CA, true
	c.BcryptCost, c.UnsafeNoFsync = 4, true
	c.ZapLoggerBuilder = embed.NewZapLoggerBuilder(zap.NewNop())
	var err error
	if s.etcd, err = embed.StartEtcd(c); err != nil {
		s.t.Fatal(err)
	}
	select {
	case <-s.etcd.Server.ReadyNotify():
	case <-time.After(startTime):
		s.t.Fatal("etcd does not start")
	}
}

// Stop stops the server; what it holds stays.
func (s *Server) Stop() {
	if s.etcd != nil {
		s.etcd.Close()
		s.etcd = nil
	}
}

func (s *Server) addUsers() {
	s.t.Helper()
	c := v3client.New(s.etcd.Server)
	defer c.Close()
	ctx := s.t.Context()
	for _, do := range []func() error{
		func() error { _, err := c.UserAdd(ctx, "root", "root's"); return err },
		func() error { _, err := c.UserGrantRole(ctx, "root", "root"); return err },
		func() error { _, err := c.RoleAdd(ctx, "network"); return err },
		func() error {
			_, err := c.RoleGrantPermission(ctx, "network", Prefix+"/", Prefix+"0", clientv3.PermissionType(clientv3.PermReadWrite))
			return err
		},
		func() error { _, err := c.UserAdd(ctx, Username, Password); return err },
		func() error { _, err := c.UserGrantRole(ctx, Username, "network"); return err },
		func() error { _, err := c.AuthEnable(ctx); return err },
	} {
		if err := do(); err != nil {
			s.t.Fatal(err)
		}
	}
}

// issue makes a CA, and a certificate by it for each side.
func (s *Server) issue() {
	s.t.Helper()
	ca := s.sign("ca", nil)
	s.CA = filepath.Join(s.dir, "ca.crt")
	for _, name := range []string{"server", "client"} {
		s.sign(name, &ca)
	}
	s.Cert, s.Key = filepath.Join(s.dir, "client.crt"), filepath.Join(s.dir, "client.key")
}

func (s *Server) sign(name string, by *certtest.Pair) certtest.Pair {
	s.t.Helper()
	pair := certtest.New(s.t, by, func(c *x509.Certificate) {
		c.Subject, c.IsCA = pkix.Name{Organization: []string{name}}, by == nil // not a user of etcd
		c.IPAddresses = []net.IP{net.IPv4(127, 0, 0, 1)}
	})
	pair.Write(s.t, filepath.Join(s.dir, name+".crt"), filepath.Join(s.dir, name+".key"))
	return pair
}
