package tun

import (
	"errors"
	"io"
	"net/netip"
	"time"

	"gvisor.dev/gvisor/pkg/buffer"
	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/adapters/gonet"
	"gvisor.dev/gvisor/pkg/tcpip/checksum"
	"gvisor.dev/gvisor/pkg/tcpip/header"
	"gvisor.dev/gvisor/pkg/tcpip/stack"
	"gvisor.dev/gvisor/pkg/tcpip/transport/udp"
	"gvisor.dev/gvisor/pkg/waiter"
)

// Flow is the datagrams of one sender to one receiver, and those back.
type Flow struct {
	From, To netip.AddrPort

	device  *Device
	request *udp.ForwarderRequest
}

func (d *Device) datagram(r *udp.ForwarderRequest) bool {
	f := &Flow{device: d, request: r}
	f.From, f.To = ends(r.ID())
	return d.opt.Datagrams(f)
}

// Open takes the datagrams: each read is one, and each write. It is called in
// Datagrams, so that the next one of the same sender is of the same flow.
func (f *Flow) Open() (io.ReadWriteCloser, error) {
	var queue waiter.Queue
	ep, err := f.request.CreateEndpoint(&queue)
	if err != nil {
		return nil, errors.New(err.String())
	}
	ep.SocketOptions().SetReceiveBufferSize(waiting, false)
	return &datagrams{gonet.NewUDPConn(&queue, ep)}, nil
}

// waiting is how much of a flow waits to be read; what is more is lost.
const waiting = 256 << 10

type datagrams struct{ *gonet.UDPConn }

// Close also ends a read that waits.
func (d *datagrams) Close() error {
	_ = d.SetDeadline(time.Unix(1, 0))
	return d.UDPConn.Close()
}

// Refuse tells the sender that nobody listens there, as if its last datagram
// had just come.
func (f *Flow) Refuse() {
	if f.To.Addr().Is4() {
		f.device.inject(header.IPv4ProtocolNumber, f.unreachable4())
	} else {
		f.device.inject(header.IPv6ProtocolNumber, f.unreachable6())
	}
}

func (d *Device) inject(protocol tcpip.NetworkProtocolNumber, data []byte) {
	pkt := stack.NewPacketBuffer(stack.PacketBufferOptions{Payload: buffer.MakeWithData(data)})
	defer pkt.DecRef()
	pkt.NetworkProtocolNumber = protocol
	_ = d.link.wire.write(pkt)
}

// hops is how far what we make may travel, where nobody says.
const hops = 64

// quote writes the header of a datagram such as the flow has.
func (f *Flow) quote(b []byte) {
	header.UDP(b).Encode(&header.UDPFields{SrcPort: f.From.Port(), DstPort: f.To.Port(), Length: header.UDPMinimumSize})
}

func (f *Flow) unreachable4() []byte {
	const ip, icmp, all = header.IPv4MinimumSize, header.ICMPv4MinimumSize, 2*header.IPv4MinimumSize + header.ICMPv4MinimumSize + header.UDPMinimumSize
	from, to := address(f.From.Addr()), address(f.To.Addr())
	b := make([]byte, all)
	outer, inner := header.IPv4(b), header.IPv4(b[ip+icmp:])
	outer.Encode(&header.IPv4Fields{TotalLength: all, TTL: hops, Protocol: uint8(header.ICMPv4ProtocolNumber), SrcAddr: to, DstAddr: from})
	inner.Encode(&header.IPv4Fields{TotalLength: ip + header.UDPMinimumSize, TTL: hops, Protocol: uint8(header.UDPProtocolNumber), SrcAddr: from, DstAddr: to})
	inner.SetChecksum(^inner.CalculateChecksum())
	f.quote(b[2*ip+icmp:])
	outer.SetChecksum(^outer.CalculateChecksum())
	said := header.ICMPv4(b[ip:])
	said.SetType(header.ICMPv4DstUnreachable)
	said.SetCode(header.ICMPv4PortUnreachable)
	said.SetChecksum(^checksum.Checksum(b[ip:], 0))
	return b
}

func (f *Flow) unreachable6() []byte {
	const ip, icmp, all = header.IPv6MinimumSize, header.ICMPv6MinimumSize, 2*header.IPv6MinimumSize + header.ICMPv6MinimumSize + header.UDPMinimumSize
	from, to := address(f.From.Addr()), address(f.To.Addr())
	b := make([]byte, all)
	header.IPv6(b).Encode(&header.IPv6Fields{PayloadLength: all - ip, TransportProtocol: header.ICMPv6ProtocolNumber, HopLimit: hops, SrcAddr: to, DstAddr: from})
	header.IPv6(b[ip+icmp:]).Encode(&header.IPv6Fields{PayloadLength: header.UDPMinimumSize, TransportProtocol: header.UDPProtocolNumber, HopLimit: hops, SrcAddr: from, DstAddr: to})
	f.quote(b[2*ip+icmp:])
	said := header.ICMPv6(b[ip:])
	said.SetType(header.ICMPv6DstUnreachable)
	said.SetCode(header.ICMPv6PortUnreachable)
	said.SetChecksum(header.ICMPv6Checksum(header.ICMPv6ChecksumParams{Header: said[:icmp], Src: to, Dst: from, PayloadCsum: checksum.Checksum(b[ip+icmp:], 0), PayloadLen: all - ip - icmp}))
	return b
}
