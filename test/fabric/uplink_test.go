package fabric

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"netkeep.internal/internal/ops/config"
	"netkeep.internal/internal/router/uplink"
	"netkeep.internal/internal/wire/message"
	"netkeep.internal/test/servertest"
)

// asked is the rest of a router of our own: it takes down what it is asked for.
type asked struct {
	mu       sync.Mutex
	carried  map[string]*message.Route
	valid    map[string]bool
	over     []string // digests of sessions
	peers    map[string]message.PeerState
	faults   []message.Fault
	up, down int
	// fail, if set, is what making a circuit ends with.
	fail func(context.Context, *message.Route) error
}

func (a *asked) do(change func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	change()
}

func (a *asked) Route(ctx context.Context, _ string, m *message.Route) (map[uint32][]byte, error) {
	a.mu.Lock()
	fail := a.fail
	a.mu.Unlock()
	if fail != nil {
		if err := fail(ctx, m); err != nil {
			return nil, err
		}
	}
	a.do(func() { a.carried[m.CircuitID] = m })
	return map[uint32][]byte{1050: []byte("said just now"), 1: []byte("not for others")}, nil
}

func (a *asked) Unroute(m *message.Unroute) { a.do(func() { delete(a.carried, m.CircuitID) }) }

func (a *asked) Validate(_ context.Context, m *message.ValidateTerminators) map[string]message.TerminatorState {
	states := map[string]message.TerminatorState{}
	a.do(func() {
		for _, t := range m.Terminators {
			states[t.ID] = message.TerminatorState{Valid: a.valid[t.ID], Reason: 1}
		}
	})
	return states
}

func (a *asked) Peers(m *message.PeerStates) {
	a.do(func() {
		for _, p := range m.Changes {
			a.peers[p.ID] = p
		}
	})
}

func (a *asked) LinkFault(m *message.Fault) { a.do(func() { a.faults = append(a.faults, *m) }) }

func (a *asked) SessionsRemoved(digests []string) {
	a.do(func() { a.over = append(a.over, digests...) })
}

func (a *asked) Inspect(_ context.Context, names []string) map[string]string {
	return map[string]string{names[0]: `{"circuits":{}}`}
}

func (a *asked) Connected()    { a.do(func() { a.up++ }) }
func (a *asked) Disconnected() { a.do(func() { a.down++ }) }

// until fails the test unless something becomes true of what was asked.
func (a *asked) until(t *testing.T, what string, is func() bool) {
	t.Helper()
	servertest.Eventually(t, soon, what, func() (ok bool) {
		a.do(func() { ok = is() })
		return ok
	})
}

// own runs the uplink of a router of our own until the test ends.
func (r *router) own(t *testing.T, change ...func(*uplink.Options)) (*uplink.Uplink, *asked) {
	t.Helper()
	a := &asked{carried: map[string]*message.Route{}, valid: map[string]bool{}, peers: map[string]message.PeerState{}}
	server := r.Server // the test may give the router another meanwhile, with the same CA
	opt := uplink.Options{
		ID: r.ID, Endpoints: []string{"tls:" + strings.TrimPrefix(server.URL, "https://")},
		TLS: func() (*tls.Config, error) {
			cfg := server.TLS()
			cfg.Certificates = []tls.Certificate{r.Cert}
			return cfg, nil
		},
		Version: uplink.Release + "|abc|2026-08-20 19:41:33|linux|amd64", EdgeAddresses: []string{"tls:router.example:3022"},
		LinkListeners: []message.Listener{{Address: "tls:router.example:6262", Protocol: "tls"}},
		Handler:       a, Now: time.Now, Log: slog.New(slog.DiscardHandler),
	}
	for _, f := range change {
		f(&opt)
	}
	u, err := uplink.New(opt)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- u.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Errorf("it ended with %v", err)
		}
	})
	return u, a
}

// online waits until clients are told to use the router.
func (r *router) online(t *testing.T) servertest.M {
	t.Helper()
	var got M
	servertest.Eventually(t, soon, "the router is online", func() bool {
		got = r.Server.Admin(t).Get(management + "edge-routers/" + r.ID).Want(200).Data()
		return got["isOnline"] == true && got["syncStatus"] == "SYNC_DONE"
	})
	return got
}

// TestUplink has a router of our own connect, host and dial in the name of
// clients, and end what the controller ends.
func TestUplink(t *testing.T) {
	s := servertest.Start(t)
	r, n := addRouter(t, s), addNetwork(t, s)
	u, a := r.own(t)
	got := r.online(t)
	if got["supportedProtocols"].(M)["tls"] != "tls://router.example:3022" || got["hostname"] != "router.example" {
		t.Errorf("it is reached at %v, %v", got["supportedProtocols"], got["hostname"])
	}
	if st := u.Status(); !st.Connected || st.ControllerID == "" || st.Problem != "" {
		t.Errorf("it says of itself %+v", st)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*soon)
	defer cancel()

	q := &message.CreateCircuit{SessionToken: n.dialing, APISessionToken: n.dialer.Token, PeerData: map[uint32][]byte{message.PeerAppData: []byte("data")}}
	var refusal *message.Refusal
	if _, err := u.Dial(ctx, q); !errors.As(err, &refusal) || refusal.Code != message.CodeInvalidTerminator {
		t.Errorf("a service that nobody hosts: %v", err)
	}
	a.do(func() { a.valid["terminator1"] = true })
	host := &message.CreateTerminator{Address: "terminator1", SessionToken: n.hosting, APISessionToken: n.host.Token}
	if created, err := u.Host(ctx, host); err != nil || created.Result != message.TerminatorOK {
		t.Fatalf("hosting: %+v, %v", created, err)
	}
	d, err := u.Dial(ctx, q)
	if err != nil {
		t.Fatal(err)
	}
	a.do(func() {
		route := a.carried[d.CircuitID]
		if route == nil || route.Egress == nil || route.Egress.Destination != "terminator1" || string(route.Egress.PeerData[message.PeerAppData]) != "data" {
			t.Errorf("the route was %+v", route)
		}
		if string(d.PeerData[1050]) != "said just now" || d.PeerData[1] != nil || d.Address == "" {
			t.Errorf("the dialer is told %+v", d)
		}
	})
	if err := u.Update(ctx, &message.UpdateTerminator{TerminatorID: "terminator1", SessionToken: n.hosting, Cost: 7, UpdateCost: true}); err != nil {
		t.Error(err)
	}
	if cost := s.Admin(t).Get(management + "terminators/terminator1").Want(200).Data()["cost"]; cost != 7. {
		t.Errorf("it costs %v", cost)
	}
	s.Admin(t).Delete(management + "service-policies/" + n.dialPolicy).Want(200)
	a.until(t, "the circuit and its session end", func() bool {
		return a.carried[d.CircuitID] == nil && len(a.over) == 1 && a.over[0] == message.Digest(n.dialing)
	})
	if err := u.Remove(ctx, []string{"terminator1", "unknown"}); err != nil {
		t.Error(err)
	}
	s.Admin(t).Get(management + "terminators/terminator1").Want(404)
}

// TestUplinkSessions knows API sessions as they come and go, by their tokens,
// and tells who relies on one that it has ended.
func TestUplinkSessions(t *testing.T) {
	s := servertest.Start(t)
	r, user := addRouter(t, s), s.AddUser(t, false)
	allow(t, s, "@"+user.ID, "@"+r.ID)
	early := login(t, s, user)
	u, _ := r.own(t)
	r.online(t)
	late := login(t, s, user)
	for _, c := range []*servertest.Client{early, late} {
		got, ok := u.Sessions().Await(t.Context(), c.Token)
		if !ok || got.IdentityID != user.ID {
			t.Errorf("%+v, %v", got, ok)
		}
	}
	short, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if got, ok := u.Sessions().Await(short, "nobody's"); ok {
		t.Errorf("nobody's session is %+v", got)
	}
	session, _ := u.Sessions().Await(t.Context(), late.Token)
	if _, ok := u.Sessions().Watch(session.ID, "0123", func() {}); ok {
		t.Error("a certificate that nobody issued belongs to the session")
	}
	ended := make(chan struct{})
	servertest.Eventually(t, soon, "the certificate is known", func() bool {
		session, _ = u.Sessions().Await(t.Context(), late.Token)
		return len(session.Fingerprints) == 1
	})
	if _, ok := u.Sessions().Watch(session.ID, session.Fingerprints[0], func() { close(ended) }); !ok {
		t.Fatal("the session's own certificate does not belong to it")
	}
	late.Delete(client + "current-api-session").Want(200)
	select {
	case <-ended:
	case <-time.After(soon):
		t.Fatal("nobody was told that the session is over")
	}
	if _, ok := u.Sessions().Watch(session.ID, session.Fingerprints[0], func() {}); ok {
		t.Error("a session that is over can be watched")
	}
}

// TestUplinkReturns has the controller stop and start: requests fail at once
// meanwhile, with a reason, and all is as before when it is back.
func TestUplinkReturns(t *testing.T) {
	dir := t.TempDir()
	first, err := servertest.Open(dir)
	must(t, err)
	r, n := addRouter(t, first), addNetwork(t, first)
	u, a := r.own(t)
	r.online(t)
	if _, ok := u.Sessions().Await(t.Context(), n.dialer.Token); !ok {
		t.Fatal("the session is not told")
	}
	_, gone := u.Arrived(uplink.Client{Token: n.dialer.Token, IdentityID: n.dialUser.ID})
	defer gone()
	must(t, first.Close())
	a.until(t, "it knows that the controller is away", func() bool { return a.down == 1 })
	if _, err := u.Dial(t.Context(), &message.CreateCircuit{SessionToken: n.dialing}); !errors.Is(err, uplink.ErrAway) {
		t.Errorf("a dial while nobody is there: %v", err)
	}
	if _, ok := u.Sessions().Await(t.Context(), n.dialer.Token); !ok {
		t.Error("a session is forgotten because the controller is away")
	}
	second, err := servertest.Open(dir, func(c *config.Config) { c.Listen = first.Listening().String() })
	must(t, err)
	t.Cleanup(func() { must(t, second.Close()) })
	r.Server = second
	r.online(t)
	servertest.Eventually(t, soon, "the dialer is connected", func() bool {
		return second.Admin(t).Get(management + "identities/" + n.dialUser.ID).Want(200).Data()["hasEdgeRouterConnection"] == true
	})
	a.until(t, "it was connected twice", func() bool { return a.up == 2 })
	if st := u.Status(); !st.Connected {
		t.Errorf("it says %+v", st)
	}
}

// TestUplinkShutOut says why a router that is disabled cannot connect.
func TestUplinkShutOut(t *testing.T) {
	s := servertest.Start(t)
	r := addRouter(t, s)
	s.Admin(t).Patch(management+"edge-routers/"+r.ID, M{"disabled": true}).Want(200)
	u, _ := r.own(t)
	servertest.Eventually(t, soon, "it knows why", func() bool {
		return strings.Contains(u.Status().Problem, "the router is disabled")
	})
}

// TestUplinkPeers hears of other routers, and is vouched for among them.
func TestUplinkPeers(t *testing.T) {
	s := servertest.Start(t)
	one, two := addRouter(t, s), addRouter(t, s)
	u, a := one.own(t)
	_, b := two.own(t)
	a.until(t, "the first knows the second", func() bool { return len(a.peers[two.ID].Listeners) == 1 })
	b.until(t, "the second knows the first", func() bool { return a.peers[two.ID].State == message.PeerHealthy })
	ctx, cancel := context.WithTimeout(t.Context(), soon)
	defer cancel()
	if err := u.VerifyRouter(ctx, two.ID, two.Fingerprint(t)); err != nil {
		t.Error(err)
	}
	if err := u.VerifyRouter(ctx, two.ID, one.Fingerprint(t)); err == nil {
		t.Error("one router passes for another")
	}
	must(t, u.ReportLinks([]message.Link{{ID: "link1", Destination: two.ID, Protocol: "tls", DialAddress: "tls:router.example:6262", Iteration: 1}}, true))
	servertest.Eventually(t, soon, "the link is known", func() bool {
		return s.Admin(t).Get(fabricAPI+"links").Want(200).Total() == 1
	})
	must(t, u.Fault(message.Fault{Subject: message.FaultLink, ID: "link1", Iteration: 1}))
	b.until(t, "the other end is told that the link is gone", func() bool { return len(b.faults) == 1 && b.faults[0].ID == "link1" })
}

// TestUplinkTwice has two routers run with one certificate, as with a copy of a
// directory: they take each other's place, and say so.
func TestUplinkTwice(t *testing.T) {
	s := servertest.Start(t)
	r := addRouter(t, s)
	u, _ := r.own(t)
	again, _ := r.own(t)
	servertest.Eventually(t, 4*soon, "one of them knows what may be wrong", func() bool {
		return strings.Contains(u.Status().Problem+again.Status().Problem, "a copy of its directory")
	})
}

// TestUplinkClock says that the clock may be wrong by which the controller's
// certificate has expired.
func TestUplinkClock(t *testing.T) {
	s := servertest.Start(t)
	r := addRouter(t, s)
	u, _ := r.own(t, func(o *uplink.Options) {
		usual := o.TLS
		o.TLS = func() (*tls.Config, error) {
			cfg, err := usual()
			cfg.Time = func() time.Time { return time.Now().AddDate(30, 0, 0) }
			return cfg, err
		}
	})
	servertest.Eventually(t, soon, "it says what may be wrong", func() bool { return strings.Contains(u.Status().Problem, "set the clock") })
}
