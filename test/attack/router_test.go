package attack_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"net"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"netkeep.internal/internal/model"
	"netkeep.internal/internal/wire"
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

// misbehave has a router say something again and again, each time when what came
// before was heard. When it is cut off it comes again. It returns how many bytes
// are in use at the end, before it leaves.
func misbehave(ctx context.Context, opt scripted.Options, ready func(), say func(r *scripted.Router, i int) error) (used int64) {
	for said := 0; ctx.Err() == nil; {
		r, err := scripted.Connect(ctx, opt)
		if err != nil {
			ready() // it is kept out
			select {
			case <-ctx.Done():
			case <-time.After(20 * time.Millisecond):
			}
			continue
		}
		for ; ctx.Err() == nil && say(r, said) == nil; said++ {
			if _, err := r.Request(ctx, &wire.Frame{Type: message.TypePing}); err != nil {
				break
			}
			if said == 20 {
				ready()
			}
		}
		ready()
		used = heap()
		r.Close()
	}
	return max(used, heap())
}

// frames is a router that sends what frame makes.
func frames(frame func(i int) *wire.Frame) func(*scripted.Router, int) error {
	return func(r *scripted.Router, i int) error { return r.Send(frame(i)) }
}

// heap is how many bytes are in use, in this process with the controller.
func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// TestBadRouter has one router do whatever it can to a controller, while people
// use its APIs and others dial through another router.
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
	over := make(chan struct{})
	defer close(over)
	bad := func() scripted.Options {
		opt := enrolled(t, s)
		opt.Aside = true
		opt.Route = func(*message.Route) (wire.Headers, error) {
			<-over
			return nil, nil
		}
		return opt
	}
	mute := bad()
	hung := addLine(t, s, servertest.Connect(t, mute))
	long := strings.Repeat("x", 7<<20)
	dial := wire.Headers{}
	dial.SetText(message.HeaderSessionToken, hung.dialing)
	dial.SetText(message.HeaderAPISessionToken, hung.dialer)
	invented := map[string]*message.Route{}
	for i := range 20_000 {
		invented[fmt.Sprintf("invented%d", i)] = &message.Route{Forwards: []message.Forward{{From: "in", To: "out"}, {From: "out", To: "in"}}}
	}
	var links message.Links
	for i := range 10_010 {
		links.Links = append(links.Links, message.Link{ID: fmt.Sprintf("invented-%d", i), Destination: other.ID, Protocol: "tls", DialAddress: "tls:127.0.0.1:1", Iteration: 1})
	}
	people := append(others(t, s), &person{name: "dials", every: 20 * time.Millisecond, tries: 3, ask: func(ctx context.Context) error {
		_, _, err := good.Dial(ctx, well.dialing, well.dialer, nil)
		return err
	}})
	for _, p := range people {
		p.soon = unnoticed
	}
	for _, attack := range []struct {
		name string
		opt  scripted.Options
		say  func(*scripted.Router, int) error
	}{
		{"nothing", bad(), func(*scripted.Router, int) error { // for comparison
			<-time.After(20 * time.Millisecond)
			return nil
		}},
		{"large frames", bad(), frames(func(i int) *wire.Frame {
			if i%2 == 0 {
				return &wire.Frame{Type: message.TypeCreateCircuit, Headers: dial, Body: []byte(long)}
			}
			return &wire.Frame{Type: message.TypeConnectEvents, Body: message.Marshal(&message.ConnectEvents{Events: []message.ConnectEvent{{IdentityID: fmt.Sprint(i) + long, Connected: true}}})}
		})},
		{"dials that nobody answers", mute, func(r *scripted.Router, _ int) error {
			for range 100 {
				if err := r.Send(&wire.Frame{Type: message.TypeCreateCircuit, Headers: dial, Body: []byte(long[:10_000])}); err != nil {
					return err
				}
			}
			return nil
		}},
		{"circuits that there are not", func() scripted.Options {
			opt := bad()
			opt.Circuits = invented
			return opt
		}(), func(r *scripted.Router, _ int) error {
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			defer cancel()
			_ = r.Await(ctx, func(k scripted.Known) bool { return len(k.Circuits) < len(invented) })
			return context.Canceled // it connects again
		}},
		{"links of another", bad(), frames(func(int) *wire.Frame {
			return &wire.Frame{Type: message.TypeRouterLinks, Body: message.Marshal(&links)}
		})},
		{"long names and reasons", bad(), frames(func(i int) *wire.Frame {
			if i%2 == 0 {
				return &wire.Frame{Type: message.TypeResyncRequest, Body: message.Marshal(&message.ResyncRequest{Reason: strings.Repeat("\x01", 60_000)})}
			}
			return &wire.Frame{Type: message.TypeClientHello, Body: message.Marshal(&message.ClientHello{Hostname: long[:[]int{60_000, 3_800_000}[i/2%2]]})}
		})},
		{"changes of a host", mute, func(r *scripted.Router, i int) error {
			var all sync.WaitGroup
			for n := range 100 {
				all.Go(func() {
					_, _ = r.Request(t.Context(), &wire.Frame{Type: message.TypeUpdateTerminator, Body: message.Marshal(&message.UpdateTerminator{
						SessionToken: hung.hosting, TerminatorID: hung.terminator, UpdateCost: true, Cost: uint32(100*i+n) % 60_000,
					})})
				})
			}
			all.Wait()
			return nil
		}},
		{"changes of itself", bad(), frames(func(i int) *wire.Frame {
			return &wire.Frame{Type: []int32{message.TypeQuiesce, message.TypeDequiesce}[i%2]}
		})},
	} {
		t.Run(attack.name, func(t *testing.T) {
			for _, p := range people {
				p.took, p.bad = nil, nil
			}
			before := heap()
			var used int64
			while(t, s, func(ctx context.Context, ready func()) { used = misbehave(ctx, attack.opt, ready, attack.say) }, people)
			grown := used - before
			t.Logf("memory grew by %d MiB", grown>>20)
			if grown > perRouter {
				t.Errorf("one router takes %d MiB", grown>>20)
			}
		})
	}
}
