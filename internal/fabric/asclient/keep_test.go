package asclient

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"log/slog"
	"math/big"
	"net"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"netkeep.internal/internal/data/state"
	"netkeep.internal/internal/data/store/storetest"
	"netkeep.internal/internal/fabric/control"
	"netkeep.internal/internal/fabric/terminator"
	"netkeep.internal/internal/lang/fault"
	"netkeep.internal/internal/model"
	"netkeep.internal/internal/pki"
	"netkeep.internal/internal/wire"
	"netkeep.internal/internal/wire/channel"
	"netkeep.internal/internal/wire/message"
)

// counted lets nobody in, and counts who comes.
type counted struct{ atomic.Int32 }

func (c *counted) Enter(context.Context, state.Author, string, Said) (Client, error) {
	c.Add(1)
	return nil, fault.New(fault.CodeAuth, "not today")
}

// certify returns a certificate that a router may show, and the root that it
// leads to.
func certify(t *testing.T) (tls.Certificate, *x509.Certificate) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	make := func(template, parent *x509.Certificate) *x509.Certificate {
		template.SerialNumber, template.NotBefore, template.NotAfter = big.NewInt(1), time.Now().Add(-time.Hour), time.Now().Add(24*time.Hour)
		der, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), key)
		if err != nil {
			t.Fatal(err)
		}
		cert, err := x509.ParseCertificate(der)
		if err != nil {
			t.Fatal(err)
		}
		return cert
	}
	own := &x509.Certificate{Subject: pkix.Name{CommonName: "root"}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}
	root := make(own, own)
	leaf := make(&x509.Certificate{Subject: pkix.Name{CommonName: "r"}, KeyUsage: x509.KeyUsageDigitalSignature}, root)
	return tls.Certificate{Certificate: [][]byte{leaf.Raw}, PrivateKey: key, Leaf: leaf}, root
}

// join connects a router over a pipe.
func join(t *testing.T, routers *control.Routers, cert tls.Certificate, grouped bool) *channel.Channel {
	t.Helper()
	here, there := net.Pipe()
	go routers.Take(tls.Server(here, &tls.Config{Certificates: []tls.Certificate{cert}, ClientAuth: tls.RequireAnyClientCert}))
	conn := tls.Client(there, &tls.Config{Certificates: []tls.Certificate{cert}, InsecureSkipVerify: true}) // who the controller is does not matter
	h := wire.Headers{}
	h.SetText(message.HeaderVersion, "v2.0.3|a|b|linux|amd64")
	if grouped {
		h.SetBool(message.HeaderGrouped, true)
		h.SetBool(message.HeaderGroupFirst, true)
		h[message.HeaderCapabilities] = []byte{message.NewHeaders}
	}
	if _, err := channel.Greet(conn, time.Now().Add(time.Second), channel.Hello{ID: "r", Headers: h}); err != nil {
		t.Fatal(err)
	}
	ch := channel.New("c", channel.Options{Handle: func(*channel.Channel, *wire.Frame) {}, Now: time.Now})
	ch.Attach(conn)
	return ch
}

// TestKeep keeps the session of a router in use that knows nothing of sessions,
// whether or not it says anything, as long as it is there.
func TestKeep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cert, root := certify(t)
		st, err := state.Open(t.Context(), storetest.NewMemory(), model.All, state.Options{Frozen: true})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(st.Close)
		write := func(fn func(tx *state.Tx) error) {
			t.Helper()
			if err := st.Update(t.Context(), state.Program("test"), fn); err != nil {
				t.Fatal(err)
			}
		}
		write(func(tx *state.Tx) error { return model.Seed(tx) })
		write(func(tx *state.Tx) error {
			r := model.Routers.New()
			r.ID, r.Name, r.IsVerified, r.Fingerprint = "r", "r", true, pki.Fingerprint(cert.Leaf)
			return model.Routers.Create(tx, r)
		})
		log := slog.New(slog.DiscardHandler)
		routers := control.New(control.Options{
			State: st, Bundle: func() []*x509.Certificate { return []*x509.Certificate{root} }, ID: "c", Build: model.RouterVersion{Version: "v2.0.0"}, Kept: func(net.Conn) {}, Now: time.Now, Log: log,
		})
		clients := new(counted)
		tunnels := New(Options{
			State: st, Routers: routers, Clients: clients, Log: log,
			Hosts: terminator.New(terminator.Options{State: st, Routers: routers, Now: time.Now, Log: log}),
		})
		tunnels.Register()
		ctx, stop := context.WithCancel(t.Context())
		kept := make(chan struct{})
		go func() {
			defer close(kept)
			tunnels.Keep(ctx)
		}()
		seen := func(what string, after time.Duration, want int32) {
			t.Helper()
			time.Sleep(after)
			synctest.Wait()
			if got := clients.Swap(0); got != want {
				t.Errorf("%s: its session was used %d times, want %d", what, got, want)
			}
		}
		r := join(t, routers, cert, true)
		seen("it has no session", 10*often, 0)
		write(func(tx *state.Tx) error {
			i := model.Identities.New()
			i.ID, i.Name, i.Type = "r", "r", model.TypeRouter
			if err := model.Identities.Create(tx, i); err != nil {
				return err
			}
			a := model.APISessions.New()
			a.ID, a.IdentityID = "a", "r"
			return model.APISessions.Create(tx, a)
		})
		seen("for a minute", time.Minute, 3)
		r.Close(nil)
		r = join(t, routers, cert, false)
		seen("one that sees to that itself", time.Minute, 0)
		r.Close(nil)
		seen("it is gone", time.Minute, 0)
		stop()
		<-kept
		routers.Close()
	})
}
