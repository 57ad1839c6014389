package transit

import (
	"testing"

	"netkeep.internal/internal/client/sdk"
	"netkeep.internal/internal/ops/config"
	"netkeep.internal/internal/wire"
	"netkeep.internal/internal/wire/message"
	"netkeep.internal/test/networktest"
	"netkeep.internal/test/servertest"
)

// TestControllerEvents tells when the controller is away and back.
func TestControllerEvents(t *testing.T) {
	dir := t.TempDir()
	first, err := servertest.Open(dir)
	must(t, err)
	n := networktest.New(t, first)
	c := n.Client(n.AddIdentity("me"))
	events := make(chan sdk.Event)
	go func() {
		for e := range c.Events(t.Context()) {
			events <- e
		}
	}()
	expect := func(state sdk.State) {
		t.Helper()
		if e := <-events; e.State != state || e.Router != "" || e.Address != first.URL || (e.Err != nil) != (state == sdk.Away) {
			t.Errorf("%+v, want %v", e, state)
		}
	}
	expect(sdk.Connected)
	must(t, first.Close())
	expect(sdk.Away)
	second, err := servertest.Open(dir, func(c *config.Config) { c.Listen = first.Listening().String() })
	must(t, err)
	t.Cleanup(func() { must(t, second.Close()) })
	expect(sdk.Connected)
}

// TestDialerHeaders has a client put somebody else where routers tell a host who
// dials: the host is told of the client, whatever it says.
func TestDialerHeaders(t *testing.T) {
	n := networktest.New(t, shared)
	router := n.AddRouter("one")
	service := n.AddService("who", false)
	l, err := n.Client(n.AddIdentity("host")).Listen(within(t, networktest.Soon), service, sdk.ListenOptions{})
	must(t, err)
	victim, me := n.AddIdentity("victim"), n.AddIdentity("me")
	liar := login(t, n, me)
	conn, err := liar.connect(router, liar.token)
	must(t, err)
	for i, headers := range []wire.Headers{
		{},
		{message.HeaderDialerID: []byte(victim.ID)},
		{message.HeaderDialerName: []byte(victim.Name)},
		{message.HeaderDialerID: []byte(victim.ID), message.HeaderDialerName: []byte(victim.Name), message.HeaderCallerID: []byte(victim.Name)},
		{message.HeaderDialerID: nil, message.HeaderDialerName: nil},
		{int32(message.PeerDialerID): []byte(victim.ID), int32(message.PeerDialerName): []byte(victim.Name)},
	} {
		headers.SetUint32(message.HeaderConn, uint32(i+1))
		f := &wire.Frame{Type: message.TypeConnect, Seq: int32(i + 1), Headers: headers, Body: []byte(liar.session(service, "Dial"))}
		answered := make(chan *wire.Frame, 1)
		go func() { answered <- ask(t, conn, f) }()
		far, err := l.Accept()
		must(t, err)
		if info := far.(*sdk.Conn).Info(); info.Dialer != me.ID || info.DialerName != me.Name || info.Who() != me.Name {
			t.Errorf("with %v the host is told of %+v, want %s (%s)", headers, info, me.Name, me.ID)
		}
		if got := <-answered; got.Type != message.TypeConnected {
			t.Errorf("the dial is answered with a frame of type %d: %s", got.Type, got.Body)
		}
		must(t, far.Close())
	}
}
