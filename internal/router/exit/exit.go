// Package exit is where circuits leave the network for an address: a socket of
// TCP or UDP at one side, the end of a stream at the other. What is allowed was
// decided by whoever made the terminator; here it is only done. It must not
// import who makes circuits.
package exit

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"netkeep.internal/internal/router/forward"
	"netkeep.internal/internal/wire/message"
	"netkeep.internal/internal/wire/stream"
)

// Bounds.
const (
	dialTime = 10 * time.Second
	readSize = 32 << 10
	maxOpen  = 10_000
	// idleTime is how long a socket of UDP is kept on which nothing happens: no
	// other end tells that it is done.
	idleTime = 5 * time.Minute
)

// Options of Exits.
type Options struct {
	ID    string // of this router
	Table *forward.Table
	// Fault is told of ends that are over, and to which controller their circuits
	// belong.
	Fault func(owner string, m message.Fault)
	// Meter returns who counts what passes at an end of a circuit, in or out of
	// the network, and is told when it is done.
	Meter func(circuit string, hosts bool) (count func(in bool, bytes int), done func())
	Now   func() time.Time
}

// Exits is the circuits that leave the network here.
type Exits struct {
	Options
	open atomic.Int64
}

// New returns exits of which there are none.
func New(opt Options) *Exits { return &Exits{Options: opt} }

// Len is how many there are.
func (e *Exits) Len() int { return int(e.open.Load()) }

// destination takes the address of a terminator apart.
func destination(text string) (network, address string, err error) {
	network, address, ok := strings.Cut(text, ":")
	if !ok || network != "tcp" && network != "udp" {
		return "", "", &message.RouteFailure{Code: message.RouteMisconfigured, Text: fmt.Sprintf("%q is no address to leave the network for; it should look like tcp:host:port or udp:host:port", text)}
	}
	if _, _, err := net.SplitHostPort(address); err != nil {
		return "", "", &message.RouteFailure{Code: message.RouteMisconfigured, Text: fmt.Sprintf("%q names no host and port", text)}
	}
	return network, address, nil
}

// Dial has a circuit of a controller leave for the address of a terminator, and
// returns what the controller is told of it.
func (e *Exits) Dial(ctx context.Context, owner, circuit string, to *message.Egress) (map[uint32][]byte, error) {
	network, address, err := destination(to.Destination)
	if err != nil {
		return nil, err
	}
	if e.open.Add(1) > maxOpen {
		e.open.Add(-1)
		return nil, &message.RouteFailure{Code: message.RouteNoRoom, Text: fmt.Sprintf("%d circuits leave here already", maxOpen)}
	}
	ctx, cancel := context.WithTimeout(ctx, dialTime)
	defer cancel()
	conn, err := (&net.Dialer{}).DialContext(ctx, network, address)
	if err != nil {
		e.open.Add(-1)
		return nil, explain(err)
	}
	x := &exit{exits: e, owner: owner, circuit: circuit, address: to.Address, conn: conn, datagrams: network == "udp", ready: make(chan struct{}, 1)}
	x.start()
	return map[uint32][]byte{
		message.PeerLocal:  []byte(conn.LocalAddr().String()),
		message.PeerRemote: []byte(conn.RemoteAddr().String()),
	}, nil
}

// explain says why nobody was reached, in the controller's words.
func explain(err error) *message.RouteFailure {
	if timeout, ok := errors.AsType[net.Error](err); ok && timeout.Timeout() {
		return &message.RouteFailure{Code: message.RouteTimeout, Text: err.Error()}
	}
	if errors.Is(err, syscall.ECONNREFUSED) {
		return &message.RouteFailure{Code: message.RouteRefused, Text: err.Error()}
	}
	if _, ok := errors.AsType[*net.DNSError](err); ok {
		return &message.RouteFailure{Code: message.RouteNoName, Text: err.Error()}
	}
	return &message.RouteFailure{Text: err.Error()}
}

// exit is one circuit that leaves.
type exit struct {
	exits     *Exits
	owner     string // the controller that the circuit belongs to
	circuit   string
	address   string
	conn      net.Conn
	datagrams bool
	end       *stream.End
	count     func(in bool, bytes int)
	counted   func()
	ready     chan struct{}
	done      context.Context
	finish    context.CancelFunc
}

func (x *exit) start() {
	e := x.exits
	x.count, x.counted = e.Meter(x.circuit, true)
	x.done, x.finish = context.WithCancel(context.Background())
	x.end = stream.New(stream.Options{
		Circuit: x.circuit, Terminator: true,
		Send:  func(p *stream.Payload, wait bool) bool { return e.Table.Payload(x.address, p, wait) },
		Ack:   func(a *stream.Ack) { e.Table.Ack(x.address, a) },
		Ready: x.stir,
		Done:  x.ended,
		Over:  x.over,
		Now:   e.Now,
	})
	e.Table.AddEnd(x.address, x.end, x.control)
	go x.read()
	go x.write()
}

func (x *exit) stir() {
	select {
	case x.ready <- struct{}{}:
	default:
	}
}

// control answers who asks for the way of the circuit: it ends here.
func (x *exit) control(m *stream.Control) {
	if m.Type == stream.TraceRequest {
		m.Hops = max(m.Hops, 1) - 1
		m.Answer("xgress/transport", x.exits.ID)
		x.exits.Table.Control(x.address, m)
	}
}

// ended tells the controller that this end is done, unless it knows.
func (x *exit) ended(reason error) {
	if !errors.Is(reason, forward.ErrUnrouted) {
		x.exits.Fault(x.owner, message.Fault{Subject: message.FaultEgress, ID: x.circuit})
	}
	x.finish()
}

// over is when the end of the stream may be forgotten.
func (x *exit) over(error) {
	x.exits.Table.Remove(x.address)
	x.exits.open.Add(-1)
	x.counted()
}

// read takes what comes from outside into the stream. Its end is the end of
// this direction only, until the other has ended too.
func (x *exit) read() {
	for {
		if x.datagrams {
			_ = x.conn.SetReadDeadline(x.exits.Now().Add(idleTime))
		}
		buf := make([]byte, readSize)
		n, err := x.conn.Read(buf)
		if n > 0 || x.datagrams && err == nil {
			data := buf[:n:n]
			if n < readSize/2 {
				data = append([]byte(nil), data...) // what waits must not hold more than it is
			}
			x.count(true, n)
			if x.end.Write(x.done, stream.Message{Data: data}) != nil {
				return
			}
		}
		switch {
		case err == nil:
		case x.datagrams || !errors.Is(err, io.EOF):
			_ = x.end.CloseWrite() // what came before is sent again if it has to be
			x.end.CloseRead()
			return
		default:
			if x.end.Write(x.done, stream.Message{Flags: message.DataFIN}) == nil {
				_ = x.end.CloseWrite()
			}
			return
		}
	}
}

// write sends outside what comes from the stream.
func (x *exit) write() {
	for {
		m, ok := x.end.Next()
		if !ok {
			select {
			case <-x.ready:
				continue
			case <-x.done.Done():
				_ = x.conn.Close()
				return
			}
		}
		if m.Err != nil {
			_ = x.conn.Close()
			return
		}
		if len(m.Data) > 0 || x.datagrams && !m.End && m.Flags&message.DataFIN == 0 {
			x.count(false, len(m.Data))
			if _, err := x.conn.Write(m.Data); err != nil && !x.datagrams {
				x.end.CloseRead() // who takes no more may have answered, which is read
			}
		}
		m.Memory.Release()
		if m.End || m.Flags&message.DataFIN != 0 {
			if half, ok := x.conn.(interface{ CloseWrite() error }); ok && !x.datagrams {
				_ = half.CloseWrite()
			}
		}
	}
}
