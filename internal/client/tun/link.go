package tun

import (
	"sync"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/header"
	"gvisor.dev/gvisor/pkg/tcpip/stack"
)

// wire is how packets come from the machine and go to it.
type wire interface {
	// read waits for a packet. It returns an error when there will be none any
	// more.
	read() (*stack.PacketBuffer, error)
	write(*stack.PacketBuffer) error
	// capabilities are what need not be done for packets: checksums.
	capabilities() stack.LinkEndpointCapabilities
	// longest is how long a packet may be that is cut into several behind it; 0 if
	// it does not cut.
	longest() uint32
	Close() error
}

// link is the stack's end of the device.
type link struct {
	wire wire
	mtu  uint32
	all  sync.WaitGroup
	over chan struct{} // closed when no packet comes any more

	mu       sync.RWMutex
	upstairs stack.NetworkDispatcher
}

var (
	_ stack.LinkEndpoint = (*link)(nil)
	_ stack.GSOEndpoint  = (*link)(nil)
)

func newLink(w wire, mtu uint32) *link { return &link{wire: w, mtu: mtu, over: make(chan struct{})} }

// Attach says whom packets are for. They are read when the stack is whole.
func (l *link) Attach(to stack.NetworkDispatcher) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.upstairs = to
}

func (l *link) run() {
	defer close(l.over)
	for {
		pkt, err := l.wire.read()
		if err != nil {
			return
		}
		l.mu.RLock()
		to := l.upstairs
		l.mu.RUnlock()
		if to == nil {
			pkt.DecRef()
			return
		}
		if protocol, ok := wanted(pkt); ok {
			to.DeliverNetworkPacket(protocol, pkt)
		}
		pkt.DecRef()
	}
}

// wanted reports which protocol a packet is of, if it is one for us: what goes
// to many at once and what asks whether somebody is there is not. Who answers a
// ping in a server's place says what it does not know.
func wanted(pkt *stack.PacketBuffer) (tcpip.NetworkProtocolNumber, bool) {
	first, ok := pkt.Data().PullUp(1)
	if !ok {
		return 0, false
	}
	switch header.IPVersion(first) {
	case header.IPv4Version:
		b, ok := pkt.Data().PullUp(header.IPv4MinimumSize)
		if !ok {
			return 0, false
		}
		ip := header.IPv4(b)
		to := ip.DestinationAddress()
		many := header.IsV4MulticastAddress(to) || to == header.IPv4Broadcast
		return header.IPv4ProtocolNumber, !many && ip.TransportProtocol() != header.ICMPv4ProtocolNumber
	case header.IPv6Version:
		b, ok := pkt.Data().PullUp(header.IPv6MinimumSize)
		if !ok {
			return 0, false
		}
		ip := header.IPv6(b)
		return header.IPv6ProtocolNumber, !header.IsV6MulticastAddress(ip.DestinationAddress()) && tcpip.TransportProtocolNumber(ip.NextHeader()) != header.ICMPv6ProtocolNumber
	}
	return 0, false
}

// WritePackets hands packets to the machine.
func (l *link) WritePackets(all stack.PacketBufferList) (int, tcpip.Error) {
	n := 0
	for _, pkt := range all.AsSlice() {
		if l.wire.write(pkt) != nil {
			return n, &tcpip.ErrAborted{}
		}
		n++
	}
	return n, nil
}

// What else a link must have.

func (l *link) IsAttached() bool {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return l.upstairs != nil
}
func (l *link) MTU() uint32                                  { return l.mtu }
func (l *link) SetMTU(uint32)                                {}
func (l *link) MaxHeaderLength() uint16                      { return 0 }
func (l *link) LinkAddress() tcpip.LinkAddress               { return "" }
func (l *link) SetLinkAddress(tcpip.LinkAddress)             {}
func (l *link) Capabilities() stack.LinkEndpointCapabilities { return l.wire.capabilities() }
func (l *link) Wait()                                        { l.all.Wait() }
func (l *link) ARPHardwareType() header.ARPHardwareType      { return header.ARPHardwareNone }
func (l *link) AddHeader(*stack.PacketBuffer)                {}
func (l *link) ParseHeader(*stack.PacketBuffer) bool         { return true }
func (l *link) Close()                                       {}
func (l *link) SetOnCloseAction(func())                      {}

// GSOMaxSize and SupportedGSO let the stack write packets that the machine cuts.
func (l *link) GSOMaxSize() uint32 { return l.wire.longest() }
func (l *link) SupportedGSO() stack.SupportedGSO {
	if l.wire.longest() == 0 {
		return stack.GSONotSupported
	}
	return stack.HostGSOSupported
}
