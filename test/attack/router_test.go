package attack_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"maps"
	"net"
	"runtime"
	"slices"
	"syscall"
	"testing"
	"time"

	"netkeep.internal/internal/model"
	"netkeep.internal/internal/wire/message"
	"netkeep.internal/test/scripted"
	"netkeep.internal/test/servertest"
)

const (
	management = "/edge/management/v1/"
	client     = "/edge/client/v1/"
	// unnoticed is what is soon enough while a router attacks.
	unnoticed = 100 * time.Millisecond
	// perRouter is what one router may cost in memory, as docs/security.md has it.
	perRouter = 200 << 20
)

// asking is a new key, and what asks for a certificate of it.
func asking(t *testing.T, name string) (*ecdsa.PrivateKey, string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{Subject: pkix.Name{CommonName: name}}, key)
	if err != nil {
		t.Fatal(err)
	}
	return key, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}))
}

// enrolled is a new router, with all that it needs to connect.
func enrolled(t *testing.T, s *servertest.Server) scripted.Options {
	t.Helper()
	opt := s.AddRouter(t).Options()
	opt.Address, opt.From = s.Address(), &net.TCPAddr{IP: newAddress()}
	return opt
}

// line is a service that one user hosts at a router and another dials there.
type line struct {
	dialing, dialer, hosting string // tokens
	terminator               string
}

func addLine(t *testing.T, s *servertest.Server, r *scripted.Router) line {
	t.Helper()
	admin := s.Admin(t)
	service := admin.Post(management+"services", M{"name": servertest.Unique("service"), "encryptionRequired": false}).Want(201).ID()
	enter := func(typ string) (token, session string) {
		u := s.AddUser(t, false)
		admin.Post(management+"service-policies", M{
			"name": servertest.Unique(typ), "type": typ, "semantic": "AnyOf", "identityRoles": []string{"@" + u.ID}, "serviceRoles": []string{"@" + service},
		}).Want(201)
		c := s.Login(t, u.Username, u.Password)
		_, csr := asking(t, "me")
		c.Post(client+"current-api-session/certificates", M{"csr": csr}).Want(201)
		return c.Token, c.Post(client+"sessions", M{"serviceId": service, "type": typ}).Want(201).Data()["token"].(string)
	}
	var l line
	_, l.hosting = enter(model.Bind)
	l.dialer, l.dialing = enter(model.Dial)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	l.terminator = servertest.Unique("t")
	got, err := r.Host(ctx, message.CreateTerminator{Address: l.terminator, SessionToken: l.hosting})
	if err != nil || got.Result != message.TerminatorOK {
		t.Fatalf("hosting: %+v, %v", got, err)
	}
	return l
}

// heap is how many bytes are in use, in this process with the controller.
func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// worked is how long this process has used a core.
func worked() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// TestBadRouter has one router do whatever it can to a controller, while people
// use its APIs and others dial through another router. The one that attacks is
// another process, to which this machine gives what others leave, as if it had
// one of its own: what people see is what it makes the controller do. How soon
// they are served is logged, and judged by what the machine takes for anything:
//
//	go test ./test/attack -run TestBadRouter -v -seconds 10
func TestBadRouter(t *testing.T) {
	s := servertest.Start(t)
	admin := s.Admin(t)
	for path, roles := range map[string]string{"edge-router-policies": "identityRoles", "service-edge-router-policies": "serviceRoles"} {
		admin.Post(management+path, M{
			"name": servertest.Unique("all"), "semantic": "AnyOf", "edgeRouterRoles": []string{"#all"}, roles: []string{"#all"},
		}).Want(201)
	}
	other := enrolled(t, s)
	good := servertest.Connect(t, other)
	well := addLine(t, s, good)
	people := append(others(t, s), &person{name: "dials", every: 20 * time.Millisecond, tries: 3, ask: func(ctx context.Context) error {
		_, _, err := good.Dial(ctx, well.dialing, well.dialer, nil)
		return err
	}})
	for _, p := range people {
		p.soon = unnoticed
	}
	for _, name := range slices.Sorted(maps.Keys(misdeeds)) {
		t.Run(name, func(t *testing.T) {
			opt := enrolled(t, s)
			first := servertest.Connect(t, opt)
			hung := addLine(t, s, first)
			first.Close()
			for _, p := range people {
				p.took, p.bad = nil, nil
			}
			before, busy, start := heap(), worked(), time.Now()
			var used int64
			while(t, s, func(ctx context.Context, ready func()) {
				used = besiege(ctx, t, orders(t, name, opt, hung, other.ID), ready)
			}, people)
			grown := used - before
			t.Logf("memory grew by %d MiB, %d %% of a core are in use", grown>>20, 100*(worked()-busy)/time.Since(start))
			if grown > perRouter {
				t.Errorf("one router takes %d MiB", grown>>20)
			}
		})
	}
}
