package main

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"strconv"
	"time"
)

func baselineCommand(ctx context.Context, args []string, out, progress io.Writer) error {
	var t target
	var b bounds
	f := flag.NewFlagSet("baseline", flag.ContinueOnError)
	f.SetOutput(progress)
	t.connectionFlags(f, 8)
	b.flags(f)
	asJSON := f.Bool("json", false, "print results as JSON, one object a line")
	if err := parse(f, args); err != nil {
		return err
	}
	if err := errors.Join(t.checkConnection(), b.check()); err != nil {
		return err
	}
	res, err := baseline(ctx, &t, b)
	if err != nil {
		return err
	}
	return show(out, res, *asJSON)
}

// baseline measures a server that does nothing, with the clients that measure
// controllers.
func baseline(ctx context.Context, t *target, b bounds) (result, error) {
	s, err := startBare()
	if err != nil {
		return result{}, err
	}
	defer s.close()
	t.url = "https://" + s.listener.Addr().String()
	clients := make([]*client, t.clients)
	for i := range clients {
		clients[i] = newClient(t, s.roots)
		defer clients[i].close()
	}
	return measure(ctx, clients, nil, load{name: "baseline", round: func(w *worker) {
		w.send(0, request{method: http.MethodGet, path: "/"})
	}}, b)
}

// bare is an HTTPS server with the TLS settings of a controller and next to
// nothing behind it.
type bare struct {
	listener net.Listener
	roots    *x509.CertPool
	http     *http.Server
	served   chan error
}

func startBare() (*bare, error) {
	cert, err := selfSigned()
	if err != nil {
		return nil, err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	s := &bare{listener: listener, roots: x509.NewCertPool(), served: make(chan error, 1)}
	s.roots.AddCert(cert.Leaf)
	body := []byte(`{"data":{},"meta":{}}`)
	s.http = &http.Server{
		ReadHeaderTimeout: 5 * time.Second,
		Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.Header().Set("Content-Length", strconv.Itoa(len(body)))
			_, _ = w.Write(body)
		}),
	}
	secured := tls.NewListener(listener, &tls.Config{
		MinVersion: tls.VersionTLS12, NextProtos: []string{"h2", "http/1.1"},
		ClientAuth: tls.RequestClientCert, Certificates: []tls.Certificate{cert},
	})
	go func() { s.served <- s.http.Serve(secured) }()
	return s, nil
}

func (s *bare) close() {
	_ = s.http.Close()
	<-s.served
}

// selfSigned makes a certificate for this machine with the kind of key that
// controllers have.
func selfSigned() (tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, err
	}
	now := time.Now()
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: now.Add(-time.Hour), NotAfter: now.Add(2 * maxDuration),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("making a certificate: %w", err)
	}
	leaf, err := x509.ParseCertificate(der)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key, Leaf: leaf}, err
}
