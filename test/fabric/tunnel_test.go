package fabric

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"netkeep.internal/internal/model"
	"netkeep.internal/internal/wire"
	"netkeep.internal/internal/wire/message"
	"netkeep.internal/test/machine"
	"netkeep.internal/test/scripted"
	"netkeep.internal/test/servertest"
)

// tunnel is a router that is a client itself, and a service that it may host
// and dial, as others may.
type tunnel struct {
	*router
	n       *network
	service string // its name
	conn    *scripted.Router
	policy  map[string]string // by type

	mu    sync.Mutex
	lists []*message.TunnelServices
	ended []string // tokens of sessions
}

func addTunnel(t *testing.T, s *servertest.Server) *tunnel {
	t.Helper()
	w := &tunnel{router: addRouter(t, s), n: addNetwork(t, s), policy: map[string]string{}}
	admin := s.Admin(t)
	w.service = admin.Get(management + "services/" + w.n.service).Want(200).Data()["name"].(string)
	admin.Patch(management+"edge-routers/"+w.ID, M{"isTunnelerEnabled": true}).Want(200)
	for _, typ := range []string{model.Dial, model.Bind} {
		w.policy[typ] = admin.Post(management+"service-policies", M{
			"name": servertest.Unique(typ), "type": typ, "semantic": "AnyOf", "identityRoles": []string{"@" + w.ID}, "serviceRoles": []string{"@" + w.n.service},
		}).Want(201).ID()
	}
	w.reconnect(t)
	return w
}

// reconnect has the router connect, and take note of what it is told.
func (w *tunnel) reconnect(t *testing.T) {
	t.Helper()
	w.conn = w.Connect(t, func(o *scripted.Options) {
		o.Seen = func(f *wire.Frame) {
			w.mu.Lock()
			defer w.mu.Unlock()
			switch f.Type {
			case message.TypeTunnelServices:
				if m, err := message.Unmarshal[message.TunnelServices](f.Body); err == nil {
					w.lists = append(w.lists, m)
				}
			case message.TypeSessionsRemoved:
				if m, err := message.Unmarshal[message.Removed](f.Body); err == nil {
					w.ended = append(w.ended, m.Tokens...)
				}
			}
		}
	})
}

// within is a time in which everything has to happen that happens at once.
func within(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), soon)
	t.Cleanup(cancel)
	return ctx
}

// eventually waits until something is so.
func eventually(t *testing.T, what string, so func() bool) {
	t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for ctx := within(t); !so(); {
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("%s: not in time", what)
		}
	}
}

func (w *tunnel) begin(t *testing.T) *message.TunnelSession {
	t.Helper()
	got, err := w.conn.BeginTunnel(within(t), message.CreateTunnelSession{
		ConfigTypes: []string{"host.v1"}, SDK: message.TunnelSDK{Type: "ziti-router:tunnel"}, Env: message.TunnelEnv{OS: "linux"},
	})
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func (w *tunnel) host(t *testing.T, address string) *message.TunnelTerminator {
	t.Helper()
	got, err := w.conn.HostTunnel(within(t), message.CreateTunnelTerminator{ServiceName: w.service, Address: address, Started: 5})
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func (w *tunnel) dial(t *testing.T) *message.TunnelCircuit {
	t.Helper()
	got, err := w.conn.DialTunnel(within(t), message.CreateTunnelCircuit{ServiceName: w.service})
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// apiSessions are those of the router's identity.
func (w *tunnel) apiSessions(t *testing.T) (ids []string) {
	t.Helper()
	for _, s := range w.Server.Admin(t).Get(management + `api-sessions?filter=identityId="` + w.ID + `"`).Want(200).List() {
		ids = append(ids, s["id"].(string))
	}
	return ids
}

// terminators are those of the service.
func (w *tunnel) terminators(t *testing.T) []M {
	t.Helper()
	return w.Server.Admin(t).Get(management + "services/" + w.n.service + "/terminators").Want(200).List()
}

// TestTunnelNotEnabled has a router be a client that may not: it is told so and
// has nothing to use.
func TestTunnelNotEnabled(t *testing.T) {
	s := servertest.Start(t)
	w := addTunnel(t, s)
	s.Admin(t).Patch(management+"edge-routers/"+w.ID, M{"isTunnelerEnabled": false}).Want(200)
	// A refusal would end it.
	none, err := w.conn.BeginTunnel(within(t), message.CreateTunnelSession{})
	if err != nil || none.IdentityID != w.ID || none.Token == "" {
		t.Fatalf("it is told %+v, %v", none, err)
	}
	s.Nobody(t).With("zt-session", none.Token).Get(client + "current-identity").Want(401)
	if _, err := w.conn.HostTunnel(within(t), message.CreateTunnelTerminator{ServiceName: w.service, Address: "a"}); !isRefused(err, message.CodeTunnelingNotEnabled) {
		t.Errorf("it hosts: %v", err)
	}
	if _, err := w.conn.DialTunnel(within(t), message.CreateTunnelCircuit{ServiceName: w.service}); !isRefused(err, message.CodeTunnelingNotEnabled) {
		t.Errorf("it dials: %v", err)
	}
	if list := w.list(t, nil); len(list.Services) != 0 {
		t.Errorf("it may use %v", list.Services)
	}
}

// TestTunnelSession has a router come back again and again: it has one API
// session.
func TestTunnelSession(t *testing.T) {
	s := servertest.Start(t)
	w := addTunnel(t, s)
	s.Admin(t).Patch(management+"identities/"+w.ID, M{
		"defaultHostingCost": 7, "defaultHostingPrecedence": "required", "serviceHostingCosts": M{w.n.service: 9}, "appData": M{"a": "b"},
	}).Want(200)
	first := w.begin(t)
	switch {
	case first.IdentityID != w.ID || first.IdentityName != w.Name || first.Token == "" || first.RefreshSeconds == 0:
		t.Errorf("it is told %+v", first)
	case first.DefaultCost != 7 || first.DefaultPrecedence != message.PrecedenceRequired || first.Costs[w.n.service] != 9 || first.AppData != `{"a":"b"}`:
		t.Errorf("it is told of itself as a host %+v", first)
	}
	if own := s.Nobody(t).With("zt-session", first.Token).Get(client + "current-identity").Want(200).ID(); own != w.ID {
		t.Errorf("its token is that of %s", own)
	}
	if sdk := s.Admin(t).Get(management + "identities/" + w.ID).Want(200).At("data.sdkInfo.type"); sdk != "ziti-router:tunnel" {
		t.Errorf("what it said of itself is %v", sdk)
	}
	hosted := w.host(t, "t1")
	w.conn.Close()
	w.reconnect(t)
	if hosted.APISession != nil {
		t.Errorf("it is told again of %+v", hosted.APISession)
	}
	if again := w.host(t, "t1"); again.APISession == nil || again.APISession.ID != first.ID || again.Session.ID != hosted.Session.ID {
		t.Errorf("it came back and got %+v, had %+v", again, hosted)
	}
	if again := w.begin(t); again.ID != first.ID || again.Token != first.Token {
		t.Errorf("it began anew and got %+v, had %+v", again, first)
	}
	if ids := w.apiSessions(t); !slices.Equal(ids, []string{first.ID}) {
		t.Errorf("it has the API sessions %q", ids)
	}
}

// list asks until the router is told what it may use: what it asks while it is
// being told is not answered.
func (w *tunnel) list(t *testing.T, version []byte) *message.TunnelServices {
	t.Helper()
	told := func() int {
		w.mu.Lock()
		defer w.mu.Unlock()
		return len(w.lists)
	}
	n, asked := told(), time.Time{}
	eventually(t, "it is told what it may use", func() bool {
		if time.Since(asked) > time.Second {
			asked = time.Now()
			if err := w.conn.ListTunnel(version); err != nil {
				t.Fatal(err)
			}
		}
		return told() > n
	})
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.lists[n]
}

// TestTunnelServices tells a router what it may use, whenever that changes and
// only then.
func TestTunnelServices(t *testing.T) {
	s := servertest.Start(t)
	w := addTunnel(t, s)
	admin := s.Admin(t)
	config := func(port int) string {
		return admin.Post(management+"configs", M{
			"name": servertest.Unique("config"), "configTypeId": "NH5p4FpGR", "data": M{"protocol": "tcp", "address": "127.0.0.1", "port": port},
		}).Want(201).ID()
	}
	for _, typ := range admin.Get(management + `config-types?filter=name="host.v1"`).Want(200).List() {
		if typ["id"] != "NH5p4FpGR" {
			t.Fatalf("host.v1 is %v", typ["id"])
		}
	}
	admin.Patch(management+"services/"+w.n.service, M{"configs": []string{config(1)}, "tags": M{"a": "b"}}).Want(200)
	w.begin(t)
	first := w.list(t, nil)
	if len(first.Services) != 1 || len(first.Version) == 0 || len(first.Version) > 50 {
		t.Fatalf("it is told %+v", first)
	}
	port := func(list *message.TunnelServices) float64 {
		t.Helper()
		got := list.Services[0]
		var configs map[string]struct{ Port float64 }
		if err := json.Unmarshal(got.Config, &configs); err != nil || len(configs) != 1 {
			t.Fatalf("configs are %s, %v", got.Config, err)
		}
		return configs["host.v1"].Port
	}
	got := first.Services[0]
	if got.ID != w.n.service || got.Name != w.service || !slices.Equal(got.Permissions, []string{"Bind", "Dial"}) || got.Encryption || port(first) != 1 || string(got.Tags) != `{"a":"b"}` {
		t.Errorf("it is told %+v of the service", got)
	}
	for range 20 { // there is nothing to answer: what changes is none of its business
		if err := w.conn.ListTunnel(first.Version); err != nil {
			t.Fatal(err)
		}
		admin.Post(management+"services", M{"name": servertest.Unique("service"), "encryptionRequired": true}).Want(201)
	}
	admin.Post(management+"identities/"+w.ID+"/service-configs", []M{{"serviceId": w.n.service, "configId": config(2)}}).Want(200)
	second := w.list(t, first.Version)
	if port(second) != 2 {
		t.Errorf("a config of its own is %s", second.Services[0].Config)
	}
	admin.Delete(management + "service-policies/" + w.policy[model.Dial]).Want(200)
	third := w.list(t, second.Version)
	if !slices.Equal(third.Services[0].Permissions, []string{"Bind"}) {
		t.Errorf("without a policy it may %v", third.Services[0].Permissions)
	}
	admin.Delete(management + "service-policies/" + w.policy[model.Bind]).Want(200)
	if last := w.list(t, third.Version); len(last.Services) != 0 {
		t.Errorf("without policies it may use %+v", last.Services)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	told := 0
	for _, list := range w.lists {
		if bytes.Equal(list.Version, first.Version) {
			told++
		}
	}
	if told != 1 {
		t.Errorf("it was told %d times what it knew", told-1)
	}
}

// TestTunnelHost has a router host: others dial it, and nobody else changes how.
func TestTunnelHost(t *testing.T) {
	s := servertest.Start(t)
	w, other := addTunnel(t, s), addTunnel(t, s)
	id := servertest.Unique("t")
	first := w.host(t, id)
	if first.ID != id || first.Started != 5 || first.Session == nil || first.Session.ID == "" || first.APISession == nil {
		t.Errorf("hosting is answered with %+v", first)
	}
	if again := w.host(t, id); again.Session.ID != first.Session.ID || again.APISession != nil {
		t.Errorf("hosting again is answered with %+v", again)
	}
	list := w.terminators(t)
	if len(list) != 1 || list[0]["binding"] != "tunnel" || list[0]["address"] != id || list[0]["routerId"] != w.ID {
		t.Fatalf("terminators are %v", list)
	}
	if _, _, err := w.n.dialOn(t, w.conn); err != nil {
		t.Errorf("a client dials: %v", err)
	}
	await(t, w.conn, "the circuit ends at the router", func(k scripted.Known) bool {
		for _, route := range k.Circuits {
			if route.Egress.Binding == "tunnel" && route.Egress.Destination == id {
				return true
			}
		}
		return false
	})
	update := message.UpdateTunnelTerminator{TerminatorID: id, UpdateCost: true, Cost: 77, UpdatePrecedence: true, Precedence: message.PrecedenceFailed}
	if err := other.conn.UpdateTunnel(within(t), update); !isRefused(err, message.CodeInvalidTerminator) {
		t.Errorf("another router changes it: %v", err)
	}
	if err := other.conn.RemoveTunnel(within(t), id); err != nil {
		t.Errorf("another router removes what it has not: %v", err)
	}
	if _, err := other.conn.HostTunnel(within(t), message.CreateTunnelTerminator{ServiceName: other.service, Address: id}); !isRefused(err, message.CodeInvalidTerminator) {
		t.Errorf("another router takes its place: %v", err)
	}
	if err := w.conn.UpdateTunnel(within(t), update); err != nil {
		t.Error(err)
	}
	if list = w.terminators(t); len(list) != 1 || list[0]["cost"] != 77.0 || list[0]["precedence"] != "failed" {
		t.Errorf("terminators are %v", list)
	}
	for range 2 { // the second time there is nothing left to do
		if err := w.conn.RemoveTunnel(within(t), id); err != nil {
			t.Error(err)
		}
	}
	if list = w.terminators(t); len(list) != 0 {
		t.Errorf("terminators are %v", list)
	}
}

// TestTunnelKey has a router host a service that wants encryption: it says its
// key when it is dialled.
func TestTunnelKey(t *testing.T) {
	s := servertest.Start(t)
	w := addTunnel(t, s)
	admin := s.Admin(t)
	w.service = servertest.Unique("secret")
	w.n.service = admin.Post(management+"services", M{"name": w.service, "encryptionRequired": true}).Want(201).ID()
	for typ, policy := range w.policy {
		admin.Patch(management+"service-policies/"+policy, M{"serviceRoles": []string{"@" + w.n.service}, "name": servertest.Unique(typ)}).Want(200)
	}
	said := make(chan wire.Headers, 2)
	c := w.Connect(t, func(o *scripted.Options) {
		o.Route = func(*message.Route) (wire.Headers, error) { return <-said, nil }
	})
	w.conn = c
	w.host(t, servertest.Unique("t"))
	dial := message.CreateTunnelCircuit{ServiceName: w.service}
	if _, err := c.DialTunnel(within(t), dial); !isRefused(err, message.CodeEncryptionMissing) {
		t.Errorf("without a key: %v", err)
	}
	dial.PeerData = map[uint32][]byte{message.PeerPublicKey: []byte("dialer's key")}
	said <- nil
	if _, err := c.DialTunnel(within(t), dial); !isRefused(err, message.CodeEncryptionMissing) {
		t.Errorf("a host without a key: %v", err)
	}
	await(t, c, "it has no circuit", func(k scripted.Known) bool { return len(k.Circuits) == 0 })
	said <- wire.Headers{int32(message.PeerPublicKey): []byte("its key")}
	got, err := c.DialTunnel(within(t), dial)
	if err != nil || string(got.PeerData[message.PeerPublicKey]) != "its key" {
		t.Errorf("it is dialled: %+v, %v", got, err)
	}
}

// TestTunnelDial has a router dial what it may and what it may not.
func TestTunnelDial(t *testing.T) {
	s := servertest.Start(t)
	w, other := addTunnel(t, s), addTunnel(t, s)
	admin := s.Admin(t)
	if _, err := w.conn.DialTunnel(within(t), message.CreateTunnelCircuit{ServiceName: w.service}); !isRefused(err, message.CodeInvalidTerminator) {
		t.Errorf("a service that nobody hosts: %v", err)
	}
	w.n.hostOn(t, w.conn, servertest.Unique("t"))
	made := w.dial(t)
	if made.CircuitID == "" || made.Address == "" || made.Session == nil || string(made.PeerData[message.PeerPublicKey]) != "host's key" || made.Tags["clientId"] != w.ID {
		t.Errorf("dialling is answered with %+v", made)
	}
	await(t, w.conn, "it has the circuit", func(k scripted.Known) bool { return k.Circuits[made.CircuitID] != nil })
	again, err := w.conn.DialTunnel(within(t), message.CreateTunnelCircuit{ServiceName: w.service, SessionID: made.Session.ID})
	if err != nil || again.Session.ID != made.Session.ID || again.CircuitID == made.CircuitID {
		t.Errorf("dialling again is answered with %+v, %v", again, err)
	}
	foreign := other.host(t, servertest.Unique("t")).Session.ID
	for what, test := range map[string]struct {
		ask  message.CreateTunnelCircuit
		code message.ErrorCode
	}{
		"with a session of another router":     {message.CreateTunnelCircuit{ServiceName: w.service, SessionID: foreign}, message.CodeInvalidSession},
		"a service that another router may":    {message.CreateTunnelCircuit{ServiceName: other.service}, message.CodeInvalidService},
		"no service":                           {message.CreateTunnelCircuit{ServiceName: "none"}, message.CodeInvalidService},
		"with more to say than anybody has":    {message.CreateTunnelCircuit{ServiceName: w.service, PeerData: map[uint32][]byte{1: make([]byte, 1<<20)}}, message.CodeInternal},
		"a host that is not there, of several": {message.CreateTunnelCircuit{ServiceName: w.service, InstanceID: "x"}, message.CodeInvalidTerminator},
	} {
		if _, err := w.conn.DialTunnel(within(t), test.ask); !isRefused(err, test.code) {
			t.Errorf("it dials %s: %v", what, err)
		}
	}
	check := admin.Post(management+"posture-checks", M{"name": servertest.Unique("check"), "typeId": "DOMAIN", "domains": []any{"ours"}}).Want(201).ID()
	admin.Patch(management+"service-policies/"+w.policy[model.Dial], M{"postureCheckRoles": []any{"@" + check}}).Want(200)
	if _, err := w.conn.DialTunnel(within(t), message.CreateTunnelCircuit{ServiceName: w.service}); err == nil {
		t.Error("it dials although it passes no check")
	}
}

// TestTunnelBounds has a router say more than it should.
func TestTunnelBounds(t *testing.T) {
	s := servertest.Start(t)
	w := addTunnel(t, s)
	if _, err := w.conn.BeginTunnel(within(t), message.CreateTunnelSession{ConfigTypes: make([]string, 1000)}); !isRefused(err, message.CodeInternal) {
		t.Errorf("it names 1000 config types: %v", err)
	}
	long := strings.Repeat("\u00fc", 1000) + "\xff"
	if _, err := w.conn.BeginTunnel(within(t), message.CreateTunnelSession{Env: message.TunnelEnv{OS: long}, ConfigTypes: []string{long}}); err != nil {
		t.Error(err)
	}
	if said := s.Admin(t).Get(management + "identities/" + w.ID).Want(200).At("data.envInfo.os").(string); said == "" || !strings.HasPrefix(long, said) || len(said) > 256 {
		t.Errorf("of a long text %q is kept", said)
	}
	if list := w.list(t, make([]byte, 1<<20)); len(list.Services) != 1 {
		t.Errorf("it is told %+v", list)
	}
	if _, err := w.conn.HostTunnel(within(t), message.CreateTunnelTerminator{ServiceName: w.service, Address: "not an id"}); !isRefused(err, message.CodeInvalidTerminator) {
		t.Errorf("it hosts at an address that is none: %v", err)
	}
	if _, err := w.conn.HostTunnel(within(t), message.CreateTunnelTerminator{ServiceName: w.service, Address: "a", Cost: 65536}); !isRefused(err, message.CodeInvalidCost) {
		t.Errorf("it hosts at any cost: %v", err)
	}
	if err := w.conn.Send(&wire.Frame{Type: message.TypeCreateTunnelCircuit, Body: []byte{0xff}}); err != nil {
		t.Fatal(err)
	}
	select {
	case <-w.conn.Done():
	case <-within(t).Done():
		t.Error("it is still connected after it sent what cannot be read")
	}
}

// TestTunnelTakenAway ends what a router has as a client when what that rests
// on goes.
func TestTunnelTakenAway(t *testing.T) {
	s := servertest.Start(t)
	for _, test := range []struct {
		name  string
		take  func(t *testing.T, w *tunnel)
		keeps bool // its API session
		off   bool // the router is cut off
		again bool // it may have another
	}{
		{"the policies", func(t *testing.T, w *tunnel) {
			for _, id := range w.policy {
				s.Admin(t).Delete(management + "service-policies/" + id).Want(200)
			}
		}, true, false, false},
		{"being a client", func(t *testing.T, w *tunnel) {
			s.Admin(t).Patch(management+"edge-routers/"+w.ID, M{"isTunnelerEnabled": false}).Want(200)
		}, false, false, false},
		{"the identity", func(t *testing.T, w *tunnel) {
			s.Admin(t).Post(management+"identities/"+w.ID+"/disable", M{"durationMinutes": 0}).Want(200)
		}, false, false, false},
		{"the API session", func(t *testing.T, w *tunnel) {
			for _, id := range w.apiSessions(t) {
				s.Admin(t).Delete(management + "api-sessions/" + id).Want(200)
			}
		}, false, false, true},
		{"its place in the network", func(t *testing.T, w *tunnel) {
			s.Admin(t).Patch(management+"edge-routers/"+w.ID, M{"disabled": true}).Want(200)
		}, false, true, false},
		{"its certificate", func(t *testing.T, w *tunnel) {
			s.Admin(t).Post(management+"edge-routers/"+w.ID+"/re-enroll", nil).Want(200)
		}, false, true, false},
		{"the router", func(t *testing.T, w *tunnel) {
			s.Admin(t).Delete(management + "edge-routers/" + w.ID).Want(200)
		}, false, true, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := addTunnel(t, s)
			hosted := w.host(t, servertest.Unique("t"))
			dialled := w.dial(t) // itself
			if _, _, err := w.n.dialOn(t, w.conn); err != nil {
				t.Fatal(err)
			}
			watch := machine.Begin(t)
			test.take(t, w)
			if test.off {
				select {
				case <-w.conn.Done():
				case <-time.After(soon):
					t.Fatal("the router is still connected")
				}
			} else {
				await(t, w.conn, "the circuits end", func(k scripted.Known) bool { return len(k.Circuits) == 0 })
				eventually(t, "it is told that its sessions have ended", func() bool {
					w.mu.Lock()
					defer w.mu.Unlock()
					return slices.Contains(w.ended, hosted.Session.Token) && slices.Contains(w.ended, dialled.Session.Token)
				})
			}
			eventually(t, "its terminators are gone", func() bool { return len(w.terminators(t)) == 0 })
			if took, most := watch.Took(2 * time.Second); took > most {
				t.Errorf("it took %v, and may %v", took, most)
			}
			eventually(t, "its API session is gone", func() bool { return len(w.apiSessions(t)) == 0 || test.keeps })
			if test.off {
				return
			}
			got, err := w.conn.HostTunnel(within(t), message.CreateTunnelTerminator{ServiceName: w.service, Address: hosted.ID, SessionID: hosted.Session.ID})
			if (err == nil) != test.again || test.again && (got.APISession == nil || got.Session.ID == hosted.Session.ID) {
				t.Errorf("it hosts again: %+v, %v", got, err)
			}
		})
	}
}
