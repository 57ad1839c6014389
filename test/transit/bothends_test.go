package transit

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"math/rand/v2"
	"testing"
	"time"

	"netkeep.internal/internal/client/sdk"
	"netkeep.internal/internal/wire"
	"netkeep.internal/internal/wire/message"
	"netkeep.internal/internal/wire/stream"
	"netkeep.internal/test/networktest"
)

// TestBothEnds has a client dial what it hosts itself, as both ends of one
// stream: what either says arrives at the other.
func TestBothEnds(t *testing.T) {
	n := networktest.New(t, shared)
	router := n.AddRouter("one")
	service := n.AddService("mine", false)
	me := login(t, n, n.AddIdentity("me"))
	conn, err := me.connect(router, me.token)
	must(t, err)
	h := wire.Headers{}
	h.SetBool(message.HeaderRouterNumbers, true)
	h.SetBool(message.HeaderClientFlow, true)
	bound(t, conn, 1, 5, me.session(service, "Bind"), "", h)

	dial := wire.Headers{}
	dial.SetUint32(message.HeaderConn, 7)
	dial.SetBool(message.HeaderClientFlow, true)
	_, err = conn.Write((&wire.Frame{Type: message.TypeConnect, Seq: 2, Headers: dial, Body: []byte(me.session(service, "Dial"))}).Append(nil))
	must(t, err)
	asked := next(t, conn)
	host, _ := asked.Headers.Uint32(message.HeaderRouterNumbers)
	if asked.Type != message.TypeDial || !asked.Headers.Bool(message.HeaderClientFlow) {
		t.Fatalf("a dial looks like %d %v", asked.Type, asked.Headers)
	}
	reply := &wire.Frame{Type: message.TypeDialSuccess, Seq: 3, Headers: wire.Headers{}, Body: binary.LittleEndian.AppendUint32(nil, host)}
	reply.Headers.SetUint32(message.HeaderReplyFor, uint32(asked.Seq))
	_, err = conn.Write(reply.Append(nil))
	must(t, err)
	connected := next(t, conn)
	circuit := connected.Headers.Text(message.HeaderClientCircuit)
	if connected.Type != message.TypeConnected || circuit == "" {
		t.Fatalf("the dial was answered with %d %q", connected.Type, connected.Body)
	}
	for from, to := range map[uint32]uint32{0: host, stream.FlagTerminator: 7} {
		p := &stream.Payload{Circuit: circuit, Flags: from, Data: []byte("hello")}
		must(t, conn.SetDeadline(time.Now().Add(networktest.Soon)))
		_, err = conn.Write(p.Packet().Append(nil))
		must(t, err)
		f := next(t, conn)
		if id, _ := f.Headers.Uint32(message.HeaderConn); f.Type != message.TypePayload || id != to || string(f.Body) != "hello" {
			t.Fatalf("from side %d came %d %q for connection %d, not %d", from, f.Type, f.Body, id, to)
		}
	}
}

// TestFlowToOneself has a client send much to a service that it hosts itself: what the
// one end has yet to take does not keep the other from saying that it has.
func TestFlowToOneself(t *testing.T) {
	n := networktest.New(t, shared)
	n.AddRouter("one")
	service := n.AddService("mine", true)
	me := n.Client(n.AddIdentity("me"))
	n.Echo(me, service)
	conn, err := me.Dial(t.Context(), service, sdk.DialOptions{})
	must(t, err)
	defer conn.Close()
	must(t, conn.SetDeadline(time.Now().Add(networktest.Soon)))
	want := make([]byte, 24<<20) // more than is on its way at once
	_, _ = rand.NewChaCha8([32]byte{}).Read(want)
	sent := make(chan error, 1)
	go func() {
		_, err := conn.Write(want)
		sent <- errors.Join(err, conn.CloseWrite())
	}()
	got, err := io.ReadAll(conn)
	if err != nil || !bytes.Equal(got, want) {
		t.Errorf("%d of %d bytes came back: %v", len(got), len(want), err)
	}
	must(t, <-sent)
}
