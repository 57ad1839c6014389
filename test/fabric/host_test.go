package fabric

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"netkeep.internal/internal/model"
	"netkeep.internal/internal/wire"
	"netkeep.internal/internal/wire/message"
	"netkeep.internal/test/scripted"
	"netkeep.internal/test/servertest"
)

// stage is a router at which hosts come and go, and who of them does not
// answer.
type stage struct {
	*network
	t      *testing.T
	record *router
	router *scripted.Router

	mu    sync.Mutex
	deaf  map[string]bool
	tried []string // since somebody asked
}

func addStage(t *testing.T, s *servertest.Server) *stage {
	t.Helper()
	st := &stage{t: t, record: addRouter(t, s), network: addNetwork(t, s), deaf: map[string]bool{}}
	st.connect()
	return st
}

// connect has the router connect, again if it was there before.
func (s *stage) connect() {
	s.t.Helper()
	s.router = s.record.Connect(s.t, func(o *scripted.Options) { o.Route = s.route })
}

func (s *stage) route(m *message.Route) (wire.Headers, error) {
	if m.Egress == nil {
		return nil, nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tried = append(s.tried, m.Egress.Destination)
	if s.deaf[m.Egress.Destination] {
		return nil, errors.New("nobody answers")
	}
	return nil, nil
}

func (s *stage) silence(id string, deaf bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.deaf[id] = deaf
}

// strategy has the service choose its hosts in another way.
func (s *stage) strategy(name string) {
	s.t.Helper()
	s.Admin(s.t).Patch(management+"services/"+s.service, M{"terminatorStrategy": name}).Want(200)
}

// host begins to host, and returns how that is answered.
func (s *stage) host(m message.CreateTerminator) *message.TerminatorCreated {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), soon)
	defer cancel()
	if m.SessionToken == "" {
		m.SessionToken = s.hosting
	}
	got, err := s.router.Host(ctx, m)
	must(s.t, err)
	return got
}

// hosts has some begin to host who must be let.
func (s *stage) hosts(all ...message.CreateTerminator) {
	s.t.Helper()
	for _, m := range all {
		if got := s.host(m); got.Result != message.TerminatorOK {
			s.t.Fatalf("hosting %s: %+v", m.Address, got)
		}
	}
}

// rate changes how a host is to be chosen, as its client would.
func (s *stage) rate(id string, p message.Precedence) {
	s.t.Helper()
	s.request(message.TypeUpdateTerminator, message.TypeTerminatorUpdated, message.Marshal(&message.UpdateTerminator{
		SessionToken: s.hosting, TerminatorID: id, UpdatePrecedence: true, Precedence: p,
	}))
}

// leave has a host host no more.
func (s *stage) leave(id string) {
	s.t.Helper()
	s.request(message.TypeRemoveTerminator, message.TypeTerminatorRemoved, message.Marshal(&message.RemoveTerminator{SessionToken: s.hosting, TerminatorID: id}))
}

// request has the router ask for something that must be answered in one way.
func (s *stage) request(typ, answer int32, body []byte) *wire.Frame {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), soon)
	defer cancel()
	reply, err := s.router.Request(ctx, &wire.Frame{Type: typ, Body: body})
	must(s.t, err)
	if reply.Type != answer {
		s.t.Fatalf("it is answered with %d: %s", reply.Type, reply.Body)
	}
	return reply
}

// dial dials a host by name, or any if the name is empty, and returns who was
// tried, in order, and what the dialer was told.
func (s *stage) dial(name, token string) (tried []string, told map[uint32][]byte, err error) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), soon)
	defer cancel()
	h := wire.Headers{}
	h.SetText(message.HeaderInstanceID, name)
	h.SetText(message.HeaderSessionToken, s.dialing)
	h.SetText(message.HeaderAPISessionToken, s.dialer.Token)
	h.SetData(message.HeaderPeerData, map[uint32][]byte{message.PeerPublicKey: []byte("key"), message.PeerSticky: []byte(token)})
	reply, err := s.router.Request(ctx, &wire.Frame{Type: message.TypeCreateCircuit, Headers: h})
	must(s.t, err)
	if reply.Type == message.TypeCircuitCreated {
		told, _ = reply.Headers.Data(message.HeaderPeerData)
	} else {
		err = message.RefusalIn(reply)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	tried, s.tried = s.tried, nil
	return tried, told, err
}

// reaches fails the test unless a dial tries these hosts in this order, and
// the last of them answers.
func (s *stage) reaches(what string, want ...string) {
	s.t.Helper()
	got, _, err := s.dial("", "")
	if err != nil || fmt.Sprint(got) != fmt.Sprint(want) {
		s.t.Fatalf("%s: %q were tried, want %q; %v", what, got, want, err)
	}
}

// dynamic is what a terminator costs more.
func (s *stage) dynamic(id string) float64 {
	s.t.Helper()
	return s.Admin(s.t).Get(management + "terminators/" + id).Want(200).Data()["dynamicCost"].(float64)
}

// TestFailover has hosts fail that must be used before others.
func TestFailover(t *testing.T) {
	s := addStage(t, servertest.Start(t))
	s.hosts(
		message.CreateTerminator{Address: "first", Precedence: message.PrecedenceRequired, Cost: 60000},
		message.CreateTerminator{Address: "second", Cost: 1000},
		message.CreateTerminator{Address: "third", Precedence: message.PrecedenceFailed},
	)
	s.reaches("all are well", "first")
	s.silence("first", true)
	s.reaches("one must be used and does not answer", "first", "second")
	s.silence("second", true)
	s.reaches("only the last answers", "first", "second", "third")
	s.rate("first", message.PrecedenceFailed)
	s.silence("second", false)
	s.reaches("one says that it failed", "second")
	s.silence("first", false)
	s.rate("first", message.PrecedenceRequired)
	s.reaches("it says that it is well", "first")
	s.silence("first", true)
	s.silence("second", true)
	s.silence("third", true)
	if tried, _, err := s.dial("", ""); err == nil || len(tried) != 3 {
		t.Errorf("nobody answers, %q were tried: %v", tried, err)
	}
}

// TestFailuresCost has a host not answer: it costs more until it has answered
// again for a while.
func TestFailuresCost(t *testing.T) {
	s := addStage(t, servertest.Start(t))
	s.hosts(message.CreateTerminator{Address: "cheap"}, message.CreateTerminator{Address: "dear", Cost: 50})
	s.silence("cheap", true)
	s.reaches("the cheapest does not answer", "cheap", "dear")
	if cost := s.dynamic("cheap"); cost < 55 || cost > 64 || s.dynamic("dear") != 0 {
		t.Errorf("who failed costs %v more, the other %v", cost, s.dynamic("dear"))
	}
	s.silence("cheap", false)
	s.reaches("it has not recovered", "dear")
	s.leave("dear")
	for range 7 {
		s.reaches("it is the only one", "cheap")
	}
	if cost := s.dynamic("cheap"); cost != 0 {
		t.Errorf("after many successes it costs %v more", cost)
	}
	s.hosts(message.CreateTerminator{Address: "dear", Cost: 50})
	s.reaches("it has recovered", "cheap")
}

// TestSticky has a client come back to the host that it had.
func TestSticky(t *testing.T) {
	s := addStage(t, servertest.Start(t))
	s.strategy("sticky")
	for i := range 5 {
		s.hosts(message.CreateTerminator{Address: fmt.Sprintf("host%d", i)})
	}
	again := func(token string) string {
		t.Helper()
		tried, told, err := s.dial("", token)
		if must(t, err); len(tried) != 1 || string(told[message.PeerSticky]) != tried[0] {
			t.Fatalf("%q were tried, and the token is %q", tried, told[message.PeerSticky])
		}
		return tried[0]
	}
	had := again("")
	for range 10 {
		if got := again(had); got != had {
			t.Fatalf("%s was chosen instead of %s", got, had)
		}
	}
	s.rate(had, message.PrecedenceFailed)
	other := again(had)
	if other == had {
		t.Error("a host that failed was chosen again")
	}
	s.rate(had, message.PrecedenceDefault)
	s.leave(other)
	if got := again(other); got == other {
		t.Error("a host that is gone was chosen")
	}
	s.hosts(message.CreateTerminator{Address: "must", Precedence: message.PrecedenceRequired})
	if got := again(had); got != "must" {
		t.Errorf("%s was chosen before one that must be", got)
	}
}

// TestNames dials hosts by name. Nobody takes the name of another.
func TestNames(t *testing.T) {
	s := addStage(t, servertest.Start(t))
	s.hosts(
		message.CreateTerminator{Address: "a1", InstanceID: "a", InstanceSecret: []byte("one")},
		// A client signs anew each time that it begins.
		message.CreateTerminator{Address: "a2", InstanceID: "a", InstanceSecret: []byte("two"), Precedence: message.PrecedenceRequired},
		message.CreateTerminator{Address: "b1", InstanceID: "b"},
	)
	for name, want := range map[string]string{"a": "a2", "b": "b1"} {
		if tried, _, err := s.dial(name, ""); err != nil || fmt.Sprint(tried) != "["+want+"]" {
			t.Errorf("dialling %s: %q were tried: %v", name, tried, err)
		}
	}
	for _, name := range []string{"", "c"} {
		if tried, _, err := s.dial(name, ""); !isRefused(err, message.CodeInvalidTerminator) || len(tried) > 0 {
			t.Errorf("dialling %q: %q were tried: %v", name, tried, err)
		}
	}
	other := s.session(t, s.another(t), model.Bind)
	for _, m := range []message.CreateTerminator{
		{Address: "x1", InstanceID: "a", SessionToken: other},
		{Address: "x2", InstanceID: "a", SessionToken: other, InstanceSecret: []byte("three")},
		{Address: "x3", InstanceID: "b", SessionToken: other},
	} {
		if got := s.host(m); got.Result != message.TerminatorFailed || got.ErrorCode != message.CodeInvalidInstance {
			t.Errorf("another host as %s: %+v", m.InstanceID, got)
		}
	}
	s.hosts(
		message.CreateTerminator{Address: "x4", InstanceID: "a", SessionToken: other, InstanceSecret: []byte("two")}, // it was told the secret
		message.CreateTerminator{Address: "x5", InstanceID: "c", SessionToken: other},
		message.CreateTerminator{Address: "x6", SessionToken: other},
	)
	s.leave("b1")
	s.hosts(message.CreateTerminator{Address: "x7", InstanceID: "b", SessionToken: other}) // nobody has the name
}

// another is somebody else who may host the service.
func (s *stage) another(t *testing.T) *servertest.Client {
	t.Helper()
	u := s.AddUser(t, false)
	s.Admin(t).Post(management+"service-policies", M{
		"name": servertest.Unique("bind"), "type": model.Bind, "semantic": "AnyOf",
		"identityRoles": []string{"@" + u.ID}, "serviceRoles": []string{"@" + s.service},
	}).Want(201)
	return s.Login(t, u.Username, u.Password)
}

// TestManyHosts has a service hosted a thousand times: dials share what costs
// the same, and go on when many hosts have ended at once.
func TestManyHosts(t *testing.T) {
	s := addStage(t, servertest.Start(t))
	const perSession = 250
	var other *servertest.Client
	sessions := []string{s.hosting}
	for range 3 {
		other = s.another(t)
		sessions = append(sessions, s.session(t, other, model.Bind))
	}
	var all sync.WaitGroup
	for i, token := range sessions {
		all.Go(func() {
			for j := range perSession {
				cost := uint32(7)
				if i == 3 && j < 20 {
					cost = 3
				}
				id := fmt.Sprintf("t%d-%03d", i, j)
				if got := s.host(message.CreateTerminator{Address: id, SessionToken: token, Cost: cost}); got.Result != message.TerminatorOK {
					t.Errorf("hosting %s: %+v", id, got)
				}
			}
		})
	}
	all.Wait()
	seen := func() map[string]bool {
		ids := map[string]bool{}
		for range 60 {
			tried, _, err := s.dial("", "")
			if err != nil || len(tried) != 1 {
				t.Fatalf("%q were tried: %v", tried, err)
			}
			ids[tried[0]] = true
		}
		return ids
	}
	cheap := seen()
	for id := range cheap {
		if id[:2] != "t3" || id[3:] >= "020" {
			t.Errorf("%s was chosen, which is dearer", id)
		}
	}
	if len(cheap) < 12 {
		t.Errorf("only %d of 20 had their share", len(cheap))
	}
	other.For(t).Delete(client + "current-api-session").Want(200)
	rest := seen()
	for id := range rest {
		if id[:2] == "t3" {
			t.Errorf("%s was chosen, which may host no more", id)
		}
	}
	if len(rest) < 40 {
		t.Errorf("only %d of 750 had their share", len(rest))
	}
}
