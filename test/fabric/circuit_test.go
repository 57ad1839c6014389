package fabric

import (
	"context"
	"errors"
	"testing"
	"time"

	"netkeep.internal/internal/auth/people"
	"netkeep.internal/internal/data/state"
	"netkeep.internal/internal/model"
	"netkeep.internal/internal/wire"
	"netkeep.internal/internal/wire/message"
	"netkeep.internal/test/machine"
	"netkeep.internal/test/scripted"
	"netkeep.internal/test/servertest"
)

// hostOn has a router say that the service is hosted there.
func (n *network) hostOn(t *testing.T, c *scripted.Router, id string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), soon)
	defer cancel()
	got, err := c.Host(ctx, message.CreateTerminator{
		Address: id, SessionToken: n.hosting, PeerData: map[uint32][]byte{message.PeerPublicKey: []byte("host's key")},
	})
	if err != nil || got.Result != message.TerminatorOK || got.ID != id {
		t.Fatalf("hosting: %+v, %v", got, err)
	}
}

// dialOn has a router dial the service.
func (n *network) dialOn(t *testing.T, c *scripted.Router) (string, wire.Headers, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), soon)
	defer cancel()
	return c.Dial(ctx, n.dialing, n.dialer.Token, map[uint32][]byte{message.PeerPublicKey: []byte("dialer's key"), message.PeerAppData: []byte("data")})
}

// TestCircuit hosts, dials, and ends a circuit.
func TestCircuit(t *testing.T) {
	s := servertest.Start(t)
	r, n := addRouter(t, s), addNetwork(t, s)
	routes := make(chan *message.Route, 1)
	c := r.Connect(t, func(o *scripted.Options) {
		o.Route = func(m *message.Route) (wire.Headers, error) {
			routes <- m
			return wire.Headers{1050: []byte("said just now"), int32(message.PeerRemote): []byte("127.0.0.1:5")}, nil
		}
	})
	if _, _, err := n.dialOn(t, c); !isRefused(err, message.CodeInvalidTerminator) {
		t.Errorf("a service that nobody hosts: %v", err)
	}
	n.hostOn(t, c, "terminator1")
	n.hostOn(t, c, "terminator1") // as after a reconnect
	list := s.Admin(t).Get(management + "terminators").Want(200).List()
	if len(list) != 1 || list[0]["id"] != "terminator1" || list[0]["serviceId"] != n.service || list[0]["routerId"] != r.ID {
		t.Fatalf("terminators: %v", list)
	}
	id, h, err := n.dialOn(t, c)
	if err != nil {
		t.Fatal(err)
	}
	told, _ := h.Data(message.HeaderPeerData)
	route := <-routes
	switch {
	case string(told[message.PeerPublicKey]) != "host's key" || string(told[1050]) != "said just now":
		t.Errorf("the dialer is told %v", told)
	case told[message.PeerRemote] != nil:
		t.Error("the dialer is told addresses of the host")
	case route.CircuitID != id || route.Egress == nil || route.Egress.Destination != "terminator1" || route.Egress.Binding != "edge":
		t.Errorf("the route is %+v", route)
	case string(route.Egress.PeerData[message.PeerPublicKey]) != "dialer's key" || string(route.Egress.PeerData[message.PeerAppData]) != "data":
		t.Errorf("the host is told %v", route.Egress.PeerData)
	case len(route.Forwards) != 2 || route.Forwards[0].From != h.Text(message.HeaderCircuitAddress) || route.Forwards[0].To != route.Egress.Address:
		t.Errorf("forwards are %+v", route.Forwards)
	}
	if err := c.Send(&wire.Frame{Type: message.TypeFault, Body: message.Marshal(&message.Fault{Subject: message.FaultEgress, ID: id})}); err != nil {
		t.Fatal(err)
	}
	await(t, c, "the circuit ends with one of its ends", func(k scripted.Known) bool { return len(k.Circuits) == 0 })
}

func isRefused(err error, code message.ErrorCode) bool {
	refused, ok := errors.AsType[*message.Refusal](err)
	return ok && refused.Code == code
}

func identityOf(t *testing.T, c *servertest.Client) string {
	return c.For(t).Get(client + "current-identity").Want(200).ID()
}

// resetPassword gives somebody another password.
func resetPassword(t *testing.T, s *servertest.Server, who *servertest.Client) {
	t.Helper()
	list := s.Admin(t).Get(management + "identities/" + identityOf(t, who) + "/authenticators").Want(200).List()
	s.Admin(t).Patch(management+"authenticators/"+list[0]["id"].(string), M{"password": "another password"}).Want(200)
}

// addSigner adds one whose groups become attributes.
func addSigner(t *testing.T, s *servertest.Server) *model.ExtJWTSigner {
	t.Helper()
	id := s.Admin(t).Post(management+"external-jwt-signers", M{
		"name": servertest.Unique("signer"), "enabled": true, "issuer": "https://" + servertest.Unique("issuer"), "audience": "us", "jwksEndpoint": "https://keys.example",
		"enrollAttributeClaimsSelector": "groups", "enrollAttributePrefix": "idp:",
	}).Want(201).ID()
	signer, _ := model.ExtJWTSigners.Get(s.State().Snapshot(), id)
	return signer
}

// TestWhatIsTakenAway ends circuits when what they rest on goes.
func TestWhatIsTakenAway(t *testing.T) {
	s := servertest.Start(t)
	for _, test := range []struct {
		name string
		take func(t *testing.T, n *network)
	}{
		{"the policy", func(t *testing.T, n *network) {
			s.Admin(t).Delete(management + "service-policies/" + n.dialPolicy).Want(200)
		}},
		{"the service", func(t *testing.T, n *network) { s.Admin(t).Delete(management + "services/" + n.service).Want(200) }},
		{"the API session", func(t *testing.T, n *network) { n.dialer.For(t).Delete(client + "current-api-session").Want(200) }},
		{"the password", func(t *testing.T, n *network) { resetPassword(t, s, n.dialer) }},
		{"the host's password", func(t *testing.T, n *network) { resetPassword(t, s, n.host) }},
		{"the method in the policy", func(t *testing.T, n *network) {
			updb := M{
				"allowed": false, "minPasswordLength": 5, "requireSpecialChar": false, "requireNumberChar": false,
				"requireMixedCase": false, "maxAttempts": 0, "lockoutDurationMinutes": 0,
			}
			policy := s.Admin(t).Post(management+"auth-policies", M{
				"name": servertest.Unique("policy"), "secondary": M{"requireTotp": false},
				"primary": M{"cert": M{"allowed": true, "allowExpiredCerts": true}, "updb": updb, "extJwt": M{"allowed": true, "allowedSigners": []any{}}},
			}).Want(201).ID()
			s.Admin(t).Patch(management+"identities/"+identityOf(t, n.dialer), M{"authPolicyId": policy}).Want(200)
		}},
		{"what the device is", func(t *testing.T, n *network) {
			report := func(domain, check string) {
				n.dialer.For(t).Post(client+"posture-response", M{"id": check, "typeId": "DOMAIN", "domain": domain}).Want(201)
			}
			check := s.Admin(t).Post(management+"posture-checks", M{"name": servertest.Unique("check"), "typeId": "DOMAIN", "domains": []any{"ours"}}).Want(201).ID()
			report("ours", check)
			s.Admin(t).Patch(management+"service-policies/"+n.dialPolicy, M{"postureCheckRoles": []any{"@" + check}}).Want(200)
			n.session(t, n.dialer, model.Dial) // it passes
			report("theirs", check)
		}},
		{"the group at the provider", func(t *testing.T, n *network) {
			signer, group := addSigner(t, s), "idp:"+servertest.Unique("group")
			says := func(groups ...string) {
				t.Helper()
				err := people.NewRegister(s.State(), time.Now).Follow(t.Context(), state.Author{Operation: "authenticate", Request: "r", Source: "127.0.0.1"}, signer, identityOf(t, n.dialer), people.Person{Attributes: groups, At: time.Now()})
				if err != nil {
					t.Fatal(err)
				}
			}
			says(group)
			s.Admin(t).Patch(management+"service-policies/"+n.dialPolicy, M{"identityRoles": []any{"#" + group}}).Want(200)
			n.session(t, n.dialer, model.Dial) // which the group lets them
			says()
		}},
		{"the host's API session", func(t *testing.T, n *network) { n.host.For(t).Delete(client + "current-api-session").Want(200) }},
	} {
		t.Run(test.name, func(t *testing.T) {
			r, n := addRouter(t, s), addNetwork(t, s)
			c := r.Connect(t)
			n.hostOn(t, c, servertest.Unique("t"))
			if _, _, err := n.dialOn(t, c); err != nil {
				t.Fatal(err)
			}
			watch := machine.Begin(t)
			test.take(t, n)
			await(t, c, "the circuit ends", func(k scripted.Known) bool { return len(k.Circuits) == 0 })
			if took, most := watch.Took(2 * time.Second); took > most {
				t.Errorf("it took %v, and may %v", took, most)
			}
			if _, _, err := n.dialOn(t, c); err == nil {
				t.Error("it can be dialled again")
			}
		})
	}
}

// TestLearnWhileDialling has a router speak of a circuit that nobody knows, while
// it makes another: the one is ended, and the other is not, although the router
// does not carry it yet.
func TestLearnWhileDialling(t *testing.T) {
	s := servertest.Start(t)
	r, n := addRouter(t, s), addNetwork(t, s)
	ended := make(chan struct{}, 10)
	var c *scripted.Router
	c = r.Connect(t, func(o *scripted.Options) {
		o.Aside = true
		o.Route = func(*message.Route) (wire.Headers, error) {
			strange := "ended." + claimsOf(t, n.dialing).ID + "."
			err := c.Send(&wire.Frame{Type: message.TypeFault, Body: message.Marshal(&message.Fault{Subject: message.FaultForward, ID: strange})})
			if err != nil {
				return nil, err
			}
			<-ended
			// What the controller does with the answer is done when it has heard
			// and answered other things.
			for range 5 {
				if _, err := c.Request(t.Context(), &wire.Frame{Type: message.TypeVerifyRouter, Body: message.Marshal(&message.VerifyRouter{RouterID: r.ID})}); err != nil {
					return nil, err
				}
			}
			return nil, nil
		}
	})
	n.hostOn(t, c, "terminator1")
	c.Heard(func(f *wire.Frame) {
		if f.Type == message.TypeUnroute {
			ended <- struct{}{}
		}
	})
	for range 3 {
		if _, _, err := n.dialOn(t, c); err != nil {
			t.Fatal(err)
		}
	}
	await(t, c, "it carries all", func(k scripted.Known) bool { return len(k.Circuits) == 3 })
}
