package fabric

import (
	"context"
	"testing"

	"netkeep.internal/internal/wire"
	"netkeep.internal/internal/wire/message"
	"netkeep.internal/test/scripted"
	"netkeep.internal/test/servertest"
)

// TestInsider has one router lie about what another one has.
func TestInsider(t *testing.T) {
	s := servertest.Start(t)
	honest, insider := addRouter(t, s), addRouter(t, s)
	n := addNetwork(t, s)
	a, b := honest.Connect(t), insider.Connect(t)
	n.hostOn(t, a, "theirs")
	circuit, _, err := n.dialOn(t, a)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), soon)
	defer cancel()
	ask := func(typ int32, body []byte) *wire.Frame {
		t.Helper()
		reply, err := b.Request(ctx, &wire.Frame{Type: typ, Body: body})
		if err != nil {
			t.Fatal(err)
		}
		return reply
	}
	ask(message.TypeRemoveTerminators, message.Marshal(&message.RemoveTerminators{IDs: []string{"theirs"}}))
	if r := ask(message.TypeUpdateTerminator, message.Marshal(&message.UpdateTerminator{
		SessionToken: n.hosting, TerminatorID: "theirs", UpdateCost: true, Cost: 9,
	})); r.Type != message.TypeError {
		t.Errorf("another's terminator was changed: %d", r.Type)
	}
	if got, err := b.Host(ctx, message.CreateTerminator{Address: "theirs", SessionToken: n.hosting}); err != nil || got.Result != message.TerminatorConflict {
		t.Errorf("another's terminator was taken over: %+v, %v", got, err)
	}
	for _, subject := range []message.FaultSubject{message.FaultIngress, message.FaultEgress, message.FaultForward} {
		if err := b.Send(&wire.Frame{Type: message.TypeFault, Body: message.Marshal(&message.Fault{Subject: subject, ID: circuit})}); err != nil {
			t.Fatal(err)
		}
	}
	ask(message.TypePing, nil) // it was heard by now
	list := s.Admin(t).Get(management + "terminators").Want(200).List()
	if len(list) != 1 || list[0]["cost"] != 0.0 {
		t.Errorf("terminators are %v", list)
	}
	await(t, a, "the circuit goes on", func(k scripted.Known) bool { return k.Circuits[circuit] != nil })
}

// TestTokens has a router come with tokens that do not permit what it asks for.
func TestTokens(t *testing.T) {
	s := servertest.Start(t)
	r := addRouter(t, s)
	n, other := addNetwork(t, s), addNetwork(t, s)
	c := r.Connect(t)
	n.hostOn(t, c, "host")
	ctx, cancel := context.WithTimeout(t.Context(), soon)
	defer cancel()
	for name, test := range map[string]struct {
		token, api string
		code       message.ErrorCode
	}{
		"none":                       {"", "", message.CodeInvalidSession},
		"nonsense":                   {"eyJhbGciOiJub25lIn0.e30.", "", message.CodeInvalidSession},
		"to host":                    {n.hosting, "", message.CodeWrongSessionType},
		"of another's API session":   {n.dialing, other.dialer.Token, message.CodeInvalidAPISession},
		"of no API session at all":   {n.dialing, "none", message.CodeInvalidAPISession},
		"for a service nobody hosts": {other.dialing, other.dialer.Token, message.CodeInvalidTerminator},
	} {
		if _, _, err := c.Dial(ctx, test.token, test.api, nil); !isRefused(err, test.code) {
			t.Errorf("a token %s: %v", name, err)
		}
	}
	second := s.Login(t, n.dialUser.Username, n.dialUser.Password)
	if _, _, err := c.Dial(ctx, n.dialing, second.Token, nil); err != nil {
		t.Errorf("a token of another client of the same identity: %v", err)
	}
	got, err := c.Host(ctx, message.CreateTerminator{Address: "x", SessionToken: n.dialing})
	if err != nil || got.Result != message.TerminatorFailed || got.ErrorCode != message.CodeWrongSessionType {
		t.Errorf("hosting with a session to dial: %+v, %v", got, err)
	}
	for _, bad := range []message.CreateTerminator{
		{Address: "", SessionToken: n.hosting}, {Address: "a b", SessionToken: n.hosting},
		{Address: "y", SessionToken: n.hosting, Cost: 65536}, {Address: "y", SessionToken: n.hosting, Precedence: 7},
	} {
		if got, err := c.Host(ctx, bad); err != nil || got.Result == message.TerminatorOK {
			t.Errorf("%+v: %+v, %v", bad, got, err)
		}
	}
}

// TestGarbage ends the connection of a router that sends what cannot be read,
// and no other.
func TestGarbage(t *testing.T) {
	s := servertest.Start(t)
	other := addRouter(t, s).Connect(t)
	for name, f := range map[string]*wire.Frame{
		"no message":     {Type: message.TypeCreateTerminator, Body: []byte{0xff, 0xff, 0xff}},
		"a huge message": {Type: message.TypeFault, Body: make([]byte, 9<<20)},
	} {
		c := addRouter(t, s).Connect(t)
		_ = c.Send(f)
		select {
		case <-c.Done():
		case <-t.Context().Done():
			t.Fatalf("%s: the connection goes on", name)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), soon)
	defer cancel()
	if _, err := other.Request(ctx, &wire.Frame{Type: message.TypePing}); err != nil {
		t.Errorf("another router was cut off: %v", err)
	}
}

// TestComingBack has a router lose its connection and come back with circuits:
// what is known goes on and ends with what it rests on, the rest ends at once.
func TestComingBack(t *testing.T) {
	s := servertest.Start(t)
	r, n := addRouter(t, s), addNetwork(t, s)
	c := r.Connect(t)
	n.hostOn(t, c, "host")
	circuit, _, err := n.dialOn(t, c)
	if err != nil {
		t.Fatal(err)
	}
	c.Close()
	carries := map[string]*message.Route{circuit: {}, "stranger": {}, "abc.cnosuchsession.": {}}
	again := r.Connect(t, func(o *scripted.Options) { o.Circuits = carries })
	await(t, again, "what nobody knows is ended", func(k scripted.Known) bool { return len(k.Circuits) == 1 && k.Circuits[circuit] != nil })
	n.dialer.For(t).Delete(client + "current-api-session").Want(200)
	await(t, again, "the circuit ends with its session", func(k scripted.Known) bool { return len(k.Circuits) == 0 })
}
