package tun

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync/atomic"
	"time"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/adapters/gonet"
	"gvisor.dev/gvisor/pkg/tcpip/header"
	"gvisor.dev/gvisor/pkg/tcpip/network/ipv4"
	"gvisor.dev/gvisor/pkg/tcpip/network/ipv6"
	"gvisor.dev/gvisor/pkg/tcpip/stack"
	"gvisor.dev/gvisor/pkg/tcpip/transport/tcp"
	"gvisor.dev/gvisor/pkg/tcpip/transport/udp"
	"gvisor.dev/gvisor/pkg/waiter"
)

const (
	nic = tcpip.NICID(1)
	// maxWishes is how many connections are asked for at once, before anybody has
	// accepted them: further ones are not heard, and programs ask again in a second.
	maxWishes = 1024
	// most and least are what a connection may send before anybody takes it, and
	// have of what goes to it, as there are few or many: all together have about
	// budget.
	least  = 32 << 10
	most   = 1 << 20
	budget = 16 << 20
	// remembered is how long the end of a connection is: packets do not stray
	// between a machine and itself.
	remembered = time.Second
	// alive is when one that says nothing is asked whether it is there: what was
	// passed on may have lost its other end.
	alive = time.Minute
)

// build puts the stack behind the device.
func (d *Device) build() error {
	d.stack = stack.New(stack.Options{
		NetworkProtocols:   []stack.NetworkProtocolFactory{ipv4.NewProtocol, ipv6.NewProtocol},
		TransportProtocols: []stack.TransportProtocolFactory{tcp.NewProtocol, udp.NewProtocol},
	})
	s := d.stack
	sack, moderate, linger := tcpip.TCPSACKEnabled(true), tcpip.TCPModerateReceiveBufferOption(false), tcpip.TCPTimeWaitTimeoutOption(remembered)
	receive := tcpip.TCPReceiveBufferSizeRangeOption{Min: least, Default: most, Max: most}
	send := tcpip.TCPSendBufferSizeRangeOption{Min: least, Default: most, Max: most}
	reno := tcpip.CongestionControlOption("reno") // nothing is lost on the way
	for _, o := range []tcpip.SettableTransportProtocolOption{&sack, &moderate, &linger, &receive, &send, &reno} {
		if err := s.SetTransportProtocolOption(tcp.ProtocolNumber, o); err != nil {
			return failed(err)
		}
	}
	if err := s.CreateNIC(nic, d.link); err != nil {
		return failed(err)
	}
	// It is everybody whom programs want to talk to.
	if err := s.SetPromiscuousMode(nic, true); err != nil {
		return failed(err)
	}
	if err := s.SetSpoofing(nic, true); err != nil {
		return failed(err)
	}
	if err := s.AddProtocolAddress(nic, tcpip.ProtocolAddress{
		Protocol: ipv4.ProtocolNumber, AddressWithPrefix: address(d.own).WithPrefix(),
	}, stack.AddressProperties{}); err != nil {
		return failed(err)
	}
	s.SetRouteTable([]tcpip.Route{{Destination: header.IPv4EmptySubnet, NIC: nic}, {Destination: header.IPv6EmptySubnet, NIC: nic}})
	s.SetTransportProtocolHandler(tcp.ProtocolNumber, tcp.NewForwarder(s, most, maxWishes, d.connect).HandlePacket)
	s.SetTransportProtocolHandler(udp.ProtocolNumber, udp.NewForwarder(s, d.datagram).HandlePacket)
	d.link.all.Go(d.link.run)
	return nil
}

func failed(err tcpip.Error) error {
	return errors.New("the TCP/IP stack cannot be made: " + err.String())
}

func address(a netip.Addr) tcpip.Address { return tcpip.AddrFromSlice(a.AsSlice()) }

func plain(a tcpip.Address, port uint16) netip.AddrPort {
	ip, _ := netip.AddrFromSlice(a.AsSlice())
	return netip.AddrPortFrom(ip, port)
}

// ends are where something comes from and where it was to go.
func ends(id stack.TransportEndpointID) (from, to netip.AddrPort) {
	return plain(id.RemoteAddress, id.RemotePort), plain(id.LocalAddress, id.LocalPort)
}

// Wish is a connection that a program wants. It hears nothing until somebody
// accepts or refuses.
type Wish struct {
	From, To netip.AddrPort

	device  *Device
	request *tcp.ForwarderRequest
}

func (d *Device) connect(r *tcp.ForwarderRequest) {
	w := &Wish{device: d, request: r}
	w.From, w.To = ends(r.ID())
	d.opt.Connect(w)
}

// Refuse tells the program that nobody listens there.
func (w *Wish) Refuse() { w.request.Complete(true) }

// Drop says nothing: the program asks again in a while.
func (w *Wish) Drop() { w.request.Complete(false) }

// Accept connects the program. If the connection is closed before CloseWrite it is
// reset, so that the program does not take a part for everything.
func (w *Wish) Accept() (net.Conn, error) {
	var queue waiter.Queue
	ep, err := w.request.CreateEndpoint(&queue)
	if err != nil {
		w.request.Complete(true)
		return nil, errors.New("the program did not wait: " + err.String())
	}
	w.request.Complete(false)
	d := w.device
	d.mu.Lock()
	d.open++
	size := int64(min(max(budget/2/d.open, least), most))
	d.mu.Unlock()
	o := ep.SocketOptions()
	o.SetReceiveBufferSize(size, true)
	o.SetSendBufferSize(size, true)
	o.SetDelayOption(false)
	o.SetKeepAlive(true)
	idle := tcpip.KeepaliveIdleOption(alive)
	_ = ep.SetSockOpt(&idle)
	return &conn{TCPConn: gonet.NewTCPConn(&queue, ep), ep: ep, device: d}, nil
}

// conn is a connection of a program.
type conn struct {
	*gonet.TCPConn
	ep     tcpip.Endpoint
	device *Device

	wrote, over atomic.Bool
}

// CloseWrite says that nothing follows.
func (c *conn) CloseWrite() error {
	err := c.TCPConn.CloseWrite()
	if err == nil {
		c.wrote.Store(true)
	}
	return err
}

// Close implements net.Conn.
func (c *conn) Close() error {
	if c.over.Swap(true) {
		return nil
	}
	c.device.mu.Lock()
	c.device.open--
	c.device.mu.Unlock()
	if !c.wrote.Load() {
		c.ep.Abort()
	}
	_ = c.SetDeadline(time.Unix(1, 0)) // who reads or writes is to see it
	return c.TCPConn.Close()
}

// ListenTCP and ListenUDP listen at the stack's own address.
func (d *Device) ListenTCP(port uint16) (net.Listener, error) {
	l, err := gonet.ListenTCP(d.stack, tcpip.FullAddress{NIC: nic, Addr: address(d.own), Port: port}, ipv4.ProtocolNumber)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errNoListener, err)
	}
	return l, nil
}

func (d *Device) ListenUDP(port uint16) (net.PacketConn, error) {
	c, err := gonet.DialUDP(d.stack, &tcpip.FullAddress{NIC: nic, Addr: address(d.own), Port: port}, nil, ipv4.ProtocolNumber)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errNoListener, err)
	}
	return c, nil
}
