package fabric

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"netkeep.internal/internal/model"
	"netkeep.internal/internal/wire"
	"netkeep.internal/internal/wire/message"
	"netkeep.internal/test/scripted"
	"netkeep.internal/test/servertest"
)

// TestAnotherHost has the host that is chosen first not answer: the next one is
// tried, and the dialer does not notice.
func TestAnotherHost(t *testing.T) {
	s := servertest.Start(t)
	r := addRouter(t, s)
	n := addNetwork(t, s)
	tried := make(chan string, 10)
	c := r.Connect(t, func(o *scripted.Options) {
		o.Route = func(m *message.Route) (wire.Headers, error) {
			tried <- m.Egress.Destination
			if m.Egress.Destination == "deaf" {
				return nil, errors.New("nobody answers")
			}
			return nil, nil
		}
	})
	ctx, cancel := context.WithTimeout(t.Context(), soon)
	defer cancel()
	for address, cost := range map[string]uint32{"deaf": 0, "good": 1000} {
		if got, err := c.Host(ctx, message.CreateTerminator{Address: address, SessionToken: n.hosting, Cost: cost}); err != nil || got.Result != message.TerminatorOK {
			t.Fatalf("hosting %s: %+v, %v", address, got, err)
		}
	}
	if _, _, err := n.dialOn(t, c); err != nil {
		t.Errorf("dialling: %v", err)
	}
	if first, second := <-tried, <-tried; first != "deaf" || second != "good" {
		t.Errorf("%s was tried first, then %s", first, second)
	}
}

// TestTerminatorChanges has a host change how it is to be chosen, and then host
// no more.
func TestTerminatorChanges(t *testing.T) {
	s := servertest.Start(t)
	r := addRouter(t, s)
	n := addNetwork(t, s)
	c := r.Connect(t)
	id := servertest.Unique("t")
	n.hostOn(t, c, id)
	ctx, cancel := context.WithTimeout(t.Context(), soon)
	defer cancel()
	update := &message.UpdateTerminator{
		SessionToken: n.hosting, TerminatorID: id, UpdateCost: true, Cost: 77, UpdatePrecedence: true, Precedence: message.PrecedenceRequired,
	}
	reply, err := c.Request(ctx, &wire.Frame{Type: message.TypeUpdateTerminator, Body: message.Marshal(update)})
	if err != nil || reply.Type != message.TypeTerminatorUpdated {
		t.Fatalf("the change is answered with %+v, %v", reply, err)
	}
	got := s.Admin(t).Get(management + "terminators/" + id).Want(200).Data()
	if got["cost"] != 77.0 || got["precedence"] != "required" {
		t.Errorf("cost and precedence are %v and %v", got["cost"], got["precedence"])
	}
	update.SessionToken = n.dialing
	if reply, err := c.Request(ctx, &wire.Frame{Type: message.TypeUpdateTerminator, Body: message.Marshal(update)}); err != nil || reply.Type != message.TypeError {
		t.Errorf("who may only dial changes a host: %+v, %v", reply, err)
	}
	remove := &message.RemoveTerminator{SessionToken: n.hosting, TerminatorID: id}
	for range 2 { // the second time there is nothing left to do
		reply, err := c.Request(ctx, &wire.Frame{Type: message.TypeRemoveTerminator, Body: message.Marshal(remove)})
		if err != nil || reply.Type != message.TypeTerminatorRemoved {
			t.Errorf("the end is answered with %+v, %v", reply, err)
		}
	}
	s.Admin(t).Get(management + "terminators/" + id).Want(404)
}

// TestHostBySession has a host come back with another session: it stays when
// the first one ends.
func TestHostBySession(t *testing.T) {
	s := servertest.Start(t)
	r := addRouter(t, s)
	n := addNetwork(t, s)
	c := r.Connect(t)
	id, first := servertest.Unique("t"), n.host
	n.hostOn(t, c, id)
	n.host = s.Login(t, n.hostUser.Username, n.hostUser.Password)
	n.hosting = n.session(t, n.host, model.Bind)
	n.hostOn(t, c, id)
	first.For(t).Delete(client + "current-api-session").Want(200)
	if _, _, err := n.dialOn(t, c); err != nil {
		t.Errorf("it cannot be dialled any more: %v", err)
	}
	s.Admin(t).Get(management + "terminators/" + id).Want(200)
}

// TestIdleCircuits has a router ask whether circuits are still wanted on which
// nothing happens: those that nobody knows end, the others stay.
func TestIdleCircuits(t *testing.T) {
	s := servertest.Start(t)
	r := addRouter(t, s)
	n := addNetwork(t, s)
	ended := make(chan string, 10)
	c := r.Connect(t, func(o *scripted.Options) {
		o.Seen = func(f *wire.Frame) {
			if m, err := message.Unmarshal[message.Unroute](f.Body); f.Type == message.TypeUnroute && err == nil {
				ended <- m.CircuitID
			}
		}
	})
	n.hostOn(t, c, servertest.Unique("t"))
	live, _, err := n.dialOn(t, c)
	if err != nil {
		t.Fatal(err)
	}
	ask := &message.CircuitConfirmation{CircuitIDs: []string{live, "never", "a.b.c", "last"}}
	if err := c.Send(&wire.Frame{Type: message.TypeCircuitConfirmation, Body: message.Marshal(ask)}); err != nil {
		t.Fatal(err)
	}
	var got []string
	for !slices.Contains(got, "last") {
		select {
		case id := <-ended:
			got = append(got, id)
		case <-time.After(soon):
			t.Fatalf("only %q have ended", got)
		}
	}
	if want := []string{"never", "a.b.c", "last"}; !slices.Equal(got, want) {
		t.Errorf("%q have ended, want %q", got, want)
	}
}
