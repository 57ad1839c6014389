package cluster_test

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"testing"
	"time"

	"netkeep.internal/internal/model"
	"netkeep.internal/internal/ops/config"
	"netkeep.internal/internal/wire"
	"netkeep.internal/internal/wire/message"
	"netkeep.internal/test/etcdtest"
	"netkeep.internal/test/scripted"
	"netkeep.internal/test/servertest"
)

// TestDialWaits dials at a controller that has yet to hear of the router where the
// service is hosted, which is at another: nobody is told that nobody hosts it, and
// the dial comes about when the router does.
func TestDialWaits(t *testing.T) {
	beside(t)
	etcd := etcdtest.Start(t)
	use := func(c *config.Config) { etcd.Settings(c) }
	a := servertest.Start(t, use)
	b := closing(t, second(t, a, use))
	s, host := addService(t, a), a.AddRouter(t)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	opt := host.Options()
	hosting, err := scripted.Connect(ctx, opt)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(hosting.Close)
	got, err := hosting.Host(ctx, message.CreateTerminator{Address: "terminator1", SessionToken: s.hosting})
	if err != nil || got.Result != message.TerminatorOK {
		t.Fatalf("hosting: %+v, %v", got, err)
	}
	there := s.connect(t, b.RouterAddress())
	eventually(t, b.Admin(t), "terminators/terminator1", http.StatusOK)
	servertest.Eventually(t, patience, "the router is somewhere", func() bool {
		return b.Admin(t).Get("edge-routers/" + host.ID).Want(http.StatusOK).Data()["isOnline"] == true
	})
	_, _, err = there.Dial(ctx, s.dialing, s.token, nil)
	if refused, ok := errors.AsType[*message.Refusal](err); !ok || refused.Retry != message.RetryTooBusy {
		t.Fatalf("a dial to a router that is at another controller: %v", err)
	}

	opt.Address = b.RouterAddress()
	came, err := scripted.Connect(ctx, opt)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(came.Close)
	if err := came.Link(message.Link{ID: "link", Destination: s.router.ID, Protocol: "tls", DialAddress: "tls:127.0.0.1:6262", Iteration: 1}); err != nil {
		t.Fatal(err)
	}
	s.dial(t, there)
}

// sessions are the one to dial and the one to host that there are, and who dials.
func sessions(t *testing.T, s *servertest.Server) (dial, bind, identity string) {
	t.Helper()
	for _, m := range s.Admin(t).Get("sessions?limit=500").Want(http.StatusOK).List() {
		if m["type"] == model.Bind {
			bind = m["id"].(string)
			continue
		}
		dial, identity = m["id"].(string), m["identityId"].(string)
	}
	return dial, bind, identity
}

// TestStrays has a router carry a circuit by the word of a controller that is gone,
// with a session that ends: another controller ends the circuit, and leaves those of
// other sessions alone.
func TestStrays(t *testing.T) {
	beside(t)
	etcd := etcdtest.Start(t)
	use := func(c *config.Config) { etcd.Settings(c) }
	a := servertest.Start(t, use)
	s, admin := addService(t, a), a.Admin(t)
	dial, bind, identity := sessions(t, a)
	stray, other := "stray."+dial+"."+bind, "other.x."+bind
	r := s.connect(t, a.RouterAddress(), func(o *scripted.Options) {
		o.Circuits = map[string]*message.Route{stray: {}, other: {}}
		o.Owners = map[string]string{stray: "netkeep-0123456789ab", other: "netkeep-0123456789ab"}
	})
	events := &message.ConnectEvents{Full: true, Events: []message.ConnectEvent{{IdentityID: identity, Connected: true, Times: []message.ConnectTime{{At: time.Now().UnixMilli()}}}}}
	if err := r.Send(&wire.Frame{Type: message.TypeConnectEvents, Body: message.Marshal(events)}); err != nil {
		t.Fatal(err)
	}
	servertest.Eventually(t, patience, "the client is connected", func() bool {
		return admin.Get("identities/" + identity).Want(http.StatusOK).Data()["hasEdgeRouterConnection"] == true
	})
	admin.Delete("sessions/" + dial).Want(http.StatusOK)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := r.Await(ctx, func(k scripted.Known) bool { return k.Circuits[stray] == nil }); err != nil {
		t.Errorf("a circuit goes on whose session is over: %v", err)
	}
	if has, _ := r.Has(); has[other] == nil {
		t.Error("a circuit of another session was ended")
	}
}

// TestEndsMeanwhile has a router say that a circuit is over while the controller asks
// what it carries, and answer as it was before: the circuit is not taken on.
func TestEndsMeanwhile(t *testing.T) {
	beside(t)
	a := servertest.Start(t)
	s := addService(t, a)
	dial, bind, _ := sessions(t, a)
	circuit := "circuit." + dial + "." + bind
	self := make(chan *scripted.Router, 1)
	var once sync.Once
	r := s.connect(t, a.RouterAddress(), func(o *scripted.Options) {
		o.Circuits = map[string]*message.Route{circuit: {Forwards: []message.Forward{{From: "in.x", To: "out.x"}, {From: "out.x", To: "in.x"}}}}
		o.Then = func(r *scripted.Router) { self <- r }
		o.Seen = func(f *wire.Frame) {
			if f.Type == message.TypeInspectRequest {
				once.Do(func() {
					_ = (<-self).Send(&wire.Frame{Type: message.TypeFault, Body: message.Marshal(&message.Fault{Subject: message.FaultIngress, ID: circuit})})
				})
			}
		}
	})
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := r.Await(ctx, func(k scripted.Known) bool { return k.Circuits[circuit] == nil }); err != nil {
		t.Errorf("a circuit goes on that is over: %v", err)
	}
	a.Admin(t).Get(fabricRoot + "circuits/" + circuit).Want(http.StatusNotFound)
}

// TestForgottenLater has a router name a circuit when it is asked what it carries, and
// not a while later: routers of others name circuits for some seconds that are over.
func TestForgottenLater(t *testing.T) {
	atOnce(t)
	a := servertest.Start(t)
	s := addService(t, a)
	dial, bind, _ := sessions(t, a)
	circuit := "circuit." + dial + "." + bind
	r := s.connect(t, a.RouterAddress(), func(o *scripted.Options) {
		o.Circuits = map[string]*message.Route{circuit: {Forwards: []message.Forward{{From: "in.x", To: "out.x"}, {From: "out.x", To: "in.x"}}}}
	})
	shown := func() bool { return a.Admin(t).Get(fabricRoot+"circuits/"+circuit).Status == http.StatusOK }
	servertest.Eventually(t, patience, "the circuit is taken on", shown)
	r.Drop(circuit)
	servertest.Eventually(t, patience, "the circuit is forgotten", func() bool { return !shown() })
}
