package edge

import (
	"bytes"
	"context"
	"crypto/x509"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"netkeep.internal/internal/router/forward"
	"netkeep.internal/internal/wire"
	"netkeep.internal/internal/wire/channel"
	"netkeep.internal/internal/wire/message"
)

// said are the types of frames that clients send, and one that they do not.
var said = []int32{
	message.TypeConnect, message.TypeConnect, message.TypeBind, message.TypeBind, message.TypeData, message.TypeData,
	message.TypePayload, message.TypeAck, message.TypeStreamControl, message.TypeClosed, message.TypeUnbind, message.TypeUpdateBind,
	message.TypeBindHealth, message.TypeCircuitEnded, message.TypeTraceRoute, message.TypeUpdateToken, message.TypeDialSuccess, message.TypePosture, 77,
}

// saidWith are headers that they send along.
var saidWith = []int32{
	message.HeaderReplyFor, message.HeaderPublicKey, message.HeaderCost, message.HeaderPrecedence, message.HeaderInstance,
	message.HeaderCallerID, message.HeaderDataFlags, message.HeaderRouterNumbers, message.HeaderHealthy, message.HeaderTraceHops,
	message.HeaderBindID, message.HeaderInspectable, message.HeaderTellsBound, message.HeaderSticky, message.HeaderClientFlow,
	message.HeaderStreamFlags, message.HeaderStreamHeld, message.HeaderPayload + 1, message.HeaderPayload + 16,
}

// FuzzClient lets a client say anything in any order: the door neither panics
// nor hangs, still answers when it is asked, and keeps nothing of a client that
// is gone.
func FuzzClient(f *testing.F) {
	f.Add([]byte{2, 1, 0, 1, 7, 1, 0, 2, 0, 1, 4, 2, 0, 3, 4, 3, 0, 3})
	f.Add(bytes.Repeat([]byte{2, 1, 1, 1, 7, 1, 14, 1, 0, 2, 1, 1, 14, 1, 6, 2, 0, 9, 9, 0, 2, 0, 0}, 4))
	f.Fuzz(func(t *testing.T, script []byte) {
		if len(script) > 1000 {
			return
		}
		synctest.Test(t, func(t *testing.T) { (&anybody{t: t, script: script}).run() })
	})
}

// TestHostLeavesWhileDialled: a host that is gone the moment somebody dials it
// takes everything along.
func TestHostLeavesWhileDialled(t *testing.T) {
	script := []byte("\x02\x01\x01\x01\a\x01\x0e\x01\x00\x02\x00\x00\x02dB\x02\x01\x01\x01\a\x01\x0e\x01\x00\x02b%\x0e\x01\x06\x02\x00\t\t\x00\x02\x00\x00")
	for range 300 {
		synctest.Test(t, func(t *testing.T) { (&anybody{t: t, script: script}).run() })
	}
}

// anybody is a client that does what a script says, and the controller that it
// has to do with.
type anybody struct {
	t      *testing.T
	script []byte
	door   *Door
	table  *forward.Table
	of     *identity

	conn    net.Conn
	writing chan struct{} // held by who writes: a lock that time does not wait for
	seq     int32
	probed  chan struct{}

	mu       sync.Mutex
	circuits int
}

func (a *anybody) run() {
	ctx, cancel := context.WithCancel(a.t.Context())
	a.table = forward.New(forward.Options{ID: "r", Now: time.Now, Link: func(string) (forward.Place, bool) { return nil, false }})
	a.door = New(Options{
		ID: "r", Version: "v", Controller: a, Mentions: silent, Table: a.table, Now: time.Now, Log: slog.New(slog.DiscardHandler),
		Meter: func(string, bool) (func(bool, int), func()) { return func(bool, int) {}, func() {} },
	})
	ran := make(chan struct{})
	go func() {
		defer close(ran)
		a.door.Run(ctx)
	}()
	here, there := net.Pipe()
	a.conn, a.writing, a.probed = there, make(chan struct{}, 1), make(chan struct{}, 1)
	c := a.door.newClient("api", []*x509.Certificate{{Raw: []byte("leaf")}}, &channel.Hello{Headers: wire.Headers{}})
	c.entry = Entry{IdentityID: "i", Leave: func() {}}
	if err := a.door.add(c); err != nil {
		a.t.Fatal(err)
	}
	a.of = c.of
	c.ch.Attach(here)
	go a.listen()
	for len(a.script) > 0 {
		a.say(a.frame())
	}
	a.say(&wire.Frame{Type: message.TypeLatency, Headers: wire.Headers{}})
	select {
	case <-a.probed:
	case <-time.After(time.Minute):
		if c.ch.Err() == nil {
			a.t.Error("the door does not answer any more")
		}
	}
	_ = there.Close()
	<-time.After(5 * time.Minute)
	a.left()
	cancel()
	<-ran
}

// left looks for what is still there of a client that is gone.
func (a *anybody) left() {
	if n := a.of.reports.Load(); n != 0 {
		a.t.Errorf("left: %d reports", n)
	}
	if clients, conns := a.door.Count(); clients+conns+len(a.door.identities)+len(a.door.sessions) != 0 {
		a.t.Errorf("left: %d clients, %d connections, %v, %v", clients, conns, a.door.identities, a.door.sessions)
	}
	h := &a.door.hosts
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.byID)+len(h.listeners)+len(h.removals) != 0 {
		a.t.Errorf("left: hosts %v, %v, %v", h.byID, h.listeners, h.removals)
	}
	for i := range a.circuits {
		for _, end := range []string{"start", "end"} {
			if address := fmt.Sprintf("c%d.%s", i, end); a.table.Has(address) {
				a.t.Errorf("left: the end %s", address)
			}
		}
	}
}

func (a *anybody) byte() byte {
	if len(a.script) == 0 {
		return 0
	}
	b := a.script[0]
	a.script = a.script[1:]
	return b
}

// frame is the next thing to say.
func (a *anybody) frame() *wire.Frame {
	f := &wire.Frame{Type: said[int(a.byte())%len(said)], Headers: wire.Headers{}}
	if id := uint32(a.byte()); id < 0x80 {
		f.Headers.SetUint32(message.HeaderConn, id%8)
	} else if id < 0xf0 {
		f.Headers.SetUint32(message.HeaderConn, message.FirstAssigned+id%8)
	}
	f.Body = fmt.Appendf(nil, "c%d", a.byte()%4)
	for range a.byte() % 6 {
		key := saidWith[int(a.byte())%len(saidWith)]
		value := make([]byte, a.byte()%9)
		for i := range value {
			value[i] = a.byte()
		}
		f.Headers[key] = value
	}
	switch f.Type {
	case message.TypePayload:
		f.Headers[message.HeaderStreamCircuit] = f.Body
		f.Headers.SetUint64(message.HeaderStreamSeq, uint64(a.byte()%8))
	case message.TypeAck:
		f.Headers[message.HeaderStreamCircuit] = f.Body
		f.Body = []byte{0, 0, 0, a.byte() % 8}
	}
	return f
}

func (a *anybody) say(f *wire.Frame) {
	a.writing <- struct{}{}
	defer func() { <-a.writing }()
	a.seq++
	f.Seq = a.seq
	_, _ = a.conn.Write(f.Append(nil))
}

// listen takes what the door says, and every connection that it offers.
func (a *anybody) listen() {
	for {
		f, err := wire.Read(a.conn, wire.Bounds{Headers: 1 << 16, Body: 1 << 20})
		if err != nil {
			return
		}
		answer := &wire.Frame{Headers: wire.Headers{}}
		answer.Headers.SetUint32(message.HeaderReplyFor, uint32(f.Seq))
		switch f.Type {
		case message.TypeResult:
			a.probed <- struct{}{}
			continue
		case message.TypeDial:
			answer.Type, answer.Body = message.TypeDialSuccess, binary.LittleEndian.AppendUint32(nil, 6)
		case message.TypeConnInspect:
			answer.Type = message.TypeConnInspected
		default:
			continue
		}
		go a.say(answer)
	}
}

// What follows is the controller: whoever dials reaches somebody who hosts.

func (a *anybody) Enter(context.Context, Entrant) (Entry, error) {
	return Entry{}, errors.New("nobody")
}

func (a *anybody) Dial(ctx context.Context, _ *message.CreateCircuit) (*message.CircuitCreated, error) {
	a.mu.Lock()
	circuit := fmt.Sprintf("c%d", a.circuits)
	a.circuits++
	a.mu.Unlock()
	h := &a.door.hosts
	h.mu.Lock()
	to := ""
	for id := range h.byID {
		to = max(to, id)
	}
	h.mu.Unlock()
	start, end := circuit+".start", circuit+".end"
	if err := a.door.Egress(ctx, "controller", circuit, &message.Egress{Destination: to, Address: end}); err != nil {
		return nil, err
	}
	return &message.CircuitCreated{CircuitID: circuit, Address: start}, a.table.Route(circuit, "controller", []message.Forward{
		{From: start, To: end, Type: message.ToEnd}, {From: end, To: start, Type: message.ToStart},
	})
}

func (a *anybody) Host(_ context.Context, m *message.CreateTerminator) (*message.TerminatorCreated, error) {
	return &message.TerminatorCreated{ID: m.Address, Result: message.TerminatorOK}, nil
}

func (a *anybody) Update(context.Context, *message.UpdateTerminator) error { return nil }
func (a *anybody) Health(*message.HealthEvent)                             {}
func (a *anybody) Report(ctx context.Context, _ string, _ []byte) error {
	select {
	case <-time.After(time.Second):
		return errors.New("not wanted")
	case <-ctx.Done():
		return ctx.Err()
	}
}
func (a *anybody) Remove(context.Context, []string) error { return nil }

// Fault takes the circuit away, as a controller does.
func (a *anybody) Fault(_ string, m message.Fault) {
	go func() {
		<-time.After(time.Second)
		a.table.Unroute(m.ID)
	}()
}
