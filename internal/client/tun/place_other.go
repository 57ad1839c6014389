//go:build !linux

package tun

import (
	"errors"
	"net/netip"
	"os"
	"runtime"
	"syscall"

	"golang.zx2c4.com/wireguard/tun"
	"gvisor.dev/gvisor/pkg/buffer"
	"gvisor.dev/gvisor/pkg/tcpip/stack"
)

// place is where a device is in the machine's network.
type place struct {
	name  string
	index int
}

// errElsewhere says what is missing on systems where nobody has tried it.
var errElsewhere = errors.New("services cannot be intercepted on " + runtime.GOOS + " yet, only on Linux: lead local ports to them with netkeep tunnel proxy SERVICE:PORT")

func (p *place) make(Options, netip.Addr) (wire, error) { return nil, errElsewhere }
func (p *place) route([]Route) error                    { return errElsewhere }
func (p *place) leave() error                           { return nil }

// Unseen is the Control of dialers whose connections go where they would without
// any device of ours.
func Unseen(string, string, syscall.RawConn) error { return nil }

// packets is a device that reads and writes several packets at a time.
type packets struct {
	device tun.Device
	bufs   [][]byte
	sizes  []int
	next   int
	got    int
}

// room is what some systems want before a packet.
const room = 16

func newPackets(d tun.Device) *packets {
	p := &packets{device: d, sizes: make([]int, d.BatchSize())}
	for range p.sizes {
		p.bufs = append(p.bufs, make([]byte, room+usualMTU))
	}
	return p
}

func (p *packets) read() (*stack.PacketBuffer, error) {
	for p.next >= p.got {
		n, err := p.device.Read(p.bufs, p.sizes, room)
		if err != nil && !errors.Is(err, tun.ErrTooManySegments) {
			return nil, os.ErrClosed
		}
		p.next, p.got = 0, n
	}
	i := p.next
	p.next++
	return stack.NewPacketBuffer(stack.PacketBufferOptions{Payload: buffer.MakeWithData(p.bufs[i][room : room+p.sizes[i]])}), nil
}

func (p *packets) write(pkt *stack.PacketBuffer) error {
	b := make([]byte, room, room+pkt.Size())
	for _, part := range pkt.AsSlices() {
		b = append(b, part...)
	}
	_, err := p.device.Write([][]byte{b}, room)
	return err
}

func (p *packets) capabilities() stack.LinkEndpointCapabilities { return 0 }
func (p *packets) longest() uint32                              { return 0 }
func (p *packets) Close() error                                 { return p.device.Close() }
