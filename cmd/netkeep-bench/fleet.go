package main

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"netkeep.internal/test/scripted"
)

// fleet is routers of a network and somebody who uses them, for as long as a
// measurement takes.
type fleet struct {
	t      *target
	roots  *x509.CertPool
	admin  *client
	server *process // nil if it is not to be measured
	key    *ecdsa.PrivateKey
	made   []string // paths of what is deleted in the end

	identity string
	service  string
	visitor  tls.Certificate
}

// newFleet logs in and makes what circuits need: a service, an identity that
// may host and dial it, and policies that let everybody use every router.
func newFleet(t *target) (*fleet, error) {
	server, err := openProcess(t.pid)
	if err != nil {
		return nil, err
	}
	roots, err := t.roots()
	if err != nil {
		return nil, err
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	f := &fleet{t: t, roots: roots, admin: newClient(t, roots), server: server, key: key}
	if err := f.admin.login(managementRoot, t.username, t.password); err != nil {
		return nil, err
	}
	return f, f.furnish()
}

func (f *fleet) furnish() (err error) {
	name := "bench-fleet-" + rand.Text()[:8]
	all := []string{"#all"}
	if f.service, err = f.create("services", serviceBody{Name: name, RoleAttributes: []string{}, Configs: []string{}}); err != nil {
		return err
	}
	if f.identity, err = f.create("identities", map[string]any{"name": name, "type": "Device", "isAdmin": false, "enrollment": map[string]any{"ott": true}}); err != nil {
		return err
	}
	for _, typ := range []string{"Dial", "Bind"} {
		_, err := f.create("service-policies", servicePolicyBody{
			Name: name + typ, Type: typ, Semantic: "AnyOf", IdentityRoles: []string{"@" + f.identity}, ServiceRoles: []string{"@" + f.service},
		})
		if err != nil {
			return err
		}
	}
	_, err1 := f.create("edge-router-policies", routerPolicyBody{Name: name, Semantic: "AnyOf", EdgeRouterRoles: all, IdentityRoles: all})
	_, err2 := f.create("service-edge-router-policies", serviceRouterPolicyBody{Name: name, Semantic: "AnyOf", EdgeRouterRoles: all, ServiceRoles: all})
	if err := errors.Join(err1, err2); err != nil {
		return err
	}
	return f.enrollVisitor()
}

// create makes a record that is deleted in the end.
func (f *fleet) create(path string, body any) (id string, err error) {
	r, err := fetch[created](f.admin, request{method: http.MethodPost, path: managementRoot + "/" + path, body: body})
	if err == nil {
		f.made = append(f.made, path+"/"+r.Data.ID)
	}
	return r.Data.ID, err
}

// close deletes what was made, the last first.
func (f *fleet) close() (err error) {
	for i := len(f.made) - 1; i >= 0; i-- {
		_, failed := fetch[any](f.admin, request{method: http.MethodDelete, path: managementRoot + "/" + f.made[i]})
		err = errors.Join(err, failed)
	}
	err = errors.Join(err, f.admin.logout(managementRoot))
	f.admin.close()
	return err
}

// csr asks for a certificate for the fleet's key. All have the same: making
// keys is not what is measured.
func (f *fleet) csr(name string) (string, error) {
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{Subject: pkix.Name{CommonName: name}, DNSNames: []string{"localhost"}}, f.key)
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der})), err
}

// pair is the fleet's key with a chain of certificates.
func (f *fleet) pair(chain string) tls.Certificate {
	cert := tls.Certificate{PrivateKey: f.key}
	for rest := []byte(chain); ; {
		block, more := pem.Decode(rest)
		if block == nil {
			return cert
		}
		cert.Certificate, rest = append(cert.Certificate, block.Bytes), more
	}
}

// enrollVisitor gives the identity a certificate to log in with.
func (f *fleet) enrollVisitor() error {
	r, err := fetch[[]struct {
		Token string `json:"token"`
	}](f.admin, request{method: http.MethodGet, path: managementRoot + "/identities/" + f.identity + "/enrollments"})
	if err != nil || len(r.Data) == 0 {
		return errors.Join(err, errors.New("the visitor has no invitation"))
	}
	csr, err := f.csr("visitor")
	if err != nil {
		return err
	}
	status, chain, err := f.admin.do(request{method: http.MethodPost, path: clientRoot + "/enroll/ott?token=" + r.Data[0].Token, body: map[string]string{"certCsr": csr}})
	if err != nil || status != http.StatusOK {
		return errors.Join(err, fmt.Errorf("enrolling the visitor: status %d: %s", status, shorten(chain)))
	}
	f.visitor = f.pair(string(chain))
	return nil
}

// visit opens another API session of the visitor.
func (f *fleet) visit(c *client) (id, token string, err error) {
	r, err := fetch[struct {
		ID    string `json:"id"`
		Token string `json:"token"`
	}](c, request{method: http.MethodPost, path: clientRoot + "/authenticate?method=cert", body: struct{}{}})
	return r.Data.ID, r.Data.Token, err
}

// newVisitor returns a client that shows the visitor's certificate.
func (f *fleet) newVisitor() *client {
	c := newClient(f.t, f.roots)
	c.http.Transport.(*http.Transport).TLSClientConfig.Certificates = []tls.Certificate{f.visitor}
	return c
}

// router makes an edge router and enrolls it.
func (f *fleet) router() (scripted.Options, error) {
	id, err := f.create("edge-routers", routerBody{Name: "bench-router-" + rand.Text()[:10], RoleAttributes: []string{}})
	if err != nil {
		return scripted.Options{}, err
	}
	r, err := fetch[struct {
		Token string `json:"enrollmentToken"`
	}](f.admin, request{method: http.MethodGet, path: managementRoot + "/edge-routers/" + id})
	if err != nil {
		return scripted.Options{}, err
	}
	csr, err := f.csr(id)
	if err != nil {
		return scripted.Options{}, err
	}
	got, err := fetch[struct {
		Cert string `json:"cert"`
	}](f.admin, request{
		method: http.MethodPost, path: clientRoot + "/enroll/erott?token=" + url.QueryEscape(r.Data.Token),
		body: map[string]string{"certCsr": csr, "serverCertCsr": csr},
	})
	return scripted.Options{
		Address: strings.TrimPrefix(f.t.url, "https://"), ID: id, Now: time.Now, Listener: "tls:127.0.0.1:6262",
		TLS: &tls.Config{RootCAs: f.roots, Certificates: []tls.Certificate{f.pair(got.Data.Cert)}},
	}, err
}

// few is how many routers connect at a time when nothing is wrong.
const few = 16

// assemble has routers connect, some at a time, and waits until each knows
// everything.
func assemble(ctx context.Context, atOnce int, all []scripted.Options) ([]*scripted.Router, error) {
	routers, errs := make([]*scripted.Router, len(all)), make([]error, len(all))
	var wait sync.WaitGroup
	turns := make(chan struct{}, atOnce)
	for i, opt := range all {
		turns <- struct{}{}
		wait.Go(func() {
			defer func() { <-turns }()
			if routers[i], errs[i] = persist(ctx, opt); errs[i] == nil {
				errs[i] = routers[i].Await(ctx, func(k scripted.Known) bool { return k.Synced > 0 })
			}
		})
	}
	wait.Wait()
	return routers, errors.Join(errs...)
}

// persist has a router connect, and try again as real ones do.
func persist(ctx context.Context, opt scripted.Options) (r *scripted.Router, err error) {
	for wait := 50 * time.Millisecond; wait < time.Minute; wait *= 2 {
		if r, err = scripted.Connect(ctx, opt); err == nil {
			return r, nil
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	return nil, err
}
