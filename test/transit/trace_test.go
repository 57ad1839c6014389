package transit

import (
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"slices"
	"testing"

	"netkeep.internal/internal/client/sdk"
	"netkeep.internal/internal/wire"
	"netkeep.internal/internal/wire/message"
	"netkeep.internal/test/networktest"
)

// confine lets an identity use one router only.
func confine(n *networktest.Network, i networktest.Identity, r *networktest.Router) {
	n.T.Helper()
	all := n.Admin.Get(networktest.Management + `edge-router-policies?filter=name="` + n.Word + `"`).Want(200).List()
	for _, p := range all {
		n.Admin.Delete(networktest.Management + "edge-router-policies/" + p["id"].(string)).Want(200)
	}
	n.Admin.Post(networktest.Management+"edge-router-policies", M{
		"name": n.Word + i.Name, "semantic": "AnyOf", "identityRoles": []string{"@" + i.ID}, "edgeRouterRoles": []string{"@" + r.ID},
	}).Want(201)
}

// apart is a network of two linked routers, one for the user and one for the
// host.
func apart(t *testing.T) (n *networktest.Network, near, far *networktest.Router, user, host networktest.Identity) {
	t.Helper()
	n = networktest.New(t, shared)
	near, far = n.AddRouter("near"), n.AddRouter("far")
	user, host = n.AddIdentity("user"), n.AddIdentity("host")
	confine(n, user, near)
	confine(n, host, far)
	n.Eventually("the routers are linked", func() bool { return linked(n, near, far) })
	return n, near, far, user, host
}

// TestTrace has either end of a connection ask for its way: every router answers
// in its turn, and at last the client at the other end, whoever holds the flow.
func TestTrace(t *testing.T) {
	n, near, far, user, host := apart(t)
	way := func(from, to *networktest.Router) []string {
		return []string{"xgress/edge " + from.ID, "forwarder " + from.ID, "forwarder " + to.ID, "xgress/edge " + to.ID, "sdk/netkeep "}
	}
	for dialer, first := range modes {
		for listener, second := range modes {
			t.Run(dialer+", "+listener, func(t *testing.T) {
				service := n.AddService(dialer+listener, true)
				l, err := n.Client(host, second).Listen(within(t, networktest.Soon), service, sdk.ListenOptions{})
				must(t, err)
				dialed, accepted := pairOf(t, n.Client(user, first), l, service)
				traced(t, dialed, way(near, far))
				traced(t, accepted, way(far, near))
				send(t, dialed, "and data")
				buf := make([]byte, 8)
				if _, err := io.ReadFull(accepted, buf); err != nil || string(buf) != "and data" {
					t.Errorf("after that came %q, %v", buf, err)
				}
			})
		}
	}
	t.Run("out of the network", func(t *testing.T) {
		server, err := net.Listen("tcp", "127.0.0.1:0")
		must(t, err)
		defer server.Close()
		service := leaves(n, far, "outside", "tcp:"+server.Addr().String())
		conn, err := n.Client(user).Dial(within(t, networktest.Soon), service, sdk.DialOptions{})
		must(t, err)
		defer conn.Close()
		traced(t, conn, append(way(near, far)[:3], "xgress/transport "+far.ID))
	})
}

// traced fails the test unless a connection takes a way.
func traced(t *testing.T, conn *sdk.Conn, want []string) {
	t.Helper()
	hops, err := conn.Trace(within(t, networktest.Soon))
	must(t, err)
	var got []string
	for _, h := range hops {
		got = append(got, h.Type+" "+h.ID)
		if h.Error != "" {
			t.Errorf("%s %s says %q", h.Type, h.ID, h.Error)
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("the way is\n%q, not\n%q", got, want)
	}
}

// TestForgedTrace has a host answer what nobody asked, with the numbers of
// requests that the dialer may have open. None of it reaches the dialer, whom
// it would be an answer to something else.
func TestForgedTrace(t *testing.T) {
	n := networktest.New(t, shared)
	router := n.AddRouter("one")
	service := n.AddService("forged", false)
	host := login(t, n, n.AddIdentity("host"))
	hosting, err := host.connect(router, host.token)
	must(t, err)
	h := wire.Headers{}
	h.SetBool(message.HeaderRouterNumbers, true)
	bound(t, hosting, 1, 5, host.session(service, "Bind"), "", h)
	user := login(t, n, n.AddIdentity("user"))
	dialing, err := user.connect(router, user.token)
	must(t, err)
	dial := wire.Headers{}
	dial.SetUint32(message.HeaderConn, 7)
	_, err = dialing.Write((&wire.Frame{Type: message.TypeConnect, Seq: 2, Headers: dial, Body: []byte(user.session(service, "Dial"))}).Append(nil))
	must(t, err)
	asked := next(t, hosting)
	id, _ := asked.Headers.Uint32(message.HeaderRouterNumbers)
	reply := &wire.Frame{Type: message.TypeDialSuccess, Seq: 2, Headers: wire.Headers{}, Body: binary.LittleEndian.AppendUint32(nil, id)}
	reply.Headers.SetUint32(message.HeaderReplyFor, uint32(asked.Seq))
	_, err = hosting.Write(reply.Append(nil))
	must(t, err)
	if f := next(t, dialing); f.Type != message.TypeConnected {
		t.Fatalf("the dial was answered with %d %q", f.Type, f.Body)
	}
	for seq := range int32(20) {
		f := &wire.Frame{Type: message.TypeTraced, Seq: 3 + seq, Headers: wire.Headers{}}
		f.Headers.SetUint32(message.HeaderConn, id)
		f.Headers.SetUint32(message.HeaderTraceSource, uint32(seq))
		_, err = hosting.Write(f.Append(nil))
		must(t, err)
	}
	data := &wire.Frame{Type: message.TypeData, Seq: 30, Headers: wire.Headers{}, Body: []byte("the end")}
	data.Headers.SetUint32(message.HeaderConn, id)
	_, err = hosting.Write(data.Append(nil))
	must(t, err)
	if f := next(t, dialing); f.Type != message.TypeData {
		t.Fatalf("the dialer heard %s", fmt.Sprint(f.Type, f.Headers))
	}
}
