package server

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"log/slog"
	"net"
	"os"
	"strings"
	"time"

	"netkeep.internal/internal/data/store"
	"netkeep.internal/internal/data/store/etcdstore"
	"netkeep.internal/internal/ops/config"
	"netkeep.internal/internal/pki"
)

const (
	// dialTime is how long one attempt to reach a cluster may take, and how
	// long after its beginning the next one is made.
	dialTime = 3 * time.Second
	// clusterTime is how long a cluster may take for one write.
	clusterTime = 3 * time.Second
)

// dialCluster connects to a cluster. It tries for as long as the settings say,
// and says that it does.
func dialCluster(ctx context.Context, cfg config.Store, log *slog.Logger) (store.Store, error) {
	opt := etcdstore.Options{
		Endpoints: cfg.Endpoints, Username: cfg.Username, Password: cfg.Password, Prefix: cfg.Prefix, Logger: log,
	}
	if cfg.Secured() {
		var err error
		if opt.TLS, err = clusterTLS(cfg, log); err != nil {
			return nil, err
		}
	}
	for _, at := range cfg.Endpoints {
		if opt.TLS == nil && !isLoopback(at) {
			log.Warn("the store is reached without TLS: whoever is in between can read and change the network; use https:// in store.endpoints", "address", at)
		}
	}
	trying, cancel := context.WithTimeout(ctx, cfg.Wait)
	defer cancel()
	where := strings.Join(cfg.Endpoints, ", ")
	for {
		next := time.After(dialTime)
		st, err := dialOnce(trying, opt)
		switch {
		case err == nil:
			return st, nil
		case ctx.Err() != nil:
			return nil, fmt.Errorf("reach the store at %s: %w", where, ctx.Err())
		case etcdstore.Refused(err):
			return nil, fmt.Errorf("the store at %s does not let this controller in: %w; store.username must be a user of it who may read and write below store.prefix", where, err)
		case trying.Err() != nil:
			return nil, fmt.Errorf("the store at %s could not be reached within %s: %w", where, cfg.Wait, err)
		}
		log.Warn("the store cannot be reached; trying again", "addresses", where, "error", err)
		select {
		case <-next:
		case <-trying.Done():
		}
	}
}

func dialOnce(ctx context.Context, opt etcdstore.Options) (store.Store, error) {
	ctx, cancel := context.WithTimeout(ctx, dialTime)
	defer cancel()
	st, err := etcdstore.Dial(ctx, opt)
	if err != nil {
		return nil, err
	}
	return st, nil
}

// clusterTLS is what the connections to a cluster are made with. A certificate
// of our own follows its files, as the one that is served does.
func clusterTLS(cfg config.Store, log *slog.Logger) (*tls.Config, error) {
	c := &tls.Config{MinVersion: tls.VersionTLS12}
	if cfg.CA != "" {
		text, err := os.ReadFile(cfg.CA)
		if err != nil {
			return nil, fmt.Errorf("store.ca: %w", err)
		}
		c.RootCAs = x509.NewCertPool()
		if !c.RootCAs.AppendCertsFromPEM(text) {
			return nil, fmt.Errorf("store.ca: %s holds no certificate as PEM", cfg.CA)
		}
	}
	if cfg.Cert != "" {
		own, err := pki.Serve(cfg.Cert, cfg.Key, time.Now, log)
		if err != nil {
			return nil, fmt.Errorf("store.cert: %w", err)
		}
		c.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return own.GetCertificate(nil) }
	}
	return c, nil
}

// isLoopback reports whether the address of a member leads to this machine.
func isLoopback(member string) bool {
	host := strings.TrimPrefix(member, "http://")
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	return host == "localhost" || net.ParseIP(strings.Trim(host, "[]")).IsLoopback()
}
