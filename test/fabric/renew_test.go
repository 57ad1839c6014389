package fabric

import (
	"context"
	"crypto/tls"
	"testing"
	"time"

	"netkeep.internal/internal/wire"
	"netkeep.internal/internal/wire/message"
	"netkeep.internal/test/scripted"
	"netkeep.internal/test/servertest"
)

// renewing is a connected router that hears what it is offered.
type renewing struct {
	*router
	conn    *scripted.Router
	offered chan *message.Certificates
}

func renew(t *testing.T, r *router) *renewing {
	t.Helper()
	n := &renewing{router: r, offered: make(chan *message.Certificates, 1)}
	n.conn = r.Connect(t, func(o *scripted.Options) {
		o.Seen = func(f *wire.Frame) {
			if f.Type != message.TypeCertificates {
				return
			}
			if m, err := message.Unmarshal[message.Certificates](f.Body); err == nil {
				n.offered <- m
			}
		}
	})
	return n
}

// ask asks for new certificates and returns what is offered, none if nothing
// is.
func (n *renewing) ask(t *testing.T, verify bool, wait time.Duration) (tls.Certificate, *message.Certificates) {
	t.Helper()
	key, csr := n.Request(t)
	m := &message.Extend{ClientCSR: csr, ServerCSR: csr, Verify: verify}
	if err := n.conn.Send(&wire.Frame{Type: message.TypeExtend, Body: message.Marshal(m)}); err != nil {
		t.Fatal(err)
	}
	select {
	case m := <-n.offered:
		return servertest.Pair(key, m.Client), m
	case <-time.After(wait):
		return tls.Certificate{}, nil
	}
}

// verify shows a certificate and returns what is wrong with it; nothing if it
// was taken.
func (n *renewing) verify(t *testing.T, shown string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), soon)
	defer cancel()
	reply, err := n.conn.Request(ctx, &wire.Frame{Type: message.TypeVerifyExtension, Body: message.Marshal(&message.VerifyExtension{Client: shown})})
	if err != nil {
		t.Fatal(err)
	}
	m, err := message.Unmarshal[message.Error](reply.Body)
	if err != nil || reply.Type != message.TypeError {
		t.Fatalf("the answer is of type %d: %v", reply.Type, err)
	}
	return m.Code
}

// lives reports whether the connection is still good for something.
func (n *renewing) lives(t *testing.T) bool {
	t.Helper()
	select {
	case <-n.conn.Done():
		return false
	default:
		return n.Server.Admin(t).Get(management + "edge-routers/" + n.ID).Want(200).Data()["isOnline"] == true
	}
}

// comesBack reports whether a router gets in with a certificate.
func (r *router) comesBack(t *testing.T, cert tls.Certificate) bool {
	t.Helper()
	opt := r.Options()
	opt.TLS.Certificates = []tls.Certificate{cert}
	ctx, cancel := context.WithTimeout(t.Context(), soon)
	defer cancel()
	c, err := scripted.Connect(ctx, opt)
	if err != nil {
		return false
	}
	c.Close()
	return true
}

// TestRenewal has a connected router get new certificates: nothing of its
// connection ends, and once it has shown the new one the old one is worthless.
func TestRenewal(t *testing.T) {
	s := servertest.Start(t)
	for name, verify := range map[string]bool{"shown first": true, "at once": false} {
		t.Run(name, func(t *testing.T) {
			n := renew(t, addRouter(t, s))
			old := n.Cert
			fresh, m := n.ask(t, verify, soon)
			if m == nil || m.Server == "" || m.CAs == "" {
				t.Fatalf("it is offered %+v", m)
			}
			if verify {
				if s.Admin(t).Get(management + "edge-routers/" + n.ID).Want(200).Data()["unverifiedFingerprint"] == nil {
					t.Error("what is offered is not shown")
				}
				if code := n.verify(t, m.Server); code == "" {
					t.Error("another certificate was taken for the new one")
				}
				if code := n.verify(t, m.Client); code != "" {
					t.Errorf("the new certificate was refused: %s", code)
				}
				if code := n.verify(t, m.Client); code == "" {
					t.Error("it was taken twice")
				}
			}
			if !n.lives(t) {
				t.Error("the connection ended")
			}
			if n.comesBack(t, old) {
				t.Error("the old certificate still lets it in")
			}
			if !n.comesBack(t, fresh) {
				t.Error("the new certificate does not let it in")
			}
		})
	}
}

// TestRenewalOfTheShutOut shows that one who is shut out cannot renew its way
// back in, whenever it asked.
func TestRenewalOfTheShutOut(t *testing.T) {
	s := servertest.Start(t)
	admin := s.Admin(t)
	n := renew(t, addRouter(t, s))
	_, m := n.ask(t, true, soon)
	if m == nil {
		t.Fatal("it is offered nothing")
	}
	admin.Patch(management+"edge-routers/"+n.ID, M{"disabled": true}).Want(200)
	select {
	case <-n.conn.Done():
	case <-time.After(soon):
		t.Error("a disabled router stays connected")
	}
	if n.comesBack(t, n.Cert) {
		t.Error("it comes back")
	}
	other := renew(t, addRouter(t, s))
	if code := other.verify(t, m.Client); code == "" {
		t.Error("another router took its certificate")
	}
	if !other.lives(t) {
		t.Error("that ended the other's connection")
	}
}
