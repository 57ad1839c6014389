// Package servertest runs a whole controller inside a test: real TLS on a
// loopback port, a store in a temporary directory, a known admin. It owns the
// client with which tests call it, and that client checks every answer against
// the specification that the controller serves, so that each test proves the
// specification too. Nothing outside of tests may import it.
package servertest

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"netkeep.internal/internal/ops/config"
	"netkeep.internal/internal/run/server"
)

// The first admin of every server.
const (
	Username = "admin"
	Password = "a password for tests"
)

// stopTime is how long a server may take to stop.
const stopTime = 2 * time.Minute

// Server is a running controller.
type Server struct {
	*server.Server
	Config config.Config
	URL    string // https, host and port

	roots *x509.CertPool
	http  *http.Client
	specs specs
	log   *watched
	// ledger is all that was said to and by the controller.
	ledger ledger
	// authors is who wrote what.
	authors *authors

	login sync.Once
	token string // the admin's
}

// Start runs a controller for one test and stops it at the test's end. It is
// an error of the test if the controller logged one.
func Start(t testing.TB, change ...func(*config.Config)) *Server {
	t.Helper()
	s, err := Open(t.TempDir(), change...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	s.follow(t)
	return s
}

// Open runs a controller with its data below dir, for tests that share one.
func Open(dir string, change ...func(*config.Config)) (*Server, error) {
	cfg := config.Default()
	cfg.Data = filepath.Join(dir, "data")
	cfg.Listen = "127.0.0.1:0"
	cfg.Metrics.Listen = "127.0.0.1:0"
	cfg.Admin.Username, cfg.Admin.Password = Username, Password
	for _, f := range change {
		f(&cfg)
	}
	if err := cfg.Check(); err != nil {
		return nil, err
	}
	s := &Server{Config: cfg, log: &watched{}}
	log := slog.New(slog.NewJSONHandler(s.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	ctx, cancel := context.WithTimeout(context.Background(), stopTime)
	defer cancel()
	started := time.Now().Truncate(time.Microsecond) // as the log keeps times
	var err error
	if s.Server, err = server.Start(ctx, cfg, log); err != nil {
		return nil, fmt.Errorf("start: %w", err)
	}
	s.authors = watchAuthors(s.Store(), started)
	s.URL = "https://" + s.Listening().String() // a name that it advertises need not lead anywhere
	if err := s.connect(); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// connect prepares a client that trusts the controller and knows what it says
// of its APIs.
func (s *Server) connect() error {
	s.roots = x509.NewCertPool()
	s.http = newHTTP(s.TLS())
	ca, err := os.ReadFile(filepath.Join(s.Config.Data, "pki", "root.crt"))
	if err != nil {
		return err
	}
	if !s.roots.AppendCertsFromPEM(ca) {
		return errors.New("the root certificate cannot be read")
	}
	// A root CA that is being rotated may be used from now on.
	for _, root := range s.Keys().TrustBundle() {
		s.roots.AddCert(root)
	}
	// A certificate of the operator's own is not from our CA; tests of it
	// connect themselves.
	if s.Config.TLS.Cert != "" {
		return nil
	}
	s.specs, err = loadSpecs(s.http, s.URL)
	return err
}

func newHTTP(config *tls.Config) *http.Client {
	return &http.Client{
		Transport: &http.Transport{TLSClientConfig: config, ForceAttemptHTTP2: true},
		Timeout:   2 * time.Minute, // a machine may be slow
	}
}

// TLS returns a client's configuration that trusts the controller's CA.
func (s *Server) TLS() *tls.Config { return &tls.Config{RootCAs: s.roots} }

// Close stops the controller. What it logged as an error is returned as one,
// as are secrets that it logged or told to others, and writes without an
// author.
func (s *Server) Close() error {
	s.http.CloseIdleConnections()
	ctx, cancel := context.WithTimeout(context.Background(), stopTime)
	defer cancel()
	err := errors.Join(s.authors.faults()...)
	err = errors.Join(err, s.Stop(ctx))
	for _, line := range s.log.errors() {
		err = errors.Join(err, fmt.Errorf("the controller logged: %s", line))
	}
	for _, leak := range s.ledger.leaks(s) {
		err = errors.Join(err, fmt.Errorf("a secret got out: %s", leak))
	}
	return err
}
